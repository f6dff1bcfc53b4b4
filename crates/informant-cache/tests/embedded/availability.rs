//! Kinds that aren't there, aren't there yet, or aren't there as asked for; and what may not be read.

use std::time::Duration;

use informant_apiserver::ApiServer;
use informant_cache::{AvailabilityCheck, InformerState, MissingCause, Scope, SharedInformer, Subscription};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::crd::{create, definition};
use crate::front::{Front, OPEN, Rule};
use crate::{builder, client, config_map, server, widgets};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"widgets is forbidden: no","reason":"Forbidden","code":403}"#;

fn definitions(server: &ApiServer) -> Api<CustomResourceDefinition> {
    Api::all(client(server))
}

fn objects(server: &ApiServer) -> Api<DynamicObject> {
    Api::namespaced_with(client(server), "default", &widgets())
}

/// A CRD of widgets, changed by what's given.
fn definition_with(change: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
    let mut crd = serde_json::to_value(definition()).unwrap();
    change(&mut crd);
    serde_json::from_value(crd).unwrap()
}

/// A version of the CRD that serves objects of any shape.
fn version(name: &str, served: bool, storage: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"name": name, "served": served, "storage": storage, "schema": schema})
}

async fn make(server: &ApiServer, crd: CustomResourceDefinition) {
    definitions(server).create(&PostParams::default(), &crd).await.unwrap();
}

async fn delete(server: &ApiServer) {
    definitions(server).delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
}

