//! Scopes of several namespaces: a set that changes, and a selector on their labels.

use std::collections::BTreeMap;
use std::time::Duration;

use informant_apiserver::scripted::{Exchange, Stream};
use informant_cache::{InformerState, NamespaceSelector, NamespaceSet, NotSynced, Scope, Subscription};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, keys, show};

/// A ConfigMap in a namespace.
fn object(namespace: &str, name: &str, resource_version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"),
        "resourceVersion": resource_version.to_string(),
    }})
}

fn namespace(name: &str, resource_version: u64, team: &str) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {
        "name": name, "uid": format!("uid-{name}"), "resourceVersion": resource_version.to_string(),
        "labels": {"team": team},
    }})
}

/// Takes as many requests as namespaces are named, by namespace.
async fn requests(server: &mut Server, count: usize) -> BTreeMap<String, Exchange> {
    let mut requests = BTreeMap::new();
    for _ in 0..count {
        let request = server.request().await;
        let namespace = request.path.split('/').nth(4).unwrap_or_default().to_owned();
        assert!(requests.insert(namespace, request).is_none(), "one list per namespace");
    }
    requests
}

/// Everything that's told within a second.
async fn told(events: &mut Subscription<ConfigMap>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), events.next()).await {
        told.push(show(&event.expect("the informer runs")));
    }
    told.sort();
    told
}

/// client-go fact 120 (events with a namespace filter), for a set of namespaces.
#[tokio::test(start_paused = true)]
async fn a_set_of_namespaces_is_followed_while_it_changes() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["one", "two"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    assert_eq!(informer.name(), "configmaps/v1 in the namespaces of \"tenants\"");
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();

    let mut lists = requests(&mut server, 2).await;
    lists.remove("one").unwrap().list("10", &[object("one", "a", 1)]);
    let one = server.request().await.open();
    assert_eq!(told(&mut events).await, ["+!one/a@1"], "what's there is told of");
    assert!(!informer.has_synced(), "it's synced when all are");
    lists.remove("two").unwrap().list("12", &[object("two", "b", 2)]);
    let two = server.request().await.open();
    informer.wait_synced().await.unwrap();
    assert_eq!(told(&mut events).await, ["+!two/b@2"]);
    assert!(events.has_synced());
    assert_eq!(informer.status().resource_version, "10", "the one that's furthest behind");

    one.event("MODIFIED", &object("one", "a", 20));
    two.event("DELETED", &object("two", "b", 21));
    assert_eq!(told(&mut events).await, ["-two/b@21", "one/a@1>20"]);

    assert!(set.insert("three") && !set.insert("three"));
    let list = server.request().await;
    assert_eq!(list.path, "/api/v1/namespaces/three/configmaps");
    list.list("30", &[object("three", "c", 3), object("three", "d", 4)]);
    let _three = server.request().await.open();
    assert_eq!(told(&mut events).await, ["+three/c@3", "+three/d@4"], "later than the first state");

    assert!(set.remove("three") && !set.remove("three"));
    assert_eq!(told(&mut events).await, ["-~three/c@3", "-~three/d@4"]);
    set.replace(["two", "four"]);
    assert_eq!(told(&mut events).await, ["-~one/a@20"]);
    assert!(one.is_closed() && !two.is_closed(), "what's in both isn't touched");
    let list = server.request().await;
    assert_eq!(list.path, "/api/v1/namespaces/four/configmaps");
    list.list("40", &[object("four", "e", 5)]);
    let _four = server.request().await.open();
    assert_eq!(told(&mut events).await, ["+four/e@5"]);
    assert_eq!(keys(&informer), ["four/e"]);
    assert_eq!(informer.state(), InformerState::Synced);
    factory.shutdown().await;
}

/// A relist of one namespace says nothing of the others.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_listed_anew_leaves_the_others_alone() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["one", "two"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watches = sync(&mut server, &[("one", &[object("one", "a", 1)]), ("two", &[object("two", "b", 2)])]).await;
    assert_eq!(told(&mut events).await.len(), 2);
    watches["one"].error(410, "Expired");
    let list = server.request().await;
    assert_eq!(list.path, "/api/v1/namespaces/one/configmaps");
    list.list("20", &[object("one", "c", 15)]);
    let _one = server.request().await.open();
    assert_eq!(told(&mut events).await, ["+one/c@15", "-?one/a@1"]);
    assert_eq!(keys(&informer), ["one/c", "two/b"]);
    factory.shutdown().await;
}

