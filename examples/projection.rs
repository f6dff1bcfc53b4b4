//! Of each Pod the fields that are used, and nothing else: `cargo run --example projection`.

use std::collections::BTreeMap;
use std::sync::Arc;

use informant::prelude::*;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

#[derive(Debug, Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct PodView {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    images: Vec<Arc<str>>,
    #[projection(path = "spec.containers[name=app].resources.requests.cpu")]
    cpu: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let api = Api::<Pod>::namespaced(cluster.client(), "default");
    for (name, node, cpu) in [("a", "node-1", "500m"), ("b", "node-2", "1"), ("c", "node-1", "250m")] {
        let container = json!({"name": "app", "image": "busybox:1", "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({"nodeName": node, "containers": [container]});
        let pod = json!({"metadata": {"name": name, "labels": {"app": "demo"}}, "spec": spec});
        api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }

    let stop = CancellationToken::new();
    let factory = InformerFactory::new(&cluster);
    let pods = factory.projection::<PodView>().projected();
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;

    // It keeps the labels, so selectors work.
    for pod in pods.lister().select(&"app=demo".parse()?) {
        let PodView { name, labels, node, images, cpu } = &*pod;
        println!("{name}: {node:?} {images:?} {cpu:?} {labels:?}");
    }
    println!("{} bytes in all", pods.memory().total());
    factory.shutdown().await;
    Ok(())
}
