//! What handlers are told of when everything is listed anew.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{Event, FinalState};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

/// client-go facts 52 and 68: the missed deletes go first, each once and with the state that was told last, however much
/// of it still waits to be taken; what was deleted by an event isn't deleted again. Then the others, in the order of the
/// list. client-go fact 109: such a delete has the whole object, key and flag.
#[tokio::test(start_paused = true)]
async fn a_list_deletes_first_and_once_and_then_goes_by_its_order() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2), object("c", 3)]).await;
    events.wait_initial().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    watch.event("DELETED", &object("a", 11));
    watch.event("MODIFIED", &object("b", 12));
    // Added and gone between two looks of whoever takes the events.
    watch.event("ADDED", &object("d", 13));
    watch.error(410, "Expired");
    server.request().await.list("20", &[object("z", 15), object("c", 16), object("e", 17)]);
    let _watch = server.request().await.open();
    sleep(Duration::from_secs(1)).await;
    let (mut seen, mut deleted) = (Vec::new(), Vec::new());
    while seen.len() < 8 {
        let event = events.next().await.unwrap();
        seen.push(show(&event));
        if matches!(event, Event::Deleted { final_state: FinalState::Unknown, .. }) {
            deleted.push(event);
        }
    }
    assert_eq!(seen[..3], ["-web/a@11", "web/b@2>12", "+web/d@13"]);
    assert_eq!(seen[3..], ["-?web/b@12", "-?web/d@13", "+web/z@15", "web/c@3>16", "+web/e@17"]);
    assert_eq!(events.status().queued, 0);
    let (key, last) = (deleted[0].key(), deleted[0].object());
    assert_eq!((key.namespace(), key.name(), key.as_str()), (Some("web"), "b", "web/b"));
    assert_eq!(last.data.as_ref().unwrap()["version"], "12", "the last state that's known");
    factory.shutdown().await;
}

/// client-go fact 105: when a handler is told, the store is at the list's version already.
#[tokio::test(start_paused = true)]
async fn the_store_is_at_the_version_of_a_list_when_its_first_change_is_told() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (to, own) = (Arc::clone(&log), informer.clone());
    let handler = informer.on_change(move |event| {
        to.lock().unwrap().push(format!("{} at {}", show(&event), own.last_store_resource_version()));
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    assert!(handler.wait_synced().await);
    sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    server.request().await.list("20", &[object("c", 12), object("b", 13)]);
    let _watch = server.request().await.open();
    sleep(Duration::from_secs(1)).await;
    let expected = ["+!web/a@1 at 10", "+!web/b@2 at 10", "-?web/a@1 at 20", "+web/c@12 at 20", "web/b@2>13 at 20"];
    assert_eq!(*log.lock().unwrap(), expected);
    handler.remove().await;
    factory.shutdown().await;
}

/// client-go facts 75, 76 and 77: the store's version is that of the last change, whatever its kind, of the last of a
/// batch, of a bookmark, and of a list, even of one that went back.
#[tokio::test(start_paused = true)]
async fn the_store_s_version_is_the_last_that_the_server_named() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let at = || async {
        sleep(Duration::from_millis(10)).await;
        informer.last_store_resource_version()
    };
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    assert_eq!(at().await, "10");
    watch.event("ADDED", &object("b", 20));
    assert_eq!(at().await, "20");
    watch.event("MODIFIED", &object("b", 20));
    assert_eq!(at().await, "20");
    watch.event("DELETED", &object("b", 30));
    assert_eq!(at().await, "30");
    let line = |kind, name, version| crate::scripted::line(kind, &object(name, version));
    watch.bytes(line("ADDED", "c", 40) + &line("MODIFIED", "a", 30) + &line("ADDED", "d", 50));
    assert_eq!(at().await, "50");
    watch.bookmark("60");
    assert_eq!(at().await, "60");
    sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    server.request().await.list("45", &[]);
    let _watch = server.request().await.open();
    assert_eq!((at().await.as_str(), informer.lister().len()), ("45", 0));
    factory.shutdown().await;
}
