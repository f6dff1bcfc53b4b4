use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::store::StoreOptions;

fn pods() -> StorageId {
    StorageId { group: "".into(), plural: "pods".into() }
}

fn pod(namespace: &str, name: &str, app: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}})
}

/// A store with the objects `default/p0` to `default/p<count - 1>`.
fn store_of(count: usize) -> Store {
    let store = Store::new(StoreOptions { first_resource_version: 100, ..StoreOptions::default() });
    for index in 0..count {
        store.create(&pods(), pod("default", &format!("p{index}"), "a")).unwrap();
    }
    store
}

fn names(page: &Page) -> Vec<&str> {
    page.items.iter().map(|object| crate::object::name(object)).collect()
}

fn app_is(app: &'static str) -> Selector {
    Selector::new(move |object| crate::object::label(object, "app") == Some(app))
}

async fn ask(store: &Store, options: ListOptions) -> Result<Page, Status> {
    list(store, &pods(), &Scope::default(), &options, None).await
}

fn at(version: u64) -> ListOptions {
    ListOptions { resource_version: version.to_string(), ..ListOptions::default() }
}

#[tokio::test]
async fn a_list_has_the_store_wide_version_and_is_in_key_order() {
    let store = Store::new(StoreOptions { first_resource_version: 100, ..StoreOptions::default() });
    for (namespace, name) in [("b", "a"), ("a", "z"), ("a", "b"), ("a-b", "c")] {
        store.create(&pods(), pod(namespace, name, "x")).unwrap();
    }
    let other = StorageId { group: "".into(), plural: "nodes".into() };
    store.create(&other, json!({"metadata": {"name": "n"}})).unwrap();
    let page = ask(&store, ListOptions::default()).await.unwrap();
    let keys: Vec<String> = page.items.iter().map(|object| object.key().to_string()).collect();
    assert_eq!(keys, ["a-b/c", "a/b", "a/z", "b/a"]);
    assert_eq!(page.resource_version, store.current_rv());
    let namespaced = list(&store, &pods(), &Scope::namespace("a"), &ListOptions::default(), None).await.unwrap();
    assert_eq!(names(&namespaced), ["b", "z"]);
}

#[tokio::test]
async fn objects_of_a_cluster_scoped_kind_lie_in_the_empty_namespace() {
    let store = Store::new(StoreOptions::default());
    for name in ["a", "ab"] {
        store.create(&pods(), json!({"metadata": {"name": name}})).unwrap();
    }
    let page = list(&store, &pods(), &Scope::namespace(""), &ListOptions::default(), None).await.unwrap();
    assert_eq!(names(&page), ["a", "ab"]);
    let scope = Scope { name: Some("a".to_owned()), ..Scope::namespace("") };
    let page = list(&store, &pods(), &scope, &ListOptions::default(), None).await.unwrap();
    assert_eq!(names(&page), ["a"]);
}

#[tokio::test]
async fn pages_come_from_one_state_whatever_is_written_meanwhile() {
    let store = store_of(5);
    let snapshot = store.current_rv();
    let first = ask(&store, ListOptions { limit: 2, ..ListOptions::default() }).await.unwrap();
    assert_eq!((names(&first), first.remaining_item_count), (vec!["p0", "p1"], Some(3)));
    store.delete(&pods(), "default", "p2", None).unwrap();
    store.create(&pods(), pod("default", "p1a", "a")).unwrap();
    let changed = pod("default", "p3", "changed");
    let version = store.get(&pods(), "default", "p3").unwrap().resource_version();
    store.update(&pods(), changed, version).unwrap();

    let options = ListOptions { limit: 2, continue_token: first.continue_token, ..ListOptions::default() };
    let second = ask(&store, options).await.unwrap();
    assert_eq!((names(&second), second.remaining_item_count), (vec!["p2", "p3"], Some(1)));
    assert_eq!(crate::object::label(&second.items[1], "app"), Some("a"));
    let options = ListOptions { limit: 2, continue_token: second.continue_token, ..ListOptions::default() };
    let third = ask(&store, options).await.unwrap();
    assert_eq!((names(&third), third.remaining_item_count), (vec!["p4"], None));
    assert_eq!(third.continue_token, "");
    assert!([first.resource_version, second.resource_version, third.resource_version].iter().all(|v| *v == snapshot));
}

#[tokio::test]
async fn with_a_selector_pages_are_full_and_tell_no_remainder() {
    let store = store_of(3);
    for index in 0..3 {
        store.create(&pods(), pod("default", &format!("q{index}"), "b")).unwrap();
    }
    let options = ListOptions { limit: 2, ..ListOptions::default() };
    let page = list(&store, &pods(), &Scope::default(), &options, Some(&app_is("b"))).await.unwrap();
    assert_eq!((names(&page), page.remaining_item_count), (vec!["q0", "q1"], None));
    let options = ListOptions { limit: 2, continue_token: page.continue_token, ..ListOptions::default() };
    let page = list(&store, &pods(), &Scope::default(), &options, Some(&app_is("b"))).await.unwrap();
    assert_eq!((names(&page), page.continue_token.as_str()), (vec!["q2"], ""));
}

