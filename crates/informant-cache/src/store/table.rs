//! A set of cached objects, found by key.
//!
//! Eight bytes and a control byte per object: the key lives in the object. The hasher has a fixed seed, so the same
//! history gives the same order of iteration and a run can be replayed.

use std::borrow::Borrow;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::object::Cached;

/// A fast hasher whose seed is fixed.
pub(crate) type FixedState = foldhash::fast::FixedState;

pub(crate) struct Table<K> {
    entries: HashTable<Cached<K>>,
    /// What the objects take, about.
    bytes: u64,
}

/// The hash of a key, or of another text.
pub(crate) fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { entries: HashTable::new(), bytes: 0 }
    }
}

impl<K> Clone for Table<K> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), bytes: self.bytes }
    }
}

impl<K> Table<K> {
    pub(crate) fn get(&self, key: &str) -> Option<&Cached<K>> {
        self.entries.find(hash(key), |entry| entry.key().as_str() == key)
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.entries.reserve(more, |entry| hash(entry.key().as_str()));
    }

    /// Inserts an object and returns the one that it replaces.
    pub(crate) fn insert(&mut self, object: Cached<K>) -> Option<Cached<K>> {
        let key: &str = object.key().borrow();
        let hashed = hash(key);
        self.bytes += object.bytes();
        match self.entries.entry(hashed, |entry| entry.key() == object.key(), |entry| hash(entry.key().as_str())) {
            Entry::Occupied(mut occupied) => {
                let old = std::mem::replace(occupied.get_mut(), object);
                self.bytes -= old.bytes();
                Some(old)
            }
            Entry::Vacant(vacant) => {
                vacant.insert(object);
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Cached<K>> {
        let found = self.entries.find_entry(hash(key), |entry| entry.key().as_str() == key).ok()?;
        let object = found.remove().0;
        self.bytes -= object.bytes();
        Some(object)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Cached<K>> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the table takes, without the objects.
    pub(crate) fn table_bytes(&self) -> usize {
        self.entries.allocation_size()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
