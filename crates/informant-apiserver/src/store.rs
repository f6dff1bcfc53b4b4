//! The store: objects under one store-wide resource version, with a bounded history.
//!
//! Every committed write of any kind takes the next resource version, deletes included, and leaves one [`Change`] in the
//! history of its kind. Watches, paged lists and the server's own controllers all read that one history; nobody is sent
//! anything and no writer waits for a reader.
//!
//! Invariants:
//! 1. Within a kind's history versions rise strictly, and a change's `old` is what the change before it left.
//! 2. `metadata.resourceVersion` of a stored object is the version of the write that stored it.
//! 3. Of every kind, all changes after the oldest version that can be asked for are there.
//! 4. The one lock is never held over an await, a waker or a selector.

mod cursor;
mod feed;
mod history;
mod label_bits;
mod news;
mod object;
mod shelf;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::cursor::{Cursor, Look};
pub(crate) use self::history::Change;
pub(crate) use self::news::Interest;
pub(crate) use self::object::Object;
pub(crate) use self::shelf::Scope;
use self::shelf::{Shelf, key_of, object_key};
use crate::object::set_meta;
use crate::resource::StorageId;
use crate::signal::{Listener, Signal};

/// Bounds and seeds of a [`Store`].
#[derive(Debug, Clone)]
pub(crate) struct StoreOptions {
    /// Changes kept for each kind. Default 65,536.
    pub(crate) history_events: usize,
    /// Age past which a change is forgotten when the kind is written to the next time but one. Default five minutes.
    pub(crate) history_age: Duration,
    /// The version of the empty store, and the oldest that can be asked for. Default 1.
    pub(crate) first_resource_version: u64,
    /// How far apart a watch's bookmarks are, up to a quarter more or less. Default 60 s.
    pub(crate) bookmark_interval: Duration,
    /// What the jitter of watches is drawn from.
    pub(crate) seed: u64,
}

/// The objects of all kinds. Cheap to clone; clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
}

/// Why a write wasn't done. Nothing has changed then, and no version is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// A create met an object of that name.
    #[error("an object of that name exists already")]
    AlreadyExists,
    /// There is no object of that name.
    #[error("there is no object of that name")]
    NotFound,
    /// The object is not at the version that the writer has seen.
    #[error("the object is at resource version {current} by now")]
    Conflict {
        /// The version that the object has.
        current: u64,
    },
    /// The object has no `metadata.name`: a defect of the caller.
    #[error("the object has no metadata.name to be stored under")]
    Unnamed,
}

/// The version asked for is older than the history reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The oldest version that can still be asked for.
    pub(crate) oldest: u64,
}

/// A state of one kind, or a slice of it, at one version.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The store-wide version of the state.
    pub(crate) version: u64,
    /// The objects in order of key.
    pub(crate) objects: Vec<Object>,
    /// How many more there are after them.
    pub(crate) rest: usize,
}

#[derive(Debug)]
struct Shared {
    state: RwLock<State>,
    /// Signals every commit of any kind.
    news: Signal,
    watches_started: AtomicU64,
    options: StoreOptions,
}

#[derive(Debug)]
struct State {
    current: u64,
    /// Set by [`Store::compact`]: nothing older can be asked for.
    floor: u64,
    shelves: BTreeMap<StorageId, Shelf>,
}

// === impl StoreOptions ===

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            history_events: 65_536,
            history_age: Duration::from_secs(300),
            first_resource_version: 1,
            bookmark_interval: Duration::from_secs(60),
            seed: 0,
        }
    }
}

// === impl Store ===

impl Store {
    /// An empty store.
    pub(crate) fn new(options: StoreOptions) -> Self {
        let first = options.first_resource_version;
        let state = State { current: first, floor: first, shelves: BTreeMap::new() };
        Self {
            shared: Arc::new(Shared {
                state: RwLock::new(state),
                news: Signal::default(),
                watches_started: AtomicU64::new(0),
                options,
            }),
        }
    }

    /// The version of the last commit of any kind.
    pub(crate) fn current_rv(&self) -> u64 {
        self.read().current
    }

