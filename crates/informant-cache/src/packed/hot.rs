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

type Slot<K> = Option<Decoded<K>>;

struct Decoded<K> {
    serial: u64,
    object: Arc<K>,
    bytes: usize,
}

impl<K> Hot<K> {
    pub(super) fn get(&self, serial: u64) -> Option<Arc<K>> {
        let slot = lock(self.slot(serial)?);
        slot.as_ref().filter(|decoded| decoded.serial == serial).map(|decoded| Arc::clone(&decoded.object))
    }

    /// Whether an object of which the document is so long is kept.
    pub(super) fn takes(document_bytes: usize) -> bool {
        document_bytes <= DOCUMENT_MAX
    }

    /// `bytes`: what the object takes.
    pub(super) fn put(&self, serial: u64, object: &Arc<K>, bytes: usize) {
        let Some(slot) = self.slot(serial) else { return };
        let replaced = lock(slot).replace(Decoded { serial, object: Arc::clone(object), bytes });
        // An object is dropped outside the lock.
        drop(replaced);
    }

    /// What's kept decoded takes.
    pub(super) fn bytes(&self) -> usize {
        let decoded = |slot: &Mutex<Slot<K>>| lock(slot).as_ref().map_or(0, |decoded| decoded.bytes);
        size_of_val(&*self.slots) + self.slots.iter().map(decoded).sum::<usize>()
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
        assert!(hot.bytes() >= 100 && hot.bytes() < 10_000);
        assert!(Hot::<String>::takes(DOCUMENT_MAX) && !Hot::<String>::takes(DOCUMENT_MAX + 1));
    }
}