/// Public report C-108 (prometheus-operator/prometheus-operator#3545).
#[tokio::test(start_paused = true)]
async fn a_namespace_that_does_not_exist_holds_up_nobody() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["ns1", "ghost"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    // A real API server lists a namespace that isn't there as empty.
    let watches = sync(&mut server, &[("ns1", &[object("ns1", "a", 1)]), ("ghost", &[])]).await;
    informer.wait_synced().await.unwrap();
    assert_eq!(told(&mut events).await, ["+!ns1/a@1"]);
    watches["ghost"].event("ADDED", &object("ghost", "b", 11));
    assert_eq!(told(&mut events).await, ["+ghost/b@11"]);
    factory.shutdown().await;
}

/// One namespace's trouble is named, and stops no other.
#[tokio::test(start_paused = true)]
async fn a_forbidden_namespace_is_named_and_the_others_go_on() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["one", "two"]);
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let mut lists = requests(&mut server, 2).await;
    lists.remove("one").unwrap().list("10", &[object("one", "a", 1)]);
    let _one = server.request().await.open();
    lists.remove("two").unwrap().fail(403, "Forbidden");
    let NotSynced { state, .. } = informer.wait_synced().await.unwrap_err();
    assert!(state.to_string().contains("namespace \"two\": Forbidden!"), "{state}");
    assert_eq!(told(&mut events).await, ["+!one/a@1"]);
    set.remove("two");
    informer.wait_state(|state| *state == InformerState::Synced).await;
    informer.wait_synced().await.unwrap();
    assert!(told(&mut events).await.is_empty());
    assert!(events.has_synced() && informer.state() == InformerState::Synced);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_set_is_synced_and_asks_for_nothing() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", Vec::<String>::new());
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
    set.insert("one");
    let _watches = sync(&mut server, &[("one", &[object("one", "a", 1)])]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(keys(&informer), ["one/a"]);
    factory.shutdown().await;
}

/// Public report C-106 (kubernetes-sigs/controller-runtime#1377), Istio fact 28; and so for Istio fact 29: namespaces
/// themselves aren't filtered by a selector on namespaces.
#[tokio::test(start_paused = true)]
async fn a_kind_without_namespaces_is_listed_once_whatever_the_scope() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let set = NamespaceSet::new("tenants", ["ns1", "ns2", "ns3"]);
    let selector = NamespaceSelector::new("mesh", "team=a").unwrap();
    let factory = server.builder().watch_list(false).default_scope(Scope::namespaces(&set)).build();
    let nodes = factory.informer::<Node>().kept();
    let same = factory.informer::<Node>().scope(Scope::selected_namespaces(&selector)).kept();
    assert_eq!((nodes.name(), factory.registered().len()), (same.name(), 1));
    factory.start(&cancel).unwrap();
    let list = server.request().await;
    assert_eq!(list.path, "/api/v1/nodes");
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}});
    list.of("v1", "Node").list("10", &[node]);
    let _watch = server.request().await.open();
    nodes.wait_synced().await.unwrap();
    assert_eq!(nodes.lister().len(), 1);
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
    factory.shutdown().await;
}

