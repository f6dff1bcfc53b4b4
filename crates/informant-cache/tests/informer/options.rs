//! What an informer can be set up to be: filtered, transformed, strict, from elsewhere; and who shares it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use informant_cache::{Event, FinalState, InformerState, ListerWatcher, RequestError, Scope};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{ApiResource, PartialObjectMeta};
use kube::client::Body;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, object_with, show};

fn wanted(object: &ConfigMap) -> bool {
    object.metadata.labels.iter().flatten().any(|(key, value)| (key.as_str(), value.as_str()) == ("want", "yes"))
}

/// Istio facts 2, 3, 4 and 5.
#[tokio::test(start_paused = true)]
async fn a_filter_lets_objects_come_and_go_as_they_match() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().filter(wanted).kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let (yes, no) = (json!({"want": "yes"}), json!({"want": "no"}));
    let watch = server.sync("10", &[object_with("a", 1, &yes), object_with("b", 2, &no)]).await;
    assert_eq!(show(&events.next().await.unwrap()), "+!web/a@1");
    assert_eq!(informer.lister().len(), 1);

    watch.event("ADDED", &object_with("c", 11, &no));
    watch.event("DELETED", &object_with("c", 12, &no));
    watch.event("MODIFIED", &object_with("b", 13, &yes));
    assert_eq!(show(&events.next().await.unwrap()), "+web/b@13", "what's not wanted is no event");
    watch.event("MODIFIED", &object_with("a", 14, &no));
    let gone = events.next().await.unwrap();
    assert!(
        matches!(&gone, Event::Deleted { object, final_state: FinalState::OutOfScope } if object.key().name() == "a")
    );
    watch.event("MODIFIED", &object_with("a", 15, &no));
    watch.event("MODIFIED", &object_with("b", 16, &yes));
    assert_eq!(show(&events.next().await.unwrap()), "web/b@13>16");
    assert_eq!(informer.lister().keys().len(), 1);
    factory.shutdown().await;
}

/// client-go fact 108: a transform sees each received state once, and everybody sees what it made.
#[tokio::test(start_paused = true)]
async fn a_transform_runs_once_for_each_state_of_an_object_however_it_came() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let informer = factory
        .informer::<ConfigMap>()
        .transform(move |mut object| {
            counted.fetch_add(1, Ordering::Relaxed);
            if object.metadata.name.as_deref() == Some("bad") {
                return Err("it's bad".to_owned());
            }
            object.data = None;
            Ok(object)
        })
        .kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    watch.event("MODIFIED", &object("a", 11));
    watch.event("ADDED", &object("bad", 12));
    for _ in 0..2 {
        assert!(events.next().await.unwrap().object().data.is_none());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((calls.load(Ordering::Relaxed), informer.lister().len()), (3, 1));
    let undecodable = informer.status().undecodable;
    assert!(undecodable.values().any(|reason| reason.contains("it's bad")), "{undecodable:?}");
    watch.end();
    server.request().await.fail(410, "Expired");
    server.request().await.list("20", &[object("a", 11)]);
    let _watch = server.request().await.open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3, "what's there isn't transformed again");
    factory.shutdown().await;
}

/// Istio fact 32, but that nobody gets another's transform by accident: client-go and kclient let the first one win.
#[tokio::test]
async fn functions_are_shared_by_name_only_and_what_differs_is_kept_apart() {
    let server = Server::new();
    let factory = server.factory();
    let plain = || factory.informer::<ConfigMap>();
    let filtered = || plain().filter(wanted);
    drop(plain().kept());
    drop(plain().kept());
    assert_eq!(factory.registered().len(), 1);
    drop(filtered().kept());
    drop(filtered().kept());
    drop(plain().transform(Ok).kept());
    assert_eq!(factory.registered().len(), 4, "without a name each is its own");
    drop(filtered().named("wanted").kept());
    drop(filtered().named("wanted").kept());
    assert_eq!(factory.registered().len(), 5, "with a name it's shared by those who name it");
    drop(plain().kept());
    drop(plain().keep_managed_fields().kept());
    drop(plain().strict().kept());
    drop(plain().strict().kept());
    assert_eq!(factory.registered().len(), 7);
    assert_eq!(factory.registered()[4], "configmaps/v1 named \"wanted\"");
}

