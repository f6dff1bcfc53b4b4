//! Handlers' own options: resync, filters, async calls, removal from within, what follows a panic.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::StreamExt;
use informant_cache::{Event, HandlerHandle, HandlerOptions, OnPanic, Remover};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, object_with, show};

type Log = Arc<Mutex<Vec<String>>>;

fn recorder() -> (Log, impl FnMut(Event<ConfigMap>) + Send + 'static) {
    let log = Log::default();
    let to = Arc::clone(&log);
    (log, move |event| to.lock().unwrap().push(show(&event)))
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Lets everything that can run, run (in paused time).
async fn settle() {
    sleep(Duration::from_millis(10)).await;
}

/// client-go facts 84, 87 and 88: each has its own period, at least a second, and only who asked is told again. So for
/// client-go facts 85 and 86, but that a period isn't raised to the informer's: it doesn't matter when the handler came.
/// Public report C-052 (kubernetes-client/javascript#2424).
#[tokio::test(start_paused = true)]
async fn a_resync_tells_one_handler_of_everything_again_also_while_the_connection_is_lost() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let with = |period| HandlerOptions::default().with_resync(Duration::from_millis(period));
    let (never_log, never) = recorder();
    let (slow_log, slow) = recorder();
    let (short_log, short) = recorder();
    let _never = informer.on_change(never);
    let _slow = informer.on_change_with(with(3000), slow);
    let _short = informer.on_change_with(with(500), short);
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    settle().await;
    for log in [&never_log, &slow_log, &short_log] {
        assert_eq!(taken(log).len(), 2);
    }
    // Half a second is raised to one.
    sleep(Duration::from_millis(800)).await;
    assert!(taken(&short_log).is_empty());
    sleep(Duration::from_millis(300)).await;
    assert_eq!(taken(&short_log), ["web/a@1>1", "web/b@2>2"]);
    watch.event("MODIFIED", &object("a", 11));
    watch.cut();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&short_log), ["web/a@1>11", "web/a@11>11", "web/b@2>2", "web/a@11>11", "web/b@2>2"]);
    assert_eq!(taken(&slow_log), ["web/a@1>11", "web/a@11>11", "web/b@2>2"]);
    assert_eq!(taken(&never_log), ["web/a@1>11"]);
    // A shorter period that comes late is its own too, and nobody else's.
    let (late_log, late) = recorder();
    let late = informer.on_change_with(with(1500), late);
    assert!(late.wait_synced().await);
    taken(&late_log);
    taken(&slow_log);
    sleep(Duration::from_millis(1600)).await;
    assert_eq!(taken(&late_log).len(), 2);
    assert!(taken(&slow_log).is_empty());
    factory.shutdown().await;
}

/// client-go facts 55 and 56: a resync never tells an old state, nor of what's gone.
#[tokio::test(start_paused = true)]
async fn a_resync_and_changes_keep_their_order_for_a_handler_that_is_behind() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe_with(HandlerOptions::default().with_resync(Duration::from_secs(1)));
    factory.start(&cancel).unwrap();
    let objects: Vec<_> = (0..600).map(|number| object(&format!("o{number}"), number + 1)).collect();
    let watch = server.sync("1000", &objects).await;
    assert_eq!(events.wait_initial().await.unwrap().len(), 600);
    assert!(events.next().await.unwrap().is_resync(), "in the midst of a round");
    watch.event("MODIFIED", &object("o300", 1001));
    watch.event("DELETED", &object("o599", 1002));
    settle().await;
    let (mut known, mut changes, mut again) = (301, 0, 1);
    while again < 599 {
        let event = events.next().await.unwrap();
        if event.is_resync() {
            again += 1;
            assert!(changes < 2 || event.key().name() != "o599", "it's gone");
            if event.key().name() == "o300" {
                assert_eq!(event.cached().resource_version(), known.to_string());
            }
        } else {
            changes += 1;
            known = 1001;
        }
    }
    assert_eq!(changes, 2);
    factory.shutdown().await;
}