/// Changes the CRD of widgets.
async fn patch(server: &ApiServer, change: Value) {
    let name = "widgets.example.com";
    definitions(server).patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn missing(informer: &SharedInformer<DynamicObject>) -> (MissingCause, AvailabilityCheck, String) {
    match informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await {
        InformerState::Missing { cause, checked_by, reason, .. } => (cause, checked_by, reason),
        other => panic!("{other}"),
    }
}

async fn missing_as(informer: &SharedInformer<DynamicObject>, wanted: MissingCause) -> AvailabilityCheck {
    let wait = informer.wait_state(|state| matches!(state, InformerState::Missing { cause, .. } if *cause == wanted));
    match tokio::time::timeout(Duration::from_secs(60), wait).await {
        Ok(InformerState::Missing { checked_by, .. }) => checked_by,
        _ => panic!("not {wanted:?} but {}", informer.state()),
    }
}

async fn next(events: &mut Subscription<DynamicObject>) -> String {
    let event = tokio::time::timeout(Duration::from_secs(120), events.next()).await.expect("an event").unwrap();
    format!("{} {}", event.kind(), event.key())
}

/// What an informer that's waited for may take, in paused time.
async fn synced_within(informer: &SharedInformer<DynamicObject>, time: Duration) {
    let since = Instant::now();
    informer.wait_state(|state| *state == InformerState::Synced).await;
    assert!(since.elapsed() <= time, "synced after {:?}", since.elapsed());
}

/// Public report C-090 (kubernetes-sigs/controller-runtime#2589). Istio facts 11, 12, 14 and 18.
#[tokio::test(start_paused = true)]
async fn an_informer_starts_at_once_when_its_crd_comes_however_long_it_waited() {
    let (server, cancel) = (server(), CancellationToken::new());
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    let by_name = informer.index("name", |object: &DynamicObject| object.metadata.name.clone());
    let mut events = informer.subscribe();
    assert!(factory.crd_watch_status().is_none());
    assert!(!informer.has_synced() && informer.lister().is_empty());
    factory.start(&cancel).unwrap();
    // Nothing there, and known not to be: the empty cache is the truth.
    assert_eq!(informer.wait_synced_or_absent().await, Ok(false));
    assert!(!informer.has_synced() && informer.lister().is_empty() && by_name.keys(&"a".to_owned()).is_empty());
    let (cause, checked_by, reason) = missing(&informer).await;
    assert_eq!((cause, checked_by), (MissingCause::NoSuchKind, AvailabilityCheck::CrdWatch));
    assert!(reason.starts_with("there's no CRD widgets.example.com, and discovery lists no widgets"), "{reason}");
    assert_eq!(factory.crd_watch_status().unwrap().state, InformerState::Synced);

    tokio::time::sleep(Duration::from_secs(3600)).await;
    make(&server, definition()).await;
    synced_within(&informer, Duration::from_millis(100)).await;
    assert_eq!(informer.wait_synced_or_absent().await, Ok(true));
    create(&objects(&server), "a").await;
    assert_eq!(next(&mut events).await, "added default/a");
    assert_eq!(by_name.keys(&"a".to_owned()).len(), 1);
    factory.shutdown().await;
    assert_eq!(server.watchers(), 0);
}

/// Istio facts 16 and 17, but that there's no callback to be called: an informer begins by itself, and once.
#[tokio::test(start_paused = true)]
async fn informers_of_a_kind_that_is_there_begin_once_and_wait_for_nothing() {
    let (server, cancel) = (server(), CancellationToken::new());
    make(&server, definition()).await;
    create(&objects(&server), "a").await;
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let all = factory.dynamic(widgets()).full();
    let scoped = factory.dynamic(widgets()).scope(Scope::namespaced("default")).full();
    let (mut of_all, mut of_scoped) = (all.subscribe(), scoped.subscribe());
    factory.start(&cancel).unwrap();
    synced_within(&all, Duration::from_secs(1)).await;
    let late = factory.dynamic(widgets()).scope(Scope::namespaced("other")).full();
    synced_within(&late, Duration::from_secs(1)).await;
    for events in [&mut of_all, &mut of_scoped] {
        assert_eq!(next(events).await, "added default/a");
        assert!(tokio::time::timeout(Duration::from_secs(60), events.next()).await.is_err());
    }
    for informer in [&all, &scoped, &late] {
        assert!(informer.status().counters.relists.is_empty());
    }
    // No state of being missing without a look at CRDs or discovery.
    assert!(factory.crd_watch_status().is_none());
    assert_eq!(front.discoveries(), 0);
    factory.shutdown().await;
}

/// Istio facts 9, 10 and 19.
#[tokio::test(start_paused = true)]
async fn a_crd_that_comes_while_informers_start_is_missed_by_none_and_told_once() {
    for delay in 0..40 {
        let (server, cancel) = (server(), CancellationToken::new());
        let factory = builder(&server).build();
        let informer = factory.dynamic(widgets()).full();
        let mut events = informer.subscribe();
        let comes = async {
            tokio::time::sleep(Duration::from_millis(delay * 25)).await;
            make(&server, definition()).await;
            create(&objects(&server), "a").await;
        };
        factory.start(&cancel).unwrap();
        tokio::join!(comes, async { assert_eq!(next(&mut events).await, "added default/a", "delay {delay}") });
        let more = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        assert!(more.is_err(), "{more:?} (delay {delay})");
        factory.shutdown().await;
    }
}

/// Public report C-090: the Established condition comes later than the CRD. Its kind's name is another's here, so it isn't
/// established until that one goes.
#[tokio::test(start_paused = true)]
async fn a_crd_that_is_not_established_is_waited_for() {
    let (server, cancel) = (server(), CancellationToken::new());
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    missing_as(&informer, MissingCause::NoSuchKind).await;
    let other = definition_with(|crd| {
        crd["metadata"]["name"] = json!("gadgets.example.com");
        crd["spec"]["names"] =
            json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "WidgetList"});
    });
    make(&server, other).await;
    make(&server, definition()).await;
    assert_eq!(missing_as(&informer, MissingCause::NotEstablished).await, AvailabilityCheck::CrdWatch);
    let state = informer.state();
    assert!(state.is_absent() && state.to_string().contains("isn't established yet"), "{state}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    definitions(&server).delete("gadgets.example.com", &DeleteParams::default()).await.unwrap();
    synced_within(&informer, Duration::from_secs(1)).await;
    factory.shutdown().await;
}

