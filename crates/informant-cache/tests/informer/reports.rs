//! Clauses of other projects' bug reports that no other test shows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use informant_cache::{
    Event, FinalState, HandlerOptions, InformerState, ListerWatcher, Lookup, NamespaceSet, ObjectKey, RelistReason,
    RequestError, RequestErrorKind, Scope, StartError,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::CustomResource;
use kube::client::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, line, object, show};

/// Lets everything that can run, run (in paused time).
async fn settle() {
    sleep(Duration::from_millis(10)).await;
}

/// Passes requests on until one that kills the task that sends it, at once or while it waits for the answer.
struct Deadly {
    client: kube::Client,
    sent: AtomicU64,
    deadly: u64,
    at_once: bool,
}

impl ListerWatcher for Deadly {
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        let dies = self.sent.fetch_add(1, Ordering::SeqCst) == self.deadly;
        assert!(!(dies && self.at_once), "a bug of the caller's");
        async move {
            assert!(!dies, "a bug of the caller's");
            ListerWatcher::request(&self.client, request).await
        }
        .boxed()
    }
}

/// Public report C-017 (nolar/kopf#1276).
#[tokio::test(start_paused = true)]
async fn an_informer_whose_task_dies_says_so_starts_over_and_misses_nothing() {
    // It dies of its first list, of its watch, of a watch that it resumes.
    for (deadly, at_once) in [(0, true), (1, false), (2, true), (2, false)] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let source = Deadly { client: server.client(), sent: AtomicU64::new(0), deadly, at_once };
        let informer = factory.informer::<ConfigMap>().from(source).kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        if deadly > 0 {
            server.request().await.list("10", &[object("a", 1), object("gone", 2)]);
            assert_eq!(events.wait_initial().await.unwrap().len(), 2);
        }
        if deadly > 1 {
            let watch = server.request().await.open();
            sleep(Duration::from_secs(60)).await;
            watch.end();
        }
        let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
        assert!(state.to_string().contains("panicked"), "{state}");
        let status = informer.status();
        assert_eq!((status.counters.restarts, status.counters.relists[&RelistReason::Internal]), (1, 1));
        assert!(status.last_error.unwrap().message.contains("panicked"));
        assert_eq!(informer.lister().len(), if deadly > 0 { 2 } else { 0 }, "what it had stays");
        let died = Instant::now();
        let request = server.request().await;
        assert_eq!((request.what().as_str(), died.elapsed()), ("LIST", Duration::from_secs(5)));
        request.list("20", &[object("a", 1), object("b", 12)]);
        let watch = server.request().await.open();
        informer.wait_state(|state| *state == InformerState::Synced).await;
        watch.event("MODIFIED", &object("b", 21));
        let expected: &[&str] = if deadly > 0 {
            &["-?web/gone@2", "+web/b@12", "web/b@12>21"]
        } else {
            &["+!web/a@1", "+!web/b@12", "web/b@12>21"]
        };
        for told in expected {
            assert_eq!(show(&events.next().await.unwrap()), *told);
        }
        factory.shutdown().await;
    }
}

/// Public report C-011 (kubernetes/kubernetes#100878), on the wire.
#[tokio::test(start_paused = true)]
async fn a_watch_refused_for_load_waits_as_long_as_is_wished_and_lists_nothing() {
    let busy = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"busy","details":{"retryAfterSeconds":2}}"#;
    for in_stream in [false, true] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        server.request().await.list("40", &[object("a", 1)]);
        for attempt in 0..3 {
            let request = server.request().await;
            assert_eq!(request.what(), "WATCH 40", "attempt {attempt}");
            let refused = Instant::now();
            if in_stream {
                request.open().bytes(format!("{{\"type\":\"ERROR\",\"object\":{busy}}}\n"));
            } else {
                request.answer(429, busy);
            }
            let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
            assert!(state.to_string().contains("too many requests: busy (429)"), "{state}");
            assert!(server.is_quiet_for(Duration::from_millis(1990)).await && refused.elapsed().as_secs() < 2);
        }
        let request = server.request().await;
        assert_eq!(request.what(), "WATCH 40");
        let _watch = request.open();
        informer.wait_state(|state| *state == InformerState::Synced).await;
        assert_eq!((informer.status().counters.lists, informer.lister().len()), (1, 1));
        factory.shutdown().await;
    }
}

