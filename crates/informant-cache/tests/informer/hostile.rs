//! What careless users and broken surroundings do to an informer.

#![allow(
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "misuse takes tasks of its own; each is awaited or dropped on purpose"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{
    Event, HandlerHandle, InformerFactory, InformerState, NamespaceSet, Scope, SharedInformer, WaitUntilError,
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

async fn settle() {
    sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn one_bad_object_in_one_namespace_ends_a_strict_informer_of_several() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["web", "zoo"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).strict().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let mut bad = object("bad", 1);
    bad["data"]["version"] = json!(1);
    let mut others = Vec::new();
    for _ in 0..2 {
        let request = server.request().await;
        if request.path.contains("/web/") {
            request.list("10", &[bad.clone()]);
        } else {
            others.push(request);
        }
    }
    let state = informer.wait_state(|state| matches!(state, InformerState::Failed { .. })).await;
    assert!(state.to_string().contains("web/bad"), "{state}");
    assert!(events.next().await.is_none(), "it ended, not that namespace alone");
    assert!(set.insert("later"));
    assert!(server.is_quiet_for(Duration::from_secs(600)).await);
    assert!(matches!(informer.state(), InformerState::Failed { .. }));
    assert!(informer.wait_synced().await.is_err());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_decoded_in_a_namespace_is_forgotten_with_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["web"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    factory.start(&cancel).unwrap();
    let mut bad = object("bad", 1);
    bad["data"]["version"] = json!(1);
    let _watch = server.sync("10", &[bad]).await;
    settle().await;
    assert_eq!(informer.status().undecodable.len(), 1);
    set.remove("web");
    settle().await;
    assert!(informer.status().undecodable.is_empty(), "{:?}", informer.status().undecodable);
    // Emptied and filled again while it's listed.
    set.insert("web");
    let first = server.request().await;
    set.remove("web");
    settle().await;
    set.insert("web");
    let second = server.request().await;
    first.list("11", &[object("stale", 1)]);
    second.list("12", &[object("fresh", 2)]);
    let _watch = server.request().await.open();
    settle().await;
    let keys: Vec<_> = informer.lister().keys().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["web/fresh"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_namespace_is_named_and_nothing_is_asked() {
    for name in ["", "..", "Web", "web/secrets", "web?x=", "-web"] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced(name)).kept();
        factory.start(&cancel).unwrap();
        let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
        assert!(state.to_string().contains("can't be the name of a namespace"), "{name}: {state}");
        assert!(server.is_quiet_for(Duration::from_secs(600)).await, "{name}");
        assert!(informer.status().counters.failures < 50, "{name}: not hot");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_the_server_refuses_is_named_and_not_hot() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().scope(Scope::all().with_fields("no=such")).kept();
    factory.start(&cancel).unwrap();
    let start = tokio::time::Instant::now();
    let mut asked = 0;
    while start.elapsed() < Duration::from_secs(300) {
        server.request().await.fail(400, "BadRequest");
        asked += 1;
    }
    assert!(asked < 40, "{asked}");
    assert!(matches!(informer.state(), InformerState::Retrying { .. }), "{}", informer.state());
    factory.shutdown().await;
}

/// Everything at once from within a call: reads, waits, new handlers, removal of others, the drop of its own handle, the
/// like informer, and at last the factory's shutdown.
#[tokio::test(start_paused = true)]
async fn a_handler_may_do_everything_from_within_its_call() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let index = informer.index("name", |object: &ConfigMap| object.metadata.name.clone());
    let (others, own): (Arc<Mutex<Vec<HandlerHandle>>>, Arc<Mutex<Option<HandlerHandle>>>) = Default::default();
    others.lock().unwrap().extend((0..3).map(|_| informer.on_change(|_| {})));
    let (calls, inner) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handle = informer.on_change({
        let (factory, informer, others, own) = (factory.clone(), informer.clone(), others.clone(), own.clone());
        let (calls, inner) = (calls.clone(), inner.clone());
        move |event: Event<ConfigMap>| {
            calls.fetch_add(1, Ordering::Relaxed);
            let same: SharedInformer<ConfigMap> = factory.informer::<ConfigMap>().kept();
            assert!(same.lister().get(event.key()).is_some());
            assert_eq!(index.get(&event.key().name().to_owned()).len(), 1);
            assert_eq!(factory.statuses().len(), 1);
            let inner = inner.clone();
            same.on_change(move |_| {
                inner.fetch_add(1, Ordering::Relaxed);
            })
            .detach();
            others.lock().unwrap().clear();
            drop(own.lock().unwrap().take());
            let (factory, informer) = (factory.clone(), informer.clone());
            drop(tokio::spawn(async move {
                informer.wait_until("1").await.unwrap();
                factory.shutdown().await;
            }));
        }
    });
    *own.lock().unwrap() = Some(handle);
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1), object("b", 1)]).await;
    let state = informer.wait_state(|state| *state == InformerState::Stopped).await;
    assert_eq!(state, InformerState::Stopped);
    factory.shutdown().await;
    assert_eq!(calls.load(Ordering::Relaxed), 1, "its handle was dropped within the first call");
    assert!(inner.load(Ordering::Relaxed) <= 2);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_handlers_that_panic_each_time_harm_nobody() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let handles: Vec<_> = (0..2000).map(|_| informer.on_change_async(|_| async { panic!("always") })).collect();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    watch.event("MODIFIED", &object("a", 11));
    assert_eq!(show(&events.next().await.unwrap()), "+!web/a@1");
    assert_eq!(show(&events.next().await.unwrap()), "web/a@1>11");
    settle().await;
    assert!(handles.iter().all(|handle| handle.has_synced() && handle.status().unwrap().panics == 2));
    drop(handles);
    watch.event("MODIFIED", &object("a", 12));
    assert_eq!(show(&events.next().await.unwrap()), "web/a@11>12");
    settle().await;
    assert_eq!(informer.status().handlers.len(), 1, "those that ended are forgotten");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_followed_and_not_compared() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    let opaque = |name: &str, version: &str| {
        let mut object = object(name, 1);
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    factory.start(&cancel).unwrap();
    let watch = server.sync("x-z", &[opaque("a", "x-b")]).await;
    watch.event("MODIFIED", &opaque("a", "x-a"));
    assert_eq!(show(&events.next().await.unwrap()), "+!web/a@x-b");
    assert_eq!(show(&events.next().await.unwrap()), "web/a@x-b>x-a", "the order is the stream's");
    for wanted in ["12", "x-a", ""] {
        assert!(matches!(informer.wait_until(wanted).await, Err(WaitUntilError::NotComparable { .. })), "{wanted:?}");
    }
    watch.end();
    assert_eq!(server.request().await.what(), "WATCH x-a");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn objects_twice_without_uid_or_going_back_in_version_end_as_the_stream_says() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let mut no_uid = object("n", 3);
    no_uid["metadata"].as_object_mut().unwrap().remove("uid");
    let watch = server.sync("10", &[object("a", 5), object("a", 7), no_uid]).await;
    let mut told = [show(&events.next().await.unwrap()), show(&events.next().await.unwrap())];
    told.sort();
    assert_eq!(told, ["+!web/a@7", "+!web/n@3"], "once, as last seen");
    watch.event("MODIFIED", &object("a", 4));
    assert_eq!(show(&events.next().await.unwrap()), "web/a@7>4");
    factory.shutdown().await;
}