/// Istio fact 20.
#[tokio::test(start_paused = true)]
async fn a_kind_served_in_another_version_is_said_so_and_followed_once_the_version_is_served() {
    let (server, cancel) = (server(), CancellationToken::new());
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    make(&server, definition_with(|crd| crd["spec"]["versions"] = json!([version("v2", true, true)]))).await;
    let others = MissingCause::OtherVersions(vec!["v2".to_owned()]);
    assert_eq!(missing_as(&informer, others).await, AvailabilityCheck::CrdWatch);
    let state = informer.state().to_string();
    assert!(state.contains("widgets of example.com are served as v2, not as v1"), "{state}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    patch(&server, json!({"spec": {"versions": [version("v2", true, true), version("v1", true, false)]}})).await;
    synced_within(&informer, Duration::from_millis(100)).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_takes_any_served_version_moves_to_the_one_that_is() {
    let (server, cancel) = (server(), CancellationToken::new());
    let both = json!([version("v1", true, true), version("v2", true, false)]);
    make(&server, definition_with(|crd| crd["spec"]["versions"] = both)).await;
    create(&objects(&server), "a").await;
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).any_served_version().full();
    let plain = factory.dynamic(widgets()).full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert_eq!(next(&mut events).await, "added default/a");
    let versions = |informer: &SharedInformer<DynamicObject>| -> Vec<String> {
        informer.lister().list().iter().map(|object| object.types.as_ref().unwrap().api_version.clone()).collect()
    };
    assert_eq!(versions(&informer), ["example.com/v1"]);

    patch(&server, json!({"spec": {"versions": [version("v1", false, true), version("v2", true, false)]}})).await;
    assert_eq!([next(&mut events).await, next(&mut events).await], ["deleted default/a", "added default/a"]);
    assert_eq!(versions(&informer), ["example.com/v2"]);
    missing_as(&plain, MissingCause::OtherVersions(vec!["v2".to_owned()])).await;
    assert!(plain.lister().is_empty());
    // And it follows the changes there.
    let v2 = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v2", "Widget"), "widgets");
    let api = Api::<DynamicObject>::namespaced_with(client(&server), "default", &v2);
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 2}}))).await.unwrap();
    assert_eq!(next(&mut events).await, "updated default/a");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_crd_made_again_with_another_scope_is_said_so_and_with_the_right_one_taken_in() {
    let (server, cancel) = (server(), CancellationToken::new());
    make(&server, definition()).await;
    create(&objects(&server), "a").await;
    let factory = builder(&server).build();
    let scoped = factory.dynamic(widgets()).scope(Scope::namespaced("default")).full();
    let all = factory.dynamic(widgets()).full();
    let mut events = scoped.subscribe();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert_eq!(next(&mut events).await, "added default/a");

    delete(&server).await;
    assert_eq!(next(&mut events).await, "deleted default/a");
    missing_as(&scoped, MissingCause::Deleted).await;
    make(&server, definition_with(|crd| crd["spec"]["scope"] = json!("Cluster"))).await;
    assert_eq!(missing_as(&scoped, MissingCause::OtherScope).await, AvailabilityCheck::CrdWatch);
    // Who wants all of it doesn't mind.
    synced_within(&all, Duration::from_secs(1)).await;

    delete(&server).await;
    missing_as(&scoped, MissingCause::Deleted).await;
    make(&server, definition()).await;
    synced_within(&scoped, Duration::from_secs(1)).await;
    create(&objects(&server), "a").await;
    assert_eq!(next(&mut events).await, "added default/a");
    factory.shutdown().await;
}

