//! The objects that an informer holds, with their indexes.
//!
//! One writer (the informer's task), any number of readers. A batch of deltas and its index changes are applied under
//! one write lock, so a reader sees whole batches. What user code there is (index functions) runs before the lock;
//! replaced objects are dropped after it.
//!
//! Invariants:
//! 1. every shown object is in `objects` and, if namespaced, in exactly one bucket of `namespaces`; every other is in one
//!    bucket of `hidden`; empty buckets are removed;
//! 2. [`Store::apply`] returns events that, key by key, lead from the shown state before to the shown state after.

mod generation;
mod table;
mod visible;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

pub(crate) use generation::LARGE;
pub(crate) use table::{FixedState, Table, hash};
use tokio::sync::watch;
pub(crate) use visible::{Appearing, Visible};

use crate::delta::Delta;
use crate::event::{Event, FinalState};
use crate::indexer::{AnyIndex, IndexFailures, Indexer, Prepared};
use crate::key::ObjectKey;
use crate::lock::{read, write};
use crate::object::Cached;

pub(crate) struct Store<K> {
    /// Lock rank 3.
    inner: RwLock<Inner<K>>,
    /// Told when the store follows the server further.
    progressed: watch::Sender<()>,
}

struct Inner<K> {
    objects: Table<K>,
    namespaces: HashMap<Arc<str>, Table<K>, FixedState>,
    hidden: HashMap<Arc<str>, Table<K>, FixedState>,
    visible: Visible,
    /// How often `visible` changed.
    visible_changes: u64,
    /// How often anything changed.
    changes: u64,
    indexer: Indexer<K>,
    /// How far each part follows the server: one namespace, or all under the empty name.
    versions: BTreeMap<Arc<str>, String>,
}

/// How far a batch brings the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress<'a> {
    /// The namespace that the batch is about, `None` for all.
    pub(crate) part: Option<&'a str>,
    /// Where the server was.
    pub(crate) resource_version: &'a str,
}

/// How many bytes a store takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreMemory {
    pub(crate) objects: u64,
    pub(crate) tables: u64,
    pub(crate) indexes: u64,
}

/// What applying a batch brought.
pub(crate) struct Applied<K> {
    pub(crate) events: Vec<Event<K>>,
    /// Objects that are no longer in the store, to be dropped outside any lock.
    replaced: Vec<Cached<K>>,
}

