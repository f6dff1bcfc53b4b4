//! A handler that is added late sees the present, then the future: `cargo run --example late_handler`.

use informant::prelude::*;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let stop = CancellationToken::new();
    let factory = InformerFactory::new(&cluster);
    let namespaces = factory.informer::<Namespace>().full();
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;

    // The informer runs and is synced. What it holds comes first, marked as initial, with no gap and no duplicate after it.
    let mut events = namespaces.subscribe();
    let team = json!({"metadata": {"name": "team"}});
    Api::<Namespace>::all(cluster.client()).create(&PostParams::default(), &serde_json::from_value(team)?).await?;

    while let Some(event) = events.next().await {
        println!("{} {}{}", event.kind(), event.key(), if event.is_initial() { " (was there)" } else { "" });
        if event.key().name() == "team" {
            break;
        }
    }
    factory.shutdown().await;
    Ok(())
}
