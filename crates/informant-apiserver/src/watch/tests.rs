use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::object;
use crate::store::StoreOptions;

fn pods() -> StorageId {
    StorageId { group: "".into(), plural: "pods".into() }
}

fn nodes() -> StorageId {
    StorageId { group: "".into(), plural: "nodes".into() }
}

fn pod(namespace: &str, name: &str, app: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}})
}

fn new_store() -> Store {
    Store::new(StoreOptions { first_resource_version: 100, ..StoreOptions::default() })
}

fn put(store: &Store, name: &str, app: &str) -> u64 {
    let new = pod("default", name, app);
    let stored = match store.get(&pods(), "default", name) {
        Some(old) => store.update(&pods(), new, old.resource_version()),
        None => store.create(&pods(), new),
    };
    stored.unwrap().resource_version()
}

fn remove(store: &Store, name: &str) -> u64 {
    store.delete(&pods(), "default", name, None).unwrap().resource_version()
}

async fn open(store: &Store, options: ListOptions, selector: Option<Selector>) -> Watch {
    Watch::open(store, &pods(), Scope::default(), &options, selector).await.unwrap()
}

fn after(version: u64) -> ListOptions {
    ListOptions { resource_version: version.to_string(), ..ListOptions::default() }
}

fn watch_list() -> ListOptions {
    ListOptions {
        send_initial_events: Some(true),
        resource_version_match: "NotOlderThan".to_owned(),
        allow_watch_bookmarks: true,
        ..ListOptions::default()
    }
}

fn app_is(app: &'static str) -> Option<Selector> {
    let selector = Selector::new(move |object| object::label(object, "app") == Some(app));
    Some(selector.requiring(Some(("app", app))))
}

/// One word for an event: type, name and label, and the version.
fn word(event: &WatchEvent) -> String {
    let of = |kind: &str, object: &Object| {
        let app = object::label(object, "app").unwrap_or("");
        assert_eq!(object::resource_version(object), object.resource_version().to_string());
        format!("{kind} {} {app} {}", object::name(object), object.resource_version())
    };
    match event {
        WatchEvent::Added(object) => of("ADDED", object),
        WatchEvent::Modified(object) => of("MODIFIED", object),
        WatchEvent::Deleted(object) => of("DELETED", object),
        WatchEvent::Bookmark { resource_version, initial_events_end: true } => format!("END {resource_version}"),
        WatchEvent::Bookmark { resource_version, .. } => format!("BOOKMARK {resource_version}"),
        WatchEvent::Error(status) => format!("ERROR {}", status.code),
    }
}

/// What the watch has to say now, without waiting.
async fn now(watch: &mut Watch) -> Vec<String> {
    let mut words = Vec::new();
    loop {
        tokio::select! {
            biased;
            events = watch.next() => match events {
                Some(events) => words.extend(events.iter().map(word)),
                None => {
                    words.push("over".to_owned());
                    return words;
                }
            },
            () = tokio::task::yield_now() => return words,
        }
    }
}

/// What the watch says next, however long that takes.
async fn first_words(watch: &mut Watch) -> Vec<String> {
    watch.next().await.unwrap().iter().map(word).collect()
}

#[tokio::test]
async fn without_a_version_the_objects_come_first_in_key_order_and_then_what_happens() {
    let store = new_store();
    put(&store, "b", "x");
    put(&store, "a", "x");
    let mut watch = open(&store, ListOptions::default(), None).await;
    put(&store, "c", "x");
    assert_eq!(now(&mut watch).await, ["ADDED a x 102", "ADDED b x 101", "ADDED c x 103"]);
    put(&store, "a", "y");
    remove(&store, "b");
    assert_eq!(now(&mut watch).await, ["MODIFIED a y 104", "DELETED b x 105"]);
}

#[tokio::test]
async fn from_a_version_exactly_the_later_events_come() {
    let store = new_store();
    let version = put(&store, "a", "x");
    put(&store, "a", "y");
    put(&store, "a", "z");
    let mut watch = open(&store, after(version), None).await;
    assert_eq!(now(&mut watch).await, ["MODIFIED a y 102", "MODIFIED a z 103"]);
}

#[tokio::test]
async fn an_object_enters_and_leaves_a_selector_as_added_and_deleted() {
    let store = new_store();
    let mut watch = open(&store, after(store.current_rv()), app_is("x")).await;
    put(&store, "a", "other");
    put(&store, "a", "x");
    put(&store, "a", "x-gone");
    put(&store, "b", "other");
    remove(&store, "b");
    // The last state that matched, under the version of the write that ended it.
    assert_eq!(now(&mut watch).await, ["ADDED a x 102", "DELETED a x 103"]);
}