/// Istio facts 22, 24, 26 and 27, public report C-104 (istio/istio#44675). Istio fact 23 but that the change of what the
/// index finds is told of.
#[tokio::test(start_paused = true)]
async fn a_selector_on_namespaces_is_followed_while_it_and_they_change() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let selector = NamespaceSelector::new("mesh", "team=a").unwrap();
    let informer = factory.informer::<ConfigMap>().scope(Scope::selected_namespaces(&selector)).kept();
    assert_eq!(informer.name(), "configmaps/v1 in the namespaces selected by \"mesh\"");
    let index = informer.index("name", |object: &ConfigMap| object.metadata.name.clone());
    let mut events = informer.subscribe();
    let removed_log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = std::sync::Arc::clone(&removed_log);
    let removed = informer.on_change(move |event| to.lock().unwrap().push(show(&event)));
    factory.start(&cancel).unwrap();
    let list = server.request().await;
    assert_eq!(list.path, "/api/v1/namespaces", "namespaces go first");
    list.of("v1", "Namespace").list("5", &[namespace("n1", 1, "a"), namespace("n2", 2, "b")]);
    // The watch of namespaces and the list of objects, in either order.
    let mut namespaces = None;
    let mut objects = None;
    for _ in 0..3 {
        let request = server.request().await;
        match (&*request.path, request.query.contains_key("watch")) {
            ("/api/v1/namespaces", true) => namespaces = Some(request.open()),
            ("/api/v1/configmaps", false) => request.list("10", &[object("n1", "x", 3), object("n2", "y", 4)]),
            ("/api/v1/configmaps", true) => objects = Some(request.open()),
            other => panic!("{other:?}"),
        }
    }
    let (namespaces, objects) = (namespaces.unwrap(), objects.unwrap());
    informer.wait_synced().await.unwrap();
    assert_eq!(told(&mut events).await, ["+!n1/x@3"]);
    removed.remove().await;
    assert_eq!((keys(&informer), index.get(&"y".to_owned()).len()), (vec!["n1/x".to_owned()], 0));

    objects.event("ADDED", &object("n2", "z", 11));
    objects.event("ADDED", &object("n1", "w", 12));
    assert_eq!(told(&mut events).await, ["+n1/w@12"], "what isn't selected is no event");

    selector.set("team=b").unwrap();
    assert_eq!(told(&mut events).await, ["+n2/y@4", "+n2/z@11", "-~n1/w@12", "-~n1/x@3"]);
    assert_eq!((keys(&informer), index.get(&"y".to_owned()).len()), (vec!["n2/y".to_owned(), "n2/z".to_owned()], 1));
    assert!(selector.set("team in (").is_err(), "a bad one changes nothing");
    assert!(told(&mut events).await.is_empty());

    namespaces.event("MODIFIED", &namespace("n1", 20, "b"));
    assert_eq!(told(&mut events).await, ["+n1/w@12", "+n1/x@3"]);
    namespaces.event("MODIFIED", &namespace("n1", 21, "b"));
    assert!(told(&mut events).await.is_empty());
    namespaces.event("DELETED", &namespace("n2", 22, "b"));
    assert_eq!(told(&mut events).await, ["-~n2/y@4", "-~n2/z@11"]);
    objects.event("DELETED", &object("n2", "y", 23));
    objects.event("DELETED", &object("n2", "z", 24));
    assert!(told(&mut events).await.is_empty(), "they were told of before");

    // An object may come before its namespace: watches have no order among each other.
    objects.event("ADDED", &object("n3", "v", 30));
    assert!(told(&mut events).await.is_empty());
    namespaces.event("ADDED", &namespace("n3", 31, "b"));
    assert_eq!(told(&mut events).await, ["+n3/v@30"]);
    selector.set("").unwrap();
    assert!(told(&mut events).await.is_empty(), "an empty selector selects every namespace, and all were");
    assert_eq!(keys(&informer), ["n1/w", "n1/x", "n3/v"]);
    assert_eq!(*removed_log.lock().unwrap(), ["+!n1/x@3"], "the selector's changes are no news to who was removed");
    factory.shutdown().await;
}

/// Istio fact 30.
#[tokio::test(start_paused = true)]
async fn a_handler_may_list_and_change_the_selector_while_it_is_told_of_a_change() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let selector = NamespaceSelector::new("mesh", "team=a").unwrap();
    let informer = factory.informer::<ConfigMap>().scope(Scope::selected_namespaces(&selector)).kept();
    let (lister, change) = (informer.lister(), selector.clone());
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let _handler = informer.on_change(move |event| {
        change.set("team in (a, b)").unwrap();
        sender.send((show(&event), lister.list().len())).unwrap();
    });
    factory.start(&cancel).unwrap();
    server.request().await.of("v1", "Namespace").list("5", &[namespace("n1", 1, "a"), namespace("n2", 2, "b")]);
    let mut open = Vec::new();
    for _ in 0..3 {
        let request = server.request().await;
        if request.query.contains_key("watch") {
            open.push(request.open());
        } else {
            request.list("10", &[object("n1", "x", 3), object("n2", "y", 4)]);
        }
    }
    assert_eq!(seen.recv().await.unwrap().0, "+!n1/x@3");
    assert_eq!(seen.recv().await.unwrap(), ("+n2/y@4".to_owned(), 2));
    factory.shutdown().await;
}

/// Answers the lists of these namespaces and opens their watches.
async fn sync(server: &mut Server, namespaces: &[(&str, &[Value])]) -> BTreeMap<String, Stream> {
    let mut lists = requests(server, namespaces.len()).await;
    for (namespace, items) in namespaces {
        lists.remove(*namespace).unwrap().list("10", items);
    }
    let watches = requests(server, namespaces.len()).await;
    watches.into_iter().map(|(namespace, watch)| (namespace, watch.open())).collect()
}
