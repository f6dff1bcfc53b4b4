//! A handler without a task: whoever polls takes the events.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;

use super::feed::{Feed, Item};
use crate::event::Event;
use crate::status::HandlerStatus;

/// A stream of an informer's events, taken by whoever polls it. It ends when it's dropped.
///
/// It's a [`Stream`] of the same events as [`next`](Self::next) gives, with the same bound.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription<K: 'static> {
    feed: Feed<K>,
}

// === impl Subscription ===

impl<K: Send + Sync + 'static> Subscription<K> {
    pub(crate) fn new(feed: Feed<K>) -> Self {
        Self { feed }
    }

    /// The next event; `None` once the informer has stopped and everything was taken, or the subscription ended
    /// ([`status`](Self::status) says why).
    ///
    /// # Cancel safety
    /// No event is lost; it may be used in `select!`.
    pub async fn next(&mut self) -> Option<Event<K>> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        loop {
            match std::task::ready!(self.feed.poll_next(context)) {
                Some(Item::Event(event, arrived)) => {
                    self.feed.queue.handled(arrived);
                    return Poll::Ready(Some(event));
                }
                Some(Item::InitialStateEnd) => self.feed.queue.mark_synced(),
                None => return Poll::Ready(None),
            }
        }
    }

    /// Whether every event of the initial state was taken.
    ///
    /// The end of the initial state is noticed with the call of [`next`](Self::next) that finds nothing more of it;
    /// so ask after that call has been started, or use [`wait_initial`](Self::wait_initial).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.feed.queue.is_synced()
    }

    /// Takes the events up to the end of the initial state; `None` if the informer or the subscription ended before
    /// that. Those events are the present state; what comes next is change.
    ///
    /// # Cancel safety
    /// Events taken so far are lost when it's cancelled.
    pub async fn wait_initial(&mut self) -> Option<Vec<Event<K>>> {
        let mut events = Vec::new();
        while !self.has_synced() {
            match poll_fn(|context| self.feed.poll_next(context)).await? {
                Item::Event(event, arrived) => {
                    self.feed.queue.handled(arrived);
                    events.push(event);
                }
                Item::InitialStateEnd => self.feed.queue.mark_synced(),
            }
        }
        Some(events)
    }

    /// The subscription's state and numbers.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        self.feed.queue.status()
    }
}

impl<K: Send + Sync + 'static> Stream for Subscription<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        self.poll_event(context)
    }
}

// Nothing in it is ever pinned.
impl<K: 'static> Unpin for Subscription<K> {}

impl<K: 'static> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.feed.queue.shut();
    }
}
