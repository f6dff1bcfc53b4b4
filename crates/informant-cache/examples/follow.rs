//! Follows the Pods of the cluster that the kubeconfig names, prints what happens, and in the end what the cache holds,
//! as `kubectl get pods -A` would sort it.
//!
//! `cargo run -p informant-cache --example follow -- 60` (seconds)

#![allow(clippy::print_stdout, reason = "an example that prints")]

use std::error::Error;
use std::time::Duration;

use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let mut config = kube::Config::infer().await?;
    // The informers retry by themselves, and say so.
    config.default_retry = false;
    let cancel = CancellationToken::new();
    let factory = InformerFactory::new(kube::Client::try_from(config)?);
    let pods = factory.informer::<Pod>().full();
    let _handler = pods.on_change(|event| println!("{} {:?}", event.kind(), event.cached()));
    factory.start(&cancel)?;
    factory.wait_for_cache_sync(&cancel).await?;
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut state = pods.state();
    println!("state: {state}");
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(end) => break,
            now = pods.wait_state(|now| *now != state) => {
                println!("state: {now}");
                state = now;
            }
        }
    }
    for object in pods.lister().keys().iter().filter_map(|key| pods.lister().cached(key)) {
        println!("holds {} {}", object.key(), object.resource_version());
    }
    println!("{}", serde_json::to_string_pretty(&pods.status())?);
    factory.shutdown().await;
    Ok(())
}
