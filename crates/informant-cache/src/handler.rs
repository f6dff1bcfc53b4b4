//! A handler: its own backlog, its own task, its own idea of being synced.
//!
//! No handler can hold up the store or another handler: an event is put into each handler's bounded backlog and that's
//! all the informer does for it. A panic in a handler is caught and counted, and the handler goes on with the next
//! event.
//!
//! Where the backlog is used without a task, it's a [`Subscription`]: the events are taken by whoever polls it.

mod backlog;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub use self::backlog::Overflow;
use self::backlog::{Backlog, Slot};
use crate::event::Event;
use crate::lock::lock;
use crate::object::Cached;
use crate::status::HandlerStatus;

/// How a handler is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// Its name in statuses and logs. Default: `handler`.
    pub name: String,
    /// How many events may wait before [`overflow`](Self::overflow) sets in. Default: the factory's, 1,024.
    pub bound: Option<usize>,
    /// What happens at the bound. Default: events are merged, object by object.
    pub overflow: Overflow,
}

/// Holds a handler in place: it ends when this is dropped, unless [`detach`](Self::detach) is called.
#[must_use = "dropping it removes the handler; call detach() to keep the handler for as long as the informer lives"]
pub struct HandlerHandle {
    queue: Option<Arc<dyn AnyQueue>>,
}

/// A stream of an informer's events, taken by whoever polls it. It ends when it's dropped.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription<K: 'static> {
    queue: Arc<Queue<K>>,
}

/// What the informer and a handler share.
pub(crate) struct Queue<K> {
    name: String,
    /// Lock rank 4.
    backlog: Mutex<Backlog<K>>,
    wake: Notify,
    closed: CancellationToken,
    /// Why the handler ended by itself.
    ended: Mutex<Option<String>>,
    synced: watch::Sender<bool>,
    /// Whether a callback may be running or yet be started: true from the start of the task to its end.
    running: watch::Sender<bool>,
    delivered: AtomicU64,
    panics: AtomicU64,
}

/// A queue whose object type doesn't matter.
trait AnyQueue: Send + Sync {
    fn close(&self);
    fn status(&self) -> HandlerStatus;
    fn synced(&self) -> watch::Receiver<bool>;
    fn running(&self) -> watch::Receiver<bool>;
    fn closed(&self) -> &CancellationToken;
}

// === impl HandlerOptions ===

impl Default for HandlerOptions {
    fn default() -> Self {
        Self { name: "handler".to_owned(), bound: None, overflow: Overflow::Conflate }
    }
}

impl HandlerOptions {
    /// The default options under a name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the bound of the backlog; at least 1.
    #[must_use]
    pub fn with_bound(mut self, bound: usize) -> Self {
        self.bound = Some(bound);
        self
    }

    /// Sets what happens at the bound.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

// === impl HandlerHandle ===

impl HandlerHandle {
    pub(crate) fn new<K: Send + Sync + 'static>(queue: Arc<Queue<K>>) -> Self {
        Self { queue: Some(queue) }
    }

    /// Whether the handler has handled the whole initial state: the informer is synced, and every call for an object
    /// that was there has returned.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| *queue.synced().borrow())
    }

    /// Waits until [`has_synced`](Self::has_synced); false if the handler ended before that.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_synced(&self) -> bool {
        let Some(queue) = &self.queue else { return false };
        wait_synced(queue.synced(), queue.closed()).await
    }

    /// Waits until the handler ends by itself: because its informer stopped, or its backlog reached a bound that asks
    /// for that.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_ended(&self) {
        match &self.queue {
            Some(queue) => queue.closed().cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// The handler's state and numbers.
    #[must_use]
    pub fn status(&self) -> Option<HandlerStatus> {
        self.queue.as_ref().map(|queue| queue.status())
    }

    /// Ends the handler and waits for a call that is running. No call starts after this returns; what waited in the
    /// backlog is dropped. It would wait for ever if it were awaited by the handler's own call.
    ///
    /// # Cancel safety
    /// The handler ends in any case; only the waiting is cut short.
    pub async fn remove(mut self) {
        if let Some(queue) = self.queue.take() {
            queue.close();
            let mut running = queue.running();
            // An error means that the task is gone, which is what's waited for.
            let _ = running.wait_for(|running| !running).await;
        }
    }

    /// Lets the handler live as long as its informer.
    pub fn detach(mut self) {
        self.queue = None;
    }
}

