//! The values that an index computed of its objects, each distinct list of them kept once.
//!
//! Thousands of objects have the same values (all Pods of a node), so an object costs a number here.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::HashTable;

use crate::heap_size::ARC_COUNTERS;
use crate::store::FixedState;

/// The number of a list of values.
pub(super) type SetId = u32;

#[derive(Clone)]
pub(super) struct ValueSets<V> {
    sets: Vec<Set<V>>,
    /// Numbers that are free again.
    free: Vec<SetId>,
    ids: HashTable<SetId>,
}

#[derive(Clone)]
struct Set<V> {
    values: Arc<[V]>,
    users: u32,
}

fn hash<V: Hash>(values: &[V]) -> u64 {
    FixedState::default().hash_one(values)
}

impl<V> Default for ValueSets<V> {
    fn default() -> Self {
        Self { sets: Vec::new(), free: Vec::new(), ids: HashTable::new() }
    }
}

impl<V: Eq + Hash> ValueSets<V> {
    /// The number of these values, for one more object.
    pub(super) fn acquire(&mut self, values: Vec<V>) -> SetId {
        let Self { sets, free, ids } = self;
        let hashed = hash(&values);
        let is_same = |id: &SetId| sets.get(*id as usize).is_some_and(|set| *set.values == *values);
        if let Some(id) = ids.find(hashed, is_same).copied() {
            if let Some(set) = sets.get_mut(id as usize) {
                set.users += 1;
            }
            return id;
        }
        let set = Set { values: values.into(), users: 1 };
        let id = match free.pop() {
            Some(id) => id,
            // There are never four billion objects.
            None => SetId::try_from(sets.len()).unwrap_or(SetId::MAX),
        };
        match sets.get_mut(id as usize) {
            Some(slot) => *slot = set,
            None => sets.push(set),
        }
        ids.insert_unique(hashed, id, |id| sets.get(*id as usize).map_or(0, |set| hash(&set.values)));
        id
    }

    /// The values; one object fewer has them.
    pub(super) fn release(&mut self, id: SetId) -> Arc<[V]> {
        let Some(set) = self.sets.get_mut(id as usize) else { return Arc::new([]) };
        set.users -= 1;
        let values = Arc::clone(&set.values);
        if set.users == 0 {
            if let Ok(found) = self.ids.find_entry(hash(&values), |known| *known == id) {
                found.remove();
            }
            set.values = Arc::new([]);
            self.free.push(id);
        }
        values
    }

    pub(super) fn bytes(&self) -> usize {
        let values: usize = self.sets.iter().map(|set| ARC_COUNTERS + size_of_val(&*set.values)).sum();
        values
            + self.sets.capacity() * size_of::<Set<V>>()
            + self.free.capacity() * size_of::<SetId>()
            + self.ids.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_let_go_with_their_last_user() {
        let mut sets = ValueSets::default();
        let one = sets.acquire(vec!["a", "b"]);
        assert_eq!(sets.acquire(vec!["a", "b"]), one);
        let other = sets.acquire(vec!["b"]);
        assert_ne!(one, other);
        assert_eq!(*sets.release(one), ["a", "b"]);
        assert_eq!(*sets.release(one), ["a", "b"]);
        assert_eq!(sets.acquire(vec!["c"]), one, "its place is free again");
        assert_eq!((&*sets.release(other), sets.ids.len()), (&["b"][..], 1));
    }
}
