//! What ends with an informer or a handler, and how.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use informant_cache::InformerState;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

/// Lets everything that can run, run (in paused time).
async fn settle() {
    sleep(Duration::from_millis(10)).await;
}

/// client-go fact 17.
#[tokio::test(start_paused = true)]
async fn a_stop_before_an_event_is_handled_ends_the_watch_and_is_no_failure() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    // Nothing of the informer runs between these two.
    watch.event("MODIFIED", &object("a", 11));
    informer.stop().await;
    assert!(watch.is_closed());
    let status = informer.status();
    assert_eq!((status.state, status.counters.failures), (InformerState::Stopped, 0));
    assert!(status.last_error.is_none() && status.counters.relists.is_empty());
    assert_eq!(informer.last_store_resource_version(), "10", "the event wasn't taken any more");
    factory.shutdown().await;
}

/// client-go fact 61.
#[tokio::test(start_paused = true)]
async fn everybody_who_waits_for_an_event_is_let_go_by_the_stop() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut subscriptions: Vec<_> = (0..10).map(|_| informer.subscribe()).collect();
    let handlers: Vec<_> = (0..10).map(|_| informer.on_change(|_| {})).collect();
    factory.start(&cancel).unwrap();
    let _list = server.request().await;
    let waiting = join_all(subscriptions.iter_mut().map(|events| events.next()));
    let synced = join_all(handlers.iter().map(|handler| handler.wait_synced()));
    let (events, synced, ()) = tokio::join!(waiting, synced, async {
        settle().await;
        factory.shutdown().await;
    });
    assert!(events.len() == 10 && events.iter().all(Option::is_none));
    assert_eq!(synced, [false; 10]);
}

/// client-go fact 104. The state says what it's doing, so stopped takes the place of started; that it was started, its
/// factory says.
#[tokio::test(start_paused = true)]
async fn an_informer_is_not_started_then_started_then_stopped() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    assert_eq!((informer.state(), factory.is_started()), (InformerState::NotStarted, false));
    factory.start(&cancel).unwrap();
    assert!(factory.is_started());
    let _watch = server.sync("10", &[]).await;
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.state(), InformerState::Synced);
    factory.shutdown().await;
    assert_eq!((informer.state(), factory.is_started()), (InformerState::Stopped, true));
    assert!(informer.has_synced(), "it was");
}

/// Istio fact 6.
#[tokio::test(start_paused = true)]
async fn a_removed_handler_is_told_of_nothing_more_and_the_others_of_everything() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let log = Arc::new(Mutex::new(Vec::new()));
    let [one, other] = ["one", "other"].map(|name| {
        let to = Arc::clone(&log);
        informer.on_change(move |event| to.lock().unwrap().push(format!("{name} {}", show(&event))))
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    assert!(one.wait_synced().await && other.wait_synced().await);
    log.lock().unwrap().clear();
    one.remove().await;
    watch.event("MODIFIED", &object("a", 11));
    settle().await;
    assert_eq!(std::mem::take(&mut *log.lock().unwrap()), ["other web/a@1>11"]);
    other.remove().await;
    watch.event("MODIFIED", &object("a", 12));
    settle().await;
    assert!(log.lock().unwrap().is_empty());
    assert_eq!((informer.last_store_resource_version().as_str(), informer.status().handlers.len()), ("12", 0));
    factory.shutdown().await;
}
