use futures::FutureExt;
use serde_json::json;

use super::feed::Lagged;
use super::*;
use crate::object;

fn kind(plural: &str) -> StorageId {
    StorageId { group: "".into(), plural: plural.into() }
}

fn new_store() -> Store {
    Store::new(StoreOptions { first_resource_version: 100, ..StoreOptions::default() })
}

fn object(name: &str, value: u64) -> Value {
    json!({"metadata": {"name": name}, "value": value})
}

#[test]
fn every_write_of_any_kind_takes_the_next_version() {
    let store = new_store();
    let first = store.create(&kind("nodes"), object("a", 1)).unwrap();
    let second = store.create(&kind("flows"), object("a", 1)).unwrap();
    let third = store.update(&kind("nodes"), object("a", 2), 101).unwrap();
    let gone = store.delete(&kind("nodes"), "", "a", None).unwrap();
    let versions = [&first, &second, &third, &gone].map(|object| object.resource_version());
    assert_eq!(versions, [101, 102, 103, 104]);
    assert_eq!(gone.value(), &json!({"metadata": {"name": "a", "resourceVersion": "104"}, "value": 2}));
    assert_eq!(store.current_rv(), 104);
}

#[test]
fn a_refused_write_uses_up_no_version() {
    let store = new_store();
    let nodes = kind("nodes");
    store.create(&nodes, object("a", 1)).unwrap();
    assert_eq!(store.create(&nodes, object("a", 2)).err(), Some(WriteError::AlreadyExists));
    assert_eq!(store.create(&nodes, json!({})).err(), Some(WriteError::Unnamed));
    assert_eq!(store.update(&nodes, object("a", 2), 100).err(), Some(WriteError::Conflict { current: 101 }));
    assert_eq!(store.update(&nodes, object("b", 2), 100).err(), Some(WriteError::NotFound));
    assert_eq!(store.delete(&nodes, "", "a", Some(7)).err(), Some(WriteError::Conflict { current: 101 }));
    assert_eq!(store.delete(&nodes, "", "b", None).err(), Some(WriteError::NotFound));
    assert_eq!(store.current_rv(), 101);
}

#[test]
fn an_update_that_changes_nothing_is_not_written() {
    let store = new_store();
    let stored = store.create(&kind("nodes"), object("a", 1)).unwrap();
    let same = store.update(&kind("nodes"), object("a", 1), stored.resource_version()).unwrap();
    assert_eq!((same.resource_version(), store.current_rv()), (101, 101));
}

#[test]
fn of_two_updates_from_one_version_one_wins() {
    let store = new_store();
    let nodes = kind("nodes");
    store.create(&nodes, object("a", 0)).unwrap();
    let won = std::thread::scope(|scope| {
        let writers = [1, 2].map(|value| {
            let (store, nodes) = (store.clone(), nodes.clone());
            scope.spawn(move || store.update(&nodes, object("a", value), 101).is_ok())
        });
        writers.map(|writer| writer.join().unwrap()).iter().filter(|won| **won).count()
    });
    assert_eq!((won, store.current_rv()), (1, 102));
}

#[tokio::test(start_paused = true)]
async fn the_history_is_bounded_by_count_and_by_age() {
    let options = StoreOptions {
        history_events: 2,
        history_age: Duration::from_secs(10),
        first_resource_version: 100,
        ..StoreOptions::default()
    };
    let store = Store::new(options);
    let nodes = kind("nodes");
    for name in ["a", "b", "c"] {
        store.create(&nodes, object(name, 1)).unwrap();
    }
    assert_eq!(store.oldest(&nodes), 101);
    for name in ["d", "e"] {
        tokio::time::advance(Duration::from_secs(11)).await;
        store.create(&nodes, object(name, 1)).unwrap();
    }
    assert_eq!(store.oldest(&nodes), 104, "of two that fit, one is too old");
    assert_eq!(store.oldest(&kind("flows")), 100);
}

#[tokio::test]
async fn a_feed_has_all_kinds_in_order_and_says_when_it_lost_some() {
    let store = Store::new(StoreOptions { history_events: 2, first_resource_version: 100, ..StoreOptions::default() });
    let mut feed = store.feed(store.current_rv());
    store.create(&kind("nodes"), object("a", 1)).unwrap();
    store.create(&kind("flows"), object("b", 1)).unwrap();
    store.delete(&kind("nodes"), "", "a", None).unwrap();
    let seen: Vec<_> =
        feed.next().await.unwrap().iter().map(|(kind, change)| (kind.plural.to_string(), change.version())).collect();
    assert_eq!(seen, [("nodes".to_owned(), 101), ("flows".to_owned(), 102), ("nodes".to_owned(), 103)]);
    for name in ["c", "d", "e"] {
        store.create(&kind("nodes"), object(name, 1)).unwrap();
    }
    assert_eq!(feed.next().await.err(), Some(Lagged));
    store.create(&kind("nodes"), object("f", 1)).unwrap();
    assert_eq!(feed.next().await.unwrap().len(), 1);
}

#[test]
fn the_json_of_an_object_is_made_once() {
    let store = new_store();
    let stored = store.create(&kind("nodes"), object("a", 1)).unwrap();
    let again = store.get(&kind("nodes"), "", "a").unwrap();
    assert_eq!(stored.json().as_ptr(), again.json().as_ptr());
    assert_eq!(serde_json::from_slice::<Value>(&again.json()).unwrap(), *again.value());
}

#[test]
fn a_reader_is_woken_for_its_interest_and_sleeps_through_the_rest() {
    let store = new_store();
    let pods = kind("pods");
    let pod = |namespace: &str, name: &str, app: &str| json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}});
    store.create(&pods, pod("one", "a", "x")).unwrap();
    let all = [
        Interest::Everything,
        Interest::Namespace("one".to_owned()),
        Interest::Name("a".to_owned()),
        Interest::Label("app".to_owned(), "x".to_owned()),
    ];
    let hear = |write: &dyn Fn()| -> Vec<bool> {
        let mut readers = all.clone().map(|interest| store.cursor_at_present(&pods, Scope::default(), interest));
        write();
        readers.iter_mut().map(|reader| reader.news().now_or_never().is_some()).collect()
    };
    let update = |object: Value| {
        let version = store.get(&pods, object::namespace(&object), object::name(&object)).unwrap().resource_version();
        store.update(&pods, object, version).unwrap();
    };
    assert_eq!(hear(&|| ()), [false, false, false, false]);
    assert_eq!(hear(&|| drop(store.create(&pods, pod("two", "b", "y")))), [true, false, false, false]);
    assert_eq!(hear(&|| drop(store.create(&pods, pod("one", "b", "y")))), [true, true, false, false]);
    assert_eq!(hear(&|| drop(store.create(&pods, pod("two", "a", "y")))), [true, false, true, false]);
    assert_eq!(hear(&|| update(pod("two", "b", "x"))), [true, false, false, true]);
    assert_eq!(hear(&|| update(pod("two", "b", "z"))), [true, false, false, true]);
    assert_eq!(hear(&|| drop(store.create(&kind("nodes"), object("a", 1)))), [false, false, false, false]);
    assert_eq!(hear(&|| store.end_watches(&pods)), [true, true, true, true]);
    assert_eq!(store.watcher_count(&pods), 0);
}
