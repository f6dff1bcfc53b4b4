//! An index of your own, added while the informer runs: `cargo run --example own_index`.

use informant::prelude::*;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let api = Api::<Pod>::namespaced(cluster.client(), "default");
    for (name, node) in [("a", "node-1"), ("b", "node-2"), ("c", "node-1")] {
        let spec = json!({"nodeName": node, "containers": [{"name": "app", "image": "busybox:1"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }

    let stop = CancellationToken::new();
    let factory = InformerFactory::new(&cluster);
    let pods = factory.informer::<Pod>().full();
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;

    // What is cached already is indexed at once; later changes move with the store.
    let by_node = pods.index("node", |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    let mut nodes = by_node.values();
    nodes.sort();
    for node in nodes {
        let names: Vec<String> = by_node.get(&node).iter().map(|pod| pod.name_any()).collect();
        println!("{node}: {}", names.join(", "));
    }
    factory.shutdown().await;
    Ok(())
}
