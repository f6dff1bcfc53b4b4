//! Handlers: independent, late, slow, panicking, added and removed at run time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{Event, HandlerOptions, Overflow};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

type Log = Arc<Mutex<Vec<String>>>;

fn recorder() -> (Log, impl FnMut(Event<ConfigMap>) + Send + 'static) {
    let log = Log::default();
    let to = Arc::clone(&log);
    (log, move |event| to.lock().unwrap().push(show(&event)))
}

/// Lets everything that can run, run (in paused time).
async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// client-go facts 95, 96 and 106.
#[tokio::test(start_paused = true)]
async fn a_late_handler_sees_the_present_and_then_the_future() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (early_log, early) = recorder();
    let early = informer.on_change(early);
    settle().await;
    assert!(!early.has_synced(), "not before the informer is");
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    assert!(early.wait_synced().await);
    watch.event("MODIFIED", &object("a", 11));
    settle().await;

    let (late_log, late) = recorder();
    let late = informer.on_change(late);
    assert!(!late.has_synced(), "it hasn't seen anything yet");
    assert!(late.wait_synced().await);
    watch.event("MODIFIED", &object("a", 12));
    settle().await;
    assert_eq!(*early_log.lock().unwrap(), ["+!web/a@1", "web/a@1>11", "web/a@11>12"]);
    assert_eq!(*late_log.lock().unwrap(), ["+!web/a@11", "web/a@11>12"]);
    factory.shutdown().await;
}

/// Decision: first the store, then the news. Public report C-043 (fabric8io/kubernetes-client#2994).
#[tokio::test(start_paused = true)]
async fn a_handler_that_reads_the_lister_sees_the_state_of_its_event_or_a_later_one() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let lister = informer.lister();
    let by_version = informer.index("version", |object: &ConfigMap| object.metadata.resource_version.clone());
    let earlier = Arc::new(AtomicBool::new(false));
    let found_earlier = Arc::clone(&earlier);
    let number = |object: &ConfigMap| object.metadata.resource_version.as_ref().unwrap().parse::<u64>().unwrap();
    let handler = informer.on_change(move |event| {
        let told = number(&event.object());
        let held = lister.get(event.key()).map(|object| number(&object));
        let deleted = matches!(event, Event::Deleted { .. });
        let consistent = held.map_or(deleted, |held| held >= told);
        let indexed = held.is_none_or(|held| by_version.get(&held.to_string()).len() <= 1);
        if !(consistent && indexed) {
            found_earlier.store(true, Ordering::SeqCst);
        }
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    for version in 11..200 {
        match version % 10 {
            0 => watch.event("DELETED", &object("b", version)),
            1 => watch.event("ADDED", &object("b", version)),
            _ => watch.event("MODIFIED", &object("a", version)),
        }
    }
    settle().await;
    assert_eq!(handler.status().unwrap().queued, 0);
    assert!(!earlier.load(Ordering::SeqCst));
    factory.shutdown().await;
}

/// client-go facts 92, 93 and 97.
#[tokio::test(start_paused = true)]
async fn registrations_are_independent_and_a_removed_one_gets_nothing_more() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (kept_log, kept) = recorder();
    let (removed_log, removed) = recorder();
    let (dropped_log, dropped) = recorder();
    let (detached_log, detached) = recorder();
    let _kept = informer.on_change(kept);
    let removed = informer.on_change(removed);
    let dropped = informer.on_change(dropped);
    informer.on_change(detached).detach();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    settle().await;
    removed.remove().await;
    drop(dropped);
    watch.event("MODIFIED", &object("a", 11));
    settle().await;
    assert_eq!(removed_log.lock().unwrap().len(), 1);
    assert_eq!(dropped_log.lock().unwrap().len(), 1);
    assert_eq!(kept_log.lock().unwrap().len(), 2);
    assert_eq!(detached_log.lock().unwrap().len(), 2);
    assert_eq!(informer.status().handlers.len(), 2);
    factory.shutdown().await;
}

/// client-go fact 99. Public report C-054 (ovn-kubernetes/ovn-kubernetes#2886): no call starts after a removal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_a_handler_waits_for_its_running_call_and_no_call_starts_after() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (calls, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (started, finished) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let (count, flag) = (Arc::clone(&calls), Arc::clone(&inside));
    let handler = informer.on_change(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        flag.store(true, Ordering::SeqCst);
        started.0.send(()).unwrap();
        let _ = finished.1.recv();
        flag.store(false, Ordering::SeqCst);
    });
    factory.start(&cancel).unwrap();
    let objects: Vec<_> = (0..1000).map(|number| object(&format!("o{number}"), number + 1)).collect();
    let _watch = server.sync("2000", &objects).await;
    tokio::task::block_in_place(|| started.1.recv().unwrap());
    let mut removal = Box::pin(handler.remove());
    assert!(futures::poll!(&mut removal).is_pending(), "the call is running");
    assert!(inside.load(Ordering::SeqCst));
    finished.0.send(()).unwrap();
    removal.await;
    assert!(!inside.load(Ordering::SeqCst));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    factory.shutdown().await;
}

