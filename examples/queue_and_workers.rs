//! A work queue and workers by hand, as one would write them in Go: `cargo run --example queue_and_workers`.
//!
//! `Controller` does this for you; by hand it's an informer, a handler that adds keys, and a loop.

use std::time::Duration;

use informant::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let stop = CancellationToken::new();
    let factory = InformerFactory::new(&cluster);
    let maps = factory.informer::<ConfigMap>().scope(Scope::namespaced("default")).full();

    // Keys only: a worker reads the latest state from the lister, whatever happened since the event.
    let queue = WorkQueue::named("configmaps");
    let add = queue.clone();
    let handler = maps.on_change(move |event| {
        add.add(event.key().clone());
    });
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;

    let worker = async {
        while let Some(item) = queue.next().await {
            match work(&maps.lister(), item.key()) {
                Ok(()) => item.forget(),
                Err(why) => {
                    println!("{}: {why}; again in a moment", item.key());
                    item.retry();
                }
            }
        }
    };
    let story = async {
        let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
        for name in ["settings", "flaky"] {
            let map = json!({"metadata": {"name": name}, "data": {"name": name}});
            api.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let drained = queue.shut_down_with_drain().await;
        println!("{drained:?}");
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    let ((), told) = tokio::join!(worker, story);
    told?;
    handler.remove().await;
    factory.shutdown().await;
    Ok(())
}

/// Fails now and then, so that the retry shows.
fn work(maps: &Lister<ConfigMap>, key: &ObjectKey) -> Result<(), &'static str> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static TRIES: AtomicU32 = AtomicU32::new(0);
    let Some(map) = maps.get(key) else {
        println!("{key}: gone");
        return Ok(());
    };
    if key.name() == "flaky" && TRIES.fetch_add(1, Ordering::Relaxed) < 2 {
        return Err("not this time");
    }
    println!("{key}: {} entries", map.data.as_ref().map_or(0, |data| data.len()));
    Ok(())
}