    /// One object as it is now; `namespace` is empty for cluster-scoped kinds. O(log n).
    pub(crate) fn get(&self, storage: &StorageId, namespace: &str, name: &str) -> Option<Object> {
        self.read().shelves.get(storage)?.get(&object_key(namespace, name)).cloned()
    }

    /// Stores a new object under the namespace and name in its metadata, and stamps its resource version.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] and [`WriteError::Unnamed`].
    pub(crate) fn create(&self, storage: &StorageId, object: Value) -> Result<Object, WriteError> {
        let key = key_of(&object)?;
        self.commit(storage, key, |current, next| match current {
            Some(_) => Err(WriteError::AlreadyExists),
            None => Ok(Some(stamped(object, next))),
        })
    }

    /// Replaces an object that is still at version `expected`, and stamps its new version.
    ///
    /// An object that equals the stored one is not written: the stored one comes back, no version is used up and no
    /// watch hears of it. The `resourceVersion` that `object` comes with plays no part.
    ///
    /// # Errors
    ///
    /// [`WriteError::Conflict`] when it is at another version: read it again and redo the change.
    /// [`WriteError::NotFound`] and [`WriteError::Unnamed`].
    pub(crate) fn update(&self, storage: &StorageId, mut object: Value, expected: u64) -> Result<Object, WriteError> {
        let key = key_of(&object)?;
        let stored = self.read().shelves.get(storage).and_then(|shelf| shelf.get(&key)).cloned();
        let stored = stored.ok_or(WriteError::NotFound)?;
        stored.check(Some(expected))?;
        set_meta(&mut object, "resourceVersion", Value::from(expected.to_string()));
        if *stored == object {
            return Ok(stored);
        }
        self.commit(storage, key, |current, next| {
            current.ok_or(WriteError::NotFound)?.check(Some(expected))?;
            Ok(Some(stamped(object, next)))
        })
    }

    /// Removes an object, if it is still at version `expected` where one is given. What comes back is its last state
    /// with the version of the delete, as watches get it.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`], [`WriteError::Conflict`].
    pub(crate) fn delete(
        &self,
        storage: &StorageId,
        namespace: &str,
        name: &str,
        expected: Option<u64>,
    ) -> Result<Object, WriteError> {
        self.commit(storage, object_key(namespace, name), |current, _| {
            current.ok_or(WriteError::NotFound)?.check(expected)?;
            Ok(None)
        })
    }

    /// Waits until the store has reached `version`; `Err` with the current version after `patience`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it's dropped.
    pub(crate) async fn wait_for_rv(&self, version: u64, patience: Duration) -> Result<u64, u64> {
        let mut news = self.shared.news.listen();
        let deadline = Instant::now() + patience;
        loop {
            let current = self.current_rv();
            if current >= version {
                return Ok(current);
            }
            if tokio::time::timeout_at(deadline, news.heard()).await.is_err() {
                return Err(current);
            }
        }
    }

    /// Forgets every change up to `version`, of every kind: older versions are answered with 410 from now on. A version
    /// from the future counts as the current one.
    pub(crate) fn compact(&self, version: u64) {
        let mut state = self.write();
        state.floor = state.floor.max(version.min(state.current));
        let floor = state.floor;
        for shelf in state.shelves.values_mut() {
            shelf.history.forget_through(floor);
        }
    }

    /// The oldest version that a watch or an exact list of the kind may ask for.
    #[cfg(test)]
    pub(crate) fn oldest(&self, storage: &StorageId) -> u64 {
        self.read().oldest(storage)
    }

    /// Ends the open watches of a kind, after they have delivered what is in the history now.
    pub(crate) fn end_watches(&self, storage: &StorageId) {
        let everybody = {
            let mut state = self.write();
            let current = state.current;
            let shelf = state.shelf(storage);
            shelf.end_watches(current);
            shelf.news.everybody()
        };
        wake(everybody);
    }

    /// How many watches of the kind are open.
    pub(crate) fn watcher_count(&self, storage: &StorageId) -> usize {
        self.read().shelves.get(storage).map_or(0, |shelf| shelf.news.readers())
    }

