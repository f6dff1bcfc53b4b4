//! Watches: from the store's history to a stream of events.
//!
//! A watch holds a [`Cursor`] into the history of its kind and nothing else: no buffer of its own, so no bound to overflow
//! and no writer to block. It looks when its kind has news, keeps what its selector lets through, and hands out a batch.
//! What an event looks like on the wire is the reader's business.
//!
//! Invariants:
//! 1. The events of one object have rising versions; those of different objects come in order of version; each commit
//!    is seen once.
//! 2. A bookmark's version covers everything that has been sent, and nothing that hasn't.
//! 3. An `Error` is the last event.

mod schedule;

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use self::schedule::Schedule;
use crate::list::{ListOptions, Selector, WatchStart, wait_for};
use crate::resource::StorageId;
use crate::status::Status;
use crate::store::{Change, Cursor, Expired, Interest, Look, Object, Scope, Store};

/// How many initial objects come in one batch.
const INITIAL_BATCH: usize = 512;

/// One event of a watch.
#[derive(Debug, Clone)]
pub(crate) enum WatchEvent {
    /// The object is there now, or has come to match the selector.
    Added(Object),
    /// The object has changed.
    Modified(Object),
    /// The object is gone, or doesn't match the selector any more: its last state that did, under the new version.
    Deleted(Object),
    /// Everything up to this version has been sent.
    Bookmark {
        /// The store-wide version.
        resource_version: u64,
        /// Whether it marks the end of the initial objects.
        initial_events_end: bool,
    },
    /// The watch can't go on. The stream ends after it.
    Error(Status),
}

/// An open watch. Dropping it closes it.
pub(crate) struct Watch {
    cursor: Cursor,
    selector: Option<Selector>,
    initial: std::vec::IntoIter<Object>,
    /// Whether the bookmark that ends the initial objects is still to be sent.
    initial_end: bool,
    schedule: Schedule,
    /// Sent before anything else; the stream then ends.
    failure: Option<Status>,
    over: bool,
}

// === impl Watch ===

