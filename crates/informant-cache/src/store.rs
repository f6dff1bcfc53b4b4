//! The objects that an informer holds, with their indexes.
//!
//! One writer (the informer's task), any number of readers. A batch of deltas and its index changes are applied under
//! one write lock, so a reader sees whole batches. What user code there is (index functions) runs before the lock;
//! replaced objects are dropped after it.
//!
//! Invariants:
//! 1. every object is in `objects` and, if namespaced, in exactly one bucket of `namespaces`; empty buckets are removed;
//! 2. [`Store::apply`] returns events that, key by key, lead from the state before to the state after.

mod table;

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

pub(crate) use table::{FixedState, Table};

use crate::delta::Delta;
use crate::event::{Event, FinalState};
use crate::indexer::{AnyIndex, Indexer, Prepared};
use crate::key::ObjectKey;
use crate::lock::{read, write};
use crate::object::Cached;

pub(crate) struct Store<K> {
    /// Lock rank 3.
    inner: RwLock<Inner<K>>,
}

struct Inner<K> {
    objects: Table<K>,
    namespaces: HashMap<Arc<str>, Table<K>, FixedState>,
    indexer: Indexer<K>,
    resource_version: String,
}

/// What applying a batch brought.
pub(crate) struct Applied<K> {
    pub(crate) events: Vec<Event<K>>,
    /// Calls of index functions that panicked.
    pub(crate) index_panics: u64,
}

impl<K: 'static> Store<K> {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            objects: Table::default(),
            namespaces: HashMap::default(),
            indexer: Indexer::default(),
            resource_version: String::new(),
        };
        Self { inner: RwLock::new(inner) }
    }

    // --- reading ---

    pub(crate) fn get(&self, key: &str) -> Option<Cached<K>> {
        read(&self.inner).objects.get(key).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Cached<K>> {
        read(&self.inner).objects.iter().cloned().collect()
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

    pub(crate) fn resource_version(&self) -> String {
        read(&self.inner).resource_version.clone()
    }

    /// Reads an index: the answer is from one moment.
    pub(crate) fn with_index<T>(&self, id: u64, ask: impl FnOnce(&dyn AnyIndex<K>) -> Option<T>) -> Option<T> {
        read(&self.inner).indexer.get(id).and_then(ask)
    }

    // --- writing ---

    /// Applies a batch, and takes over the resource version that the server was at.
    pub(crate) fn apply(&self, deltas: Vec<Delta<K>>, initial: bool, resource_version: Option<&str>) -> Applied<K> {
        let mut events = Vec::with_capacity(deltas.len());
        let mut dropped = Vec::new();
        let mut index_panics = 0;
        let mut prepared = Prepared::default();
        let mut deltas = deltas;
        loop {
            // Index functions are the user's, so they run here, outside the lock.
            let functions = read(&self.inner).indexer.functions();
            index_panics += prepared.complete(&functions, deltas.iter().map(Delta::new_object));
            let mut inner = write(&self.inner);
            if !prepared.covers(&inner.indexer) {
                // An index was added in between.
                continue;
            }
            for (position, delta) in std::mem::take(&mut deltas).into_iter().enumerate() {
                inner.apply(delta, position, &mut prepared, initial, &mut events, &mut dropped);
            }
            if let Some(resource_version) = resource_version
                && inner.resource_version != resource_version
            {
                resource_version.clone_into(&mut inner.resource_version);
            }
            break;
        }
        drop(dropped);
        Applied { events, index_panics }
    }

    /// Adds an index over what is there and what will come, and returns its id and how many objects it couldn't index.
    pub(crate) fn add_index(&self, index: Box<dyn AnyIndex<K>>) -> (u64, u64) {
        let function = index.function();
        let (id, snapshot) = {
            let mut inner = write(&self.inner);
            let id = inner.indexer.add(index);
            // From here on the writer keeps the index up to date; what was there before is ours.
            (id, inner.objects.iter().cloned().collect::<Vec<_>>())
        };
        let mut prepared = Prepared::default();
        let panics = prepared.complete(&[(id, function)], snapshot.iter().map(Some));
        let mut inner = write(&self.inner);
        let Inner { objects, indexer, .. } = &mut *inner;
        for (position, object) in snapshot.iter().enumerate() {
            // If it isn't the same any more, then the writer has indexed its successor, or it's gone.
            if objects.get(object.key().as_str()).is_some_and(|now| now.is_same(object)) {
                indexer.fill(id, object, prepared.take(position, id));
            }
        }
        drop(inner);
        (id, panics)
    }

    pub(crate) fn remove_index(&self, id: u64) {
        let index = write(&self.inner).indexer.remove(id);
        drop(index);
    }
}

// === impl Inner ===

impl<K> Inner<K> {
    fn apply(
        &mut self,
        delta: Delta<K>,
        position: usize,
        prepared: &mut Prepared,
        initial: bool,
        events: &mut Vec<Event<K>>,
        dropped: &mut Vec<Cached<K>>,
    ) {
        match delta {
            Delta::Upsert(object) => {
                if self
                    .objects
                    .get(object.key().as_str())
                    .is_some_and(|old| old.is_at(object.uid(), object.resource_version()))
                {
                    // Nothing changed: a replayed event. It's no news.
                    dropped.push(object);
                    return;
                }
                self.indexer.replace(&object, position, prepared);
                self.bucket(&object, |bucket, object| drop(bucket.insert(object)));
                let event = match self.objects.insert(object.clone()) {
                    None => Event::Added { object, initial },
                    Some(old) if old.uid() == object.uid() => Event::Updated { old, new: object },
                    Some(old) => {
                        // Deleted and created again; the deletion was missed.
                        events.push(Event::Deleted { object: old, final_state: FinalState::Unknown });
                        Event::Added { object, initial: false }
                    }
                };
                events.push(event);
            }
            Delta::Delete { key, last } => self.delete(&key, last, events, dropped),
        }
    }

    fn delete(
        &mut self,
        key: &ObjectKey,
        last: Option<Cached<K>>,
        events: &mut Vec<Event<K>>,
        dropped: &mut Vec<Cached<K>>,
    ) {
        let Some(old) = self.objects.remove(key.as_str()) else {
            // What nobody was told of is no loss to anybody.
            dropped.extend(last);
            return;
        };
        self.indexer.remove_object(key);
        if let Some(namespace) = key.namespace()
            && let Some(bucket) = self.namespaces.get_mut(namespace)
        {
            dropped.extend(bucket.remove(key.as_str()));
            if bucket.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
        let event = match last {
            // The final state of the object that we had.
            Some(last) if last.uid() == old.uid() => {
                dropped.push(old);
                Event::Deleted { object: last, final_state: FinalState::Known }
            }
            other => {
                dropped.extend(other);
                Event::Deleted { object: old, final_state: FinalState::Unknown }
            }
        };
        events.push(event);
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