/// client-go fact 98.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_handler_does_not_wait_for_its_running_call_which_comes_to_its_end() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (started, finished) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let (ended, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (at_end, count) = (Arc::clone(&ended), Arc::clone(&calls));
    let handler = informer.on_change(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        started.0.send(()).unwrap();
        let _ = finished.1.recv();
        at_end.store(true, Ordering::SeqCst);
    });
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    tokio::task::block_in_place(|| started.1.recv().unwrap());
    drop(handler);
    assert!(!ended.load(Ordering::SeqCst));
    finished.0.send(()).unwrap();
    // Shutting down waits for the call.
    factory.shutdown().await;
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// client-go facts 102 and 103, where a panic stalls the handler or ends the process. Public report C-057
/// (kubernetes/kubernetes#93641).
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_is_counted_and_stops_nobody() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (log, mut record) = recorder();
    let panicking = informer.on_change(move |event| {
        assert!(event.key().name() != "b", "a bug of the handler");
        record(event);
    });
    let (other_log, other) = recorder();
    let _other = informer.on_change(other);
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1), object("b", 2), object("c", 3)]).await;
    assert!(panicking.wait_synced().await, "a call that panicked has ended too");
    settle().await;
    assert_eq!(*log.lock().unwrap(), ["+!web/a@1", "+!web/c@3"]);
    assert_eq!(other_log.lock().unwrap().len(), 3);
    assert_eq!(panicking.status().unwrap().panics, 1);
    assert_eq!(informer.lister().len(), 3);
    factory.shutdown().await;
}

/// Design decision 6.
#[tokio::test(start_paused = true)]
async fn a_slow_handler_holds_up_nobody_and_gets_the_net_change_past_its_bound() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    // A subscription that nobody polls is as slow as can be.
    let mut slow = informer.subscribe_with(HandlerOptions::named("slow").with_bound(4));
    let mut whole = informer.subscribe_with(HandlerOptions::named("whole").with_bound(4).with_overflow(Overflow::End));
    let (quick_log, quick) = recorder();
    let _quick = informer.on_change(quick);
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    for version in 11..100 {
        watch.event("MODIFIED", &object("a", version));
    }
    watch.event("DELETED", &object("b", 100));
    watch.event("ADDED", &object("b", 101));
    settle().await;
    assert_eq!(quick_log.lock().unwrap().len(), 2 + 89 + 2);

    let mut seen = Vec::new();
    while slow.status().queued > 0 {
        seen.push(show(&slow.next().await.unwrap()));
    }
    // The initial state doesn't count. Then four changes as they came, a's further ones merged into the last of them;
    // b's deletion and new life stay two.
    let four = ["web/a@1>11", "web/a@11>12", "web/a@12>13", "web/a@13>99"];
    assert_eq!(seen[..2], ["+!web/a@1", "+!web/b@2"]);
    assert_eq!(seen[2..6], four);
    assert_eq!(seen[6..], ["-web/b@100", "+web/b@101"]);
    assert!(slow.status().conflated > 80, "{:?}", slow.status());
    assert_eq!(informer.status().counters.conflated, slow.status().conflated);

    assert!(whole.next().await.is_none(), "what it can't have whole it doesn't get at all");
    assert!(whole.status().ended.unwrap().contains("bound"));
    factory.shutdown().await;
}

/// client-go facts 100 and 107.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_come_and_go_under_load_each_see_a_consistent_history() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("o0", 1)]).await;
    informer.wait_synced().await.unwrap();
    let wrong = Arc::new(Mutex::new(Vec::<String>::new()));
    let make = || {
        let wrong = Arc::clone(&wrong);
        let mut seen = std::collections::BTreeMap::new();
        informer.on_change_with(HandlerOptions::default().with_bound(8), move |event| {
            let key = event.key().clone();
            let fits = match &event {
                Event::Added { object, .. } => seen.insert(key, object.clone()).is_none(),
                Event::Updated { old, new } => seen.insert(key, new.clone()).is_some_and(|known| known.is_same(old)),
                Event::Deleted { .. } => seen.remove(&key).is_some(),
            };
            if !fits {
                wrong.lock().unwrap().push(show(&event));
            }
        })
    };
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut handlers, mut alive) = (Vec::new(), [true, false, false, false]);
    for version in 11..5_000_u64 {
        let which = rng.usize(..4);
        let name = format!("o{which}");
        let kind = match (alive[which], rng.bool()) {
            (false, _) => "ADDED",
            (true, false) => "MODIFIED",
            (true, true) => "DELETED",
        };
        alive[which] = kind != "DELETED";
        let mut object = object(&name, version);
        if kind == "ADDED" {
            // Every life of an object has its own uid.
            object["metadata"]["uid"] = version.to_string().into();
        }
        watch.event(kind, &object);
        match rng.u8(..20) {
            0 => handlers.push(make()),
            1 if !handlers.is_empty() => drop(handlers.swap_remove(0)),
            2 => tokio::task::yield_now().await,
            _ => {}
        }
    }
    let last = make();
    watch.event("ADDED", &object("end", 6_000));
    while informer.lister().get(&"web/end".parse().unwrap()).is_none() || last.status().unwrap().queued > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*wrong.lock().unwrap(), Vec::<String>::new());
    factory.shutdown().await;
}

/// client-go fact 94. Public report C-058 (istio/istio#49184): nothing fails after the end, and nothing comes.
#[tokio::test(start_paused = true)]
async fn a_handler_added_to_a_stopped_informer_is_inert() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut subscription = informer.subscribe();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    factory.shutdown().await;
    // What waited when the informer stopped can still be taken.
    assert_eq!(subscription.next().await.as_ref().map(show).as_deref(), Some("+!web/a@1"));
    assert!(subscription.next().await.is_none());
    let (log, handler) = recorder();
    let handler = informer.on_change(handler);
    assert!(!handler.wait_synced().await);
    settle().await;
    assert!(log.lock().unwrap().is_empty());
    assert_eq!(informer.lister().len(), 1, "the cache stays readable");
    handler.remove().await;
}