/// Orkestra's informer of a caller's own lister-watcher.
#[tokio::test(start_paused = true)]
async fn an_informer_can_get_its_objects_from_elsewhere() {
    struct Elsewhere {
        client: kube::Client,
    }
    impl ListerWatcher for Elsewhere {
        fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
            // Somewhere else the objects are in one namespace.
            let uri = request.uri().to_string().replace("/v1/", "/v1/namespaces/elsewhere/");
            let request = Request::get(uri).body(()).unwrap();
            async move { ListerWatcher::request(&self.client, request).await }.boxed()
        }
    }
    let (server, mut elsewhere, cancel) = (Server::new(), Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().from(Elsewhere { client: elsewhere.client() }).kept();
    factory.start(&cancel).unwrap();
    let request = elsewhere.request().await;
    assert_eq!(request.path, "/api/v1/namespaces/elsewhere/configmaps");
    request.list("10", &[object("a", 1)]);
    let _watch = elsewhere.request().await.open();
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.lister().len(), 1);
    factory.shutdown().await;
}

/// Istio fact 8, public report C-110 (cert-manager/cert-manager#5279).
#[tokio::test(start_paused = true)]
async fn one_scope_of_the_factory_binds_every_kind_that_has_namespaces() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).default_scope(Scope::namespaced("ns1")).build();
    let _configs = factory.informer::<ConfigMap>().kept();
    let _secrets = factory.metadata::<Secret>().kept();
    let _nodes = factory.informer::<Node>().kept();
    let _nodes_of_no_namespace = factory.informer::<Node>().scope(Scope::namespaced("ns2")).kept();
    let _node_metadata = factory.metadata::<Node>().kept();
    let resource = ApiResource::erase::<Node>(&());
    let _dynamic_nodes = factory.dynamic(resource).cluster_scoped().kept();
    let _other = factory.informer::<ConfigMap>().scope(Scope::namespaced("ns2").with_labels("a=b")).kept();
    factory.start(&cancel).unwrap();
    let mut paths = Vec::new();
    for _ in 0..6 {
        let request = server.request().await;
        paths.push(request.path.clone());
        request.refuse();
    }
    paths.sort();
    assert_eq!(
        paths,
        [
            "/api/v1/namespaces/ns1/configmaps",
            "/api/v1/namespaces/ns1/secrets",
            "/api/v1/namespaces/ns2/configmaps",
            "/api/v1/nodes",
            "/api/v1/nodes",
            "/api/v1/nodes",
        ]
    );
    assert_eq!(factory.registered().len(), 6);
    factory.shutdown().await;
}

/// Public report C-094 (cert-manager/cert-manager#5721): what's held twice is told of, with kind, form, scope and count.
#[tokio::test(start_paused = true)]
async fn the_inventory_says_what_is_held_more_than_once() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let typed = factory.informer::<Secret>().full();
    let again = factory.informer::<Secret>().full();
    let metadata = factory.metadata::<Secret>().full();
    assert_eq!(metadata.name(), factory.informer::<PartialObjectMeta<Secret>>().full().name());
    let selected = factory.informer::<Secret>().scope(Scope::all().with_labels("a=b")).full();
    let other_kind = factory.informer::<ConfigMap>().scope(Scope::namespaced("one")).full();
    let other_namespace = factory.informer::<ConfigMap>().scope(Scope::namespaced("two")).full();
    assert_eq!(factory.registered().len(), 5);
    assert_eq!(typed.status().also_held_as, ["metadata of secrets/v1", "full of secrets/v1 with labels \"a=b\""]);
    assert_eq!(again.status().also_held_as, typed.status().also_held_as);
    assert_eq!(selected.status().also_held_as, ["full of secrets/v1", "metadata of secrets/v1"]);
    assert!(other_kind.status().also_held_as.is_empty() && other_namespace.status().also_held_as.is_empty());
    let status = serde_json::to_value(metadata.status()).unwrap();
    assert_eq!(status["kind"], "Secret");
    assert_eq!(status["form"], "metadata");
    assert_eq!(status["scope"], "");
    assert_eq!((&status["objects"], &status["memory"]["objects"]), (&json!(0), &json!(0)));
    assert_eq!(selected.status().scope, "with labels \"a=b\"");

    // Of metadata the server is asked for nothing more.
    factory.start(&cancel).unwrap();
    let mut accepts = Vec::new();
    for _ in 0..5 {
        let request = server.request().await;
        if request.path.ends_with("/secrets") {
            accepts.push(request.header("accept").contains("as=PartialObjectMetadata"));
        }
        request.refuse();
    }
    accepts.sort_unstable();
    assert_eq!(accepts, [false, false, true]);
    // Once one of two is stopped, it's held once.
    selected.stop().await;
    assert_eq!(typed.status().also_held_as, ["metadata of secrets/v1"]);
    assert_eq!(selected.state(), InformerState::Stopped);
    factory.shutdown().await;
}