/// Public report C-018 (kubernetes-client/csharp#828).
#[tokio::test(start_paused = true)]
async fn blank_lines_between_events_are_nothing() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[]).await;
    let (first, second) = (line("ADDED", &object("a", 11)), line("MODIFIED", &object("a", 12)));
    watch.bytes(format!("\n\r\n{first}\n\n\r\n{second}\r\n"));
    for told in ["+web/a@11", "web/a@11>12"] {
        assert_eq!(show(&events.next().await.unwrap()), told);
    }
    let counters = informer.status().counters;
    assert_eq!((counters.failures, counters.unexpected, counters.undecodable), (0, 0, 0));
    factory.shutdown().await;
}

/// Public report C-020 (kube-rs/kube#1199).
#[tokio::test(start_paused = true)]
async fn after_a_list_without_a_version_nothing_is_asked_for_by_an_empty_one() {
    for body in [r#"{"kind":"ConfigMapList","apiVersion":"v1","items":null}"#, r#"{"metadata":null,"items":[]}"#] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        server.request().await.answer(200, body);
        informer.wait_synced().await.unwrap();
        let request = server.request().await;
        assert!(request.query.contains_key("watch") && !request.query.contains_key("resourceVersion"));
        // What was there before the watch comes with it; a break before it said how far it is leads to a list.
        request.open().cut();
        let request = server.request().await;
        assert!(!request.query.contains_key("resourceVersion") && !request.query.contains_key("watch"));
        factory.shutdown().await;
    }
}

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    #[serde(default)]
    replicas: i32,
    /// Hours, as in `3h`.
    #[serde(default, deserialize_with = "hours")]
    wait: i64,
}

/// As nanoseconds, of which 64 bits hold 292 years.
fn hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let hours = text.strip_suffix('h').and_then(|hours| hours.parse::<i64>().ok());
    hours.and_then(|hours| hours.checked_mul(3_600_000_000_000)).ok_or_else(|| serde::de::Error::custom("too long"))
}

fn widget(name: &str, version: u64, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "spec": spec,
        "metadata": {"name": name, "namespace": "web", "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
    })
}

/// Public report C-024 (kubernetes/kubernetes#57705).
#[tokio::test(start_paused = true)]
async fn a_custom_object_with_a_wrong_field_holds_up_nothing_is_asked_for_no_more_and_leaves_no_phantom() {
    for spec in [json!({"replicas": "two"}), json!({"replicas": 1, "wait": "2629800h"})] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<Widget>().kept();
        let log = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&log);
        let _handler = informer.on_change(move |event| {
            to.lock().unwrap().push(format!("{} {}", event.kind(), event.key().name()));
        });
        let taken = || std::mem::take(&mut *log.lock().unwrap());
        factory.start(&cancel).unwrap();
        let good = json!({"replicas": 1, "wait": "3h"});
        let items =
            [widget("good1", 1, &good), widget("bad", 2, &spec), widget("good2", 3, &good), widget("worse", 4, &spec)];
        server.request().await.of("example.com/v1", "Widget").list("10", &items);
        let watch = server.request().await.open();
        informer.wait_synced().await.unwrap();
        assert!(server.is_quiet_for(Duration::from_secs(60)).await, "nothing is asked for again");
        assert_eq!((taken().len(), informer.lister().len()), (2, 2));
        let status = informer.status();
        assert_eq!(
            (status.state, status.counters.undecodable, status.counters.failures),
            (InformerState::Synced, 2, 0)
        );
        assert_eq!(status.undecodable.keys().map(ToString::to_string).collect::<Vec<_>>(), ["web/bad", "web/worse"]);
        // Reported once per change.
        watch.event("MODIFIED", &widget("bad", 11, &spec));
        settle().await;
        assert_eq!(informer.status().counters.undecodable, 3);
        watch.event("MODIFIED", &widget("bad", 12, &good));
        settle().await;
        assert_eq!(taken(), ["added bad"]);
        watch.event("DELETED", &widget("worse", 13, &spec));
        settle().await;
        assert!(taken().is_empty() && informer.status().undecodable.is_empty(), "nobody knew of it");
        factory.shutdown().await;
    }
}

