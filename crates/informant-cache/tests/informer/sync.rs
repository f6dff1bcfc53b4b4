//! Taking in the present state and following it.

use std::time::Duration;

use informant_cache::{InformerState, RelistReason, WatchRestartReason};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, keys, list, next, object};

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_followed_by_a_watch_from_its_resource_version() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();

    let request = server.request().await;
    assert_eq!((request.path.as_str(), request.what().as_str()), ("/api/v1/configmaps", "LIST"));
    assert_eq!(request.query["limit"], "500");
    request.page("900", "token", &[object("a", 880), object("b", 12)]);
    let request = server.request().await;
    assert_eq!(request.query["continue"], "token");
    assert!(!informer.has_synced(), "half a list is nothing");
    assert!(informer.lister().is_empty());
    request.list("900", &[object("c", 13)]);

    let watch = server.request().await;
    assert_eq!(watch.what(), "WATCH 900");
    let watch = watch.open();
    informer.wait_synced().await.unwrap();
    assert_eq!(keys(&informer), ["web/a", "web/b", "web/c"]);

    watch.event("MODIFIED", &object("a", 901));
    watch.event("DELETED", &object("b", 902));
    watch.event("ADDED", &object("d", 903));
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(next(&mut events).await);
    }
    assert_eq!(seen, ["+!web/a@880", "+!web/b@12", "+!web/c@13", "web/a@880>901", "-web/b@902", "+web/d@903"]);
    assert_eq!(informer.status().resource_version, "903");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_present_state_is_streamed_and_the_stream_goes_on() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();

    let request = server.request().await;
    assert_eq!(request.what(), "STREAM");
    assert_eq!(request.query["resourceVersionMatch"], "NotOlderThan");
    assert_eq!(request.query["allowWatchBookmarks"], "true");
    let stream = request.open();
    // client-go fact 39: what changes before the end is part of the initial state.
    stream.event("ADDED", &object("p1", 1));
    stream.event("ADDED", &object("p2", 2));
    stream.event("MODIFIED", &object("p1", 3));
    stream.event("ADDED", &object("p3", 4));
    stream.event("DELETED", &object("p3", 5));
    stream.bookmark("5");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!informer.has_synced());
    stream.end_of_initial_events("6");
    assert_eq!([next(&mut events).await, next(&mut events).await], ["+!web/p1@3", "+!web/p2@2"]);
    stream.event("MODIFIED", &object("p2", 7));
    assert_eq!(next(&mut events).await, "web/p2@2>7");
    assert_eq!(informer.status().counters.lists, 1);

    // client-go fact 41.
    tokio::time::sleep(Duration::from_secs(5)).await;
    stream.end();
    assert_eq!(server.request().await.what(), "WATCH 7");
    factory.shutdown().await;
}

/// The server has no end mark for initial events, or a proxy drops bookmarks.
#[tokio::test(start_paused = true)]
async fn initial_events_without_an_end_give_way_to_a_list() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let stream = server.request().await.open();
    stream.event("ADDED", &object("a", 1));
    let request = server.request().await;
    assert_eq!(request.what(), "LIST");
    request.list("5", &[object("a", 1), object("b", 2)]);
    informer.wait_synced().await.unwrap();
    assert_eq!(keys(&informer), ["web/a", "web/b"]);
    factory.shutdown().await;
}

