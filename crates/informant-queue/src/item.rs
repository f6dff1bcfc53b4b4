//! A key in the hands of a worker.

use std::{fmt, time::Duration};

use crate::{Key, WorkQueue, state::Verdict};

/// A key that no other worker has. It ends with one of the methods that take it, or by being dropped.
///
/// Dropping it is [`Item::done`], so a worker that returns early or is cancelled never blocks the key. Dropped by a panic it is
/// [`Item::retry`]: a panic is no success.
#[must_use = "dropping it at once says that the work is done"]
pub struct Item<K: Key> {
    queue: WorkQueue<K>,
    key: K,
    finished: bool,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(queue: WorkQueue<K>, key: K) -> Self {
        Self { queue, key, finished: false }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Failures of this key since it was last forgotten.
    #[must_use]
    pub fn num_requeues(&self) -> u32 {
        self.queue.num_requeues(&self.key)
    }

    /// Success: forgets the key's failures.
    pub fn forget(mut self) {
        self.finish(Verdict::Forget);
    }

    /// The end of the work, without a word about success: the key's failures stay counted.
    pub fn done(mut self) {
        self.finish(Verdict::Done);
    }

    /// Failure: counts it and adds the key again after the wait that the [`RateLimits`](crate::RateLimits) ask for, which is
    /// returned. `None` if the queue is shut down.
    pub fn retry(mut self) -> Option<Duration> {
        self.finish(Verdict::Retry)
    }

    /// Success, and work again after `delay`: forgets the key's failures. An addition that came meanwhile is earlier, and counts.
    pub fn requeue_after(mut self, delay: Duration) {
        self.finish(Verdict::After(delay));
    }

    fn finish(&mut self, verdict: Verdict) -> Option<Duration> {
        self.finished = true;
        let key = self.key.clone();
        self.queue.update(|state, now| state.finish(key, verdict, now))
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(if std::thread::panicking() { Verdict::Retry } else { Verdict::Done });
        }
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item").field("key", &self.key).field("queue", &self.queue.name()).finish_non_exhaustive()
    }
}
