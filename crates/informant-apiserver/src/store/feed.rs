//! Every commit of every kind, in order: what the server's own controllers live on.

use std::sync::Arc;

use super::{Change, Store};
use crate::resource::StorageId;
use crate::signal::Listener;

/// A reader of all changes of all kinds, from one version on. It holds a cursor only, so it can't hold up anybody.
#[derive(Debug)]
pub(crate) struct Feed {
    store: Store,
    cursor: u64,
    news: Listener,
}

/// The feed has fallen out of the history window: changes are lost, and the reader has to look at everything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes were forgotten before they were read")]
pub(crate) struct Lagged;

// === impl Store ===

impl Store {
    /// A feed of the changes after `version`.
    pub(crate) fn feed(&self, version: u64) -> Feed {
        Feed { store: self.clone(), cursor: version, news: self.subscribe() }
    }
}

// === impl Feed ===

impl Feed {
    /// Waits for the next changes: at least one, at most everything that the history holds, in order of version.
    ///
    /// # Errors
    ///
    /// [`Lagged`] once when changes were lost; the feed then goes on from the present.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it's dropped.
    pub(crate) async fn next(&mut self) -> Result<Vec<(StorageId, Arc<Change>)>, Lagged> {
        loop {
            // Marked as seen before the look, so a commit in between wakes the wait below.
            self.news.mark_heard();
            let changes = self.take()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            self.news.heard().await;
        }
    }

    fn take(&mut self) -> Result<Vec<(StorageId, Arc<Change>)>, Lagged> {
        let state = self.store.read();
        let from = std::mem::replace(&mut self.cursor, state.current);
        let mut changes = Vec::new();
        for (storage, shelf) in &state.shelves {
            if shelf.history.forgotten() > from {
                return Err(Lagged);
            }
            changes.extend(shelf.history.after(from).map(|change| (storage.clone(), Arc::clone(change))));
        }
        drop(state);
        changes.sort_unstable_by_key(|(_, change)| change.version());
        Ok(changes)
    }
}
