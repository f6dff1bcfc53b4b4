//! Streams of the present state from servers that can't, won't, or break off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informant_cache::{DecodeError, Document, Full, Held, InformerState, Representation};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ApiResource;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object};

/// Counts what's decoded.
struct Counting {
    decoded: Arc<AtomicUsize>,
    full: Full<ConfigMap>,
}

impl Representation<ConfigMap> for Counting {
    fn hold(&self, document: &Document<'_>) -> Result<Held<ConfigMap>, DecodeError> {
        self.decoded.fetch_add(1, Ordering::Relaxed);
        self.full.hold(document)
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_stream_that_was_cut_are_not_decoded_again_and_after_three_cuts_they_come_as_a_list() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let decoded = Arc::new(AtomicUsize::new(0));
    let full = Full::new(&ApiResource::erase::<ConfigMap>(&()));
    let informer = factory.informer::<ConfigMap>().held_as(Counting { decoded: Arc::clone(&decoded), full });
    factory.start(&cancel).unwrap();
    let mut cut_at = Instant::now();
    for attempt in 0..3 {
        let request = server.request().await;
        assert_eq!(request.what(), "STREAM");
        assert!(attempt == 0 || cut_at.elapsed() >= Duration::from_millis(800), "never at once");
        let stream = request.open();
        for number in 1..=10 + attempt {
            stream.event("ADDED", &object(&format!("o{number}"), number));
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!informer.has_synced() && informer.lister().is_empty());
        cut_at = Instant::now();
        stream.cut();
    }
    assert_eq!(decoded.load(Ordering::Relaxed), 12, "each once");
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    // One has changed, one is gone, one is new.
    let mut items: Vec<_> = (2..=12).map(|number| object(&format!("o{number}"), number)).collect();
    items[0] = object("o2", 20);
    items.push(object("new", 21));
    request.list("30", &items);
    informer.wait_synced().await.unwrap();
    assert_eq!(decoded.load(Ordering::Relaxed), 14);
    assert_eq!(informer.lister().len(), 12);
    factory.shutdown().await;
}

/// Public report C-033 (gravitational/teleport#64188): a proxy drops bookmarks. And a server before WatchList, which takes
/// the request for a plain watch.
#[tokio::test(start_paused = true)]
async fn without_bookmarks_it_syncs_by_a_list_and_resumes_from_events() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let stream = server.request().await.open();
    stream.event("ADDED", &object("a", 1));
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    request.list("10", &[object("a", 1)]);
    let watch = server.request().await.open();
    informer.wait_synced().await.unwrap();
    watch.event("MODIFIED", &object("a", 12));
    // Silence says nothing of a server that sends no bookmarks.
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert!(informer.status().counters.watch_restarts.is_empty());
    watch.end();
    assert_eq!(server.request().await.what(), "WATCH 12");
    factory.shutdown().await;
}

/// A server (or proxy) without the end mark, and a kind so busy that it's never quiet.
#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_on_and_on_without_its_end_gives_way_to_a_list() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let stream = server.request().await.open();
    let began = Instant::now();
    let mut version = 0;
    let request = loop {
        version += 1;
        stream.event("MODIFIED", &object("a", version));
        if let Some(request) = server.request_within(Duration::from_secs(2)).await {
            break request;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "it never ends");
    };
    assert_eq!(request.what(), "LIST");
    request.list("900", &[object("a", version)]);
    informer.wait_synced().await.unwrap();
    factory.shutdown().await;
}

/// Kubernetes 1.33 without the feature: the parameter is refused, and never asked for again.
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_streams_is_listed_for_good() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let request = server.request().await;
    assert_eq!(request.what(), "STREAM");
    request.fail(422, "Invalid");
    for _ in 0..3 {
        let watch = server.sync("10", &[object("a", 1)]).await;
        informer.wait_synced().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        watch.error(410, "Expired");
    }
    assert_eq!(server.request().await.what(), "LIST");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_permanent_410_is_never_hot_and_what_is_in_the_cache_stays() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let stream = server.request().await.open();
    stream.event("ADDED", &object("a", 1));
    stream.end_of_initial_events("10");
    informer.wait_synced().await.unwrap();
    stream.error(410, "Expired");
    let (began, mut asked) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(600) {
        server.request().await.fail(410, "Expired");
        asked += 1;
    }
    assert!((10..120).contains(&asked), "{asked} requests in ten minutes");
    assert_eq!(informer.lister().len(), 1);
    assert!(matches!(informer.state(), InformerState::Retrying { .. }), "{}", informer.state());
    factory.shutdown().await;
}