/// client-go fact 32: without a period there's no timer, and with one it starts anew after each round. A round can't fail.
#[tokio::test(start_paused = true)]
async fn a_handler_without_a_period_is_told_once_and_one_with_it_once_in_each_period() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let with = |period| HandlerOptions::default().with_resync(Duration::from_secs(period));
    let counts = [(), (), ()].map(|()| Arc::new(AtomicU64::new(0)));
    let options = [HandlerOptions::default(), with(0), with(100)];
    let _handlers: Vec<_> = std::iter::zip(options, &counts)
        .map(|(options, count)| {
            let count = Arc::clone(count);
            informer.on_change_with(options, move |_| {
                count.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    for number in 0..100 {
        sleep(Duration::from_secs(100)).await;
        watch.bookmark(&(20 + number).to_string());
    }
    settle().await;
    let counts = counts.each_ref().map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [2, 2, 2 + 2 * 100]);
    assert_eq!(informer.status().counters.lists, 1, "the server isn't asked");
    factory.shutdown().await;
}

/// A subscription takes a filter as a handler does.
#[tokio::test(start_paused = true)]
async fn a_filtered_subscription_sees_objects_come_and_go_as_they_pass() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let even = |object: &ConfigMap| object.data.as_ref().is_some_and(|data| data["version"].ends_with(['0', '2', '4']));
    // Merged while nobody takes them, they still lead from what was told to what is.
    let options = HandlerOptions::default().with_bound(1);
    let mut events = informer.handler(options).filter(even).subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    let initial = events.wait_initial().await.unwrap();
    assert_eq!(initial.iter().map(show).collect::<Vec<_>>(), ["+!web/b@2"]);
    for (name, version) in [("a", 11), ("a", 12), ("b", 13), ("b", 14), ("b", 15), ("a", 16), ("a", 20)] {
        watch.event("MODIFIED", &object(name, version));
    }
    settle().await;
    let mut seen = [show(&events.next().await.unwrap()), show(&events.next().await.unwrap())];
    seen.sort();
    assert_eq!(seen, ["+web/a@20", "-web/b@2"]);
    assert!(futures::poll!(std::pin::pin!(events.next())).is_pending());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_filter_is_one_of_its_handler_and_costs_only_that_state() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let pass = |object: &ConfigMap| {
        assert!(object.metadata.resource_version.as_deref() != Some("11"), "a bug of the filter");
        true
    };
    let (log, record) = recorder();
    let going_on = informer.on_change_filtered(pass, record);
    let mut events = informer.handler(HandlerOptions::named("subscription")).filter(pass).subscribe();
    let (ending_log, record) = recorder();
    let options = HandlerOptions::default().with_on_panic(OnPanic::End);
    let ending = informer.handler(options).filter(pass).on_change(record);
    let (other_log, other) = recorder();
    let _other = informer.on_change(other);
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    events.wait_initial().await.unwrap();
    watch.event("MODIFIED", &object("a", 11));
    watch.event("MODIFIED", &object("a", 12));
    watch.event("DELETED", &object("a", 13));
    settle().await;
    assert_eq!(taken(&log), ["+!web/a@1", "web/a@1>12", "-web/a@13"], "from what was told last");
    let seen = [show(&events.next().await.unwrap()), show(&events.next().await.unwrap())];
    assert_eq!(seen, ["web/a@1>12", "-web/a@13"]);
    assert_eq!((going_on.status().unwrap().panics, events.status().panics), (1, 1));
    assert_eq!(taken(&ending_log), ["+!web/a@1"]);
    assert!(ending.status().unwrap().ended.unwrap().contains("panicked at web/a"));
    assert_eq!(taken(&other_log).len(), 4);
    factory.shutdown().await;
}

/// client-go fact 111, also with a resync and a relist. Istio facts 2 to 5.
#[tokio::test(start_paused = true)]
async fn a_filtered_handler_sees_objects_come_and_go_as_they_pass() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (log, record) = recorder();
    let passes = |object: &ConfigMap| object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("on"));
    let options = HandlerOptions::named("filtered").with_resync(Duration::from_secs(60));
    let handler = informer.handler(options).filter(passes).on_change(record);
    factory.start(&cancel).unwrap();
    let on = |name, version| object_with(name, version, &json!({"on": ""}));
    let watch = server.sync("10", &[on("a", 1), object("b", 2)]).await;
    assert!(handler.wait_synced().await);
    assert_eq!(taken(&log), ["+!web/a@1"]);
    watch.event("MODIFIED", &on("a", 11));
    watch.event("MODIFIED", &object("a", 12));
    watch.event("MODIFIED", &object("a", 13));
    watch.event("MODIFIED", &on("a", 14));
    watch.event("MODIFIED", &on("b", 15));
    watch.event("DELETED", &object("b", 16));
    watch.event("ADDED", &object("c", 17));
    watch.event("DELETED", &object("c", 18));
    settle().await;
    assert_eq!(taken(&log), ["web/a@1>11", "-web/a@11", "+web/a@14", "+web/b@15", "-web/b@16"]);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(taken(&log), ["web/a@14>14"]);
    assert_eq!(handler.status().unwrap().delivered, 7);
    // The list misses nothing that it should tell, and tells nothing of those that it doesn't know.
    watch.event("ADDED", &object("d", 19));
    watch.event("ADDED", &on("e", 20));
    settle().await;
    watch.error(410, "Expired");
    server.request().await.list("30", &[object("e", 21), on("f", 22), object("g", 23)]);
    let _watch = server.request().await.open();
    settle().await;
    assert_eq!(taken(&log), ["+web/e@20", "-?web/a@14", "-web/e@20", "+web/f@22"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_async_handler_is_called_one_event_at_a_time_survives_panics_and_is_cut_short_by_the_stop() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let log = Log::default();
    let to = Arc::clone(&log);
    let handler = informer.on_change_async(move |event| {
        let to = Arc::clone(&to);
        async move {
            to.lock().unwrap().push(format!("begin {}", event.key().name()));
            sleep(Duration::from_secs(if event.key().name() == "d" { 3600 } else { 1 })).await;
            assert!(event.key().name() != "b", "a bug of the handler");
            to.lock().unwrap().push(format!("end {}", event.key().name()));
        }
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    for (name, version) in [("b", 11), ("c", 12), ("d", 13)] {
        watch.event("ADDED", &object(name, version));
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(taken(&log), ["begin a", "end a", "begin b", "begin c", "end c", "begin d"]);
    assert_eq!(handler.status().unwrap().panics, 1);
    let before = tokio::time::Instant::now();
    factory.shutdown().await;
    assert!(before.elapsed() < Duration::from_secs(1), "a call that waits is dropped");
    assert!(taken(&log).is_empty());
}

/// Public report C-054 (ovn-kubernetes/ovn-kubernetes#2886). Where client-go's removal that waits would deadlock.
#[tokio::test(start_paused = true)]
async fn a_handler_may_remove_itself_from_within_its_own_call() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (calls, removers) = (Arc::new(AtomicU64::new(0)), Arc::new(OnceLock::<Remover>::new()));
    let (count, own) = (Arc::clone(&calls), Arc::clone(&removers));
    let at_once = informer.on_change(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        own.get().unwrap().remove_now();
    });
    removers.set(at_once.remover().unwrap()).unwrap();
    let (waited, handle) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None::<HandlerHandle>)));
    let (count, own) = (Arc::clone(&waited), Arc::clone(&handle));
    let waiting = informer.on_change_async(move |_| {
        let (count, own) = (Arc::clone(&count), Arc::clone(&own));
        async move {
            let handle = own.lock().unwrap().take();
            handle.unwrap().remove().await;
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    *handle.lock().unwrap() = Some(waiting);
    factory.start(&cancel).unwrap();
    let objects: Vec<_> = (0..1000).map(|number| object(&format!("o{number}"), number + 1)).collect();
    let _watch = server.sync("2000", &objects).await;
    settle().await;
    assert_eq!((calls.load(Ordering::SeqCst), waited.load(Ordering::SeqCst)), (1, 1));
    at_once.wait_ended().await;
    at_once.remove().await;
    factory.shutdown().await;
}

/// Public report C-057 (kubernetes/kubernetes#93641): a handler goes on or ends, by its policy, and nothing in between.
#[tokio::test(start_paused = true)]
async fn a_handler_ends_with_its_first_panic_if_it_asks_for_that() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (log, mut record) = recorder();
    let ending = informer.on_change_with(HandlerOptions::default().with_on_panic(OnPanic::End), move |event| {
        assert!(event.key().name() != "b", "a bug of the handler");
        record(event);
    });
    let (other_log, other) = recorder();
    let _other = informer.on_change(other);
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1), object("b", 2), object("c", 3)]).await;
    ending.wait_ended().await;
    settle().await;
    let status = ending.status().unwrap();
    assert_eq!((status.panics, status.synced), (1, false));
    assert!(status.ended.unwrap().contains("panicked at web/b"));
    assert_eq!((taken(&log).len(), taken(&other_log).len(), informer.lister().len()), (1, 3, 3));
    factory.shutdown().await;
}

