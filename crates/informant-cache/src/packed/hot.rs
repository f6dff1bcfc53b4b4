//! The few objects that were decoded last, so that several readers of one object decode it once.

use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// How many objects are kept decoded.
const SLOTS: usize = 64;
/// An object whose document is larger is never kept: decoded it would be several times that.
const DOCUMENT_MAX: usize = 64 << 10;

/// One slot for each remainder of an object's number: no order to keep up, and a bound that nothing can pass.
pub(super) struct Hot<K> {
    slots: Box<[Mutex<Slot<K>>]>,
}

type Slot<K> = Option<(u64, Arc<K>)>;

impl<K> Hot<K> {
    /// What the slots take themselves.
    pub(super) const BYTES: usize = SLOTS * size_of::<Mutex<Slot<K>>>();

    pub(super) fn get(&self, serial: u64) -> Option<Arc<K>> {
        let slot = lock(self.slot(serial)?);
        slot.as_ref().filter(|(known, _)| *known == serial).map(|(_, object)| Arc::clone(object))
    }

    pub(super) fn put(&self, serial: u64, object: &Arc<K>, document_bytes: usize) {
        if document_bytes > DOCUMENT_MAX {
            return;
        }
        let Some(slot) = self.slot(serial) else { return };
        let replaced = lock(slot).replace((serial, Arc::clone(object)));
        // An object is dropped outside the lock.
        drop(replaced);
    }

    fn slot(&self, serial: u64) -> Option<&Mutex<Slot<K>>> {
        // The remainder is small.
        self.slots.get((serial % SLOTS as u64) as usize)
    }
}

impl<K> Default for Hot<K> {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| Mutex::new(None)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_stays_until_another_takes_its_slot_and_is_never_taken_for_that() {
        let hot = Hot::default();
        let object = Arc::new("a".to_owned());
        hot.put(3, &object, 100);
        assert!(hot.get(3).is_some_and(|found| Arc::ptr_eq(&found, &object)));
        assert_eq!(hot.get(3 + SLOTS as u64), None);
        hot.put(3 + SLOTS as u64, &Arc::new("b".to_owned()), 100);
        assert_eq!(hot.get(3), None);
        hot.put(4, &object, DOCUMENT_MAX + 1);
        assert_eq!(hot.get(4), None);
    }
}
