//! Whatever goes wrong on the way: in the end the cache holds what the server has, and every handler was told a
//! consistent history of it.
//!
//! Between the informer and the embedded server sits a service that refuses, answers with errors, cuts bodies at any
//! byte and splits them into odd chunks, by a seed; meanwhile objects come, change and go and history is compacted.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyDataStream, StreamBody};
use informant_apiserver::ApiServer;
use informant_cache::{Cached, Event, HandlerOptions, InformerFactory, ObjectKey, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::{ServiceExt, service_fn};

use crate::{assert_holds_what_the_server_has, client, config_map};

type Chunks = BoxStream<'static, io::Result<Frame<Bytes>>>;

/// A client whose way to the server is bad while `bad` says so.
fn client_on_a_bad_way(server: &ApiServer, seed: u64, bad: &Arc<AtomicBool>) -> kube::Client {
    let (service, bad) = (server.service(), Arc::clone(bad));
    let rng = Mutex::new(fastrand::Rng::with_seed(seed));
    kube::Client::new(
        service_fn(move |request: Request<Body>| {
            let (service, bad) = (service.clone(), Arc::clone(&bad));
            let mut rng = rng.lock().unwrap().fork();
            async move {
                if bad.load(Ordering::SeqCst) {
                    match rng.u8(..12) {
                        0 => return Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                        1 => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                        2 => return Ok(failure(429, "TooManyRequests")),
                        3 => return Ok(failure(500, "InternalError")),
                        4 => return Ok(failure(503, "ServiceUnavailable")),
                        5 => tokio::time::sleep(Duration::from_secs(rng.u64(..90))).await,
                        _ => {}
                    }
                }
                let (parts, body) = service.oneshot(request).await.map_err(io::Error::other)?.into_parts();
                let chunks = BodyDataStream::new(body).map_err(io::Error::other).boxed();
                let chunks = split(chunks, rng.fork());
                let chunks = if bad.load(Ordering::SeqCst) { cut(chunks, rng) } else { chunks };
                Ok(Response::from_parts(parts, StreamBody::new(chunks.map_ok(Frame::data).boxed() as Chunks)))
            }
        }),
        "default",
    )
}

fn failure(code: u16, reason: &str) -> Response<StreamBody<Chunks>> {
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}).to_string();
    let chunks: Chunks = stream::iter([Ok(Frame::data(Bytes::from(body)))]).boxed();
    Response::builder().status(StatusCode::from_u16(code).unwrap()).body(StreamBody::new(chunks)).unwrap()
}

/// Splits chunks anywhere.
fn split(
    chunks: BoxStream<'static, io::Result<Bytes>>,
    mut rng: fastrand::Rng,
) -> BoxStream<'static, io::Result<Bytes>> {
    let pieces = chunks.map_ok(move |mut chunk| {
        let mut pieces = Vec::new();
        while !chunk.is_empty() {
            let length = rng.usize(1..=chunk.len());
            pieces.push(Ok(chunk.split_to(length)));
        }
        stream::iter(pieces)
    });
    pieces.try_flatten().boxed()
}

