//! An informer, its lister and a handler: `cargo run --example watch_pods`.
//!
//! It runs on the embedded server; with `Cluster::detect().await?` in the place of `informant::embedded()` it runs on yours.

use informant::prelude::*;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let stop = CancellationToken::new();

    // One informer for all who ask for Pods; nothing is sent before `start`.
    let factory = InformerFactory::new(&cluster);
    let pods = factory.informer::<Pod>().full();
    let mut events = pods.subscribe();
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;

    let api = Api::<Pod>::namespaced(cluster.client(), "default");
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}});
    api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    api.delete("web", &DeleteParams::default()).await?;

    // The cache changes first, then the news comes: the lister shows the event's state, or a later one.
    for _ in 0..2 {
        let Some(event) = events.next().await else { break };
        println!("{} {}; {} Pods in the cache", event.kind(), event.key(), pods.lister().len());
    }
    factory.shutdown().await;
    Ok(())
}