#[tokio::test]
async fn a_watch_sees_its_namespace_and_name_only() {
    let store = new_store();
    let scope = Scope { namespace: Some("one".to_owned()), name: Some("a".to_owned()) };
    let mut watch = Watch::open(&store, &pods(), scope, &ListOptions::default(), None).await.unwrap();
    for (namespace, name) in [("one", "a"), ("one", "ab"), ("two", "a")] {
        store.create(&pods(), pod(namespace, name, "x")).unwrap();
    }
    store.create(&nodes(), json!({"metadata": {"name": "a"}})).unwrap();
    assert_eq!(now(&mut watch).await, ["ADDED a x 101"]);
}

#[tokio::test]
async fn a_forgotten_version_opens_tells_it_and_ends() {
    let store = new_store();
    let version = put(&store, "a", "x");
    put(&store, "a", "y");
    store.compact(store.current_rv());
    let mut watch = open(&store, after(version), None).await;
    assert_eq!(now(&mut watch).await, ["ERROR 410", "over"]);
    let mut watch = open(&store, after(store.current_rv()), None).await;
    assert_eq!(now(&mut watch).await, [""; 0]);
}

#[tokio::test]
async fn a_slow_watch_loses_its_own_stream_only() {
    let store = Store::new(StoreOptions { history_events: 3, ..StoreOptions::default() });
    let mut slow = open(&store, after(store.current_rv()), None).await;
    let mut quick = open(&store, after(store.current_rv()), None).await;
    for name in ["a", "b", "c", "d"] {
        put(&store, name, "x");
        assert_eq!(now(&mut quick).await.len(), 1);
    }
    assert_eq!(now(&mut slow).await, ["ERROR 410", "over"]);
}

#[tokio::test]
async fn an_idle_watch_survives_a_compaction_that_takes_nothing_from_it() {
    let store = new_store();
    let mut watch = open(&store, after(store.current_rv()), None).await;
    store.create(&nodes(), json!({"metadata": {"name": "n"}})).unwrap();
    store.compact(store.current_rv());
    put(&store, "a", "x");
    assert_eq!(now(&mut watch).await, ["ADDED a x 102"]);
}