impl<K: 'static> Store<K> {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            objects: Table::default(),
            namespaces: HashMap::default(),
            hidden: HashMap::default(),
            visible: Visible::All,
            visible_changes: 0,
            changes: 0,
            indexer: Indexer::default(),
            versions: BTreeMap::new(),
        };
        Self { inner: RwLock::new(inner), progressed: watch::Sender::new(()) }
    }

    // --- reading ---

    pub(crate) fn get(&self, key: &str) -> Option<Cached<K>> {
        read(&self.inner).objects.get(key).cloned()
    }

    /// The object, whether it's shown or not.
    pub(crate) fn held(&self, key: &ObjectKey) -> Option<Cached<K>> {
        let inner = read(&self.inner);
        let hidden = || inner.hidden.get(key.namespace()?)?.get(key.as_str());
        inner.objects.get(key.as_str()).or_else(hidden).cloned()
    }

    /// The keys of a part's objects (`None`: of all), whether they're shown or not.
    pub(crate) fn held_keys(&self, part: Option<&str>) -> Vec<ObjectKey> {
        let inner = read(&self.inner);
        let key = |object: &Cached<K>| object.key().clone();
        match part {
            None => inner.objects.iter().chain(inner.hidden.values().flat_map(Table::iter)).map(key).collect(),
            Some(part) => {
                let tables = [inner.namespaces.get(part), inner.hidden.get(part)];
                tables.into_iter().flatten().flat_map(Table::iter).map(key).collect()
            }
        }
    }

    pub(crate) fn list(&self) -> Vec<Cached<K>> {
        read(&self.inner).objects.iter().cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        read(&self.inner).objects.iter().map(|object| object.key().clone()).collect()
    }

    /// The objects with these keys, at one moment; what isn't there is `None`.
    pub(crate) fn get_many<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<Option<Cached<K>>> {
        let inner = read(&self.inner);
        keys.map(|key| inner.objects.get(key.as_str()).cloned()).collect()
    }

    /// Whether an object with this key would be shown.
    pub(crate) fn shows(&self, key: &ObjectKey) -> bool {
        read(&self.inner).visible.shows(key)
    }

    /// The object, whether its namespace is shown, and whether the store is complete.
    pub(crate) fn lookup(&self, key: &ObjectKey) -> (Option<Cached<K>>, bool, bool) {
        let inner = read(&self.inner);
        let found = inner.objects.get(key.as_str()).cloned();
        (found, inner.visible.shows(key), !inner.resource_version().is_empty())
    }

    pub(crate) fn watch_progress(&self) -> watch::Receiver<()> {
        self.progressed.subscribe()
    }

    /// Everything, and how far it follows the server, at one moment.
    pub(crate) fn snapshot(&self) -> (Vec<Cached<K>>, String) {
        let inner = read(&self.inner);
        (inner.objects.iter().cloned().collect(), inner.resource_version().to_owned())
    }

    pub(crate) fn namespace(&self, namespace: &str) -> Vec<Cached<K>> {
        read(&self.inner).namespaces.get(namespace).map(|bucket| bucket.iter().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn namespaces(&self) -> Vec<Arc<str>> {
        let mut namespaces: Vec<_> = read(&self.inner).namespaces.keys().cloned().collect();
        namespaces.sort_unstable();
        namespaces
    }

    pub(crate) fn len(&self) -> usize {
        read(&self.inner).objects.len()
    }

    /// How much memory the store takes: for the objects, the tables that find them, and the indexes.
    pub(crate) fn memory(&self) -> StoreMemory {
        let inner = read(&self.inner);
        let maps = inner.namespaces.capacity() + inner.hidden.capacity();
        let tables = [&inner.namespaces, &inner.hidden].into_iter().flat_map(HashMap::values);
        let tables: usize = tables.map(Table::table_bytes).sum::<usize>() + inner.objects.table_bytes();
        StoreMemory {
            objects: inner.bytes(),
            tables: (tables + maps * (size_of::<(Arc<str>, Table<K>)>() + 1)) as u64,
            indexes: inner.indexer.bytes() as u64,
        }
    }

    /// How far the store follows the server: where the part is that's furthest behind. Empty before every part is there.
    pub(crate) fn resource_version(&self) -> String {
        read(&self.inner).resource_version().to_owned()
    }

    /// How far a part follows the server; empty before it's there.
    pub(crate) fn resource_version_of(&self, part: Option<&str>) -> String {
        read(&self.inner).versions.get(part.unwrap_or("")).cloned().unwrap_or_default()
    }

    /// Reads an index: the answer is from one moment.
    pub(crate) fn with_index<T>(&self, id: u64, ask: impl FnOnce(&dyn AnyIndex<K>) -> Option<T>) -> Option<T> {
        read(&self.inner).indexer.get(id).and_then(ask)
    }

    /// By the name of each index that misses objects: these, and why.
    pub(crate) fn unindexed(&self) -> BTreeMap<String, BTreeMap<ObjectKey, String>> {
        read(&self.inner).indexer.unindexed()
    }

    // --- writing ---

    /// Says that there's a part of which nothing is known yet.
    pub(crate) fn add_part(&self, part: &str) {
        write(&self.inner).versions.entry(part.into()).or_default();
    }

    /// Computes what the indexes need of a batch. It calls the user's functions, so no lock may be held; returns how many
    /// of the calls brought nothing.
    pub(crate) fn prepare(&self, deltas: &[Delta<K>], prepared: &mut Prepared) -> IndexFailures {
        let (functions, visible) = {
            let inner = read(&self.inner);
            prepared.start(inner.visible_changes);
            (inner.indexer.functions(), inner.visible.clone())
        };
        // What isn't shown isn't indexed.
        let shown = |object: &&Cached<K>| visible.shows(object.key());
        prepared.complete(&functions, deltas.iter().map(|delta| delta.new_object().filter(shown)))
    }

    /// Applies a batch, and takes over the resource version that the server was at. `None`, with nothing done, if an
    /// index was added, or others are shown, since the batch was prepared.
    pub(crate) fn apply(
        &self,
        deltas: &mut Vec<Delta<K>>,
        prepared: &mut Prepared,
        initial: bool,
        progress: Option<Progress<'_>>,
    ) -> Option<Applied<K>> {
        let mut inner = write(&self.inner);
        if !prepared.is_for(inner.visible_changes) || !prepared.covers(&inner.indexer) {
            return None;
        }
        inner.changes += 1;
        let mut applied = Applied { events: Vec::with_capacity(deltas.len()), replaced: Vec::new() };
        for (position, delta) in deltas.drain(..).enumerate() {
            inner.apply(delta, position, prepared, initial, &mut applied);
        }
        if let Some(progress) = progress {
            inner.progress(progress);
            drop(inner);
            self.progressed.send_replace(());
        }
        Some(applied)
    }

    /// Adds an index over what is there and what will come, and returns its id and how many objects it couldn't index.
    pub(crate) fn add_index(&self, index: Box<dyn AnyIndex<K>>) -> (u64, IndexFailures) {
        let function = index.function();
        let (id, snapshot) = {
            let mut inner = write(&self.inner);
            inner.changes += 1;
            let id = inner.indexer.add(index);
            // From here on the writer keeps the index up to date; what was there before is ours.
            (id, inner.objects.iter().cloned().collect::<Vec<_>>())
        };
        let mut prepared = Prepared::default();
        let failures = prepared.complete(&[(id, function)], snapshot.iter().map(Some));
        let mut inner = write(&self.inner);
        inner.changes += 1;
        let Inner { objects, indexer, .. } = &mut *inner;
        for (position, object) in snapshot.iter().enumerate() {
            // If it isn't the same any more, then the writer has indexed its successor, or it's gone.
            if objects.get(object.key().as_str()).is_some_and(|now| now.is_same(object)) {
                indexer.fill(id, object, prepared.take(position, id));
            }
        }
        drop(inner);
        (id, failures)
    }

    pub(crate) fn remove_index(&self, id: u64) {
        let mut inner = write(&self.inner);
        inner.changes += 1;
        let index = inner.indexer.remove(id);
        drop(inner);
        drop(index);
    }
}

// === impl Inner ===

impl<K> Clone for Inner<K> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            namespaces: self.namespaces.clone(),
            hidden: self.hidden.clone(),
            visible: self.visible.clone(),
            visible_changes: self.visible_changes,
            changes: self.changes,
            indexer: self.indexer.clone(),
            versions: self.versions.clone(),
        }
    }
}