/// Public report C-024 (kubernetes/kubernetes#57705), its other policy.
#[tokio::test(start_paused = true)]
async fn a_strict_informer_ends_at_an_object_that_it_cannot_decode_and_names_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<Widget>().strict().kept();
    factory.start(&cancel).unwrap();
    let items = [widget("bad", 2, &json!({"replicas": "two"}))];
    server.request().await.of("example.com/v1", "Widget").list("10", &items);
    let state = informer.wait_state(|state| matches!(state, InformerState::Failed { .. })).await;
    let shown = state.to_string();
    assert!(
        shown.starts_with("failed for good at ") && shown.contains("web/bad can't be decoded: spec.replicas"),
        "{shown}"
    );
    assert!(!shown.contains("two"), "{shown}");
    assert!(server.is_quiet_for(Duration::from_secs(600)).await);
    factory.shutdown().await;
}

/// Public report C-036 (folio-pro/kdashboard#70): tried a bounded number of times, and nothing of it is published.
#[tokio::test(start_paused = true)]
async fn a_list_whose_second_page_always_expires_is_tried_four_times_and_then_waits() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).page_size(2).build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let began = Instant::now();
    for attempt in 0..5 {
        let request = server.request().await;
        assert!(!request.query.contains_key("continue") && request.query["limit"] == "2");
        assert_eq!(began.elapsed().is_zero(), attempt < 4, "attempt {attempt}: {:?}", began.elapsed());
        request.page("10", "second", &[object("a", 1), object("b", 2)]);
        server.request().await.fail(410, "Expired");
        assert!(informer.lister().is_empty() && !informer.has_synced());
    }
    server.request().await.page("20", "second", &[object("a", 1), object("b", 2)]);
    server.request().await.page("20", "third", &[object("c", 3), object("d", 4)]);
    server.request().await.list("20", &[object("e", 5)]);
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.lister().keys().iter().map(|key| key.name()).collect::<String>(), "abcde");
    factory.shutdown().await;
}

/// Public report C-038 (gardener/dashboard#3271).
#[tokio::test(start_paused = true)]
async fn a_further_page_names_neither_version_nor_match_whatever_the_first_one_did() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).read_from_cache(true).page_size(2).build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let mut version = "0";
    for next in ["100", "200"] {
        let first = server.request().await;
        assert_eq!((first.what(), &*first.query["limit"]), (format!("LIST {version}"), "2"));
        first.page(next, "token", &[object("a", 1), object("b", 2)]);
        let second = server.request().await;
        assert_eq!((&*second.query["continue"], &*second.query["limit"]), ("token", "2"));
        assert!(!second.query.contains_key("resourceVersion") && !second.query.contains_key("resourceVersionMatch"));
        second.list(next, &[object("c", 3)]);
        let watch = server.request().await.open();
        informer.wait_synced().await.unwrap();
        assert_eq!(informer.lister().len(), 3);
        sleep(Duration::from_secs(60)).await;
        watch.error(410, "Expired");
        version = next;
    }
    factory.shutdown().await;
}

/// Public report C-040 (cert-manager/cert-manager#3748): nothing needs to be set for that.
#[tokio::test(start_paused = true)]
async fn no_list_asks_for_more_than_500_items_by_default() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let _informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    // A stream is no list; where it's refused, the lists have a limit, the first as well as those after a failure or a 410.
    server.request().await.fail(422, "Invalid");
    for _ in 0..3 {
        let request = server.request().await;
        assert_eq!((request.what().as_str(), &*request.query["limit"]), ("LIST", "500"));
        request.fail(500, "InternalError");
    }
    for _ in 0..3 {
        let request = server.request().await;
        assert_eq!((request.what().as_str(), &*request.query["limit"]), ("LIST", "500"));
        request.list("10", &[]);
        let watch = server.request().await.open();
        sleep(Duration::from_secs(60)).await;
        watch.error(410, "Expired");
    }
    factory.shutdown().await;
}

/// Public reports C-043 (fabric8io/kubernetes-client#2994) and C-060 (grafana/grafana-app-sdk#1352).
#[tokio::test(start_paused = true)]
async fn a_delete_found_by_a_list_is_out_of_store_and_index_when_it_is_told_with_the_whole_last_object() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let (lister, index) = (informer.lister(), informer.index("name", |map: &ConfigMap| map.metadata.name.clone()));
    let log = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&log);
    let _handler = informer.on_change(move |event| {
        if let Event::Deleted { object, final_state } = &event {
            let (held, indexed) = (lister.get(event.key()).is_some(), index.get(&"a".to_owned()).len());
            let map: Arc<ConfigMap> = event.object();
            let data = map.data.as_ref().unwrap()["version"].clone();
            to.lock().unwrap().push((object.key().to_string(), *final_state, data, held, indexed));
        }
    });
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    watch.event("MODIFIED", &object("a", 11));
    sleep(Duration::from_secs(60)).await;
    // Deleted while nobody watches.
    watch.cut();
    server.request().await.fail(410, "Expired");
    let _watch = server.sync("20", &[object("b", 2)]).await;
    settle().await;
    assert_eq!(*log.lock().unwrap(), [("web/a".to_owned(), FinalState::Unknown, "11".to_owned(), false, 0)]);
    assert_eq!(informer.lister().keys().len(), 1);
    factory.shutdown().await;
}

