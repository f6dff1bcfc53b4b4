//! Own indexes and label selectors.

use std::collections::BTreeMap;

use informant_cache::{Index, ObjectKey, Selector};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object_with};

fn keys(index: &Index<ConfigMap, String>, value: &str) -> Vec<String> {
    index.keys(&value.to_owned()).iter().map(|key| key.name().to_owned()).collect()
}

fn label(object: &ConfigMap, key: &str) -> Option<String> {
    object.metadata.labels.as_ref()?.get(key).cloned()
}

/// client-go facts 71, 72 and 73. Istio fact 22. Public report C-044 (kubernetes/kubernetes#117046).
#[tokio::test(start_paused = true)]
async fn an_index_added_before_during_or_after_the_sync_covers_everything() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let make = || informer.index("tier", |object: &ConfigMap| label(object, "tier"));
    let before = make();
    factory.start(&cancel).unwrap();
    let request = server.request().await;
    let during = make();
    request.list(
        "10",
        &[
            object_with("a", 1, &json!({"tier": "x"})),
            object_with("b", 2, &json!({"tier": "x"})),
            object_with("c", 3, &json!({})),
        ],
    );
    let watch = server.request().await.open();
    informer.wait_synced().await.unwrap();
    let after = make();
    for index in [&before, &during, &after] {
        assert_eq!(keys(index, "x"), ["a", "b"]);
        assert_eq!(keys(index, "y"), Vec::<String>::new());
    }
    let mut events = informer.subscribe();
    events.wait_initial().await.unwrap();
    watch.event("MODIFIED", &object_with("a", 11, &json!({"tier": "y"})));
    watch.event("DELETED", &object_with("b", 12, &json!({"tier": "x"})));
    watch.event("MODIFIED", &object_with("c", 13, &json!({"tier": "y"})));
    for _ in 0..3 {
        events.next().await.unwrap();
    }
    for index in [&before, &during, &after] {
        assert_eq!(keys(index, "y"), ["a", "c"]);
        assert_eq!(index.values(), ["y"], "a value that nothing has is no value");
        assert_eq!(index.get(&"y".to_owned()).len(), 2);
    }
    watch.event("DELETED", &object_with("a", 14, &json!({"tier": "y"})));
    watch.event("DELETED", &object_with("c", 15, &json!({"tier": "y"})));
    for _ in 0..2 {
        events.next().await.unwrap();
    }
    for index in [&before, &during, &after] {
        assert!(index.values().is_empty() && index.get(&"y".to_owned()).is_empty() && index.unindexed().is_empty());
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_may_have_many_values_or_none_and_a_function_that_panics_costs_only_itself() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let many = informer.index("labels", |object: &ConfigMap| -> Vec<String> {
        object.metadata.labels.iter().flatten().flat_map(|(_, value)| [value.clone(), value.clone()]).collect()
    });
    let panicking = informer.index("panicking", |object: &ConfigMap| {
        assert!(object.metadata.name.as_deref() != Some("b"), "a bug of the function");
        object.metadata.name.clone()
    });
    // A value of another type than text.
    let typed = informer.index("by key", |object: &ConfigMap| [ObjectKey::of(object)]);
    factory.start(&cancel).unwrap();
    let _watch = server
        .sync(
            "10",
            &[
                object_with("a", 1, &json!({"x": "1", "y": "2"})),
                object_with("b", 2, &json!({"x": "2"})),
                object_with("c", 3, &json!({})),
            ],
        )
        .await;
    informer.wait_synced().await.unwrap();
    assert_eq!((keys(&many, "1"), keys(&many, "2")), (vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((keys(&panicking, "a").len(), keys(&panicking, "b").len(), keys(&panicking, "c").len()), (1, 0, 1));
    let status = informer.status();
    assert_eq!((status.counters.index_panics, status.counters.index_errors), (1, 0));
    assert_eq!(status.unindexed["panicking"][&ObjectKey::namespaced("web", "b")], "the index function panicked");
    assert_eq!(typed.get(&ObjectKey::namespaced("web", "b")).len(), 1);
    drop(typed);
    factory.shutdown().await;
}

/// client-go fact 80.
#[tokio::test(start_paused = true)]
async fn a_lister_selects_by_namespace_and_labels() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let mut elsewhere = object_with("z", 3, &json!({"app": "web"}));
    elsewhere["metadata"]["namespace"] = json!("other");
    let _watch = server
        .sync(
            "10",
            &[object_with("a", 1, &json!({"app": "web", "tier": "x"})), object_with("b", 2, &json!({})), elsewhere],
        )
        .await;
    informer.wait_synced().await.unwrap();
    let lister = informer.lister();
    let selector = |text: &str| text.parse::<Selector>().unwrap();
    assert_eq!(lister.select(&Selector::everything()).len(), 3);
    assert_eq!(lister.select(&selector("app=web")).len(), 2);
    assert_eq!(lister.select(&selector("app=web,tier!=x")).len(), 1);
    assert_eq!(lister.select(&selector("nothing=such")).len(), 0);
    assert_eq!(lister.select(&Selector::from(&BTreeMap::from([("tier".to_owned(), "x".to_owned())]))).len(), 1);
    assert_eq!(lister.namespace("web").list().len(), 2);
    assert_eq!(lister.namespace("web").select(&selector("app")).len(), 1);
    assert!(lister.namespace("other").get("z").is_some() && lister.namespace("web").get("z").is_none());
    assert!(lister.namespace("none").list().is_empty());
    assert_eq!(lister.namespaces().iter().map(|namespace| &**namespace).collect::<Vec<_>>(), ["other", "web"]);
    factory.shutdown().await;
}
