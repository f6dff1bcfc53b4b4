//! What the informer and a handler share: the backlog, and how the handler is doing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use futures::task::AtomicWaker;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, Slot};
use super::{HandlerOptions, OnPanic};
use crate::durations::DurationCounter;
use crate::event::Event;
use crate::lock::lock;
use crate::object::Cached;
use crate::status::HandlerStatus;

/// What the informer and a handler share.
pub(crate) struct Queue<K> {
    pub(super) name: String,
    /// Lock rank 4.
    backlog: Mutex<Backlog<K>>,
    pub(super) on_panic: OnPanic,
    /// Wakes the one that takes.
    pub(super) wake: AtomicWaker,
    /// The task that calls the handler.
    pub(super) task: OnceLock<tokio::task::Id>,
    pub(super) closed: CancellationToken,
    /// Why the handler ended by itself.
    pub(super) ended: Mutex<Option<String>>,
    pub(super) synced: watch::Sender<bool>,
    /// Whether a callback may be running or yet be started: true from the start of the task to its end.
    pub(super) running: watch::Sender<bool>,
    pub(super) delivered: AtomicU64,
    pub(super) panics: AtomicU64,
    lag: DurationCounter,
}

/// A queue whose object type doesn't matter.
pub(super) trait AnyQueue: Send + Sync {
    fn close(&self);
    fn status(&self) -> HandlerStatus;
    fn synced(&self) -> watch::Receiver<bool>;
    fn running(&self) -> watch::Receiver<bool>;
    fn closed(&self) -> &CancellationToken;
    fn is_current(&self) -> bool;
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
            lag: DurationCounter::default(),
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
    /// `completes`: with these the initial state is complete. `arrived`: when they came from the server.
    pub(crate) fn push(&self, events: &[Event<K>], completes: bool, arrived: Instant) {
        if self.closed.is_cancelled() {
            return;
        }
        let mut backlog = lock(&self.backlog);
        let all_taken = events.iter().try_for_each(|event| backlog.add(event.clone(), arrived));
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
    pub(super) fn end(&self, reason: String) {
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

    pub(super) fn pop(&self) -> Option<(Slot<K>, Option<Instant>)> {
        lock(&self.backlog).take()
    }

    /// Counts that an event was handled.
    pub(super) fn handled(&self, arrived: Option<Instant>) {
        if let Some(arrived) = arrived {
            self.lag.observe(arrived.elapsed());
        }
    }

    pub(super) fn mark_synced(&self) {
        self.synced.send_replace(true);
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.backlog).bytes()
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
            lag: self.lag.durations(),
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