/// Public report C-046 (tilt-dev/tilt#3868); that the shared value can't be edited is shown where `Lister` is documented.
#[tokio::test(start_paused = true)]
async fn an_edited_copy_changes_nothing_for_others() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    let told = events.next().await.unwrap();
    let key = told.key().clone();
    for mut shared in [told.object(), informer.lister().get(&key).unwrap(), informer.lister().list().remove(0)] {
        Arc::make_mut(&mut shared).data = None;
        assert!(informer.lister().get(&key).unwrap().data.is_some() && told.object().data.is_some());
    }
    factory.shutdown().await;
}

/// Public report C-052 (kubernetes-client/javascript#2424).
#[tokio::test(start_paused = true)]
async fn what_did_not_change_is_told_once_however_often_it_is_listed_streamed_or_started() {
    for streams in [false, true] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.builder().watch_list(streams).build();
        let informer = factory.informer::<ConfigMap>().kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        for round in 0..4 {
            let watch = if streams {
                let stream = server.request().await.open();
                stream.event("ADDED", &object("a", 1));
                stream.end_of_initial_events("10");
                stream
            } else {
                server.sync("10", &[object("a", 1)]).await
            };
            informer.wait_state(|state| *state == InformerState::Synced).await;
            assert_eq!(factory.start(&cancel), Err(StartError::AlreadyStarted));
            sleep(Duration::from_secs(60)).await;
            assert_eq!(informer.status().counters.events, 1, "round {round}");
            watch.error(410, "Expired");
        }
        assert_eq!(show(&events.next().await.unwrap()), "+!web/a@1");
        assert_eq!(events.status().queued, 0);
        factory.shutdown().await;
    }
}

/// Public report C-054 (ovn-kubernetes/ovn-kubernetes#2886): a thousand changes wait, and none is told after the removal.
#[tokio::test(start_paused = true)]
async fn of_a_thousand_events_that_wait_none_is_told_once_the_removal_is_over() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let calls = Arc::new(AtomicU64::new(0));
    let make = || {
        let calls = Arc::clone(&calls);
        informer.handler(HandlerOptions::default().with_bound(2000)).on_change_async(move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(1))
        })
    };
    let (waited, at_once, dropped) = (make(), make(), make());
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[]).await;
    for version in 0..1000 {
        watch.event("ADDED", &object(&format!("o{version}"), 11 + version));
    }
    settle().await;
    assert_eq!((waited.status().unwrap().queued, calls.load(Ordering::SeqCst)), (999, 3));
    at_once.remover().unwrap().remove_now();
    drop(dropped);
    waited.remove().await;
    let then = calls.load(Ordering::SeqCst);
    sleep(Duration::from_secs(600)).await;
    assert_eq!((then, calls.load(Ordering::SeqCst)), (3, 3));
    factory.shutdown().await;
}

/// Public report C-055 (kubernetes/kubernetes#113763): also without any object, and each handler by itself.
#[tokio::test(start_paused = true)]
async fn a_handler_of_nothing_is_synced_without_an_event_and_a_late_one_has_its_own_sync() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let early = informer.on_change(|_| {});
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[]).await;
    assert!(early.wait_synced().await && informer.has_synced());
    assert_eq!(early.status().unwrap().delivered, 0);
    watch.event("ADDED", &object("a", 11));
    settle().await;
    let late = informer.on_change_async(|_| sleep(Duration::from_millis(10)));
    assert!(early.has_synced() && !late.has_synced());
    assert!(late.wait_synced().await);
    assert_eq!(late.status().unwrap().delivered, 1);
    factory.shutdown().await;
}