impl Drop for HandlerHandle {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandlerHandle").field(&self.status()).finish()
    }
}

async fn wait_synced(mut synced: watch::Receiver<bool>, closed: &CancellationToken) -> bool {
    tokio::select! {
        // Synced wins over ended: the answer was there first.
        biased;
        reached = synced.wait_for(|synced| *synced) => reached.is_ok(),
        () = closed.cancelled() => false,
    }
}

// === impl Subscription ===

impl<K: Send + Sync + 'static> Subscription<K> {
    pub(crate) fn new(queue: Arc<Queue<K>>) -> Self {
        Self { queue }
    }

    /// The next event; `None` once the informer has stopped and everything was taken, or the subscription ended
    /// ([`status`](Self::status) says why).
    ///
    /// # Cancel safety
    /// No event is lost; it may be used in `select!`.
    pub async fn next(&mut self) -> Option<Event<K>> {
        loop {
            match self.queue.pop() {
                Some(Slot::Event(event)) => {
                    self.queue.delivered.fetch_add(1, Ordering::Relaxed);
                    return Some(event);
                }
                Some(Slot::InitialStateEnd) => self.queue.mark_synced(),
                Some(Slot::Void) => {}
                None if self.queue.closed.is_cancelled() => return None,
                None => self.queue.wait().await,
            }
        }
    }

    /// Whether every event of the initial state was taken.
    ///
    /// The end of the initial state is noticed with the call of [`next`](Self::next) that finds nothing more of it;
    /// so ask after that call has been started, or use [`wait_initial`](Self::wait_initial).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.queue.synced.borrow()
    }

    /// Takes the events up to the end of the initial state; `None` if the informer or the subscription ended before
    /// that. Those events are the present state; what comes next is change.
    ///
    /// # Cancel safety
    /// Events taken so far are lost when it's cancelled.
    pub async fn wait_initial(&mut self) -> Option<Vec<Event<K>>> {
        let mut events = Vec::new();
        while !self.has_synced() {
            match self.queue.pop() {
                Some(Slot::Event(event)) => {
                    self.queue.delivered.fetch_add(1, Ordering::Relaxed);
                    events.push(event);
                }
                Some(Slot::InitialStateEnd) => self.queue.mark_synced(),
                Some(Slot::Void) => {}
                None if self.queue.closed.is_cancelled() => return None,
                None => self.queue.wait().await,
            }
        }
        Some(events)
    }

    /// The subscription's state and numbers.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        self.queue.status()
    }
}

impl<K: 'static> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.queue.shut();
    }
}

// === impl Queue ===

