//! What one handler gets, one after the other: its events, past its filter, and what a resync tells again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::backlog::Slot;
use super::filter::HandlerFilter;
use super::resync::Resync;
use super::{OnPanic, Queue};
use crate::event::Event;

/// The one end of a [`Queue`] that takes from it.
pub(crate) struct Feed<K: 'static> {
    pub(super) queue: Arc<Queue<K>>,
    pub(super) filter: Option<HandlerFilter<K>>,
    pub(super) resync: Option<Resync<K>>,
}

pub(super) enum Item<K> {
    /// An event, and when it came from the server if it's a change.
    Event(Event<K>, Option<Instant>),
    /// Everything that belongs to the initial state was before this.
    InitialStateEnd,
}

impl<K: Send + Sync + 'static> Feed<K> {
    /// The next item; `None` at the end. Nothing is lost when nobody waits for the answer.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Item<K>>> {
        // First, so that nothing that comes from here on is missed.
        self.queue.wake.register(context.waker());
        loop {
            let again = self.resync.as_mut().and_then(Resync::next).filter(|_| !self.queue.is_closed());
            let (event, arrived) = match again {
                Some(object) => (Event::Updated { old: object.clone(), new: object }, None),
                None => match self.queue.pop() {
                    Some((Slot::Event(event), arrived)) => (event, arrived),
                    Some((Slot::InitialStateEnd, _)) => return Poll::Ready(Some(Item::InitialStateEnd)),
                    Some((Slot::Void, _)) => continue,
                    None if self.queue.is_closed() => return Poll::Ready(None),
                    None => match &mut self.resync {
                        Some(resync) if self.queue.is_synced() => {
                            std::task::ready!(resync.poll(&self.queue, context));
                            continue;
                        }
                        _ => return Poll::Pending,
                    },
                },
            };
            if let Some(event) = self.filter(event) {
                self.queue.delivered.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(Some(Item::Event(event, arrived)));
            }
        }
    }

    fn filter(&mut self, event: Event<K>) -> Option<Event<K>> {
        let Some(filter) = &mut self.filter else { return Some(event) };
        let key = event.key().clone();
        // The user's function changes nothing of the filter's own, so a panic leaves that whole.
        match catch_unwind(AssertUnwindSafe(|| filter.apply(event))) {
            Ok(event) => event,
            Err(_) => {
                self.queue.panicked(&key);
                None
            }
        }
    }
}

impl<K> Queue<K> {
    /// Counts a panic of user code, and ends the handler if it asked for that.
    pub(super) fn panicked(&self, key: &crate::key::ObjectKey) {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        match self.on_panic {
            OnPanic::Continue => {
                tracing::error!(handler = %self.name, key = %key, panics, "handler panicked; it goes on with the next event");
            }
            OnPanic::End => {
                tracing::error!(handler = %self.name, key = %key, "handler panicked; it ends");
                self.end(format!("it panicked at {key} and asked to end then"));
            }
        }
    }
}
