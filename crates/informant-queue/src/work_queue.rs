//! The queue's driver: one lock around the state, one bell for workers, one that cuts drains short.
//!
//! No wake-up is lost: a waiter takes its place at the bell before it looks at the state, and what it looks at and takes
//! happens without an await in between. The lock is held for one operation of the state and never across an await; of foreign
//! code only the key's own `Clone`, `Eq`, `Hash` and `Drop` run under it.

use std::{
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    Admission, Item, Options, Stats,
    state::{Next, State, Wake},
};

/// What a queue can carry. Implemented for every type that fits; cloning should be cheap, as each key is held up to three times.
pub trait Key: Clone + Eq + Hash + Send + 'static {}

impl<K: Clone + Eq + Hash + Send + 'static> Key for K {}

/// A queue of keys that need work. See the [crate] for what it promises.
///
/// A clone is another handle of the same queue. Adding is never refused or delayed by slow workers, and takes O(1) (O(log n)
/// with a delay).
pub struct WorkQueue<K: Key> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    name: String,
    state: Mutex<State<K>>,
    /// Rung when there may be something to take.
    workers: Notify,
    /// Rung by `shut_down`, for those who wait for a drain.
    cut_short: Notify,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a drain that was cut short left work behind"]
pub struct Drained {
    /// Keys that had a time in the future and were given up.
    pub abandoned: usize,
    /// Whether all that was ready or with a worker was finished; `false` if [`WorkQueue::shut_down`] cut the drain short.
    pub finished: bool,
}

impl<K: Key> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Key> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl<K: Key> WorkQueue<K> {
    /// A queue with client-go's default rate limits and no limit on the number of keys. The name is for metrics and logs.
    pub fn named(name: impl Into<String>) -> Self {
        Self::with_options(name, Options::default())
    }

    /// A queue with these settings.
    pub fn with_options(name: impl Into<String>, options: Options) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                state: Mutex::new(State::new(options)),
                workers: Notify::new(),
                cut_short: Notify::new(),
            }),
        }
    }

    /// The name that the queue was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Adds a key that needs work now. A key that waits already stays in its place; one that has a time in the future is ready
    /// now instead; one that is with a worker is served again after that worker is done.
    pub fn add(&self, key: K) -> Admission {
        self.update(|state, now| state.add(key, now))
    }

    /// Adds a key that needs work after `delay`; at once if that is zero. Of several times the earliest counts, and a key that is
    /// ready already has no other time.
    pub fn add_after(&self, key: K, delay: Duration) -> Admission {
        self.update(|state, now| state.add_after(key, delay, now))
    }

    /// Counts a failure of the key and adds it after the wait that the [`RateLimits`](crate::RateLimits) ask for.
    pub fn add_rate_limited(&self, key: K) -> Admission {
        self.update(|state, now| state.add_rate_limited(key, now)).0
    }

    /// Forgets the failures of a key, so that its next one waits the shortest time again. What is queued stays so.
    pub fn forget(&self, key: &K) {
        self.update(|state, _| state.forget(key));
    }

    /// Failures of a key since it was last forgotten.
    #[must_use]
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.update(|state, _| state.num_requeues(key))
    }

    /// Waits for the next key. `None` when the queue is shut down and nothing is left that could be served.
    ///
    /// Any number of workers can wait at once; each key goes to one of them.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a key is taken only in the moment in which this returns it.
    pub async fn next(&self) -> Option<Item<K>> {
        loop {
            let bell = self.shared.workers.notified();
            let due = match self.update(State::take) {
                Next::Key(key) => return Some(Item::new(self.clone(), key)),
                Next::Closed => return None,
                Next::Wait(due) => due,
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        // The order is without meaning: both ends lead to the same look at the state.
                        biased;
                        () = bell => {}
                        () = sleep_until(due) => {}
                    }
                }
                None => bell.await,
            }
        }
    }

    /// Takes the next key if one is ready now.
    #[must_use]
    pub fn try_next(&self) -> Option<Item<K>> {
        match self.update(State::take) {
            Next::Key(key) => Some(Item::new(self.clone(), key)),
            Next::Wait(_) | Next::Closed => None,
        }
    }

    /// Refuses additions from now on. What is ready is still served, then [`WorkQueue::next`] gives `None`. Returns how many keys
    /// had a time in the future and were given up; whoever needs them finds them again when it starts anew, as controllers do.
    ///
    /// Returns at once, can be repeated, and ends a drain that is under way.
    pub fn shut_down(&self) -> usize {
        let abandoned = self.update(State::close);
        self.shared.cut_short.notify_waiters();
        abandoned
    }

    /// Shuts down as [`WorkQueue::shut_down`] does, and waits until all that was ready or with a worker is done. A key that was
    /// added again while with a worker is still served; a retry is refused, as its time would lie after the end.
    ///
    /// It waits for ever if nobody takes the ready keys or a worker keeps an item: put a timeout around it, or end it by
    /// [`WorkQueue::shut_down`].
    ///
    /// # Cancel safety
    ///
    /// Cancelling stops the waiting; the queue stays shut down.
    pub async fn shut_down_with_drain(&self) -> Drained {
        // Registered before the queue closes, so a `shut_down` from then on is heard.
        let cut_short = self.shared.cut_short.notified();
        tokio::pin!(cut_short);
        cut_short.as_mut().enable();
        let abandoned = self.update(State::close);
        loop {
            // All who wait are woken whenever a closed queue changes, this one among them.
            let change = self.shared.workers.notified();
            tokio::pin!(change);
            change.as_mut().enable();
            if self.update(|state, _| state.is_idle()) {
                return Drained { abandoned, finished: true };
            }
            tokio::select! {
                biased;
                () = &mut change => {}
                () = &mut cut_short => {
                    return Drained { abandoned, finished: self.update(|state, _| state.is_idle()) };
                }
            }
        }
    }

    /// Whether the queue refuses additions because it is shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.update(|state, _| state.is_closed())
    }

    /// Number of keys that are ready and not with a worker; delayed ones don't count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.update(State::len)
    }

    /// Whether no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The queue's numbers at this moment. O(keys with workers or waiting).
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.update(State::stats)
    }

    /// Runs one operation of the state and rings the bell that it asks for.
    pub(crate) fn update<R>(&self, operation: impl FnOnce(&mut State<K>, Instant) -> R) -> R {
        let (result, wake) = {
            // A panic under the lock can only come from the key's own code, and leaves the state usable.
            let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Read under the lock, so that time never goes back for the state.
            let result = operation(&mut state, Instant::now());
            (result, state.take_wake())
        };
        match wake {
            Wake::Nobody => {}
            Wake::One => self.shared.workers.notify_one(),
            Wake::All => self.shared.workers.notify_waiters(),
        }
        result
    }
}
