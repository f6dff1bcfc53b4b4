//! A test of an operator, without a cluster: `cargo test --example test_with_embedded_server`, or `cargo run --example …`.
//!
//! The server is in the process and time is paused: an hour of waiting takes no time, and each run is the same.

use std::time::Duration;

use informant::controller::{ReconcileError, Request};
use informant::prelude::*;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

/// An operator in one function: a ConfigMap `beacon` in each namespace, looked after once an hour.
async fn keep_beacon(client: Client, request: Request) -> Result<Action, ReconcileError> {
    let api = Api::<ConfigMap>::namespaced(client, request.key.name());
    let beacon =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beacon"}, "data": {"lit": "yes"}});
    api.patch("beacon", &PatchParams::apply("beacon-operator"), &Patch::Apply(beacon)).await?;
    Ok(Action::requeue_after(Duration::from_secs(3600)))
}

async fn the_beacon_comes_back() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = informant::embedded();
    let stop = CancellationToken::new();
    let controller = Controller::of::<Namespace>("beacon").reconcile(cluster.client(), keep_beacon);
    let operator = Manager::new(cluster.client()).controller(controller).run(stop.clone());

    let test = async {
        let namespace = json!({"metadata": {"name": "team"}});
        let namespaces = Api::<Namespace>::all(cluster.client());
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        let beacons = Api::<ConfigMap>::namespaced(cluster.client(), "team");
        wait_for_beacon(&beacons, Duration::from_secs(30)).await?;
        beacons.delete("beacon", &DeleteParams::default()).await?;
        wait_for_beacon(&beacons, Duration::from_secs(3630)).await?;
        stop.cancel();
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    let (ended, tested) = tokio::join!(operator, test);
    ended?;
    tested
}

async fn wait_for_beacon(beacons: &Api<ConfigMap>, limit: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let lit = async {
        while beacons.get_opt("beacon").await?.is_none() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        Ok::<(), kube::Error>(())
    };
    Ok(tokio::time::timeout(limit, lit).await??)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    the_beacon_comes_back().await?;
    println!("the beacon is back, after an hour that took no time");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test(start_paused = true)]
    async fn a_deleted_beacon_is_back_within_the_hour() {
        super::the_beacon_comes_back().await.unwrap();
    }
}
