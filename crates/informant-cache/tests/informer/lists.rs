//! Lists: pages, what's consistent, and what the server or a proxy answers instead.

use std::time::Duration;

use informant_cache::{InformerState, RequestErrorKind, Scope, StartError};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, next, object, show};

/// Public report C-036 (folio-pro/kdashboard#70): no partial result is ever published.
#[tokio::test(start_paused = true)]
async fn a_page_that_expired_starts_the_list_over_in_pages_and_each_object_is_there_once() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).page_size(2).build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    server.request().await.page("10", "first", &[object("a", 1), object("gone", 2)]);
    let second = server.request().await;
    assert_eq!(second.query["continue"], "first");
    second.fail(410, "Expired");
    let again = server.request().await;
    assert_eq!((again.what().as_str(), again.query["limit"].as_str()), ("LIST", "2"));
    assert!(!again.query.contains_key("continue") && informer.lister().is_empty());
    again.page("20", "second", &[object("a", 1), object("b", 12)]);
    // Public report C-038 (gardener/dashboard#3271).
    let last = server.request().await;
    assert!(!last.query.contains_key("resourceVersion") && !last.query.contains_key("resourceVersionMatch"));
    last.list("20", &[object("c", 13)]);
    assert_eq!(server.request().await.what(), "WATCH 20");
    let initial: Vec<_> = events.wait_initial().await.unwrap().iter().map(show).collect();
    assert_eq!(initial, ["+!web/a@1", "+!web/b@12", "+!web/c@13"]);
    factory.shutdown().await;
}

/// Public report C-040 (cert-manager/cert-manager#3748): a page at a time, also from a server that ignores the limit.
#[tokio::test(start_paused = true)]
async fn two_thousand_objects_come_in_pages_of_500_or_as_the_server_likes() {
    let all: Vec<_> = (1..=2000).map(|number| object(&format!("o{number}"), number)).collect();
    for heeds in [true, false] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        for (number, page) in all.chunks(if heeds { 500 } else { 2000 }).enumerate() {
            let request = server.request().await;
            assert_eq!((request.what().as_str(), request.query["limit"].as_str()), ("LIST", "500"));
            if heeds && number < 3 {
                request.page("9000", &format!("page{number}"), page);
            } else {
                request.list("9000", page);
            }
        }
        informer.wait_synced().await.unwrap();
        assert_eq!(informer.lister().len(), 2000);
        factory.shutdown().await;
    }
}

/// Public reports C-003 (kubernetes/kubernetes#91073) and C-005 (kubernetes/kubernetes#107133): moved to a server that
/// lags behind, it's synced by the next request, and never falls back to "0".
#[tokio::test(start_paused = true)]
async fn a_server_that_has_not_reached_our_resource_version_is_listed_at_its_newest_once() {
    let too_large = r#"{"kind":"Status","status":"Failure","reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}}"#;
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("110", &[object("a", 1)]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.end();
    let request = server.request().await;
    assert_eq!(request.what(), "WATCH 110");
    request.answer(504, too_large);
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    request.list("100", &[object("a", 1)]);
    assert_eq!(server.request().await.what(), "WATCH 100");
    assert_eq!(informer.state(), InformerState::Synced);
    factory.shutdown().await;
}

/// An API server that goes away while it's listed: cut within a page, then nobody listens, then it's back.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_in_the_middle_of_a_list_is_listed_from_its_beginning_when_it_is_back() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    server.request().await.page("10", "token", &[object("a", 1)]);
    let page = server.request().await.open();
    page.bytes(&crate::scripted::list("10", None, &[object("b", 2), object("c", 3)])[..200]);
    page.cut();
    for _ in 0..3 {
        let request = server.request().await;
        assert!(!request.query.contains_key("continue"));
        request.refuse();
    }
    assert!(informer.lister().is_empty());
    server.sync("20", &[object("a", 1), object("c", 13)]).await;
    let initial: Vec<_> = events.wait_initial().await.unwrap().iter().map(show).collect();
    assert_eq!(initial, ["+!web/a@1", "+!web/c@13"]);
    factory.shutdown().await;
}