/// Public report C-094 (cert-manager/cert-manager#5721): each form is held because it's asked for, and says so. What they
/// take is measured in `tests/memory.rs`.
#[tokio::test(start_paused = true)]
async fn two_thousand_secrets_in_three_forms_are_three_lines_of_the_inventory_and_metadata_has_no_data() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).page_size(2000).build();
    let typed = factory.informer::<Secret>().full();
    let metadata = factory.metadata::<Secret>().full();
    let selected = factory.informer::<Secret>().scope(Scope::all().with_labels("x=true")).full();
    factory.start(&cancel).unwrap();
    let secrets: Vec<_> = (1..=2000)
        .map(|number| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "data": {"key": "c2VjcmV0"},
                "metadata": {"name": format!("s{number}"), "namespace": "web", "uid": number.to_string(), "resourceVersion": number.to_string()},
            })
        })
        .collect();
    let (mut lists, mut open) = (0, Vec::new());
    while open.len() < 3 {
        let request = server.request().await;
        let asks_for_metadata = request.header("accept").contains("as=PartialObjectMetadata");
        if request.query.contains_key("watch") {
            open.push(request.open());
            continue;
        }
        lists += 1;
        let labelled = request.query.contains_key("labelSelector");
        assert!(!(asks_for_metadata && labelled));
        // The server needn't heed what's accepted.
        request.of("v1", "Secret").list("9000", if labelled { &secrets[..100] } else { &secrets });
    }
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let inventory: Vec<_> = factory
        .statuses()
        .iter()
        .map(|status| format!("{} {} {:?} {}", status.kind, status.form, status.scope, status.objects))
        .collect();
    let expected =
        ["Secret full \"\" 2000", "Secret metadata \"\" 2000", "Secret full \"with labels \\\"x=true\\\"\" 100"];
    let (mut inventory, mut expected) = (inventory, expected.map(ToOwned::to_owned).to_vec());
    inventory.sort();
    expected.sort();
    assert_eq!((lists, inventory), (3, expected));
    let held = serde_json::to_string(&*metadata.lister().list()[0]).unwrap();
    assert!(held.contains("\"name\"") && !held.contains("c2VjcmV0"), "{held}");
    assert_eq!(typed.status().also_held_as.len(), 2);
    assert_eq!(selected.status().also_held_as.len(), 2);
    factory.shutdown().await;
}

/// Public report C-106 (kubernetes-sigs/controller-runtime#1377).
#[tokio::test(start_paused = true)]
async fn in_a_namespace_that_is_not_covered_an_object_is_out_of_scope() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let set = NamespaceSet::new("tenants", ["web", "ns2", "ns3"]);
    let factory = server.builder().watch_list(false).default_scope(Scope::namespaces(&set)).build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let mut open = Vec::new();
    while open.len() < 3 {
        let request = server.request().await;
        if request.query.contains_key("watch") {
            open.push(request.open());
        } else {
            let items = if request.path.contains("/web/") { vec![object("a", 1)] } else { Vec::new() };
            request.list("10", &items);
        }
    }
    informer.wait_synced().await.unwrap();
    let lister = informer.lister();
    assert!(matches!(lister.lookup(&ObjectKey::namespaced("web", "a")), Lookup::Found(_)));
    assert!(matches!(lister.lookup(&ObjectKey::namespaced("ns2", "a")), Lookup::Absent));
    assert!(matches!(lister.lookup(&ObjectKey::namespaced("ns4", "a")), Lookup::OutOfScope));
    factory.shutdown().await;
}

/// Public report C-003 (kubernetes/kubernetes#91073): a kind without objects, whose version is that of an old server.
#[tokio::test(start_paused = true)]
async fn an_unreachable_version_of_an_empty_kind_is_asked_for_once() {
    let too_large = r#"{"kind":"Status","status":"Failure","reason":"Timeout","code":504,"message":"Too large resource version: 500, current: 100","details":{"retryAfterSeconds":1}}"#;
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).read_from_cache(true).build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("500", &[]).await;
    sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    let request = server.request().await;
    assert_eq!(request.what(), "LIST 500");
    request.answer(504, too_large);
    let request = server.request().await;
    assert!(request.what() == "LIST" && !request.query.contains_key("resourceVersion"));
    assert_eq!(informer.status().last_error.unwrap().kind, RequestErrorKind::ResourceVersionTooLarge);
    request.list("100", &[]);
    assert_eq!(server.request().await.what(), "WATCH 100");
    factory.shutdown().await;
}
