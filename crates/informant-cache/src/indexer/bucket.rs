//! The objects that have one value: often a single one, else a table.

use crate::object::Cached;
use crate::store::Table;

pub(super) enum Bucket<K> {
    One(Cached<K>),
    Many(Table<K>),
}

impl<K> Bucket<K> {
    pub(super) fn insert(&mut self, object: Cached<K>) {
        match self {
            Self::One(known) if known.key() == object.key() => *known = object,
            Self::One(known) => {
                let mut table = Table::default();
                table.insert(known.clone());
                table.insert(object);
                *self = Self::Many(table);
            }
            Self::Many(table) => drop(table.insert(object)),
        }
    }

    /// Removes an object; true if none is left.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        match self {
            Self::One(known) => known.key().as_str() == key,
            Self::Many(table) => {
                table.remove(key);
                table.is_empty()
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cached<K>> {
        let (one, many) = match self {
            Self::One(object) => (Some(object), None),
            Self::Many(table) => (None, Some(table.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    pub(super) fn table_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(table) => table.table_bytes(),
        }
    }
}

impl<K> Clone for Bucket<K> {
    fn clone(&self) -> Self {
        match self {
            Self::One(object) => Self::One(object.clone()),
            Self::Many(table) => Self::Many(table.clone()),
        }
    }
}