    /// How many objects of the kind there are.
    pub(crate) fn object_count(&self, storage: &StorageId) -> usize {
        self.read().shelves.get(storage).map_or(0, Shelf::len)
    }

    /// Every kind that something was stored in or watched, in order.
    pub(crate) fn storages(&self) -> Vec<StorageId> {
        self.read().shelves.keys().cloned().collect()
    }

    /// All objects of `scope` as they are now.
    pub(crate) fn present(&self, storage: &StorageId, scope: &Scope) -> Snapshot {
        let state = self.read();
        Snapshot::take(state.shelves.get(storage), state.current, scope, "", usize::MAX)
    }

    /// The objects of `scope` as they were at version `at` (`None`: as they are now), from key `start` on, at most
    /// `limit` of them. O(changes since `at` + objects of the scope).
    ///
    /// # Errors
    ///
    /// [`Expired`] when the history doesn't reach back to `at`.
    pub(crate) fn snapshot(
        &self,
        storage: &StorageId,
        scope: &Scope,
        at: Option<u64>,
        start: &str,
        limit: usize,
    ) -> Result<Snapshot, Expired> {
        let state = self.read();
        let version = at.unwrap_or(state.current);
        let oldest = state.oldest(storage);
        if version < oldest {
            return Err(Expired { oldest });
        }
        Ok(Snapshot::take(state.shelves.get(storage), version, scope, start, limit))
    }

    /// Bounds and seeds.
    pub(crate) fn options(&self) -> &StoreOptions {
        &self.shared.options
    }

    /// The number of a new watch, from which it derives its own randomness.
    pub(crate) fn next_watch_number(&self) -> u64 {
        self.shared.watches_started.fetch_add(1, Ordering::Relaxed)
    }

    /// A subscription to every commit of any kind.
    fn subscribe(&self) -> Listener {
        self.shared.news.listen()
    }

    /// One write. `decide` sees the present object and the version that the write would get; `None` removes the object.
    fn commit(
        &self,
        storage: &StorageId,
        key: Arc<str>,
        decide: impl FnOnce(Option<&Object>, u64) -> Result<Option<Object>, WriteError>,
    ) -> Result<Object, WriteError> {
        let now = Instant::now();
        let (object, concerned) = {
            let mut state = self.write();
            let next = state.current + 1;
            let shelf = state.shelf(storage);
            let old = shelf.get(&key).cloned();
            let new = decide(old.as_ref(), next)?;
            let change = Change::new(next, now, key, old, new);
            let object = change.object().ok_or(WriteError::NotFound)?;
            let concerned = shelf.apply(change, &self.shared.options);
            state.current = next;
            (object, concerned)
        };
        wake(concerned);
        self.shared.news.give();
        Ok(object)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.shared.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Snapshot ===

impl Snapshot {
    fn take(shelf: Option<&Shelf>, version: u64, scope: &Scope, start: &str, limit: usize) -> Self {
        let Some(shelf) = shelf else {
            return Self { version, objects: Vec::new(), rest: 0 };
        };
        let mut found = shelf.at_version(version, scope, start).map(|(_, object)| object);
        let objects = found.by_ref().take(limit).cloned().collect();
        let rest = found.count();
        Self { version, objects, rest }
    }
}

// === impl State ===

impl State {
    fn shelf(&mut self, storage: &StorageId) -> &mut Shelf {
        self.shelves.entry(storage.clone()).or_default()
    }

    fn oldest(&self, storage: &StorageId) -> u64 {
        let forgotten = self.shelves.get(storage).map_or(0, |shelf| shelf.history.forgotten());
        self.floor.max(forgotten)
    }
}

/// Gives signals, with no lock held: a waker may run whatever it likes.
fn wake(signals: Vec<Signal>) {
    for signal in signals {
        signal.give();
    }
}

fn stamped(mut object: Value, version: u64) -> Object {
    set_meta(&mut object, "resourceVersion", Value::from(version.to_string()));
    Object::new(object, version)
}

#[cfg(test)]
mod tests;
