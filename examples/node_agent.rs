//! A mesh's agent on a node, on informers: `cargo run --example node_agent`.
//!
//! It's what Istio's CNI agent does: the node's Pods and all namespaces are synced, then a queue is worked off; a Pod is
//! brought into the mesh when its namespace or its own label says so, and taken out when that ends or the Pod does.
//! Here the mesh only prints. What the agent does and when is in `node_agent/agent.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informant::prelude::*;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

#[path = "node_agent/agent.rs"]
mod agent;

use agent::{AddError, MODE, Mesh, NodeAgent};

/// A mesh whose dataplane connects a little later than the agent begins, and that knows IPv4 only.
#[derive(Default)]
struct Printer {
    connected: AtomicBool,
}

impl Mesh for Printer {
    async fn add(&self, pod: &Pod, ips: &BTreeSet<String>) -> Result<(), AddError> {
        if !self.connected.swap(true, Ordering::Relaxed) {
            return Err(AddError::Later("the dataplane hasn't connected".to_owned()));
        }
        if ips.iter().all(|ip| ip.contains(':')) {
            return Err(AddError::Never("it has IPv6 addresses only".to_owned()));
        }
        println!("into the mesh: {} with {ips:?}", ObjectKey::of(pod));
        Ok(())
    }

    async fn remove(&self, pod: &Pod, ended: bool) -> Result<(), String> {
        println!("out of the mesh: {}{}", ObjectKey::of(pod), if ended { ", which has ended" } else { "" });
        Ok(())
    }

    async fn update_ips(&self, pod: &Pod, ips: &BTreeSet<String>) -> Result<(), String> {
        println!("other addresses: {} has {ips:?}", ObjectKey::of(pod));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let cluster = informant::embedded();
    let stop = CancellationToken::new();
    let factory = InformerFactory::new(&cluster);
    let agent = NodeAgent::new(&cluster, &factory, "node-1", ["kube-system"], Printer::default());
    factory.start(&stop)?;
    factory.wait_for_cache_sync(&stop).await?;
    println!("the dataplane begins with {} Pods", agent.snapshot().len());

    let story = async {
        tell(&cluster, &agent).await?;
        stop.cancel();
        Ok::<(), kube::Error>(())
    };
    let (ended, told) = tokio::join!(agent.run(&stop), story);
    factory.shutdown().await;
    told?;
    Ok(ended?)
}

/// A Pod runs, its namespace enters the mesh, the Pod goes.
async fn tell(cluster: &Cluster, agent: &NodeAgent<Printer>) -> Result<(), kube::Error> {
    let pods = Api::<Pod>::namespaced(cluster.client(), "default");
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "nginx:1.29"}]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).map_err(kube::Error::SerdeError)?).await?;
    let running = json!({"status": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}});
    pods.patch_status("web", &PatchParams::default(), &Patch::Merge(running)).await?;
    let namespaces = Api::<Namespace>::all(cluster.client());
    let labelled = json!({"metadata": {"labels": {MODE: "on"}}});
    namespaces.patch("default", &PatchParams::default(), &Patch::Merge(labelled)).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    match agent.pod_if_wanted(&ObjectKey::namespaced("default", "web")) {
        Ok(wanted) => println!("to be in the mesh: {}", wanted.is_some()),
        Err(unknown) => println!("{unknown}"),
    }
    pods.delete("web", &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(())
}
