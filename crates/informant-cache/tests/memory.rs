//! What a cache takes of memory, by a counting allocator. The tests go one after the other: the count is the process's.
//! No clock is read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use informant_apiserver::scripted::{Exchange, Script, Stream};
use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::Secret;
use peak_alloc::PeakAlloc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

const OBJECT_BYTES: usize = 100_000;
const PAGE: usize = 500;

/// Sends some bytes and lets the client take them, so that what waits between the two is no part of the measure.
async fn send(body: &Stream, text: &str) {
    for chunk in text.as_bytes().chunks(32 << 10) {
        body.bytes(chunk);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
}

/// Answers with Secrets, each made when it's sent.
async fn answer(request: Exchange, numbers: std::ops::Range<usize>, token: &str) {
    let body = request.open();
    send(&body, r#"{"kind":"SecretList","apiVersion":"v1","items":["#).await;
    let value = "c2Vj".repeat(OBJECT_BYTES / 4);
    for number in numbers.clone() {
        let separator = if number > numbers.start { "," } else { "" };
        let metadata =
            format!(r#"{{"name":"s{number}","namespace":"web","uid":"u{number}","resourceVersion":"{number}"}}"#);
        send(&body, &format!(r#"{separator}{{"metadata":{metadata},"data":{{"key":"{value}"}}}}"#)).await;
    }
    send(&body, &format!(r#"],"metadata":{{"resourceVersion":"9000","continue":"{token}"}}}}"#)).await;
    body.end();
}

/// Takes in 2,000 Secrets of 100 KB; returns what that took at most and what it takes in the end, in bytes.
async fn taken_in(heeds_limit: bool, metadata: bool) -> (usize, usize) {
    let (mut script, cancel) = (Script::of("v1", "Secret"), CancellationToken::new());
    let client = kube::Client::new(script.service(), "default");
    let factory = InformerFactory::builder(client).watch_list(false).seed(1).build();
    let typed = (!metadata).then(|| factory.informer::<Secret>().full());
    let partial = metadata.then(|| factory.metadata::<Secret>().full());
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    factory.start(&cancel).unwrap();
    let size = if heeds_limit { PAGE } else { 2000 };
    for start in (0..2000).step_by(size) {
        let request = script.request_within(Duration::from_secs(60)).await.unwrap();
        assert_eq!(request.query["limit"], PAGE.to_string());
        assert_eq!(request.header("accept").contains("as=PartialObjectMetadata"), metadata);
        let token = if start + size < 2000 { "next" } else { "" };
        answer(request, start + 1..start + size + 1, token).await;
    }
    let watch = script.request_within(Duration::from_secs(60)).await.unwrap().open();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let (peak, held) = (ALLOCATOR.peak_usage() - before, ALLOCATOR.current_usage() - before);
    let lengths = (typed.map_or(0, |typed| typed.lister().len()), partial.map_or(0, |partial| partial.lister().len()));
    assert_eq!(lengths, if metadata { (0, 2000) } else { (2000, 0) });
    drop(watch);
    factory.shutdown().await;
    (peak, held)
}

/// Public report C-040 (cert-manager/cert-manager#3748).
#[tokio::test]
async fn listing_takes_less_than_two_pages_beside_the_store_whether_or_not_the_server_heeds_the_limit() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for heeds_limit in [true, false] {
        let (peak, held) = taken_in(heeds_limit, false).await;
        // A Secret's values are base64 on the wire, and bytes in memory.
        let objects = 2000 * (OBJECT_BYTES * 3 / 4);
        assert!((objects..objects * 5 / 4).contains(&held), "{held} bytes for {objects}");
        // It's far less: an item at a time is held beside the store.
        assert!(peak - held < 2 * PAGE * OBJECT_BYTES, "{peak} bytes at most, {held} in the end");
        assert!(peak - held < 20 * OBJECT_BYTES, "{peak} bytes at most, {held} in the end");
    }
}

/// Public report C-094 (cert-manager/cert-manager#5721): also from a server that sends whole Secrets all the same.
#[tokio::test]
async fn metadata_of_2000_secrets_takes_a_hundredth_of_them() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (peak, held) = taken_in(true, true).await;
    let objects = 2000 * (OBJECT_BYTES * 3 / 4);
    assert!(held < objects / 50, "{held} bytes for metadata");
    assert!(peak < held + 20 * OBJECT_BYTES, "{peak} bytes at most, {held} in the end");
}
