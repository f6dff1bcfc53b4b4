//! Reading the cache: from one moment, at a version, and telling what isn't there from what isn't covered.

use std::time::Duration;

use informant_cache::{Lookup, ObjectKey, Scope, WaitUntilError};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, object_with};

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("web", name)
}

/// client-go fact 75 to 77 as their users see them: the store's version is that of the list, of each change and bookmark.
#[tokio::test(start_paused = true)]
async fn a_writer_waits_until_the_cache_shows_its_write() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    assert!(matches!(informer.wait_until("9").await, Err(WaitUntilError::NotRunning { .. })));
    assert_eq!(informer.last_store_resource_version(), "");
    factory.start(&cancel).unwrap();
    let watch = server.sync("9", &[object("a", 1), object("b", 2)]).await;
    informer.wait_until("9").await.unwrap();
    let mut written = Box::pin(informer.wait_until("10"));
    assert!(futures::poll!(&mut written).is_pending());
    watch.event("MODIFIED", &object("a", 10));
    written.await.unwrap();
    let snapshot = informer.lister().snapshot();
    assert_eq!((snapshot.objects.len(), &*snapshot.resource_version), (2, "10"));
    let found = informer.lister().get_many(&[key("b"), key("none"), key("a")]);
    let versions = found.iter().map(|found| found.as_ref().and_then(|found| found.metadata.resource_version.clone()));
    assert_eq!(versions.collect::<Vec<_>>(), [Some("2".to_owned()), None, Some("10".to_owned())]);
    watch.bookmark("100");
    informer.wait_until("100").await.unwrap();
    let not_comparable = informer.wait_until("abc").await;
    assert!(matches!(not_comparable, Err(WaitUntilError::NotComparable { .. })));
    let far = informer.wait_until("1000");
    assert!(tokio::time::timeout(Duration::from_secs(60), far).await.is_err());
    factory.shutdown().await;
    assert!(matches!(informer.wait_until("1000").await, Err(WaitUntilError::NotRunning { .. })));
    informer.wait_until("100").await.unwrap();
}

/// Public report C-095 (Azure/azure-service-operator#4926).
#[tokio::test(start_paused = true)]
async fn what_is_absent_differs_from_what_is_out_of_scope() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced("web")).kept();
    let lister = informer.lister();
    assert!(matches!(lister.lookup(&key("a")), Lookup::NotSynced));
    factory.start(&cancel).unwrap();
    let _watch = server.sync("9", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    assert!(matches!(lister.lookup(&key("a")), Lookup::Found(_)));
    assert!(matches!(lister.lookup(&key("b")), Lookup::Absent));
    assert!(matches!(lister.lookup(&ObjectKey::namespaced("other", "a")), Lookup::OutOfScope));

    let selected = factory.informer::<ConfigMap>().scope(Scope::all().with_labels("x=true")).kept();
    let _watch = server.sync("9", &[object("a", 1)]).await;
    selected.wait_synced().await.unwrap();
    assert!(matches!(selected.lister().lookup(&key("b")), Lookup::OutOfScope), "it may exist without the label");
    factory.shutdown().await;
}

/// client-go fact 69, its errors of keys: what has no name has no key, so it's counted, and the others are there.
#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_is_counted_and_hides_no_other() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let mut nameless = object("b", 2);
    nameless["metadata"].as_object_mut().unwrap().remove("name");
    let _watch = server.sync("9", &[object("a", 1), nameless, object("c", 3)]).await;
    informer.wait_synced().await.unwrap();
    assert_eq!(informer.lister().keys(), [key("a"), key("c")]);
    let status = informer.status();
    assert_eq!((status.counters.undecodable, status.undecodable.len()), (1, 0), "there's no name to name it by");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_names_the_objects_that_its_function_cannot_index() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let size = |object: &ConfigMap| {
        let labels = object.metadata.labels.clone().unwrap_or_default();
        labels.get("size").map_or(Ok(None), |size| size.parse::<u32>().map(Some))
    };
    let before = informer.index_fallible("size", size);
    factory.start(&cancel).unwrap();
    let sized = |name, version, size: &str| object_with(name, version, &json!({"size": size}));
    let watch = server.sync("9", &[sized("a", 1, "7"), sized("b", 2, "big"), object("c", 3)]).await;
    informer.wait_synced().await.unwrap();
    let after = informer.index_fallible("size", size);
    for index in [&before, &after] {
        assert_eq!((index.keys(&7), index.unindexed_len()), (vec![key("a")], 1));
        let unindexed = index.unindexed();
        assert!(unindexed[0].0 == key("b") && unindexed[0].1.contains("invalid digit"), "{unindexed:?}");
    }
    let status = informer.status();
    assert_eq!((status.counters.index_panics, status.counters.index_errors), (0, 2), "an error is no panic");
    assert_eq!(status.unindexed.len(), 1, "two indexes of one name are named together");
    assert!(status.unindexed["size"][&key("b")].contains("invalid digit"));
    watch.event("MODIFIED", &sized("b", 10, "7"));
    watch.event("MODIFIED", &sized("a", 11, "small"));
    informer.wait_until("11").await.unwrap();
    for index in [&before, &after] {
        assert_eq!((index.keys(&7), index.unindexed()[0].0.clone()), (vec![key("b")], key("a")));
    }
    watch.event("DELETED", &sized("a", 12, "small"));
    informer.wait_until("12").await.unwrap();
    assert_eq!((before.unindexed_len(), after.unindexed_len()), (0, 0));
    let status = informer.status();
    assert!(status.counters.index_errors == 4 && status.unindexed.is_empty(), "counted for ever, named while it's so");
    factory.shutdown().await;
}