impl Watch {
    /// Opens a watch on the objects of `scope` that `selector` lets through (`None`: all).
    ///
    /// # Errors
    ///
    /// 422 or 400 for options that don't go together. What else goes wrong is no error here: a version that the history
    /// doesn't reach back to, or initial objects of a version that the store hasn't reached after three seconds. The
    /// watch then opens, tells it in one [`WatchEvent::Error`] and ends, as on a real server.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub(crate) async fn open(
        store: &Store,
        storage: &StorageId,
        scope: Scope,
        options: &ListOptions,
        selector: Option<Selector>,
    ) -> Result<Self, Status> {
        let plan = options.plan_watch()?;
        let seed = store.options().seed.wrapping_add(store.next_watch_number());
        let schedule = Schedule::new(
            Instant::now(),
            options.allow_watch_bookmarks.then_some(store.options().bookmark_interval),
            Duration::from_secs(options.timeout_seconds),
            fastrand::Rng::with_seed(seed),
        );
        let interest = Interest::of(&scope, selector.as_ref().and_then(Selector::label));
        let mut watch = match Self::begin(store, storage, scope.clone(), interest.clone(), plan.start).await {
            Ok((cursor, initial)) => Self::new(cursor, initial, schedule),
            Err(status) => {
                let cursor = store.cursor_at_present(storage, scope, interest);
                let mut watch = Self::new(cursor, Vec::new(), schedule);
                watch.failure = Some(status);
                watch
            }
        };
        watch.selector = selector;
        watch.initial_end = plan.mark_initial_end;
        Ok(watch)
    }

    fn new(cursor: Cursor, initial: Vec<Object>, schedule: Schedule) -> Self {
        Self {
            cursor,
            selector: None,
            initial: initial.into_iter(),
            initial_end: false,
            schedule,
            failure: None,
            over: false,
        }
    }

    async fn begin(
        store: &Store,
        storage: &StorageId,
        scope: Scope,
        interest: Interest,
        start: WatchStart,
    ) -> Result<(Cursor, Vec<Object>), Status> {
        match start {
            WatchStart::Present => Ok((store.cursor_at_present(storage, scope, interest), Vec::new())),
            WatchStart::After(version) => {
                let cursor =
                    store.cursor(storage, scope, interest, version).map_err(|expired| too_old(version, expired))?;
                Ok((cursor, Vec::new()))
            }
            WatchStart::Objects(version) => {
                wait_for(store, version).await?;
                // The cursor first, so that an ending of the kind's watches in between isn't missed.
                let mut cursor = store.cursor_at_present(storage, scope.clone(), interest);
                let snapshot = store.present(storage, &scope);
                cursor.skip_to(snapshot.version);
                Ok((cursor, snapshot.objects))
            }
        }
    }

    /// Waits for the next events: at least one, in order. `None` when the watch is over.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it's dropped: events are taken only when they are returned.
    pub(crate) async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        // A reader that always finds something must still let others run.
        tokio::task::consume_budget().await;
        loop {
            if let Some(events) = self.initial_events() {
                return Some(events);
            }
            if self.over || self.schedule.is_over(Instant::now()) {
                return None;
            }
            let mut events = self.look();
            if self.schedule.bookmark_is_due(Instant::now()) && !self.over && !self.cursor.is_ahead() {
                events.push(self.bookmark(false));
            }
            if !events.is_empty() {
                return Some(events);
            }
            if self.over {
                return None;
            }
            let wake_at = self.schedule.wake_at();
            tokio::select! {
                // News before time, so that the last bookmark before the end covers them.
                biased;
                () = self.cursor.news() => {}
                () = sleep_until(wake_at) => {}
            }
        }
    }

    /// What comes before the live events, batch by batch; `None` once that is through.
    fn initial_events(&mut self) -> Option<Vec<WatchEvent>> {
        if let Some(status) = self.failure.take() {
            self.over = true;
            return Some(vec![WatchEvent::Error(status)]);
        }
        if self.over {
            return None;
        }
        let selector = self.selector.as_ref();
        let matching = self.initial.by_ref().filter(|object| selector.is_none_or(|selector| selector.matches(object)));
        let mut events: Vec<WatchEvent> = matching.take(INITIAL_BATCH).map(WatchEvent::Added).collect();
        if self.initial_end && self.initial.len() == 0 {
            self.initial_end = false;
            events.push(self.bookmark(true));
        }
        (!events.is_empty()).then_some(events)
    }

    fn look(&mut self) -> Vec<WatchEvent> {
        match self.cursor.look() {
            Look::Changes(changes) => {
                changes.iter().filter_map(|change| event_of(change, self.selector.as_ref())).collect()
            }
            Look::Nothing => Vec::new(),
            Look::Ended => {
                self.over = true;
                Vec::new()
            }
            Look::Lost(expired) => {
                self.over = true;
                vec![WatchEvent::Error(too_old(self.cursor.version(), expired))]
            }
        }
    }

    fn bookmark(&self, initial_events_end: bool) -> WatchEvent {
        WatchEvent::Bookmark { resource_version: self.cursor.version(), initial_events_end }
    }
}

/// What a change looks like through a selector: an object that comes to match is added, one that ceases to is deleted.
fn event_of(change: &Change, selector: Option<&Selector>) -> Option<WatchEvent> {
    let matching = |object: Option<&Object>| {
        object.filter(|object| selector.is_none_or(|selector| selector.matches(object))).cloned()
    };
    match (matching(change.old()), matching(change.new_object())) {
        (None, None) => None,
        (None, Some(new)) => Some(WatchEvent::Added(new)),
        (Some(_), Some(new)) => Some(WatchEvent::Modified(new)),
        (Some(_), None) => change.last_state().cloned().map(WatchEvent::Deleted),
    }
}

fn too_old(version: u64, expired: Expired) -> Status {
    Status::expired(format!("too old resource version: {version} ({})", expired.oldest))
}

#[cfg(test)]
mod tests;