/// Ends a body after some bytes, as it should end or as it shouldn't.
fn cut(chunks: BoxStream<'static, io::Result<Bytes>>, mut rng: fastrand::Rng) -> BoxStream<'static, io::Result<Bytes>> {
    let left = rng.usize(..6_000);
    let cut = stream::unfold((chunks, left, rng), |(mut chunks, left, mut rng)| async move {
        if left == 0 {
            let broken = rng.bool().then(|| Err(io::Error::from(io::ErrorKind::ConnectionReset)));
            // After an error nothing more is asked for; after a clean end this is the end.
            return broken.map(|broken| (broken, (stream::empty().boxed(), 1, rng)));
        }
        let mut chunk = chunks.next().await?.ok()?;
        chunk.truncate(left);
        let left = left - chunk.len();
        Some((Ok(chunk), (chunks, left, rng)))
    });
    cut.boxed()
}

/// What a handler was told, checked as it's told.
#[derive(Default)]
struct Told {
    objects: BTreeMap<ObjectKey, Cached<ConfigMap>>,
    wrong: Vec<String>,
}

impl Told {
    fn tell(&mut self, event: &Event<ConfigMap>) {
        let key = event.key().clone();
        let fits = match event {
            Event::Added { object, .. } => self.objects.insert(key, object.clone()).is_none(),
            Event::Updated { old, new } => {
                let changed = old.uid() == new.uid() && old.resource_version() != new.resource_version();
                changed && self.objects.insert(key, new.clone()).is_some_and(|known| known.is_same(old))
            }
            Event::Deleted { .. } => self.objects.remove(&key).is_some(),
        };
        if !fits {
            self.wrong.push(format!("{event:?}"));
        }
    }
}

fn handler(informer: &SharedInformer<ConfigMap>, bound: usize) -> Arc<Mutex<Told>> {
    let told = Arc::new(Mutex::new(Told::default()));
    let to = Arc::clone(&told);
    let options = HandlerOptions::named("told").with_bound(bound);
    informer.on_change_with(options, move |event| to.lock().unwrap().tell(&event)).detach();
    told
}

async fn write_something(api: &Api<ConfigMap>, rng: &mut fastrand::Rng) {
    let name = format!("c{}", rng.usize(..15));
    if api.get_opt(&name).await.unwrap().is_none() {
        api.create(&PostParams::default(), &config_map(&name, "new")).await.unwrap();
    } else if rng.bool() {
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    } else {
        let patch = Patch::Merge(json!({"data": {"value": rng.u32(..).to_string()}}));
        api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    }
}

/// Runs one seed, and tells how many requests failed and how often the present state was taken in again.
async fn run(seed: u64) -> (u64, u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let server = ApiServer::builder().seed(seed).build();
    let (cancel, bad) = (CancellationToken::new(), Arc::new(AtomicBool::new(true)));
    let factory = InformerFactory::builder(client_on_a_bad_way(&server, seed, &bad))
        .seed(seed)
        .watch_list(rng.bool())
        .page_size(rng.u32(..8))
        .build();
    let informer = factory.informer::<ConfigMap>().full();
    let by_value =
        informer.index("value", |object: &ConfigMap| object.data.as_ref().and_then(|data| data.get("value").cloned()));
    let mut handlers = vec![handler(&informer, 1_000)];
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    factory.start(&cancel).unwrap();
    for round in 0..120 {
        write_something(&api, &mut rng).await;
        if rng.u8(..4) == 0 {
            tokio::time::sleep(Duration::from_secs(rng.u64(..40))).await;
        }
        if rng.u8(..6) == 0 {
            server.compact(server.resource_version());
        }
        if round % 40 == 20 {
            handlers.push(handler(&informer, rng.usize(1..6)));
        }
    }
    bad.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(1_500)).await;

    assert_holds_what_the_server_has(&informer, &client(&server)).await;
    let status = informer.status();
    assert_eq!((status.counters.undecodable, status.counters.restarts), (0, 0), "seed {seed}: {status:?}");
    let keys = informer.lister().keys();
    for told in &handlers {
        let told = told.lock().unwrap();
        assert_eq!(told.wrong, Vec::<String>::new(), "seed {seed}");
        assert_eq!(told.objects.keys().cloned().collect::<Vec<_>>(), keys, "seed {seed}");
    }
    let mut indexed: Vec<_> = by_value.values().iter().flat_map(|value| by_value.keys(value)).collect();
    indexed.sort();
    let valued = |key: &&ObjectKey| {
        informer
            .lister()
            .get(key)
            .is_some_and(|object| object.data.as_ref().is_some_and(|data| data.contains_key("value")))
    };
    assert_eq!(indexed, keys.iter().filter(valued).cloned().collect::<Vec<_>>(), "seed {seed}");
    factory.shutdown().await;
    (status.counters.failures, status.counters.relists.values().sum())
}

#[tokio::test(start_paused = true)]
async fn on_a_bad_way_the_cache_ends_with_what_the_server_has_and_handlers_with_a_true_history() {
    let (mut failures, mut relists) = (0, 0);
    for seed in 0..12 {
        let (failed, relisted) = run(seed).await;
        failures += failed;
        relists += relisted;
    }
    assert!(failures > 100 && relists >= 10, "the way wasn't bad: {failures} failures, {relists} relists");
}