#[tokio::test]
async fn a_version_from_the_future_is_silent_until_it_is_passed() {
    let store = new_store();
    let mut watch = open(&store, after(store.current_rv() + 1), None).await;
    put(&store, "a", "x");
    assert_eq!(now(&mut watch).await, [""; 0]);
    put(&store, "b", "x");
    assert_eq!(now(&mut watch).await, ["ADDED b x 102"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_rise_while_the_kind_is_idle() {
    let store = new_store();
    let options = ListOptions { allow_watch_bookmarks: true, timeout_seconds: 600, ..after(store.current_rv()) };
    let mut watch = open(&store, options, None).await;
    store.create(&nodes(), json!({"metadata": {"name": "n"}})).unwrap();
    assert_eq!(now(&mut watch).await, [""; 0]);
    let begin = Instant::now();
    let events = watch.next().await.unwrap();
    assert_eq!(events.iter().map(word).collect::<Vec<_>>(), ["BOOKMARK 101"]);
    assert!((45..=75).contains(&begin.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout_with_a_bookmark_before() {
    let store = new_store();
    let options = ListOptions { allow_watch_bookmarks: true, timeout_seconds: 10, ..after(store.current_rv()) };
    let mut watch = open(&store, options, None).await;
    put(&store, "a", "x");
    assert_eq!(now(&mut watch).await, ["ADDED a x 101"]);
    advance(Duration::from_secs(8)).await;
    put(&store, "b", "x");
    assert_eq!(now(&mut watch).await, ["ADDED b x 102", "BOOKMARK 102"]);
    let begin = Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(begin.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_leave_there_are_no_bookmarks() {
    let store = new_store();
    let mut watch = open(&store, ListOptions { timeout_seconds: 600, ..ListOptions::default() }, None).await;
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_list_ends_its_initial_objects_with_a_marked_bookmark_also_when_there_are_none() {
    let store = new_store();
    let mut empty = open(&store, watch_list(), None).await;
    assert_eq!(now(&mut empty).await, ["END 100"]);
    put(&store, "a", "x");
    put(&store, "b", "y");
    let mut watch = open(&store, watch_list(), app_is("x")).await;
    assert_eq!(now(&mut watch).await, ["ADDED a x 101", "END 102"]);
    put(&store, "a", "x-gone");
    assert_eq!(now(&mut watch).await, ["DELETED a x 103"]);
}

#[tokio::test]
async fn the_initial_objects_of_many_batches_are_complete_before_the_mark() {
    let store = new_store();
    for index in 0..INITIAL_BATCH * 2 {
        put(&store, &format!("p{index}"), "x");
    }
    let mut watch = open(&store, watch_list(), None).await;
    let words = now(&mut watch).await;
    assert_eq!(words.iter().filter(|word| word.starts_with("ADDED")).count(), INITIAL_BATCH * 2);
    assert_eq!(words.iter().position(|word| word.starts_with("END")), Some(INITIAL_BATCH * 2));
}

#[tokio::test]
async fn the_mark_also_comes_to_a_plain_watch_with_bookmarks_and_never_without() {
    let store = new_store();
    put(&store, "a", "x");
    let with = ListOptions { allow_watch_bookmarks: true, ..ListOptions::default() };
    assert_eq!(now(&mut open(&store, with, None).await).await, ["ADDED a x 101", "END 101"]);
    let any = ListOptions { allow_watch_bookmarks: true, ..after(0) };
    assert_eq!(now(&mut open(&store, any, None).await).await, ["ADDED a x 101", "END 101"]);
    let without = ListOptions { allow_watch_bookmarks: false, ..watch_list() };
    assert_eq!(now(&mut open(&store, without, None).await).await, ["ADDED a x 101"]);
    let none = ListOptions { send_initial_events: Some(false), ..watch_list() };
    assert_eq!(now(&mut open(&store, none, None).await).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_of_the_future_tells_after_three_seconds_that_it_is_too_far() {
    let store = new_store();
    let options = ListOptions { resource_version: "200".to_owned(), ..watch_list() };
    let begin = Instant::now();
    let mut watch = open(&store, options, None).await;
    assert_eq!(begin.elapsed().as_secs(), 3);
    assert_eq!(now(&mut watch).await, ["ERROR 504", "over"]);
}

#[tokio::test]
async fn contradicting_options_are_refused() {
    let store = new_store();
    for options in [
        ListOptions { resource_version_match: String::new(), ..watch_list() },
        ListOptions { resource_version_match: "Exact".to_owned(), ..watch_list() },
        ListOptions { send_initial_events: None, ..watch_list() },
    ] {
        let answer = Watch::open(&store, &pods(), Scope::default(), &options, None).await;
        assert_eq!(answer.map(|_| ()).map_err(|status| status.code), Err(422), "{options:?}");
    }
}

#[tokio::test]
async fn ending_the_watches_of_a_kind_delivers_what_was_before_and_no_more() {
    let store = new_store();
    let mut watch = open(&store, after(store.current_rv()), None).await;
    let mut other = Watch::open(&store, &nodes(), Scope::default(), &ListOptions::default(), None).await.unwrap();
    put(&store, "a", "x");
    store.end_watches(&pods());
    put(&store, "b", "x");
    assert_eq!(store.watcher_count(&pods()), 1);
    assert_eq!(now(&mut watch).await, ["ADDED a x 101", "over"]);
    drop(watch);
    assert_eq!(store.watcher_count(&pods()), 0);
    assert_eq!(now(&mut other).await, [""; 0]);
    let mut later = open(&store, ListOptions::default(), None).await;
    assert_eq!(now(&mut later).await, ["ADDED a x 101", "ADDED b x 102"]);
}

#[tokio::test]
async fn a_watch_that_sleeps_long_is_woken_before_the_history_leaves_it_behind() {
    let store = Store::new(StoreOptions { history_events: 64, first_resource_version: 100, ..StoreOptions::default() });
    let mut watch = open(&store, after(store.current_rv()), app_is("x")).await;
    let write = async {
        for index in 0..500 {
            put(&store, "busy", &format!("y{index}"));
            tokio::task::yield_now().await;
        }
        put(&store, "a", "x")
    };
    let (words, version) = tokio::join!(first_words(&mut watch), write);
    assert_eq!(words, [format!("ADDED a x {version}")]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_slept_through_a_quiet_time_has_lost_nothing() {
    let store = new_store();
    let mut watch = open(&store, after(store.current_rv()), app_is("x")).await;
    // Past the age of the history, and well within the life of the watch.
    let quiet = store.options().history_age * 2;
    let write = async {
        put(&store, "b", "y");
        tokio::time::sleep(quiet).await;
        put(&store, "c", "y");
        put(&store, "a", "x")
    };
    let (words, version) = tokio::join!(first_words(&mut watch), write);
    assert_eq!(words, [format!("ADDED a x {version}")]);
}

#[derive(Debug, Clone)]
enum Operation {
    Put { name: usize, app: usize },
    Remove { name: usize },
    OtherKind,
    Compact,
    Open { from_start: bool, selector: usize },
    Read { watch: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..5usize, 0..3usize).prop_map(|(name, app)| Operation::Put { name, app }),
        3 => (0..5usize).prop_map(|name| Operation::Remove { name }),
        1 => Just(Operation::OtherKind),
        1 => Just(Operation::Compact),
        2 => (any::<bool>(), 0..3usize).prop_map(|(from_start, selector)| Operation::Open { from_start, selector }),
        4 => (0..8usize).prop_map(|watch| Operation::Read { watch }),
    ]
}

const APPS: [&str; 3] = ["x", "y", "z"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A state as the model and the watches see it: label and version by name.
type View = BTreeMap<String, (String, u64)>;

/// A watch, what has been learnt from it, and its selector (an index into `APPS`; past the end: everything).
struct Follower {
    watch: Watch,
    view: View,
    version: u64,
    selector: usize,
    lost: bool,
}

// === impl Follower ===

impl Follower {
    /// Applies what the watch says; every event must fit the view.
    async fn read(&mut self) {
        loop {
            tokio::select! {
                biased;
                events = self.watch.next() => match events {
                    Some(events) => events.iter().for_each(|event| self.apply(event)),
                    None => break,
                },
                () = tokio::task::yield_now() => break,
            }
        }
    }

    fn apply(&mut self, event: &WatchEvent) {
        let (object, present) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark { resource_version, .. } => {
                assert!(*resource_version >= self.version);
                return;
            }
            WatchEvent::Error(_) => {
                self.lost = true;
                return;
            }
        };
        let name = object::name(object).to_owned();
        let known = self.view.contains_key(&name);
        assert_eq!(known, !matches!(event, WatchEvent::Added(_)), "{event:?} doesn't fit {:?}", self.view);
        let app = object::label(object, "app").unwrap_or("").to_owned();
        self.version = self.version.max(object.resource_version());
        if present {
            self.view.insert(name, (app, object.resource_version()));
        } else {
            self.view.remove(&name);
        }
    }

    fn sees(&self, app: &str) -> bool {
        APPS.get(self.selector).is_none_or(|wanted| *wanted == app)
    }

    fn expected(&self, state: &View) -> View {
        state.iter().filter(|(_, (app, _))| self.sees(app)).map(|(name, seen)| (name.clone(), seen.clone())).collect()
    }
}

async fn open_follower(store: &Store, states: &BTreeMap<u64, View>, from_start: bool, selector: usize) -> Follower {
    let matches: Option<Selector> = APPS.get(selector).and_then(|app| app_is(app));
    let oldest = store.oldest(&pods());
    let (options, state) = match states.range(oldest..).next() {
        Some((version, state)) if !from_start => (after(*version), state.clone()),
        _ => (ListOptions { allow_watch_bookmarks: true, ..ListOptions::default() }, View::new()),
    };
    let watch = open(store, options, matches).await;
    let mut follower = Follower { watch, view: View::new(), version: 0, selector, lost: false };
    follower.view = follower.expected(&state);
    follower
}

async fn run(operations: Vec<Operation>) {
    let store = Store::new(StoreOptions { history_events: 12, ..StoreOptions::default() });
    // The model: the state after every write, by version.
    let mut states: BTreeMap<u64, View> = BTreeMap::from([(store.current_rv(), View::new())]);
    let mut followers: Vec<Follower> = Vec::new();
    for operation in operations {
        let mut state = states.values().next_back().cloned().unwrap_or_default();
        match operation {
            Operation::Put { name, app } => {
                let version = put(&store, NAMES[name], APPS[app]);
                state.insert(NAMES[name].to_owned(), (APPS[app].to_owned(), version));
            }
            Operation::Remove { name } => {
                let known = state.remove(NAMES[name]).is_some();
                assert_eq!(known, store.delete(&pods(), "default", NAMES[name], None).is_ok());
            }
            Operation::OtherKind => {
                let name = format!("n{}", store.current_rv());
                store.create(&nodes(), json!({"metadata": {"name": name}})).unwrap();
            }
            Operation::Compact => store.compact(store.current_rv().saturating_sub(3)),
            Operation::Open { from_start, selector } => {
                followers.push(open_follower(&store, &states, from_start, selector).await);
            }
            Operation::Read { watch } => {
                if let Some(follower) = followers.get_mut(watch) {
                    follower.read().await;
                }
            }
        }
        states.insert(store.current_rv(), state);
    }
    let last = states.values().next_back().cloned().unwrap_or_default();
    for follower in &mut followers {
        follower.read().await;
        assert!(follower.lost || follower.view == follower.expected(&last));
    }
    for (version, state) in states.range(store.oldest(&pods())..) {
        let snapshot = store.snapshot(&pods(), &Scope::default(), Some(*version), "", usize::MAX).unwrap();
        let seen: View = snapshot
            .objects
            .iter()
            .map(|object| {
                let app = object::label(object, "app").unwrap_or("").to_owned();
                (object::name(object).to_owned(), (app, object.resource_version()))
            })
            .collect();
        assert_eq!(&seen, state, "at version {version}");
    }
}

proptest! {
    /// Whatever happens, what a watch has told adds up to the list that its selector sees, and every version within
    /// the window can be read as it was.
    #[test]
    fn every_watch_adds_up_to_the_list(operations in prop::collection::vec(operation(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(operations));
    }
}