impl<K> Inner<K> {
    fn bytes(&self) -> u64 {
        self.objects.bytes() + self.hidden.values().map(Table::bytes).sum::<u64>()
    }

    fn progress(&mut self, Progress { part, resource_version }: Progress<'_>) {
        let part = part.unwrap_or("");
        match self.versions.get_mut(part) {
            Some(version) if version == resource_version => {}
            Some(version) => resource_version.clone_into(version),
            None => drop(self.versions.insert(part.into(), resource_version.to_owned())),
        }
    }

    fn resource_version(&self) -> &str {
        // Versions are numbers; one that isn't can't be compared, and counts as the least.
        let number = |version: &&String| version.parse::<u128>().unwrap_or(0);
        self.versions.values().min_by_key(number).map_or("", String::as_str)
    }

    fn apply(
        &mut self,
        delta: Delta<K>,
        position: usize,
        prepared: &mut Prepared,
        initial: bool,
        applied: &mut Applied<K>,
    ) {
        match delta {
            Delta::Upsert(object) if !self.visible.shows(object.key()) => applied.replaced.extend(self.hide(object)),
            Delta::Upsert(object) => {
                if self
                    .objects
                    .get(object.key().as_str())
                    .is_some_and(|old| old.is_at(object.uid(), object.resource_version()))
                {
                    // Nothing changed: a replayed event. It's no news.
                    applied.replaced.push(object);
                    return;
                }
                self.indexer.replace(&object, position, prepared);
                self.bucket(&object, |bucket, object| drop(bucket.insert(object)));
                let event = match self.objects.insert(object.clone()) {
                    None => Event::Added { object, initial },
                    Some(old) if old.uid() == object.uid() => Event::Updated { old, new: object },
                    Some(old) => {
                        // Deleted and created again; the deletion was missed.
                        applied.events.push(Event::Deleted { object: old, final_state: FinalState::Unknown });
                        Event::Added { object, initial: false }
                    }
                };
                applied.events.push(event);
            }
            Delta::Delete { key, last } => self.delete(&key, last, FinalState::Unknown, applied),
            Delta::Leave { key } => self.delete(&key, None, FinalState::OutOfScope, applied),
        }
    }

