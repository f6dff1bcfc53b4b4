//! A watcher's place in the history of one kind. It holds a version and nothing else, so a slow reader costs nobody
//! anything: the history moves on, and a cursor that it has left behind has lost its own stream only.

use std::sync::Arc;

use super::label_bits::LabelBits;
use super::shelf::Shelf;
use super::{Change, Expired, Interest, Scope, Store};
use crate::resource::StorageId;
use crate::signal::Listener;

/// How many changes one look may pass over, so that the lock is held for microseconds.
const LOOK: usize = 1024;

/// A place in the history of one kind, restricted to a scope.
#[derive(Debug)]
pub(crate) struct Cursor {
    store: Store,
    storage: StorageId,
    scope: Scope,
    /// The label that it's interested in; nothing for all objects.
    label: LabelBits,
    version: u64,
    endings: u64,
    news: Listener,
}

/// What a [`Cursor`] found.
#[derive(Debug)]
pub(crate) enum Look {
    /// Changes in order; there may be more.
    Changes(Vec<Arc<Change>>),
    /// Nothing that concerns the scope happened since the last look.
    Nothing,
    /// The kind's watches were ended from outside and everything before that has been read.
    Ended,
    /// The history has moved on past the cursor.
    Lost(Expired),
}

// === impl Store ===

impl Store {
    /// A cursor that reads the changes after `version`. It's woken for those that `interest` covers; others it may pass
    /// over. A version from the future is fine: the cursor then finds nothing until the store has passed it.
    ///
    /// # Errors
    ///
    /// [`Expired`] when the history doesn't reach back to `version`.
    pub(crate) fn cursor(
        &self,
        storage: &StorageId,
        scope: Scope,
        interest: Interest,
        version: u64,
    ) -> Result<Cursor, Expired> {
        let mut state = self.write();
        let oldest = state.oldest(storage);
        if version < oldest {
            return Err(Expired { oldest });
        }
        Ok(self.cursor_into(state.shelf(storage), storage, scope, interest, version))
    }

    /// A [`cursor`](Self::cursor) that reads what comes after the present.
    pub(crate) fn cursor_at_present(&self, storage: &StorageId, scope: Scope, interest: Interest) -> Cursor {
        let mut state = self.write();
        let version = state.current;
        self.cursor_into(state.shelf(storage), storage, scope, interest, version)
    }

    fn cursor_into(
        &self,
        shelf: &mut Shelf,
        storage: &StorageId,
        scope: Scope,
        interest: Interest,
        version: u64,
    ) -> Cursor {
        Cursor {
            store: self.clone(),
            storage: storage.clone(),
            scope,
            label: interest.label_bits(),
            version,
            endings: shelf.ending.number,
            news: shelf.news.subscribe(interest),
        }
    }
}

// === impl Cursor ===

impl Cursor {
    /// Everything up to this version has been read. Rises also while nothing happens to the kind.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether the store hasn't reached the cursor's version yet.
    pub(crate) fn is_ahead(&self) -> bool {
        self.version > self.store.current_rv()
    }

    /// Passes over everything up to `version`.
    pub(crate) fn skip_to(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// Reads on, without waiting.
    pub(crate) fn look(&mut self) -> Look {
        loop {
            match self.look_once() {
                Look::Changes(changes) if changes.is_empty() => {}
                look => return look,
            }
        }
    }

    /// Reads on over at most [`LOOK`] changes; `Changes` may be empty then, with more to come.
    fn look_once(&mut self) -> Look {
        // Marked as seen before the look, so a commit in between ends the next wait at once.
        self.news.mark_heard();
        let state = self.store.read();
        let Some(shelf) = state.shelves.get(&self.storage) else {
            return Look::Ended;
        };
        if self.version < shelf.history.forgotten() {
            return Look::Lost(Expired { oldest: state.oldest(&self.storage) });
        }
        let ended = shelf.ending.number != self.endings;
        let end = if ended { shelf.ending.version } else { state.current };
        let mut reached = self.version.max(end);
        let mut changes = Vec::new();
        let mut passed = 0;
        for change in shelf.history.after(self.version).take_while(|change| change.version() <= end) {
            if passed == LOOK {
                reached = change.version() - 1;
                break;
            }
            passed += 1;
            if change.labels().may_have(self.label) && self.scope.contains(change.key()) {
                changes.push(Arc::clone(change));
            }
        }
        self.version = reached;
        match changes.is_empty() {
            true if passed == LOOK => Look::Changes(changes),
            true if ended => Look::Ended,
            true => Look::Nothing,
            false => Look::Changes(changes),
        }
    }

    /// Waits until something that the cursor's interest covers was written, or the kind's watches ended, since the last
    /// look. It may also return without such a reason.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it's dropped.
    pub(crate) async fn news(&mut self) {
        self.news.heard().await;
    }
}