impl<K> Queue<K> {
    pub(crate) fn new(options: HandlerOptions, bound: usize) -> Self {
        Self {
            name: options.name,
            backlog: Mutex::new(Backlog::new(options.bound.unwrap_or(bound), options.overflow)),
            wake: Notify::new(),
            closed: CancellationToken::new(),
            ended: Mutex::new(None),
            synced: watch::Sender::new(false),
            running: watch::Sender::new(false),
            delivered: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    /// The store's content at this moment; `synced` if that is the whole initial state.
    pub(crate) fn replay(&self, objects: Vec<Cached<K>>, synced: bool) {
        let mut backlog = lock(&self.backlog);
        backlog.replay(objects);
        if synced {
            backlog.end_initial_state();
        }
        drop(backlog);
        self.wake.notify_one();
    }

    /// Adds events in their order.
    ///
    /// `completes`: with these the initial state is complete.
    pub(crate) fn push(&self, events: &[Event<K>], completes: bool) {
        if self.closed.is_cancelled() {
            return;
        }
        let mut backlog = lock(&self.backlog);
        let all_taken = events.iter().try_for_each(|event| backlog.push(event.clone()));
        if completes {
            backlog.end_initial_state();
        }
        drop(backlog);
        if all_taken.is_err() {
            let bound = "its backlog reached its bound and it asked for every event";
            *lock(&self.ended) = Some(bound.to_owned());
            self.shut();
        }
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Ends the handler: what waits is dropped.
    pub(crate) fn shut(&self) {
        self.closed.cancel();
        let dropped = lock(&self.backlog).clear();
        drop(dropped);
        self.wake.notify_one();
    }

    /// No more events will come; what waits may still be taken.
    pub(crate) fn finish(&self) {
        self.closed.cancel();
        self.wake.notify_one();
    }

    /// Handles events until the handler or the informer ends.
    pub(crate) async fn run(self: Arc<Self>, mut handle: impl FnMut(Event<K>), cancel: CancellationToken) {
        let _running = Running::start(&self.running);
        let mut in_a_row = 0_u32;
        loop {
            if self.closed.is_cancelled() || cancel.is_cancelled() {
                break;
            }
            match self.pop() {
                Some(Slot::Event(event)) => {
                    self.delivered.fetch_add(1, Ordering::Relaxed);
                    self.call(&mut handle, event);
                    in_a_row += 1;
                    // A long backlog mustn't keep the thread from other tasks.
                    if in_a_row.is_multiple_of(32) {
                        tokio::task::yield_now().await;
                    }
                }
                Some(Slot::InitialStateEnd) => self.mark_synced(),
                Some(Slot::Void) => {}
                None => tokio::select! {
                    biased;
                    () = cancel.cancelled() => {}
                    () = self.wait() => {}
                },
            }
        }
        self.shut();
    }

    fn call(&self, handle: &mut impl FnMut(Event<K>), event: Event<K>) {
        let key = event.key().clone();
        // The closure is the user's; what it left half done is its own affair, and ours isn't touched.
        if catch_unwind(AssertUnwindSafe(|| handle(event))).is_err() {
            let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::error!(handler = %self.name, key = %key, panics, "handler panicked; it goes on with the next event");
        }
    }

    fn pop(&self) -> Option<Slot<K>> {
        lock(&self.backlog).pop()
    }

    async fn wait(&self) {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => {}
            () = self.wake.notified() => {}
        }
    }

    fn mark_synced(&self) {
        self.synced.send_replace(true);
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        let (queued, conflated) = {
            let backlog = lock(&self.backlog);
            (backlog.len(), backlog.merged())
        };
        let ended = lock(&self.ended).clone();
        HandlerStatus {
            handler: self.name.clone(),
            synced: *self.synced.borrow(),
            queued,
            delivered: self.delivered.load(Ordering::Relaxed),
            conflated,
            panics: self.panics.load(Ordering::Relaxed),
            ended: ended.or_else(|| self.closed.is_cancelled().then(|| "removed, or its informer stopped".to_owned())),
        }
    }
}

impl<K: Send + Sync> AnyQueue for Queue<K> {
    fn close(&self) {
        self.shut();
    }

    fn status(&self) -> HandlerStatus {
        Queue::status(self)
    }

    fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn running(&self) -> watch::Receiver<bool> {
        self.running.subscribe()
    }

    fn closed(&self) -> &CancellationToken {
        &self.closed
    }
}

/// Says that a task runs, until it's dropped: also when the task is.
struct Running<'a> {
    flag: &'a watch::Sender<bool>,
}

impl<'a> Running<'a> {
    fn start(flag: &'a watch::Sender<bool>) -> Self {
        flag.send_replace(true);
        Self { flag }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.flag.send_replace(false);
    }
}