/// Public report C-093 (kubernetes-sigs/controller-runtime#1938).
#[tokio::test(start_paused = true)]
async fn a_changed_schema_ends_the_watches_and_no_add_is_repeated() {
    let (server, cancel) = (server(), CancellationToken::new());
    make(&server, definition()).await;
    create(&objects(&server), "a").await;
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    assert_eq!(next(&mut events).await, "added default/a");
    for round in 0..5 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        let restarts = || informer.status().counters.watch_restarts.values().sum::<u64>();
        let before = restarts();
        patch(&server, json!({"spec": {"versions": [version("v1", true, true)]}})).await;
        let description = json!({"openAPIV3Schema": {"type": "object", "description": format!("round {round}"), "x-kubernetes-preserve-unknown-fields": true}});
        let mut changed = version("v1", true, true);
        changed["schema"] = description;
        patch(&server, json!({"spec": {"versions": [changed]}})).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(restarts() > before, "the watch goes on (round {round})");
        create(&objects(&server), &format!("b{round}")).await;
        assert_eq!(next(&mut events).await, format!("added default/b{round}"));
    }
    assert!(informer.status().counters.relists.is_empty(), "{:?}", informer.status().counters);
    assert_eq!(front.discoveries(), 0);
    factory.shutdown().await;
}