#[tokio::test]
async fn an_expired_token_is_answered_with_one_that_goes_on_from_the_present() {
    let store = store_of(3);
    let first = ask(&store, ListOptions { limit: 1, ..ListOptions::default() }).await.unwrap();
    let new = store.create(&pods(), pod("default", "p1a", "a")).unwrap();
    store.compact(new.resource_version());
    let options = ListOptions { limit: 1, continue_token: first.continue_token, ..ListOptions::default() };
    let status = ask(&store, options).await.unwrap_err();
    assert_eq!((status.code, status.reason), (410, crate::status::Reason::Expired));
    assert_eq!(status.to_value()["metadata"]["continue"], json!(status.continue_token));
    let options = ListOptions { continue_token: status.continue_token, ..ListOptions::default() };
    let rest = ask(&store, options).await.unwrap();
    assert_eq!((names(&rest), rest.resource_version), (vec!["p1", "p1a", "p2"], store.current_rv()));
}

#[tokio::test]
async fn a_version_with_a_limit_or_exact_reads_that_version_and_without_the_present() {
    let store = store_of(3);
    let version = store.current_rv() - 1;
    let exact = ListOptions { resource_version_match: "Exact".to_owned(), ..at(version) };
    let page = ask(&store, exact).await.unwrap();
    assert_eq!((names(&page), page.resource_version), (vec!["p0", "p1"], version));
    let page = ask(&store, ListOptions { limit: 10, ..at(version) }).await.unwrap();
    assert_eq!((names(&page), page.resource_version), (vec!["p0", "p1"], version));
    let page = ask(&store, at(version)).await.unwrap();
    assert_eq!((names(&page), page.resource_version), (vec!["p0", "p1", "p2"], version + 1));
    let options = ListOptions { resource_version_match: "NotOlderThan".to_owned(), limit: 1, ..at(version) };
    let page = ask(&store, options).await.unwrap();
    assert_eq!((names(&page), page.resource_version), (vec!["p0"], version + 1));
}

#[tokio::test]
async fn version_zero_ignores_the_limit() {
    let store = store_of(3);
    let page = ask(&store, ListOptions { limit: 1, ..at(0) }).await.unwrap();
    assert_eq!((page.items.len(), page.continue_token.as_str()), (3, ""));
}

#[tokio::test]
async fn a_forgotten_version_is_expired() {
    let store = store_of(3);
    let version = store.current_rv() - 1;
    store.compact(store.current_rv());
    let exact = ListOptions { resource_version_match: "Exact".to_owned(), ..at(version) };
    let status = ask(&store, exact).await.unwrap_err();
    assert_eq!((status.code, status.continue_token.as_str()), (410, ""));
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_waited_for_three_seconds() {
    let store = store_of(1);
    let next = store.current_rv() + 1;
    let begin = tokio::time::Instant::now();
    let status = ask(&store, at(next)).await.unwrap_err();
    assert_eq!(begin.elapsed().as_secs(), 3);
    let details = status.details.unwrap();
    assert_eq!((status.code, details.causes[0].reason.as_str()), (504, "ResourceVersionTooLarge"));

    let write = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        store.create(&pods(), pod("default", "late", "a")).unwrap();
    };
    let (page, ()) = tokio::join!(ask(&store, at(next)), write);
    assert_eq!(page.unwrap().items.len(), 2);
}

#[tokio::test]
async fn combinations_that_contradict_each_other_are_refused() {
    let store = store_of(1);
    let with = |version: &str, rule: &str, token: &str, initial: Option<bool>| ListOptions {
        resource_version: version.to_owned(),
        resource_version_match: rule.to_owned(),
        continue_token: token.to_owned(),
        send_initial_events: initial,
        ..ListOptions::default()
    };
    let token = ContinueToken::after("default/p0", store.current_rv()).encode();
    for (options, code) in [
        (with("", "Exact", "", None), 422),
        (with("0", "Exact", "", None), 422),
        (with("1", "Sometimes", "", None), 422),
        (with("1", "Exact", &token, None), 422),
        (with("", "", "", Some(true)), 422),
        (with("101", "", &token, None), 400),
        (with("", "", "garbage", None), 400),
        (with("abc", "", "", None), 400),
        (with("+1", "", "", None), 400),
    ] {
        let answer = ask(&store, options.clone()).await;
        assert_eq!(answer.map(|page| page.items.len()).map_err(|status| status.code), Err(code), "{options:?}");
    }
    let page = ask(&store, with("0", "", &token, None)).await.unwrap();
    assert_eq!(page.items.len(), 0);
}

proptest! {
    /// However the pages are cut, together they are the list, and every remainder is true.
    #[test]
    fn pages_add_up_to_the_list(
        keys in prop::collection::btree_set(("[ab]|a-b", "[a-c]{1,2}"), 0..30),
        limit in 1u64..8,
        namespace in prop::option::of("[ab]|a-b"),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let store = Store::new(StoreOptions { first_resource_version: 100, ..StoreOptions::default() });
            for (namespace, name) in &keys {
                store.create(&pods(), pod(namespace, name, "a")).unwrap();
            }
            let scope = Scope { namespace, name: None };
            let whole = list(&store, &pods(), &scope, &ListOptions::default(), None).await.unwrap();
            let mut options = ListOptions { limit, ..ListOptions::default() };
            let mut collected = Vec::new();
            loop {
                let page = list(&store, &pods(), &scope, &options, None).await.unwrap();
                collected.extend(page.items.iter().map(|object| object.key()));
                let rest = whole.items.len() - collected.len();
                prop_assert_eq!(page.remaining_item_count, (rest > 0).then_some(rest));
                store.create(&pods(), pod("a", &format!("new-{}", collected.len()), "a")).unwrap();
                if page.continue_token.is_empty() {
                    break;
                }
                options.continue_token = page.continue_token;
            }
            let expected: Vec<Arc<str>> = whole.items.iter().map(|object| object.key()).collect();
            prop_assert_eq!(collected, expected);
            Ok(())
        })?;
    }
}