#[test]
fn whoever_waits_on_another_runtime_is_let_go_when_the_informers_runtime_ends() {
    let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let away = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cancel = CancellationToken::new();
    let (mut server, factory, informer, late) = home.block_on(async {
        let server = Server::new();
        let factory: InformerFactory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        (server, factory.clone(), informer, factory)
    });
    let mut events = informer.subscribe();
    let handle = informer.on_change(|_| {});
    let _list = home.block_on(server.request());
    drop(home);
    away.block_on(async {
        let ended = tokio::time::timeout(Duration::from_secs(10), async {
            assert!(informer.wait_synced().await.is_err());
            assert!(events.next().await.is_none());
            handle.wait_ended().await;
            assert_eq!(informer.state(), InformerState::Stopped);
            // Made when it's too late.
            let other = late.informer::<ConfigMap>().named("other").kept();
            assert!(other.wait_synced().await.is_err());
            other.stop().await;
            factory.shutdown().await;
        });
        ended.await.expect("somebody still waits");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_starts_and_requests_for_the_like_at_the_same_time_leave_nothing_behind() {
    for round in 0..200 {
        let server = Server::new();
        let factory = server.factory();
        let cancel = CancellationToken::new();
        let informer = factory.informer::<ConfigMap>().kept();
        let start = tokio::spawn({
            let (factory, cancel) = (factory.clone(), cancel.clone());
            async move { drop(factory.start(&cancel)) }
        });
        let like = tokio::spawn({
            let factory = factory.clone();
            async move { factory.informer::<ConfigMap>().kept() }
        });
        let stop = tokio::spawn({
            let informer = informer.clone();
            async move { informer.stop().await }
        });
        if round % 2 == 0 {
            cancel.cancel();
        }
        start.await.unwrap();
        stop.await.unwrap();
        let like = like.await.unwrap();
        assert_eq!(informer.state(), InformerState::Stopped, "round {round}");
        tokio::time::timeout(Duration::from_secs(10), factory.shutdown()).await.expect("shutdown ends");
        assert_eq!(like.state(), InformerState::Stopped, "round {round}");
    }
}
