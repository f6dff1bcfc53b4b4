//! Loads many ConfigMaps from the embedded server and prints what that cost in time and memory.
//!
//! `cargo run --release -p informant-cache --example load -- 20000`

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example that measures and prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use informant_apiserver::ApiServer;
use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let server = ApiServer::builder().build();
    let client = kube::Client::new(server.service(), "default");
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let started = Instant::now();
    for number in 0..count {
        let data = BTreeMap::from([("text".to_owned(), "x".repeat(1000))]);
        let metadata = ObjectMeta { name: Some(format!("c{number:06}")), ..ObjectMeta::default() };
        api.create(&PostParams::default(), &ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).await?;
    }
    println!("{count} ConfigMaps of 1 kB created in {:.2?}", started.elapsed());

    for (what, watch_list) in [("stream", true), ("list", false)] {
        let before = resident_kib();
        let started = Instant::now();
        let cancel = CancellationToken::new();
        let factory = InformerFactory::builder(client.clone()).watch_list(watch_list).build();
        let informer = factory.informer::<ConfigMap>().full();
        let by_name = informer.index("name", |object: &ConfigMap| object.metadata.name.clone());
        factory.start(&cancel)?;
        factory.wait_for_cache_sync(&cancel).await?;
        let took = started.elapsed();
        let kib = resident_kib().saturating_sub(before);
        let objects = informer.lister().len();
        println!("{what}: {objects} objects synced and indexed in {took:.2?}, {kib} KiB more resident");

        let keys = informer.lister().keys();
        let (lister, started) = (informer.lister(), Instant::now());
        let found = keys.iter().filter(|key| lister.get(key).is_some()).count();
        let per_key = started.elapsed().as_nanos() / found.max(1) as u128;
        let started = Instant::now();
        let indexed: usize = keys.iter().map(|key| by_name.cached(&key.name().to_owned()).len()).sum();
        let per_value = started.elapsed().as_nanos() / indexed.max(1) as u128;
        println!("{what}: {per_key} ns for a get by key, {per_value} ns for one by index");
        factory.shutdown().await;
    }
    Ok(())
}

/// The resident memory of this process; 0 where `/proc` isn't.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
