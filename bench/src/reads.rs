//! What a read of the cache takes, with and without a writer: ours, and kube-rs's store.
//!
//! The reader is a thread of its own. The writer is the informer, which takes in 10,000 events a second.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use informant_cache::{Cluster, Index, InformerFactory, Lister, ObjectKey};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::Api;
use kube::runtime::reflector::{self, ObjectRef, Store, reflector};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Problem;
use crate::client::ClientArgs;
use crate::control::Connection;
use crate::corpus::template::mix;
use crate::measure::{now, percentile};

/// How long each read is repeated.
const WHILE: Duration = Duration::from_secs(2);
/// Events a second, with a writer.
const RATE: u64 = 10_000;

/// Measures reads of Pods; `--form kube-rs` has its store read.
///
/// # Errors
/// If nothing can be read.
pub fn run(args: &ClientArgs) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let found = runtime
        .block_on(async { if args.form == "kube-rs" { of_kube_rs(args).await } else { of_informant(args).await } })?;
    println!("{found}");
    Ok(())
}

/// A read, by name: it's given a number by which it chooses what to read.
type Read = (&'static str, Arc<dyn Fn(u64) + Send + Sync>);

async fn of_informant(args: &ClientArgs) -> Result<Value, Problem> {
    let cluster = Cluster::from_config(args.config().await?)?;
    let factory = InformerFactory::new(&cluster);
    let builder = factory.informer::<Pod>();
    let informer = match args.form.as_str() {
        "packed" => builder.packed(),
        "raw" => builder.raw(),
        _ => builder.full(),
    };
    let index: Index<Pod, String> = informer.index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone());
    let cancel = CancellationToken::new();
    factory.start(&cancel)?;
    factory.wait_for_cache_sync(&cancel).await?;
    let lister = informer.lister();
    let (keys, nodes) = (Arc::new(lister.keys()), Arc::new(index.values()));
    let reads: Vec<Read> = vec![
        ("by key, the handle", by_key(lister.clone(), &keys, |lister, key| drop(black_box(lister.cached(key))))),
        ("by key, the object", by_key(lister.clone(), &keys, |lister, key| drop(black_box(lister.get(key))))),
        ("by index (a node's Pods), the handles", {
            let index = index.clone();
            Arc::new(move |number| drop(black_box(index.cached(&nodes[pick(number, nodes.len())]))))
        }),
        ("all, the handles", Arc::new(move |_| drop(black_box(lister.list_cached())))),
    ];
    let found = measure(args, reads).await;
    cancel.cancel();
    factory.shutdown().await;
    found
}

fn by_key(
    lister: Lister<Pod>,
    keys: &Arc<Vec<ObjectKey>>,
    read: impl Fn(&Lister<Pod>, &ObjectKey) + Send + Sync + 'static,
) -> Arc<dyn Fn(u64) + Send + Sync> {
    let keys = Arc::clone(keys);
    Arc::new(move |number| read(&lister, &keys[pick(number, keys.len())]))
}

async fn of_kube_rs(args: &ClientArgs) -> Result<Value, Problem> {
    let client = Client::try_from(args.config().await?)?;
    let (store, writer) = reflector::store::<Pod>();
    let stream = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff();
    // Without them it's as fast and takes half the memory.
    let stream = stream.modify(|pod| pod.metadata.managed_fields = None);
    let mut running = JoinSet::new();
    running.spawn(async move {
        let mut stream = std::pin::pin!(reflector(writer, stream));
        while stream.next().await.is_some() {}
    });
    store.wait_until_ready().await?;
    let state = store.state();
    let keys: Arc<Vec<ObjectRef<Pod>>> = Arc::new(state.iter().map(|pod| ObjectRef::from_obj(&**pod)).collect());
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let nodes: Arc<Vec<Option<String>>> = Arc::new(state.iter().step_by(20).map(|pod| node(pod)).collect());
    drop(state);
    let (one, two): (Store<Pod>, Store<Pod>) = (store.clone(), store.clone());
    let reads: Vec<Read> = vec![
        ("by key, the object", Arc::new(move |number| drop(black_box(one.get(&keys[pick(number, keys.len())]))))),
        ("by scan for a node's Pods", {
            Arc::new(move |number| {
                let node = &nodes[pick(number, nodes.len())];
                let on_node = |pod: &Pod| pod.spec.as_ref().map(|spec| &spec.node_name) == Some(node);
                drop(black_box(two.state().into_iter().filter(|pod| on_node(pod)).collect::<Vec<_>>()));
            })
        }),
        ("all, the handles", Arc::new(move |_| drop(black_box(store.state())))),
    ];
    measure(args, reads).await
}

fn pick(number: u64, among: usize) -> usize {
    usize::try_from(mix(number) % among.max(1) as u64).unwrap_or(0)
}

async fn measure(args: &ClientArgs, reads: Vec<Read>) -> Result<Value, Problem> {
    let mut control = Connection::open(args.control()).await?;
    let mut found = Vec::new();
    for writer in [false, true] {
        for (name, read) in &reads {
            if writer {
                control.events(RATE * (WHILE.as_secs() + 1), RATE).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            let read = Arc::clone(read);
            let mut times = tokio::task::spawn_blocking(move || repeat(&*read)).await?;
            times.sort_unstable();
            let sum: u64 = times.iter().sum();
            found.push(json!({
                "read": name,
                "writer": if writer { "10,000 events/s" } else { "none" },
                "p50_ns": percentile(&times, 0.5),
                "p99_ns": percentile(&times, 0.99),
                "p999_ns": percentile(&times, 0.999),
                "per_second": times.len() as f64 / (sum as f64 / 1e9),
            }));
            tokio::time::sleep(Duration::from_millis(1000)).await;
        }
    }
    Ok(json!({"reads": found}))
}

/// The time of each read, in nanoseconds; what the clock itself takes is in it.
fn repeat(read: &dyn Fn(u64)) -> Vec<u64> {
    let end = now() + u64::try_from(WHILE.as_nanos()).unwrap_or(0);
    let mut times = Vec::with_capacity(4 << 20);
    let mut number = 0;
    loop {
        let before = now();
        if before > end {
            return times;
        }
        read(number);
        times.push(now() - before);
        number += 1;
    }
}