/// A handler that sleeps, one that panics and one that removes itself don't change what the fourth sees.
#[tokio::test(start_paused = true)]
async fn what_others_do_changes_nothing_of_what_a_handler_sees() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let _sleeping = informer.on_change_async(|_| sleep(Duration::from_secs(3600)));
    let _panicking = informer.on_change(|_| panic!("a bug of the handler"));
    let removers = Arc::new(OnceLock::<Remover>::new());
    let own = Arc::clone(&removers);
    let removing = informer.on_change(move |_| own.get().unwrap().remove_now());
    removers.set(removing.remover().unwrap()).unwrap();
    let (log, record) = recorder();
    let _fourth = informer.on_change(record);
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    let mut expected = vec!["+!web/a@1".to_owned(), "+!web/b@2".to_owned()];
    for version in 11..3000 {
        watch.event("MODIFIED", &object("a", version));
        let before = if version == 11 { 1 } else { version - 1 };
        expected.push(format!("web/a@{before}>{version}"));
        if version % 100 == 0 {
            settle().await;
        }
    }
    settle().await;
    assert_eq!(taken(&log), expected);
    factory.shutdown().await;
}

/// Public report C-055 (kubernetes/kubernetes#113763), and client-go fact 95.
#[tokio::test(start_paused = true)]
async fn a_handler_is_synced_when_its_last_initial_call_has_returned() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let returned = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&returned);
    let slow = informer.on_change_async(move |_| {
        let count = Arc::clone(&count);
        async move {
            sleep(Duration::from_millis(10)).await;
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    factory.start(&cancel).unwrap();
    let objects: Vec<_> = (0..100).map(|number| object(&format!("o{number}"), number + 1)).collect();
    let _watch = server.sync("2000", &objects).await;
    informer.wait_synced().await.unwrap();
    assert!(!slow.has_synced());
    assert!(slow.wait_synced().await);
    assert_eq!(returned.load(Ordering::SeqCst), 100);
    factory.shutdown().await;
}

/// Public report C-062 (kubernetes-client/javascript#570).
#[tokio::test(start_paused = true)]
async fn a_delete_that_is_told_three_times_is_delivered_once() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    // A subscription is a stream of the same events.
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("8", &[object("a", 1)]).await;
    for _ in 0..3 {
        watch.event("DELETED", &object("a", 9));
    }
    settle().await;
    factory.shutdown().await;
    let seen: Vec<_> = StreamExt::map(&mut events, |event| show(&event)).collect().await;
    assert_eq!(seen, ["+!web/a@1", "-web/a@9"]);
}

/// Late handlers under load: no gap, no duplicate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_added_under_load_see_each_state_from_their_first_one_on() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 10)]).await;
    informer.wait_synced().await.unwrap();
    let mut late = Vec::new();
    for version in 11..3000_u64 {
        watch.event("MODIFIED", &object("a", version));
        if version % 100 == 0 {
            late.push(informer.subscribe_with(HandlerOptions::default().with_bound(10_000)));
            tokio::task::yield_now().await;
        }
    }
    informer.wait_until("2999").await.unwrap();
    for mut events in late {
        let first = events.next().await.unwrap();
        assert!(first.is_initial());
        let mut version: u64 = first.cached().resource_version().parse().unwrap();
        while version < 2999 {
            let event = events.next().await.unwrap();
            version += 1;
            assert_eq!(show(&event), format!("web/a@{}>{version}", version - 1));
        }
        assert_eq!(events.status().queued, 0);
    }
    factory.shutdown().await;
}
