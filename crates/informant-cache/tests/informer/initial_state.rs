//! When a handler has seen everything that was there at its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informant_cache::{NamespaceSet, Scope};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

/// Lets everything that can run, run (in paused time).
async fn settle() {
    sleep(Duration::from_millis(10)).await;
}

/// client-go fact 59: nothing taken in, not synced; an empty state, synced; two objects, synced when both are taken.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_synced_when_the_whole_initial_state_was_taken() {
    for objects in [0, 2] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        let request = server.request().await;
        assert!(futures::poll!(std::pin::pin!(events.next())).is_pending() && !events.has_synced());
        request.list("10", &[object("a", 1), object("b", 2)][..objects]);
        let watch = server.request().await.open();
        informer.wait_synced().await.unwrap();
        for name in &["a", "b"][..objects] {
            assert!(!events.has_synced());
            assert_eq!(events.next().await.unwrap().key().name(), *name);
        }
        assert!(!events.has_synced(), "nobody has seen yet that this was the last one");
        assert!(futures::poll!(std::pin::pin!(events.next())).is_pending() && events.has_synced());
        watch.event("ADDED", &object("c", 11));
        assert_eq!(show(&events.next().await.unwrap()), "+web/c@11");
        factory.shutdown().await;
    }
}

/// client-go facts 60 and 64: it isn't synced before the last initial call has returned, and no event of later goes
/// before that. client-go handles in batches; here a call has one event.
#[tokio::test(start_paused = true)]
async fn a_handler_is_not_synced_while_it_handles_the_last_of_the_initial_state() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (begun, permits) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(1)));
    let (count, gate) = (Arc::clone(&begun), Arc::clone(&permits));
    let handler = informer.on_change_async(move |event| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(event.is_initial(), number < 2);
        let gate = Arc::clone(&gate);
        async move { gate.acquire().await.unwrap().forget() }
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    watch.event("MODIFIED", &object("a", 11));
    settle().await;
    assert_eq!((begun.load(Ordering::SeqCst), informer.lister().len()), (2, 2));
    assert!(informer.has_synced() && !handler.has_synced(), "the second call is running");
    permits.add_permits(1);
    settle().await;
    assert!(handler.has_synced() && begun.load(Ordering::SeqCst) == 3, "the change is being handled");
    assert_eq!(handler.status().unwrap().panics, 0);
    permits.add_permits(1);
    factory.shutdown().await;
}

/// client-go fact 115: having handled what came isn't enough before the informer has everything, nor is that enough
/// while something of it is being handled. (A count that goes below zero can't be, so there's no panic about it.)
#[tokio::test(start_paused = true)]
async fn a_handler_is_synced_when_the_informer_is_and_nothing_of_its_state_is_left_to_handle() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["one", "two"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    let (returned, permits) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(1)));
    let (count, gate) = (Arc::clone(&returned), Arc::clone(&permits));
    let handler = informer.on_change_async(move |_| {
        let (count, gate) = (Arc::clone(&count), Arc::clone(&gate));
        async move {
            gate.acquire().await.unwrap().forget();
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    factory.start(&cancel).unwrap();
    let object = |namespace: &str| {
        let mut object = object("a", 1);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["uid"] = json!(namespace);
        object
    };
    let (first, second) = (server.request().await, server.request().await);
    let namespace = |path: &str| path.split('/').nth(4).unwrap().to_owned();
    let (one, two) = (namespace(&first.path), namespace(&second.path));
    first.list("10", &[object(&one)]);
    let _first = server.request().await.open();
    settle().await;
    assert_eq!(returned.load(Ordering::SeqCst), 1);
    assert!(!informer.has_synced() && !handler.has_synced(), "it has handled all that came, and there's more to come");
    second.list("12", &[object(&two)]);
    let _second = server.request().await.open();
    informer.wait_synced().await.unwrap();
    settle().await;
    assert!(!handler.has_synced(), "everything is there, and not handled");
    permits.add_permits(1);
    settle().await;
    assert!(handler.has_synced() && returned.load(Ordering::SeqCst) == 2);
    factory.shutdown().await;
}
