//! A handler: its own backlog, its own task, its own idea of being synced.
//!
//! No handler can hold up the store or another handler: an event is put into each handler's bounded backlog and that's
//! all the informer does for it. A panic in a handler is caught and counted, and the handler goes on with the next
//! event.
//!
//! Where the backlog is used without a task, it's a [`Subscription`]: the events are taken by whoever polls it.

mod backlog;
mod builder;
mod feed;
mod filter;
mod resync;

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use futures::{FutureExt, Stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::backlog::Overflow;
use self::backlog::{Backlog, Slot};
pub use self::builder::HandlerBuilder;
pub(crate) use self::feed::Feed;
use self::feed::Item;
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
    /// How often it's told of every object again, as an update whose [`is_resync`](Event::is_resync) is true. Default:
    /// never. Less than a second is raised to a second; zero is never.
    ///
    /// The first time is one period after the handler is synced, the next at least one period after the last began. The
    /// objects come from the cache, also while the connection is lost: a resync repairs what a handler forgot, not what
    /// the informer missed. A handler that's behind gets its events first. No other handler sees any of it.
    pub resync: Option<Duration>,
    /// What happens after a panic in it. Default: it goes on with the next event.
    pub on_panic: OnPanic,
}

/// What happens to a handler whose call, or whose filter, panicked. The informer and other handlers never notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// It's counted, and the handler goes on with the next event.
    #[default]
    Continue,
    /// It's counted, and the handler ends: it gets no more events, and its status says why.
    End,
}

/// Removes a handler from anywhere, its own calls included. A clone is for the same handler.
#[derive(Clone)]
pub struct Remover {
    queue: Arc<dyn AnyQueue>,
}

/// Holds a handler in place: it ends when this is dropped, unless [`detach`](Self::detach) is called.
#[must_use = "dropping it removes the handler; call detach() to keep the handler for as long as the informer lives"]
pub struct HandlerHandle {
    queue: Option<Arc<dyn AnyQueue>>,
}

/// A stream of an informer's events, taken by whoever polls it. It ends when it's dropped.
///
/// It's a [`Stream`] of the same events as [`next`](Self::next) gives, with the same bound.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription<K: 'static> {
    feed: Feed<K>,
}

/// What the informer and a handler share.
pub(crate) struct Queue<K> {
    name: String,
    /// Lock rank 4.
    backlog: Mutex<Backlog<K>>,
    on_panic: OnPanic,
    /// Wakes the one that takes.
    wake: AtomicWaker,
    /// The task that calls the handler.
    task: OnceLock<tokio::task::Id>,
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
    fn is_current(&self) -> bool;
}

// === impl HandlerOptions ===

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            name: "handler".to_owned(),
            bound: None,
            overflow: Overflow::Conflate,
            resync: None,
            on_panic: OnPanic::Continue,
        }
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

    /// Sets how often the handler is told of every object again.
    #[must_use]
    pub fn with_resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Sets what happens after a panic.
    #[must_use]
    pub fn with_on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
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

    /// Waits until the handler ends by itself: because its informer stopped, or because its backlog reached its bound or
    /// it panicked and it asked to end then.
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

    /// Something that removes the handler without waiting, also from within its own call.
    #[must_use]
    pub fn remover(&self) -> Option<Remover> {
        self.queue.as_ref().map(|queue| Remover { queue: Arc::clone(queue) })
    }

    /// Ends the handler and waits for a call that is running. No call starts after this returns; what waited in the
    /// backlog is dropped. Awaited by the handler's own call it doesn't wait for that one, which is the last.
    ///
    /// To remove without waiting, drop the handle or use its [`remover`](Self::remover).
    ///
    /// # Cancel safety
    /// The handler ends in any case; only the waiting is cut short.
    pub async fn remove(mut self) {
        if let Some(queue) = self.queue.take() {
            queue.close();
            if queue.is_current() {
                return;
            }
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
                Some(Item::Event(event)) => return Poll::Ready(Some(event)),
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
                Item::Event(event) => events.push(event),
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

// === impl Remover ===

impl Remover {
    /// Removes the handler and doesn't wait: a call that's running comes to its end, and none starts after it. Calling it
    /// again, or after the handler ended, does nothing.
    pub fn remove_now(&self) {
        self.queue.close();
    }
}

impl fmt::Debug for Remover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remover").field(&self.queue.status()).finish()
    }
}

// === impl Queue ===

impl<K> Queue<K> {
    pub(crate) fn new(options: HandlerOptions, bound: usize) -> Self {
        Self {
            name: options.name,
            backlog: Mutex::new(Backlog::new(options.bound.unwrap_or(bound), options.overflow)),
            on_panic: options.on_panic,
            wake: AtomicWaker::new(),
            task: OnceLock::new(),
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
        self.wake.wake();
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
            self.end("its backlog reached its bound and it asked for every event".to_owned());
        }
        self.wake.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Whether nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.backlog).len() == 0
    }

    /// Ends the handler and says why.
    fn end(&self, reason: String) {
        *lock(&self.ended) = Some(reason);
        self.shut();
    }

    /// Ends the handler: what waits is dropped.
    pub(crate) fn shut(&self) {
        self.closed.cancel();
        let dropped = lock(&self.backlog).clear();
        drop(dropped);
        self.wake.wake();
    }

    /// No more events will come; what waits may still be taken.
    pub(crate) fn finish(&self) {
        self.closed.cancel();
        self.wake.wake();
    }

    fn pop(&self) -> Option<Slot<K>> {
        lock(&self.backlog).pop()
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
            synced: self.is_synced(),
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

    fn is_current(&self) -> bool {
        self.task.get().is_some_and(|task| tokio::task::try_id() == Some(*task))
    }
}

// === impl Feed ===

impl<K: Send + Sync + 'static> Feed<K> {
    /// Handles events until the handler or the informer ends. When the informer does, a call that waits is dropped.
    pub(crate) async fn run<F: Future<Output = ()>>(
        mut self,
        mut handle: impl FnMut(Event<K>) -> F,
        cancel: CancellationToken,
    ) {
        let queue = Arc::clone(&self.queue);
        let _running = Running::start(&queue.running);
        if let Some(task) = tokio::task::try_id() {
            let _ = queue.task.set(task);
        }
        let work = async {
            let mut in_a_row = 0_u32;
            while let Some(item) = poll_fn(|context| self.poll_next(context)).await {
                match item {
                    Item::InitialStateEnd => queue.mark_synced(),
                    Item::Event(event) => {
                        let key = event.key().clone();
                        // The closure is the user's; what it left half done is its own affair, and ours isn't touched.
                        let call = AssertUnwindSafe(async { handle(event).await });
                        if call.catch_unwind().await.is_err() {
                            queue.panicked(&key);
                        }
                        in_a_row += 1;
                        // A long backlog mustn't keep the thread from other tasks.
                        if in_a_row.is_multiple_of(32) {
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = work => {}
        }
        queue.shut();
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
