//! Changes on their way into the store: a live batch, or a whole new state that is compared with the old.
//!
//! A new list is staged here and becomes one batch of deltas when it's complete, so nothing partial is ever shown.
//! An object that the store has already (same uid and resource version) is staged as it is: not decoded, not copied.
//! So a relist costs one pointer per unchanged object, and memory for the changed ones only.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::key::ObjectKey;
use crate::object::Cached;
use crate::representation::Representation;
use crate::store::{Store, hash};

/// One change for the store.
pub(crate) enum Delta<K> {
    /// The object is there, in this state.
    Upsert(Cached<K>),
    /// The object is gone; `last` is its final state if the server gave one that could be decoded.
    Delete { key: ObjectKey, last: Option<Cached<K>> },
    /// The object is there, but no longer in what the informer covers.
    Leave { key: ObjectKey },
}

/// A new state of everything in scope, in the order the server sent it.
pub(crate) struct Staging<K> {
    objects: Vec<Staged<K>>,
    /// Positions in `objects`, by key.
    positions: HashTable<usize>,
}

enum Staged<K> {
    Object(Cached<K>),
    /// The server has it, and it can't be decoded: whatever the store has under this key stays.
    Undecodable(ObjectKey),
    /// The server has it, and the informer doesn't want it.
    Left(ObjectKey),
    Gone(ObjectKey),
}

// === impl Delta ===

impl<K> Delta<K> {
    pub(crate) fn new_object(&self) -> Option<&Cached<K>> {
        match self {
            Self::Upsert(object) => Some(object),
            Self::Delete { .. } | Self::Leave { .. } => None,
        }
    }
}

impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Upsert(object) => Self::Upsert(object.clone()),
            Self::Delete { key, last } => Self::Delete { key: key.clone(), last: last.clone() },
            Self::Leave { key } => Self::Leave { key: key.clone() },
        }
    }
}

// === impl Staging ===

impl<K> Default for Staging<K> {
    fn default() -> Self {
        Self { objects: Vec::new(), positions: HashTable::new() }
    }
}

impl<K> Staging<K> {
    pub(crate) fn insert(&mut self, object: Cached<K>) {
        self.put(Staged::Object(object));
    }

    pub(crate) fn insert_undecodable(&mut self, key: ObjectKey) {
        self.put(Staged::Undecodable(key));
    }

    /// The server has this object, and it isn't in what the informer covers.
    pub(crate) fn leave(&mut self, key: ObjectKey) {
        self.put(Staged::Left(key));
    }

    pub(crate) fn remove(&mut self, key: ObjectKey) {
        self.put(Staged::Gone(key));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The objects that could be decoded, in the server's order.
    pub(crate) fn into_objects(self) -> impl Iterator<Item = Cached<K>> {
        self.objects.into_iter().filter_map(|staged| match staged {
            Staged::Object(object) => Some(object),
            Staged::Undecodable(_) | Staged::Left(_) | Staged::Gone(_) => None,
        })
    }

    fn put(&mut self, staged: Staged<K>) {
        let Self { objects, positions } = self;
        let hash = |key: &ObjectKey| hash(key.as_str());
        let key_at = |position: usize| objects.get(position).map(Staged::key);
        let entry = positions.entry(
            hash(staged.key()),
            |position| key_at(*position) == Some(staged.key()),
            |position| key_at(*position).map_or(0, hash),
        );
        match entry {
            Entry::Occupied(occupied) => {
                let position = *occupied.get();
                if let Some(slot) = objects.get_mut(position) {
                    *slot = staged;
                }
            }
            Entry::Vacant(vacant) => {
                vacant.insert(objects.len());
                objects.push(staged);
            }
        }
    }

    /// Whether the server has this object.
    pub(crate) fn holds(&self, key: &ObjectKey) -> bool {
        let found = self
            .positions
            .find(hash(key.as_str()), |position| self.objects.get(*position).is_some_and(|staged| staged.key() == key));
        found.and_then(|position| self.objects.get(*position)).is_some_and(|staged| !matches!(staged, Staged::Gone(_)))
    }
}

impl<K: 'static> Staging<K> {
    /// Gives objects a better form, which is possible as nobody has seen them yet.
    pub(crate) fn improve(&mut self, representation: &dyn Representation<K>) {
        for staged in &mut self.objects {
            if let Staged::Object(object) = staged
                && let Some(better) = representation.improve(object.held())
            {
                let bytes = better.packed_bytes();
                *object = object.with_held(better, bytes);
            }
        }
    }

    /// What leads from the state of a part of the store (`None`: of all of it) to this one: deletes first, then the rest
    /// in the server's order. Objects that the store has already aren't in it.
    pub(crate) fn into_deltas(self, store: &Store<K>, part: Option<&str>) -> Vec<Delta<K>> {
        let mut vanished = store.held_keys(part);
        vanished.retain(|key| !self.holds(key));
        // The store has no order of its own.
        vanished.sort_unstable();
        let deletes = vanished.into_iter().map(|key| Delta::Delete { key, last: None });
        let rest = self.objects.into_iter().filter_map(|staged| match staged {
            Staged::Object(object) => {
                let unchanged = store.held(object.key()).is_some_and(|old| old.is_same(&object));
                (!unchanged).then_some(Delta::Upsert(object))
            }
            Staged::Left(key) => store.held(&key).map(|_| Delta::Leave { key }),
            Staged::Undecodable(_) | Staged::Gone(_) => None,
        });
        deletes.chain(rest).collect()
    }
}

// === impl Staged ===

impl<K> Staged<K> {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Object(object) => object.key(),
            Self::Undecodable(key) | Self::Left(key) | Self::Gone(key) => key,
        }
    }
}