/// client-go fact 40.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_stream_that_ended_early_gets_into_the_store() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let stream = server.request().await.open();
    stream.event("ADDED", &object("gone", 1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    stream.end();
    let stream = server.request().await.open();
    stream.event("ADDED", &object("a", 2));
    stream.end_of_initial_events("3");
    informer.wait_synced().await.unwrap();
    assert_eq!(keys(&informer), ["web/a"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn every_list_and_event_is_read_whatever_its_chunks() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let mut accented = object("a", 1);
    accented["data"]["text"] = json!("é \" \\ } ] \u{1F980}");
    let body = server.request().await.open();
    for byte in list("9", None, &[accented.clone(), object("b", 2)]).bytes() {
        body.bytes([byte]);
    }
    body.end();
    let watch = server.request().await.open();
    for byte in crate::scripted::line("MODIFIED", &object("b", 10)).bytes() {
        watch.bytes([byte]);
    }
    // Two events in one chunk, and a blank line between them.
    let both = ["c", "d"].map(|name| crate::scripted::line("ADDED", &object(name, 11))).join("\r\n");
    watch.bytes(both);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(next(&mut events).await);
    }
    assert_eq!(seen, ["+!web/a@1", "+!web/b@2", "web/b@2>10", "+web/c@11", "+web/d@11"]);
    let held = informer.lister().get(&"web/a".parse().unwrap()).unwrap();
    assert_eq!(json!(held.data), accented["data"]);
    factory.shutdown().await;
}

/// W1 and W21: client-go decodes and, without a resync period, announces every object again. Public reports C-052
/// (kubernetes-client/javascript#2424) and C-060 (grafana/grafana-app-sdk#1352): the delete is a flagged one, not another
/// type.
#[tokio::test(start_paused = true)]
async fn a_new_list_is_a_diff_deletes_first_and_the_unchanged_untouched() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2), object("c", 3)]).await;
    events.wait_initial().await.unwrap();
    let before = informer.lister().get(&"web/a".parse().unwrap()).unwrap();

    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    let request = server.request().await;
    assert_eq!((request.what().as_str(), request.query["limit"].as_str()), ("LIST", "500"));
    // An unchanged object needn't even be one that could be decoded.
    let mut a = object("a", 1);
    a["data"] = json!(5);
    request.list("20", &[a, object("d", 12), object("c", 13)]);
    let seen = [next(&mut events).await, next(&mut events).await, next(&mut events).await];
    assert_eq!(seen, ["-?web/b@2", "+web/d@12", "web/c@3>13"]);
    let after = informer.lister().get(&"web/a".parse().unwrap()).unwrap();
    assert!(std::sync::Arc::ptr_eq(&before, &after), "the object is the same one in memory");
    assert_eq!(informer.status().counters.relists, [(RelistReason::Expired, 1)].into());
    factory.shutdown().await;
}

/// client-go calls this an update, and tells its users to compare the uids.
#[tokio::test(start_paused = true)]
async fn an_object_that_was_deleted_and_created_again_unseen_is_a_delete_and_an_add() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    events.wait_initial().await.unwrap();
    let mut again = object("a", 11);
    again["metadata"]["uid"] = json!("another");
    watch.event("MODIFIED", &again);
    assert_eq!([next(&mut events).await, next(&mut events).await], ["-?web/a@1", "+web/a@11"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_replayed_event_or_a_delete_of_what_was_never_there_is_no_news() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    events.wait_initial().await.unwrap();
    watch.event("ADDED", &object("a", 1));
    watch.event("DELETED", &object("never", 11));
    for _ in 0..3 {
        watch.event("DELETED", &object("b", 12));
    }
    watch.event("MODIFIED", &object("a", 13));
    assert_eq!([next(&mut events).await, next(&mut events).await], ["-web/b@12", "web/a@1>13"]);
    factory.shutdown().await;
}

/// A selector's watch deletes what no longer matches, with whatever labels it then has.
#[tokio::test(start_paused = true)]
async fn a_delete_goes_by_key_whatever_the_object_looks_like() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    let broken = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "web", "uid": "uid-a", "resourceVersion": "11"}, "data": 7});
    let mut events = informer.subscribe();
    informer.wait_synced().await.unwrap();
    watch.event("DELETED", &broken);
    assert_eq!([next(&mut events).await, next(&mut events).await], ["+!web/a@1", "-?web/a@1"]);
    assert!(informer.status().undecodable.is_empty(), "it's gone");
    factory.shutdown().await;
}

