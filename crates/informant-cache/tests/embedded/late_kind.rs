//! Handlers, selectors and dynamic objects of a kind that's served late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_apiserver::ApiServer;
use informant_cache::{Event, FinalState, HandlerHandle, InformerState, NamespaceSelector, Scope, SharedInformer};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::crd::{create, definition};
use crate::{builder, client, server, widget, widgets};

type Log = Arc<Mutex<Vec<String>>>;

/// A handler that notes the kind and the name of each event.
fn note(informer: &SharedInformer<DynamicObject>) -> (Log, HandlerHandle) {
    let log = Log::default();
    let to = Arc::clone(&log);
    let handler = informer.on_change(move |event| {
        let end = match &event {
            Event::Deleted { final_state: FinalState::OutOfScope, .. } => " out of scope",
            _ => "",
        };
        to.lock().unwrap().push(format!("{} {}{end}", event.kind(), event.key()));
    });
    (log, handler)
}

fn taken(log: &Log) -> Vec<String> {
    let mut taken = std::mem::take(&mut *log.lock().unwrap());
    taken.sort();
    taken
}

async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

async fn define(server: &ApiServer) -> Api<DynamicObject> {
    let definitions = Api::<CustomResourceDefinition>::all(client(server));
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    Api::namespaced_with(client(server), "default", &widgets())
}

async fn missing(informer: &SharedInformer<DynamicObject>) {
    informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await;
}

/// Istio fact 34: removing one handler after the kind has appeared removes that one only.
#[tokio::test(start_paused = true)]
async fn a_handler_from_before_its_kind_was_served_can_be_removed_alone_after() {
    let (server, cancel) = (server(), CancellationToken::new());
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).full();
    let (early_log, early) = note(&informer);
    factory.start(&cancel).unwrap();
    missing(&informer).await;
    let (waiting_log, _waiting) = note(&informer);
    let api = define(&server).await;
    create(&api, "a").await;
    settle().await;
    let (late_log, _late) = note(&informer);
    settle().await;
    for log in [&early_log, &waiting_log, &late_log] {
        assert_eq!(taken(log), ["added default/a"]);
    }
    early.remove().await;
    api.create(&PostParams::default(), &widget("b")).await.unwrap();
    settle().await;
    for log in [&waiting_log, &late_log] {
        assert_eq!(taken(log), ["added default/b"]);
    }
    assert!(taken(&early_log).is_empty());
    factory.shutdown().await;
}

/// Istio fact 35: handlers that are added at any moment while the kind appears are told of each object exactly once.
/// Istio fact 13: its cache is read all the while.
#[tokio::test(start_paused = true)]
async fn a_handler_added_while_its_kind_appears_is_neither_lost_nor_told_twice() {
    let (server, cancel) = (server(), CancellationToken::new());
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).full();
    factory.start(&cancel).unwrap();
    missing(&informer).await;
    let api = define(&server).await;
    // Every turn of the runtime and every millisecond from here on, one more.
    let adding = async {
        let (mut handlers, mut without_objects) = (Vec::new(), 0);
        for turn in 0..2000 {
            without_objects += u32::from(informer.lister().is_empty());
            if turn % 4 == 0 {
                sleep(Duration::from_millis(1)).await;
            } else {
                tokio::task::yield_now().await;
            }
            handlers.push(note(&informer));
        }
        (handlers, without_objects)
    };
    let creating = async {
        create(&api, "a").await;
        api.create(&PostParams::default(), &widget("b")).await.unwrap();
    };
    let ((handlers, without_objects), ()) = tokio::join!(adding, creating);
    assert!((1..2000).contains(&without_objects), "some were added before and some after: {without_objects}");
    settle().await;
    for (log, handler) in &handlers {
        assert_eq!(taken(log), ["added default/a", "added default/b"]);
        assert!(handler.has_synced());
    }
    factory.shutdown().await;
}

/// Istio fact 25: a selector on namespaces that changes after the kind has appeared, as for any other kind.
#[tokio::test(start_paused = true)]
async fn a_selector_on_namespaces_is_followed_for_a_kind_that_is_served_late() {
    let (server, cancel) = (server(), CancellationToken::new());
    let namespaces = Api::<Namespace>::all(client(&server));
    for (name, team) in [("one", "a"), ("two", "b")] {
        let labels = Some([("team".to_owned(), team.to_owned())].into());
        let metadata = ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    let factory = builder(&server).build();
    let selector = NamespaceSelector::new("mesh", "team=a").unwrap();
    let informer = factory.dynamic(widgets()).scope(Scope::selected_namespaces(&selector)).full();
    let (log, _handler) = note(&informer);
    let (removed_log, removed) = note(&informer);
    factory.start(&cancel).unwrap();
    missing(&informer).await;
    selector.set("team=b").unwrap();
    selector.set("team=a").unwrap();
    let api = define(&server).await;
    create(&api, "elsewhere").await;
    for (namespace, name) in [("one", "x"), ("two", "y")] {
        let api = Api::<DynamicObject>::namespaced_with(client(&server), namespace, &widgets());
        let mut object = widget(name);
        object.metadata.namespace = Some(namespace.to_owned());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    settle().await;
    for log in [&log, &removed_log] {
        assert_eq!(taken(log), ["added one/x"]);
    }
    removed.remove().await;
    selector.set("team=b").unwrap();
    settle().await;
    assert_eq!(taken(&log), ["added two/y", "deleted one/x out of scope"]);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "b"}}}));
    namespaces.patch("one", &PatchParams::default(), &patch).await.unwrap();
    settle().await;
    assert_eq!(taken(&log), ["added one/x"]);
    assert!(taken(&removed_log).is_empty());
    factory.shutdown().await;
}

/// client-go fact 120.
#[tokio::test(start_paused = true)]
async fn a_dynamic_informer_of_one_namespace_tells_of_creation_change_and_deletion_there() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = define(&server).await;
    create(&api, "a").await;
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("other".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::<Namespace>::all(client(&server)).create(&PostParams::default(), &namespace).await.unwrap();
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).scope(Scope::namespaced("default")).full();
    let (log, _handler) = note(&informer);
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    settle().await;
    assert_eq!(taken(&log), ["added default/a"]);
    let other = Api::<DynamicObject>::namespaced_with(client(&server), "other", &widgets());
    let mut elsewhere = widget("b");
    elsewhere.metadata.namespace = Some("other".to_owned());
    other.create(&PostParams::default(), &elsewhere).await.unwrap();
    api.create(&PostParams::default(), &widget("c")).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    api.delete("c", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(*log.lock().unwrap(), ["added default/c", "updated default/a", "deleted default/c"]);
    assert_eq!(informer.lister().list()[0].data["spec"]["size"], 2);
    factory.shutdown().await;
}
