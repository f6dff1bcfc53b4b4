//! The history of one kind: its latest changes, oldest first, bounded by count and age.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::label_bits::LabelBits;
use super::{Object, StoreOptions};

/// One committed write: what was there before and what is there after.
#[derive(Debug)]
pub(crate) struct Change {
    version: u64,
    at: Instant,
    key: Arc<str>,
    old: Option<Object>,
    new: Option<Object>,
    labels: LabelBits,
    last_state: OnceLock<Object>,
}

/// Changes in rising order of version; everything after [`History::forgotten`] is there.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<Arc<Change>>,
    forgotten: u64,
}

// === impl Change ===

impl Change {
    pub(super) fn new(version: u64, at: Instant, key: Arc<str>, old: Option<Object>, new: Option<Object>) -> Self {
        let labels = old.iter().chain(&new).fold(LabelBits::default(), |bits, object| bits.with_labels_of(object));
        Self { version, at, key, old, new, labels, last_state: OnceLock::new() }
    }

    /// The version of the write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// When the write was done.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// `namespace/name`, or `name` for cluster-scoped kinds.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// [`key`](Self::key), to be kept.
    pub(crate) fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.key)
    }

    /// The labels of the object before and after the write, in short.
    pub(super) fn labels(&self) -> LabelBits {
        self.labels
    }

    /// The object before the write; `None` for a create.
    pub(crate) fn old(&self) -> Option<&Object> {
        self.old.as_ref()
    }

    /// The object after the write; `None` for a delete.
    pub(crate) fn new_object(&self) -> Option<&Object> {
        self.new.as_ref()
    }

    /// The body before the write under the version of the write: what a watch shows when an object is deleted or leaves
    /// its selector. Made once for all watches. `None` for a create.
    pub(crate) fn last_state(&self) -> Option<&Object> {
        let old = self.old.as_ref()?;
        Some(self.last_state.get_or_init(|| old.at_version(self.version)))
    }

    /// What the write is answered with: the object after it, or the last state of a deleted one.
    pub(super) fn object(&self) -> Option<Object> {
        self.new.as_ref().or_else(|| self.last_state()).cloned()
    }
}

// === impl History ===

impl History {
    /// Adds a change and forgets what is past the bounds: what is too many at once, what is too old only up to the version
    /// `heard_through`, so that nobody loses what they were left asleep for.
    pub(super) fn push(&mut self, change: Arc<Change>, options: &StoreOptions, heard_through: u64) {
        let now = change.at;
        self.changes.push_back(change);
        while let Some(oldest) = self.changes.front() {
            let too_many = self.changes.len() > options.history_events;
            let old = now.saturating_duration_since(oldest.at) > options.history_age;
            let forgotten = too_many || (old && oldest.version <= heard_through);
            if !forgotten {
                break;
            }
            self.forgotten = oldest.version;
            self.changes.pop_front();
        }
    }

    /// Forgets every change up to `version`.
    pub(super) fn forget_through(&mut self, version: u64) {
        let end = self.position_after(version);
        if let Some(last) = end.checked_sub(1).and_then(|index| self.changes.get(index)) {
            self.forgotten = last.version;
        }
        self.changes.drain(..end);
    }

    /// The version of the last change that was forgotten; 0 when none was.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The version of the newest change; `None` when nothing is kept.
    pub(super) fn newest(&self) -> Option<u64> {
        self.changes.back().map(|change| change.version)
    }

    /// The changes after `version`, oldest first. O(log n) to find the first.
    pub(super) fn after(&self, version: u64) -> impl Iterator<Item = &Arc<Change>> {
        self.changes.range(self.position_after(version)..)
    }

    fn position_after(&self, version: u64) -> usize {
        // Readers that keep up ask for the end, so look there first.
        if self.newest().is_none_or(|newest| newest <= version) {
            return self.changes.len();
        }
        self.changes.partition_point(|change| change.version <= version)
    }
}
