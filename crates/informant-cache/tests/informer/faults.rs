//! What an informer does when the server, the connection or the data misbehaves.

use std::time::Duration;

use informant_cache::{InformerState, RelistReason, RequestErrorKind, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, line, next, object, show};

fn version(informer: &SharedInformer<ConfigMap>, name: &str) -> Option<String> {
    let object = informer.lister().get(&format!("web/{name}").parse().unwrap())?;
    object.metadata.resource_version.clone()
}

/// An object of this size, its metadata before its data as API servers write it.
fn huge(name: &str, bytes: usize) -> String {
    let metadata = json!({"name": name, "namespace": "web", "uid": "u", "resourceVersion": "11"});
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata},"data":{{"text":"{}"}}}}"#,
        "x".repeat(bytes)
    )
}

/// Public report C-024 (kubernetes/kubernetes#57705).
#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_decoded_is_skipped_counted_and_named_and_the_rest_goes_on() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let mut bad = object("bad", 2);
    bad["data"] = json!({"replicas": 2});
    let watch = server.sync("10", &[object("good1", 1), bad, object("good2", 3)]).await;
    let initial: Vec<_> = events.wait_initial().await.unwrap().iter().map(show).collect();
    assert_eq!(initial, ["+!web/good1@1", "+!web/good2@3"]);
    let status = informer.status();
    assert_eq!((status.counters.undecodable, status.objects), (1, 2));
    let reason = &status.undecodable["web/bad"];
    assert!(reason.contains("expected a string"), "{reason}");

    // Mended, it's an add. Broken again, its last good state stays, and it's named.
    watch.event("MODIFIED", &object("bad", 11));
    assert_eq!(next(&mut events).await, "+web/bad@11");
    assert!(informer.status().undecodable.is_empty());
    let mut worse = object("good1", 12);
    worse["data"] = json!([]);
    watch.event("MODIFIED", &worse);
    watch.event("MODIFIED", &object("good2", 13));
    assert_eq!(next(&mut events).await, "web/good2@3>13");
    assert_eq!(version(&informer, "good1").as_deref(), Some("1"));
    assert_eq!(informer.status().undecodable.len(), 1);

    // A new list that holds the same bad state reports it no second time, and doesn't take the good one away.
    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    let watch = server.sync("20", &[worse, object("bad", 11), object("good2", 14)]).await;
    assert_eq!(next(&mut events).await, "web/good2@13>14");
    assert_eq!((informer.status().counters.undecodable, informer.status().undecodable.len()), (2, 1));
    // Deleted while bad: gone, with what was known of it.
    watch.event("DELETED", &object("good1", 21));
    assert_eq!(next(&mut events).await, "-web/good1@21");
    assert!(informer.status().undecodable.is_empty());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_utf8_are_one_bad_object() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let broken = |text: String| {
        text.into_bytes().iter().map(|byte| if *byte == b'#' { 0xff } else { *byte }).collect::<Vec<u8>>()
    };
    let mut bad = object("bad", 2);
    bad["data"]["text"] = json!("#");
    let list = broken(crate::scripted::list("10", None, &[object("a", 1), bad]));
    let body = server.request().await.open();
    body.bytes(list);
    body.end();
    let watch = server.request().await.open();
    events.wait_initial().await.unwrap();
    let mut bad = object("a", 11);
    bad["data"]["text"] = json!("#");
    watch.bytes(broken(line("MODIFIED", &bad)));
    watch.event("ADDED", &object("c", 12));
    assert_eq!(next(&mut events).await, "+web/c@12");
    let status = informer.status();
    let named: Vec<_> = status.undecodable.keys().map(ToString::to_string).collect();
    assert_eq!(named, ["web/a", "web/bad"]);
    assert_eq!(version(&informer, "a").as_deref(), Some("1"));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_of_10_mb_is_one_bad_object_and_memory_stays_bounded() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    events.wait_initial().await.unwrap();
    for chunk in format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", huge("huge", 10 << 20)).as_bytes().chunks(64 << 10) {
        watch.bytes(chunk);
    }
    watch.event("MODIFIED", &object("a", 12));
    assert_eq!(next(&mut events).await, "web/a@1>12");
    let status = informer.status();
    assert_eq!(status.undecodable["web/huge"], "the object is larger than 8388608 bytes");
    assert_eq!(status.counters.relists, [].into());
    factory.shutdown().await;
}