/// Public report C-092 (argoproj/gitops-engine#523).
#[tokio::test(start_paused = true)]
async fn touches_of_crds_ask_nothing_of_discovery_and_a_new_version_one_round() {
    let (server, cancel) = (server(), CancellationToken::new());
    make(&server, definition_with(|crd| crd["spec"]["versions"] = json!([version("v2", true, true)]))).await;
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    missing_as(&informer, MissingCause::OtherVersions(vec!["v2".to_owned()])).await;
    front.asked();
    for touch in 0..100 {
        patch(&server, json!({"metadata": {"annotations": {"touched": touch.to_string()}}})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(front.asked(), Vec::<String>::new(), "the watch of CRDs says it all");
    patch(&server, json!({"spec": {"versions": [version("v2", true, true), version("v1", true, false)]}})).await;
    synced_within(&informer, Duration::from_millis(100)).await;
    assert_eq!(front.discoveries(), 0);
    factory.shutdown().await;
}

const NO_CRDS: Rule = |path| (path == CRDS).then_some((403, FORBIDDEN));

#[tokio::test(start_paused = true)]
async fn where_crds_may_not_be_watched_discovery_is_asked_and_the_state_says_so() {
    let (server, cancel) = (server(), CancellationToken::new());
    let front = Front::new(&server, NO_CRDS);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    let (cause, checked_by, reason) = missing(&informer).await;
    assert_eq!((cause, checked_by), (MissingCause::NoSuchKind, AvailabilityCheck::Discovery));
    assert!(reason.contains("CRDs can't be watched: forbidden since"), "{reason}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    front.asked();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked = front.asked();
    let kinds = asked.iter().filter(|path| path.ends_with("/widgets")).count();
    assert!(kinds == 0 && (30..=120).contains(&asked.len()), "{asked:?}");

    make(&server, definition()).await;
    synced_within(&informer, Duration::from_secs(31)).await;
    delete(&server).await;
    assert_eq!(missing_as(&informer, MissingCause::Deleted).await, AvailabilityCheck::Discovery);
    factory.shutdown().await;
}

/// A kind of an aggregated server has no CRD, though its group looks like one of a CRD.
#[tokio::test(start_paused = true)]
async fn a_kind_without_a_crd_is_found_by_discovery() {
    let (server, cancel) = (server(), CancellationToken::new());
    let front = Front::new(&server, |path| {
        path.starts_with("/apis/coordination.k8s.io/").then_some((404, "404 page not found\n"))
    });
    let factory = front.builder().build();
    let informer = factory.informer::<Lease>().full();
    factory.start(&cancel).unwrap();
    assert_eq!(informer.wait_synced_or_absent().await, Ok(false));
    let state = informer.state().to_string();
    assert!(state.contains("there's no CRD leases.coordination.k8s.io, and discovery lists no leases"), "{state}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    front.set(OPEN);
    let since = Instant::now();
    informer.wait_synced().await.unwrap();
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn while_discovery_fails_nothing_is_known_to_be_absent_and_nothing_is_emptied() {
    let (server, cancel) = (server(), CancellationToken::new());
    let failing: Rule = |path| match path {
        CRDS => Some((403, FORBIDDEN)),
        "/apis/example.com/v1/widgets" => Some((404, "404 page not found\n")),
        path if path.starts_with("/apis/example.com") || path == "/apis" => Some((503, "the proxy is tired")),
        _ => None,
    };
    let front = Front::new(&server, failing);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    missing_as(&informer, MissingCause::DiscoveryFailing).await;
    let state = informer.state();
    assert!(!state.is_absent() && state.to_string().contains("the proxy is tired (503)"), "{state}");
    let waiting = tokio::time::timeout(Duration::from_secs(600), informer.wait_synced_or_absent()).await;
    assert!(waiting.is_err(), "{waiting:?}");

    make(&server, definition()).await;
    create(&objects(&server), "a").await;
    front.set(OPEN);
    assert_eq!(next(&mut events).await, "added default/a");
    // The watch ends, and the same trouble begins anew.
    front.set(failing);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(matches!(informer.state(), InformerState::Retrying { .. }), "{}", informer.state());
    assert_eq!(informer.lister().len(), 1);
    front.set(OPEN);
    synced_within(&informer, Duration::from_secs(61)).await;
    let more = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    assert!(more.is_err(), "{more:?}");
    factory.shutdown().await;
}

/// A proxy that knows nothing of the path says 404 as well as a server without the kind.
#[tokio::test(start_paused = true)]
async fn a_404_that_is_not_about_the_kind_empties_nothing_and_its_text_is_kept() {
    let (server, cancel) = (server(), CancellationToken::new());
    make(&server, definition()).await;
    create(&objects(&server), "a").await;
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    front.set(|path| path.ends_with("/widgets").then_some((404, "no route to this backend")));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let status = informer.status();
    assert!(matches!(status.state, InformerState::Retrying { .. }), "{}", status.state);
    assert!(status.state.to_string().contains("no route to this backend (404)"), "{}", status.state);
    assert_eq!(status.last_error.unwrap().message, "no route to this backend (404)");
    assert_eq!(informer.lister().len(), 1);
    // Even if nothing at all gets through: that's no proof of anything.
    front.set(|_| Some((404, "no route to this backend")));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(informer.lister().len(), 1);
    front.set(OPEN);
    synced_within(&informer, Duration::from_secs(61)).await;
    factory.shutdown().await;
}

/// Public report C-056 (kubewarden/adm-controller#1320).
#[tokio::test(start_paused = true)]
async fn what_is_forbidden_at_the_start_is_said_at_once_and_taken_in_once_it_is_allowed() {
    let (server, cancel) = (server(), CancellationToken::new());
    let front = Front::new(&server, |path| path.ends_with("/configmaps").then_some((403, FORBIDDEN)));
    let factory = front.builder().build();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    let error = informer.wait_synced().await.unwrap_err();
    assert!(error.state.to_string().contains("widgets is forbidden: no (403)"), "{}", error.state);
    assert!(informer.wait_synced_or_absent().await.is_err());
    front.set(OPEN);
    informer.wait_state(|state| *state == InformerState::Synced).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_later_keeps_its_cache_and_goes_on_once_it_is_allowed_again() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let front = Front::new(&server, OPEN);
    let factory = front.builder().build();
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced("default")).full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let before = informer.lister().len();
    front.set(|path| path.ends_with("/configmaps").then_some((403, FORBIDDEN)));
    let state = informer.wait_state(|state| matches!(state, InformerState::Forbidden { .. })).await;
    assert!(!state.is_absent());
    assert_eq!((informer.has_synced(), informer.lister().len()), (true, before));
    let since =
        |state: &InformerState| if let InformerState::Forbidden { since, .. } = state { Some(*since) } else { None };
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(since(&informer.state()), since(&state), "forbidden since the first time");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    front.set(OPEN);
    informer.wait_state(|state| *state == InformerState::Synced).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(informer.lister().len(), before - 1);
    factory.shutdown().await;
}