/// Public report C-020 (kube-rs/kube#1199).
#[tokio::test(start_paused = true)]
async fn an_empty_list_in_any_form_is_synced_and_empty() {
    for body in [
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[]}"#,
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":null}"#,
        r#"{"metadata":{"resourceVersion":"3"}}"#,
    ] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        let handler = informer.on_change(|_| {});
        factory.start(&cancel).unwrap();
        server.request().await.answer(200, body);
        assert_eq!(server.request().await.what(), "WATCH 3");
        factory.wait_for_cache_sync(&cancel).await.unwrap();
        assert!(handler.wait_synced().await, "no event is needed for that");
        factory.shutdown().await;
    }
}

/// A list without metadata: the watch must not lose what happened meanwhile. Public report C-020 (kube-rs/kube#1199).
#[tokio::test(start_paused = true)]
async fn a_list_without_a_resource_version_is_followed_by_a_watch_that_sends_what_is_there() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.answer(200, r#"{"items":[]}"#);
    let request = server.request().await;
    assert_eq!(request.what(), "WATCH");
    let watch = request.open();
    watch.event("ADDED", &object("a", 1));
    let mut events = informer.subscribe();
    assert_eq!(next(&mut events).await, "+web/a@1");
    factory.shutdown().await;
}

/// client-go fact 26: a bookmark alone moves the point from which a watch is resumed. Public report C-029
/// (kube-rs/kube#219).
#[tokio::test(start_paused = true)]
async fn a_quiet_watch_is_resumed_from_its_last_bookmark_and_repeats_nothing() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("4900", &[object("a", 10)]).await;
    events.wait_initial().await.unwrap();
    watch.bookmark("5000");
    tokio::time::sleep(Duration::from_secs(140)).await;
    watch.end();
    let request = server.request().await;
    assert_eq!(request.what(), "WATCH 5000");
    let watch = request.open();
    watch.event("ADDED", &object("b", 5001));
    assert_eq!(next(&mut events).await, "+web/b@5001");
    let counters = informer.status().counters;
    assert_eq!((counters.watch_restarts, counters.lists), ([(WatchRestartReason::Ended, 1)].into(), 1));
    assert_eq!(informer.state(), InformerState::Synced);
    factory.shutdown().await;
}

/// Public report C-049 (kubernetes-client/javascript#655). Lists leave kind and version out of their items.
#[tokio::test(start_paused = true)]
async fn an_object_is_the_same_by_list_and_by_watch() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let resource = kube::api::ApiResource::erase::<ConfigMap>(&());
    let informer = factory.dynamic(resource).kept();
    factory.start(&cancel).unwrap();
    let bare = |name: &str| -> Value {
        let mut object = object(name, 1);
        object.as_object_mut().unwrap().retain(|field, _| field != "kind" && field != "apiVersion");
        object
    };
    let watch = server.sync("10", &[bare("a")]).await;
    let mut events = informer.subscribe();
    events.wait_initial().await.unwrap();
    watch.event("ADDED", &object("b", 1));
    events.next().await.unwrap();
    let held = |name: &str| {
        let held = informer.lister().get(&format!("web/{name}").parse().unwrap()).unwrap();
        let mut value = serde_json::to_value(&*held).unwrap();
        value["metadata"]["name"] = json!("x");
        value["metadata"]["uid"] = json!("x");
        value
    };
    assert_eq!(held("a"), held("b"));
    assert_eq!(held("a")["kind"], "ConfigMap");
    let by_list = held("a");
    // By a change, and by a list after another state.
    let of_version = |value: &Value, version: &str| {
        let mut value = value.clone();
        value["metadata"]["resourceVersion"] = json!(version);
        value["data"]["version"] = json!(version);
        value
    };
    watch.event("MODIFIED", &object("b", 11));
    events.next().await.unwrap();
    assert_eq!(held("b"), of_version(&by_list, "11"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    let mut relisted = bare("a");
    relisted["metadata"]["resourceVersion"] = json!("12");
    relisted["data"]["version"] = json!("12");
    server.request().await.list("20", &[relisted, object("b", 11)]);
    events.next().await.unwrap();
    assert_eq!(held("a"), of_version(&by_list, "12"));
    assert_eq!(held("a").to_string(), of_version(&by_list, "12").to_string());
    factory.shutdown().await;
}