/// In a list too, where only the item is skipped.
#[tokio::test(start_paused = true)]
async fn an_item_larger_than_the_bound_is_one_bad_object() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).document_bytes_max(4096).build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let list = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{},{}]}}"#,
        huge("huge", 100_000),
        object("a", 2)
    );
    server.request().await.answer(200, &list);
    assert_eq!(next(&mut events).await, "+!web/a@2");
    let status = informer.status();
    assert_eq!(status.undecodable["web/huge"], "the object is larger than 4096 bytes");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_leads_to_a_new_list() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    events.wait_initial().await.unwrap();
    watch.bytes("<html>bad gateway</html>\n");
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    request.list("20", &[object("a", 15)]);
    assert_eq!(next(&mut events).await, "web/a@1>15");
    let status = informer.status();
    assert_eq!(status.counters.relists, [(RelistReason::Unreadable, 1)].into());
    assert_eq!(status.last_error.unwrap().kind, RequestErrorKind::Malformed);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_cut_off_in_its_middle_is_not_used_and_the_watch_is_resumed_before_it() {
    let whole = line("MODIFIED", &object("a", 11));
    for cut in [1, whole.len() / 2, whole.len() - 2] {
        for broken in [false, true] {
            let (mut server, cancel) = (Server::new(), CancellationToken::new());
            let factory = server.factory();
            let informer = factory.informer::<ConfigMap>().kept();
            factory.start(&cancel).unwrap();
            let watch = server.sync("10", &[object("a", 1)]).await;
            informer.wait_synced().await.unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
            watch.bytes(&whole[..cut]);
            if broken {
                watch.cut();
            } else {
                watch.end();
            }
            assert_eq!(server.request().await.what(), "WATCH 10");
            assert_eq!(version(&informer, "a").as_deref(), Some("1"));
            assert_eq!(informer.status().counters.undecodable, 0);
            factory.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_event_without_its_newline_is_used() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    watch.bytes(line("MODIFIED", &object("a", 11)).trim_end());
    watch.end();
    assert_eq!(server.request().await.what(), "WATCH 11");
    assert_eq!(version(&informer, "a").as_deref(), Some("11"));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_cut_off_in_its_middle_is_asked_for_again_and_nothing_of_it_is_kept() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let whole = crate::scripted::list("10", None, &[object("gone", 1), object("a", 2)]);
    let body = server.request().await.open();
    body.bytes(&whole[..whole.len() - 5]);
    body.end();
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    assert!(matches!(informer.state(), InformerState::Retrying { .. }), "{}", informer.state());
    request.list("11", &[object("a", 2)]);
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.lister().len(), 1);
    factory.shutdown().await;
}

/// client-go fact 28: the server removes an object that it can't read, which no event tells of.
#[tokio::test(start_paused = true)]
async fn a_store_read_error_ends_in_a_list_that_removes_the_object() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("corrupt", 2)]).await;
    events.wait_initial().await.unwrap();
    watch.error(500, "StoreReadError");
    server.sync("20", &[object("a", 1)]).await;
    assert_eq!(next(&mut events).await, "-?web/corrupt@2");
    factory.shutdown().await;
}

/// client-go facts 16 and 14: another kind's event, or a table, is skipped.
#[tokio::test(start_paused = true)]
async fn an_event_of_another_kind_is_skipped_and_says_nothing_of_how_far_we_are() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[]).await;
    watch.event("ADDED", &object("a", 11));
    watch.event("ADDED", &json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "web", "resourceVersion": "12"}}));
    watch.event(
        "ADDED",
        &json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "13"}, "rows": []}),
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    watch.end();
    assert_eq!(server.request().await.what(), "WATCH 11");
    assert_eq!((informer.lister().len(), informer.status().counters.unexpected), (1, 2));
    factory.shutdown().await;
}

/// client-go fact 14.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_a_table_is_an_error_that_says_so() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server
        .request()
        .await
        .answer(200, r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"rows":[]}"#);
    let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
    assert!(state.to_string().contains("configmaps/v1 with a Table"), "{state}");
    factory.shutdown().await;
}