    /// Keeps an object that isn't shown; returns what it takes the place of.
    fn hide(&mut self, object: Cached<K>) -> Option<Cached<K>> {
        let namespace = object.key().namespace()?;
        match self.hidden.get_mut(namespace) {
            Some(bucket) => bucket.insert(object),
            None => self.hidden.entry(namespace.into()).or_default().insert(object),
        }
    }

    /// `unseen`: what to say of an end whose last state isn't known.
    fn delete(&mut self, key: &ObjectKey, last: Option<Cached<K>>, unseen: FinalState, applied: &mut Applied<K>) {
        let Some(old) = self.objects.remove(key.as_str()) else {
            // What nobody was told of is no loss to anybody.
            applied.replaced.extend(last);
            if let Some(namespace) = key.namespace()
                && let Some(bucket) = self.hidden.get_mut(namespace)
            {
                applied.replaced.extend(bucket.remove(key.as_str()));
                if bucket.is_empty() {
                    self.hidden.remove(namespace);
                }
            }
            return;
        };
        self.indexer.remove_object(key);
        if let Some(namespace) = key.namespace()
            && let Some(bucket) = self.namespaces.get_mut(namespace)
        {
            applied.replaced.extend(bucket.remove(key.as_str()));
            if bucket.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
        let event = match last {
            // The final state of the object that we had.
            Some(last) if last.uid() == old.uid() => {
                applied.replaced.push(old);
                Event::Deleted { object: last, final_state: FinalState::Known }
            }
            other => {
                applied.replaced.extend(other);
                Event::Deleted { object: old, final_state: unseen }
            }
        };
        applied.events.push(event);
    }

    fn bucket(&mut self, object: &Cached<K>, insert: impl FnOnce(&mut Table<K>, Cached<K>)) {
        let Some(namespace) = object.key().namespace() else { return };
        if let Some(bucket) = self.namespaces.get_mut(namespace) {
            insert(bucket, object.clone());
        } else {
            let mut bucket = Table::default();
            insert(&mut bucket, object.clone());
            self.namespaces.insert(namespace.into(), bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::indexer::Index;
    use crate::representation::Held;

    /// An object in one of the namespaces ns0, ns1 and ns2.
    pub(super) fn object(number: u64, version: u64) -> Cached<u64> {
        let key = ObjectKey::namespaced(&format!("ns{}", number % 3), &format!("o{number}"));
        Cached::new(key, "uid", &version.to_string(), Held::Full(Arc::new(version)), 0)
    }

    pub(super) fn apply(store: &Store<u64>, deltas: Vec<Delta<u64>>) -> Vec<Event<u64>> {
        let (mut deltas, mut prepared) = (deltas, Prepared::default());
        loop {
            store.prepare(&deltas, &mut prepared);
            let progress = Progress { part: None, resource_version: "1" };
            if let Some(applied) = store.apply(&mut deltas, &mut prepared, false, Some(progress)) {
                return applied.events;
            }
        }
    }

    /// client-go fact 69, but for what has no key: that's seen where an object is decoded.
    #[test]
    fn what_is_put_into_a_store_is_got_listed_replaced_and_deleted() {
        let store = Store::new();
        let versions = |mut objects: Vec<Cached<u64>>| {
            objects.sort_unstable_by(|one, other| one.key().cmp(other.key()));
            objects.iter().map(|object| *object.object()).collect::<Vec<_>>()
        };
        apply(&store, vec![Delta::Upsert(object(1, 1)), Delta::Upsert(object(2, 2)), Delta::Upsert(object(4, 3))]);
        assert_eq!((versions(store.list()), versions(store.namespace("ns1"))), (vec![1, 3, 2], vec![1, 3]));
        apply(&store, vec![Delta::Upsert(object(1, 5))]);
        assert_eq!(store.get("ns1/o1").map(|object| *object.object()), Some(5));
        apply(&store, vec![Delta::Delete { key: object(4, 0).key().clone(), last: None }]);
        assert!(store.get("ns1/o4").is_none() && store.get("o1").is_none());
        // The whole state at once.
        let mut staging = crate::delta::Staging::default();
        staging.insert(object(1, 5));
        staging.insert(object(7, 8));
        let deltas = staging.into_deltas(&store, None);
        apply(&store, deltas);
        assert_eq!((versions(store.list()), store.len()), (vec![5, 8], 2));
    }

    #[test]
    fn one_key_may_change_several_times_in_a_batch() {
        let store = Store::new();
        let key = object(1, 1).key().clone();
        let gone = Delta::Delete { key: key.clone(), last: Some(object(1, 3)) };
        let batch = vec![Delta::Upsert(object(1, 1)), Delta::Upsert(object(1, 2)), gone, Delta::Upsert(object(1, 4))];
        let kinds: Vec<String> = apply(&store, batch).iter().map(|event| event.kind().to_string()).collect();
        assert_eq!(kinds, ["added", "updated", "deleted", "added"]);
        assert_eq!(store.get(key.as_str()).map(|object| *object.object()), Some(4));
        assert_eq!(store.namespaces().len(), 1);
        apply(&store, vec![Delta::Delete { key, last: None }]);
        assert_eq!((store.len(), store.namespaces().len()), (0, 0));
    }

    /// Indexes added while the writer is at work miss nothing and hold nothing twice.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a race needs real threads; the scope joins them")]
    fn indexes_added_during_writes_agree_with_the_store() {
        let store = Arc::new(Store::new());
        let done = AtomicBool::new(false);
        let parity = |version: &Cached<u64>| Ok::<_, String>([*version.object() % 2, 7]);
        let indexes = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = fastrand::Rng::with_seed(2);
                for version in 0..3_000 {
                    let number = rng.u64(..40);
                    let gone = Delta::Delete { key: object(number, 0).key().clone(), last: None };
                    apply(&store, vec![Delta::Upsert(object(rng.u64(..40), version)), gone]);
                }
                done.store(true, Ordering::Release);
            });
            let mut indexes = Vec::new();
            while !done.load(Ordering::Acquire) {
                indexes.push(Index::add(&store, "parity", parity).0);
                if indexes.len() > 20 {
                    drop(indexes.swap_remove(3));
                }
            }
            indexes
        });
        let mut expected: [Vec<ObjectKey>; 2] = [Vec::new(), Vec::new()];
        for object in store.list() {
            expected[usize::from(*object.object() % 2 == 1)].push(object.key().clone());
        }
        expected.iter_mut().for_each(|keys| keys.sort_unstable());
        assert!(!indexes.is_empty());
        for index in indexes {
            assert_eq!([index.keys(&0), index.keys(&1)], expected);
            assert_eq!(index.keys(&7).len(), store.len());
        }
    }
}
