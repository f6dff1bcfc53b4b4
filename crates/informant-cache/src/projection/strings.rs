//! Texts that are kept once, however many objects hold them.

use std::fmt;
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;

use crate::heap_size::ARC_COUNTERS;
use crate::lock::lock;
use crate::store::hash;

/// The longest text that's shared, in bytes. It bounds what the table can hold on to; longer ones hardly repeat.
pub(super) const LONGEST: usize = 256;
/// The table isn't looked through before it has this many texts.
const SWEEP_MIN: usize = 1024;

/// Texts that are kept once, however many objects hold them: namespaces, nodes, images, labels.
///
/// A text that nobody holds any more is let go when the table has grown to twice what was held at the last look, or to
/// 1,024 texts; so beside what's held there are at most as many again, each of up to 256 bytes. Longer texts aren't
/// shared. A look-up costs a hash and a lock, and no allocation if the text is known.
#[derive(Default)]
pub struct Strings {
    /// Lock rank 6: taken last, and held for no call of anybody's code.
    inner: Mutex<Inner>,
}

struct Inner {
    table: HashTable<Arc<str>>,
    /// What the texts take, without the table.
    bytes: usize,
    /// How many texts there may be before the next look.
    sweep_at: usize,
}

impl Default for Inner {
    fn default() -> Self {
        Self { table: HashTable::new(), bytes: 0, sweep_at: SWEEP_MIN }
    }
}

// === impl Strings ===

impl Strings {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The text, shared with everybody who asks for the same.
    #[must_use]
    pub fn intern(&self, text: &str) -> Arc<str> {
        if text.len() > LONGEST {
            return Arc::from(text);
        }
        let hashed = hash(text);
        let mut inner = lock(&self.inner);
        if let Some(known) = inner.table.find(hashed, |known| **known == *text) {
            return Arc::clone(known);
        }
        if inner.table.len() >= inner.sweep_at {
            inner.sweep();
        }
        let shared: Arc<str> = Arc::from(text);
        inner.bytes += text.len() + ARC_COUNTERS;
        inner.table.insert_unique(hashed, Arc::clone(&shared), |text| hash(text));
        shared
    }

    /// How many different texts there are, with those that nobody holds any more and that weren't let go yet.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.inner).table.len()
    }

    /// Whether there's none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the texts and the table take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let inner = lock(&self.inner);
        inner.bytes + inner.table.allocation_size()
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strings").field("len", &self.len()).finish()
    }
}

// === impl Inner ===

impl Inner {
    /// Lets go what nobody else holds. Nobody can take hold of one meanwhile: that's done under the lock.
    fn sweep(&mut self) {
        let mut bytes = 0;
        self.table.retain(|text| {
            let held = Arc::strong_count(text) > 1;
            bytes += if held { text.len() + ARC_COUNTERS } else { 0 };
            held
        });
        self.bytes = bytes;
        self.sweep_at = (self.table.len() * 2).max(SWEEP_MIN);
        self.table.shrink_to(self.sweep_at, |text| hash(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_allocation() {
        let strings = Strings::new();
        let (one, two) = (strings.intern("node-1"), strings.intern("node-1"));
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&one, &strings.intern("node-2")));
        assert_eq!(strings.len(), 2);
        assert!(strings.bytes() >= 2 * (6 + 16));
    }

    #[test]
    fn what_nobody_holds_any_more_is_let_go_and_what_is_held_stays() {
        let strings = Strings::new();
        let held: Vec<_> = (0..100).map(|number| strings.intern(&format!("held-{number}"))).collect();
        for number in 0..100_000 {
            let _ = strings.intern(&format!("gone-{number}"));
            assert!(strings.len() <= SWEEP_MIN, "{}", strings.len());
        }
        assert!(strings.bytes() < 200_000, "{}", strings.bytes());
        for (number, text) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(text, &strings.intern(&format!("held-{number}"))));
        }
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let strings = Strings::new();
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(*strings.intern(&long), *long);
        assert!(strings.is_empty());
    }
}