/// A half-open connection: nothing comes any more, not even the end that was asked for.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_beyond_its_end_is_opened_again() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.list("10", &[object("a", 1)]);
    let request = server.request().await;
    let asked: u64 = request.query["timeoutSeconds"].parse().unwrap();
    let started = Instant::now();
    let watch = request.open();
    assert_eq!(server.request().await.what(), "WATCH 10");
    assert_eq!(started.elapsed().as_secs(), asked + 30);
    let error = informer.status().last_error.unwrap();
    assert!(error.message.contains("silent"), "{}", error.message);
    drop(watch);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_and_asked_again() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let unanswered = server.request().await;
    let again = server.request().await;
    again.list("10", &[object("a", 1)]);
    informer.wait_synced().await.unwrap();
    drop(unanswered);
    factory.shutdown().await;
}

/// client-go fact 22, and a connection that nobody listens at: never more than one request per step of the backoff.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_for_a_minute_is_asked_a_few_times_and_resumed_without_a_list() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    events.wait_initial().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    watch.cut();
    let (down, mut asked) = (Instant::now(), 0);
    let request = loop {
        let request = server.request().await;
        assert_eq!(request.what(), "WATCH 10");
        if down.elapsed() > Duration::from_secs(60) {
            break request;
        }
        asked += 1;
        request.refuse();
        informer
            .wait_state(|state| {
                matches!(state, InformerState::Retrying { kind: RequestErrorKind::ConnectionRefused, .. })
            })
            .await;
    };
    assert!((8..=16).contains(&asked), "{asked} requests");
    request.open().event("MODIFIED", &object("a", 11));
    assert_eq!(next(&mut events).await, "web/a@1>11");
    assert_eq!(informer.status().counters.lists, 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_waited_for_emptied_when_it_goes_and_taken_in_when_it_returns() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    server.request().await.answer(404, "404 page not found\n");
    for _ in 0..3 {
        server.discovery(&[]).await;
        let state = informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await;
        assert!(state.to_string().contains("404 page not found"), "{state}");
    }
    server.discovery(&["configmaps"]).await;
    assert!(!informer.has_synced());
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    assert_eq!(events.wait_initial().await.unwrap().len(), 2);
    let since =
        |state: &InformerState| if let InformerState::Missing { since, .. } = state { Some(*since) } else { None };

    // It goes: the server ends the watch, then knows nothing of it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    watch.end();
    server.request().await.fail(404, "NotFound");
    server.discovery(&["pods"]).await;
    server.discovery(&["pods"]).await;
    assert_eq!([next(&mut events).await, next(&mut events).await], ["-?web/a@1", "-?web/b@2"]);
    assert!(informer.lister().is_empty() && informer.lister().namespaces().is_empty());
    let first = since(&informer.wait_state(|state| since(state).is_some()).await);
    server.discovery(&["pods"]).await;

    // It returns, with resource versions that have nothing to do with the old ones.
    server.discovery(&["pods", "configmaps"]).await;
    let request = server.request().await;
    assert_eq!(since(&informer.state()), first, "missing since the first time");
    assert_eq!(request.what(), "LIST");
    request.list("3", &[object("c", 3)]);
    assert_eq!(next(&mut events).await, "+web/c@3");
    assert_eq!(informer.status().counters.relists, [(RelistReason::Returned, 1)].into());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_informer_says_so_at_once_and_goes_on_trying() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.fail(403, "Forbidden");
    let error = factory.wait_for_cache_sync(&cancel).await.unwrap_err();
    assert!(error.to_string().starts_with("not synced: configmaps/v1 (forbidden since "), "{error}");
    assert!(error.to_string().contains("Forbidden! (403)"), "{error}");
    server.sync("10", &[]).await;
    informer.wait_synced().await.unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    factory.shutdown().await;
}

/// client-go facts 6 and 9, on the wire.
#[tokio::test(start_paused = true)]
async fn a_resource_version_the_server_cannot_list_at_is_dropped_at_once() {
    let too_large = r#"{"kind":"Status","code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}}"#;
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).read_from_cache(true).build();
    let _informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("500", &[object("a", 1)]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    let request = server.request().await;
    assert_eq!(request.what(), "LIST 500");
    let asked = Instant::now();
    request.answer(504, too_large);
    let request = server.request().await;
    assert_eq!((request.what().as_str(), asked.elapsed()), ("LIST", Duration::ZERO));
    request.list("110", &[object("a", 1)]);
    assert_eq!(server.request().await.what(), "WATCH 110");
    factory.shutdown().await;
}