/// A cache must never be emptied by an answer that's about something else.
#[tokio::test(start_paused = true)]
async fn an_answer_with_success_that_is_no_list_is_a_failure_and_nothing_is_taken_away() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    for (body, kind) in [
        (r#"{"error":"please sign in"}"#, RequestErrorKind::Malformed),
        ("<html>sign in</html>", RequestErrorKind::Malformed),
        ("", RequestErrorKind::Malformed),
        (r#"{"kind":"Status","apiVersion":"v1","metadata":{},"code":500,"message":"no"}"#, RequestErrorKind::Server),
    ] {
        server.request().await.answer(200, body);
        let failed =
            informer.wait_state(|state| matches!(state, InformerState::Retrying { kind: shown, .. } if *shown == kind));
        tokio::time::timeout(Duration::from_secs(1), failed).await.expect(body);
        assert_eq!(informer.lister().len(), 1);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    factory.shutdown().await;
}

/// Public reports C-025 (strimzi/strimzi-kafka-operator#4538) and C-024 (kubernetes/kubernetes#57705).
#[tokio::test(start_paused = true)]
async fn a_time_that_is_none_makes_one_bad_object() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let dated = |name: &str, time: &str| {
        let mut object = object(name, 1);
        object["metadata"]["creationTimestamp"] = json!(time);
        object
    };
    let good = [
        "2021-03-09T10:32:01Z",
        "2021-03-09T10:32:01.5Z",
        "2021-03-09T10:32:01.123456789Z",
        "2021-03-09T10:32:01+02:00",
    ];
    let mut items: Vec<_> = good.iter().enumerate().map(|(at, time)| dated(&format!("good{at}"), time)).collect();
    // An offset without its colon isn't of RFC 3339, so nothing of ours writes it; there's no doubt what it means, though.
    items.push(dated("loose", "2021-03-09T10:32:01+0000"));
    items.push(dated("bad", "nine o'clock"));
    server.sync("10", &items).await;
    informer.wait_synced().await.unwrap();
    let status = informer.status();
    assert_eq!((informer.lister().len(), status.undecodable.len()), (5, 1));
    let time = |name: &str| {
        let map = informer.lister().get(&format!("web/{name}").parse().unwrap()).unwrap();
        serde_json::to_value(&map.metadata.creation_timestamp).unwrap()
    };
    assert_eq!((time("loose"), time("good3")), (time("good0"), json!("2021-03-09T08:32:01Z")));
    let reason = &status.undecodable["web/bad"];
    assert!(reason.starts_with("metadata.creationTimestamp") && !reason.contains("o'clock"), "{reason}");
    factory.shutdown().await;
}

/// Public report C-026 (coralogix/zio-k8s#144).
#[tokio::test(start_paused = true)]
async fn a_null_time_is_no_time() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<Event>().kept();
    factory.start(&cancel).unwrap();
    let event = r#"{"metadata":{"name":"e","namespace":"web","uid":"u","resourceVersion":"1","creationTimestamp":null},"eventTime":null,"series":null,"lastTimestamp":null,"involvedObject":{}}"#;
    let body =
        format!(r#"{{"kind":"EventList","apiVersion":"v1","metadata":{{"resourceVersion":"3"}},"items":[{event}]}}"#);
    server.request().await.answer(200, body);
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.lister().list()[0].event_time, None);
    factory.shutdown().await;
}

/// No value of a Secret in a status.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_shown_by_its_path_and_not_by_its_values() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<k8s_openapi::api::core::v1::Secret>().kept();
    factory.start(&cancel).unwrap();
    let secret = json!({"metadata": {"name": "s", "namespace": "web", "uid": "u", "resourceVersion": "1"}, "stringData": "hunter2"});
    let list =
        json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "3"}, "items": [secret]});
    server.request().await.answer(200, list.to_string());
    informer.wait_synced().await.unwrap();
    let status = serde_json::to_string(&informer.status()).unwrap();
    assert!(status.contains("stringData: invalid type: string, expected a map"), "{status}");
    assert!(!status.contains("hunter2"));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn first_lists_are_taken_in_a_few_at_a_time_and_one_that_fails_makes_room() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).first_lists(1).build();
    let informers = ["a", "b", "c"].map(|name| factory.informer::<ConfigMap>().scope(Scope::namespaced(name)).kept());
    factory.start(&cancel).unwrap();
    let first = server.request().await;
    assert!(server.is_quiet_for(Duration::from_secs(5)).await);
    let waiting = informers.iter().filter(|informer| matches!(informer.state(), InformerState::Waiting { .. })).count();
    assert_eq!(waiting, 2);
    first.fail(500, "InternalError");
    let second = server.request().await;
    second.list("10", &[]);
    let mut asked = vec![server.request().await.what(), server.request().await.what()];
    asked.sort_unstable();
    assert_eq!(asked, ["LIST", "WATCH 10"]);
    factory.shutdown().await;
}

/// Whatever one informer's trouble is, another's events are handled as they come.
#[tokio::test(start_paused = true)]
async fn one_bad_kind_never_slows_another() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let good = factory.informer::<ConfigMap>().kept();
    let bad = factory.informer::<k8s_openapi::api::core::v1::Secret>().kept();
    let mut events = good.subscribe();
    factory.start(&cancel).unwrap();
    let (mut watch, mut failed) = (None, 0);
    while watch.is_none() || failed < 5 {
        let request = server.request().await;
        if request.path.ends_with("secrets") {
            failed += 1;
            request.fail(500, "InternalError");
        } else if request.what() == "LIST" {
            request.list("10", &[object("a", 1)]);
        } else {
            watch = Some(request.open());
        }
    }
    let watch = watch.unwrap();
    events.wait_initial().await.unwrap();
    for version in 11..20 {
        let sent = Instant::now();
        watch.event("MODIFIED", &object("a", version));
        next(&mut events).await;
        assert_eq!(sent.elapsed(), Duration::ZERO);
    }
    assert!(matches!(bad.state(), InformerState::Retrying { .. }));
    factory.shutdown().await;
}

/// Public report C-013 (kubernetes-client/javascript#1933).
#[tokio::test(start_paused = true)]
async fn starting_again_at_each_error_starts_nothing_twice() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let (began, mut asked) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(10) {
        server.request().await.refuse();
        asked += 1;
        assert_eq!(factory.start(&cancel), Err(StartError::AlreadyStarted));
    }
    assert!((3..=9).contains(&asked), "{asked} requests");
    let watch = server.sync("10", &[]).await;
    informer.wait_synced().await.unwrap();
    assert!(server.is_quiet_for(Duration::from_secs(60)).await, "one watch is open, and no other");
    drop(watch);
    factory.shutdown().await;
}
