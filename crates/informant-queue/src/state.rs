//! The queue as plain values: no lock, no clock, no waiting. Time is passed in and never goes back.
//!
//! Invariants, checked by the model test beside this file:
//! 1. a key has an entry exactly while it is ready, delayed or with a worker;
//! 2. a key is in `ready` exactly once if its entry has `dirty` set and `in_flight` not, else not at all;
//! 3. a key is in `delayed` exactly once if its entry has `due` set, else not at all;
//! 4. `dirty` and `due` are never both set: a ready key has no later time, because the earliest wins;
//! 5. `dirty_count` is the number of entries with `dirty` set;
//! 6. after [`State::close`] `delayed` is empty and nothing becomes dirty any more.
//!
//! Every operation first promotes what is due by then, so the outcome is that of a timer that never fires late.

use std::{
    collections::{BTreeMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use hashbrown::HashMap;
use tokio::time::Instant;

use crate::{Histogram, Options, Stats, rate_limits::RateLimiter};

/// Idle room for this many keys is kept when the queue runs empty; what a burst needed beyond that is given back.
const KEPT_CAPACITY: usize = 1024;

/// A delay beyond this is as good as for ever, and keeps the sum with any instant representable.
const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The key was not waiting and is now, or has a time now.
    Queued,
    /// The key was waiting already; if the new time is earlier, it has that now.
    Merged,
    /// Refused and counted: the queue holds as many distinct keys as [`Options::limit`] allows.
    Full,
    /// Refused: the queue is shut down.
    ShutDown,
}

impl Admission {
    /// Whether the key will be served.
    #[must_use]
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Queued | Self::Merged)
    }
}

/// Who has to look at the queue after an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    #[default]
    Nobody,
    /// A key is ready: any one waiting worker.
    One,
    /// The earliest time changed or the queue was closed: all that wait.
    All,
}

/// How a worker ended its work on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is said about success: the failure count stays.
    Done,
    /// Success: the failure count starts again.
    Forget,
    /// Failure: again, after the rate limits' wait.
    Retry,
    /// Success, and again after this time.
    After(Duration),
}

/// What a worker that asks for a key gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<K> {
    /// This key, which is in flight until [`State::finish`].
    Key(K),
    /// Nothing yet; the next key's time, if one has a time.
    Wait(Option<Instant>),
    /// Nothing, now and for ever.
    Closed,
}

#[derive(Debug)]
pub(crate) struct State<K> {
    entries: HashMap<K, Entry>,
    ready: VecDeque<K>,
    /// By time, and by order of addition where times are equal.
    delayed: BTreeMap<(Instant, u64), K>,
    sequence: u64,
    dirty_count: usize,
    in_flight: usize,
    limiter: RateLimiter<K>,
    limit: Option<usize>,
    closed: bool,
    wake: Wake,
    adds: u64,
    retries: u64,
    refused: u64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

#[derive(Debug, Default)]
struct Entry {
    /// Needs work, since then.
    dirty: Option<Instant>,
    /// With a worker, since then.
    in_flight: Option<Instant>,
    /// Becomes dirty then: its place in `delayed`.
    due: Option<(Instant, u64)>,
}

impl<K: Clone + Eq + Hash> State<K> {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            entries: HashMap::new(),
            ready: VecDeque::new(),
            delayed: BTreeMap::new(),
            sequence: 0,
            dirty_count: 0,
            in_flight: 0,
            limiter: RateLimiter::new(options.rate_limits),
            limit: options.limit,
            closed: false,
            wake: Wake::Nobody,
            adds: 0,
            retries: 0,
            refused: 0,
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
        }
    }

    pub(crate) fn add(&mut self, key: K, now: Instant) -> Admission {
        self.promote(now);
        if let Some(refusal) = self.refusal(&key) {
            return refusal;
        }
        self.mark_dirty(key, now)
    }

    pub(crate) fn add_after(&mut self, key: K, delay: Duration, now: Instant) -> Admission {
        self.promote(now);
        if let Some(refusal) = self.refusal(&key) {
            return refusal;
        }
        self.retries += 1;
        if delay.is_zero() {
            return self.mark_dirty(key, now);
        }
        let place = (now + delay.min(LONGEST_DELAY), self.sequence);
        self.sequence += 1;
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.dirty.is_some() {
            return Admission::Merged;
        }
        let earlier = entry.due;
        if earlier.is_some_and(|due| due.0 <= place.0) {
            return Admission::Merged;
        }
        entry.due = Some(place);
        if let Some(due) = earlier {
            self.delayed.remove(&due);
        }
        self.delayed.insert(place, key);
        if self.delayed.first_key_value().is_some_and(|(first, _)| *first == place) {
            self.wake = Wake::All;
        }
        if earlier.is_some() { Admission::Merged } else { Admission::Queued }
    }

    /// Counts a failure and adds the key after the wait that follows from it, which is returned.
    pub(crate) fn add_rate_limited(&mut self, key: K, now: Instant) -> (Admission, Duration) {
        if let Some(refusal) = self.refusal(&key) {
            return (refusal, Duration::ZERO);
        }
        let wait = self.limiter.failed(key.clone(), now);
        (self.add_after(key, wait, now), wait)
    }

    pub(crate) fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    pub(crate) fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.failures(key)
    }

    /// Hands out the key that is longest ready.
    pub(crate) fn take(&mut self, now: Instant) -> Next<K> {
        self.promote(now);
        let Some(key) = self.ready.pop_front() else {
            if self.closed && self.dirty_count == 0 {
                return Next::Closed;
            }
            return Next::Wait(self.delayed.first_key_value().map(|(place, _)| place.0));
        };
        let entry = self.entries.entry(key.clone()).or_default();
        let ready_since = entry.dirty.take().unwrap_or(now);
        entry.in_flight = Some(now);
        self.dirty_count -= 1;
        self.in_flight += 1;
        self.queue_duration.observe(now.saturating_duration_since(ready_since));
        if self.closed {
            self.wake = Wake::All;
        } else if !self.ready.is_empty() {
            // One ring of the bell may stand for several keys, so whoever leaves a key behind rings again.
            self.wake = self.wake.max(Wake::One);
        }
        Next::Key(key)
    }

    /// Takes a key back from its worker. Returns the wait before it is served again, if the verdict asks for that and the
    /// queue still accepts it.
    pub(crate) fn finish(&mut self, key: K, verdict: Verdict, now: Instant) -> Option<Duration> {
        self.promote(now);
        let wait = match verdict {
            Verdict::Done => None,
            Verdict::Forget => {
                self.limiter.forget(&key);
                None
            }
            Verdict::Retry => {
                let (admission, wait) = self.add_rate_limited(key.clone(), now);
                admission.is_accepted().then_some(wait)
            }
            Verdict::After(delay) => {
                self.limiter.forget(&key);
                self.add_after(key.clone(), delay, now).is_accepted().then_some(delay)
            }
        };
        self.give_back(key, now);
        wait
    }

    /// Refuses all additions from now on and gives up the delayed keys, whose number is returned. What is ready, and what was
    /// added again while with a worker, is still served.
    pub(crate) fn close(&mut self, now: Instant) -> usize {
        self.promote(now);
        self.closed = true;
        self.wake = Wake::All;
        let delayed = std::mem::take(&mut self.delayed);
        for key in delayed.values() {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.due = None;
                if entry.in_flight.is_none() {
                    self.entries.remove(key);
                }
            }
        }
        delayed.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing is ready or with a worker. Delayed keys don't count.
    pub(crate) fn is_idle(&self) -> bool {
        self.dirty_count == 0 && self.in_flight == 0
    }

    pub(crate) fn len(&mut self, now: Instant) -> usize {
        self.promote(now);
        self.ready.len()
    }

    pub(crate) fn stats(&mut self, now: Instant) -> Stats {
        self.promote(now);
        let running = || {
            let since = self.entries.values().filter_map(|entry| entry.in_flight);
            since.map(|since| now.saturating_duration_since(since))
        };
        Stats {
            depth: self.ready.len(),
            delayed: self.delayed.len(),
            in_flight: self.in_flight,
            failing: self.limiter.failing(),
            adds: self.adds,
            retries: self.retries,
            refused: self.refused,
            queue_duration: self.queue_duration.clone(),
            work_duration: self.work_duration.clone(),
            unfinished: running().fold(Duration::ZERO, Duration::saturating_add),
            longest_running: running().max().unwrap_or_default(),
        }
    }

    /// Who has to be woken for all that happened since the last call.
    pub(crate) fn take_wake(&mut self) -> Wake {
        std::mem::take(&mut self.wake)
    }

    fn refusal(&mut self, key: &K) -> Option<Admission> {
        if self.closed {
            return Some(Admission::ShutDown);
        }
        let full = self.limit.is_some_and(|limit| self.entries.len() >= limit);
        if full && !self.entries.contains_key(key) {
            self.refused += 1;
            return Some(Admission::Full);
        }
        None
    }

    /// Makes due keys ready, with the time at which they became so.
    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry() {
            let due = first.key().0;
            if due > now {
                break;
            }
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.due = None;
            }
            self.mark_dirty(key, due);
        }
    }

    fn mark_dirty(&mut self, key: K, since: Instant) -> Admission {
        let entry = self.entries.entry(key.clone()).or_default();
        let due = entry.due.take();
        if entry.dirty.is_some() {
            return Admission::Merged;
        }
        entry.dirty = Some(since);
        self.dirty_count += 1;
        self.adds += 1;
        if entry.in_flight.is_none() {
            self.ready.push_back(key);
            self.wake = self.wake.max(Wake::One);
        }
        match due {
            Some(place) => {
                self.delayed.remove(&place);
                Admission::Merged
            }
            None => Admission::Queued,
        }
    }

    fn give_back(&mut self, key: K, now: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(since) = entry.in_flight.take() else { return };
        self.in_flight -= 1;
        self.work_duration.observe(now.saturating_duration_since(since));
        if entry.dirty.is_some() {
            self.ready.push_back(key);
            self.wake = self.wake.max(Wake::One);
        } else if entry.due.is_none() {
            self.entries.remove(&key);
        }
        if self.closed {
            self.wake = Wake::All;
        }
        if self.entries.is_empty() {
            self.entries.shrink_to(KEPT_CAPACITY);
            self.ready.shrink_to(KEPT_CAPACITY);
        }
    }
}

#[cfg(test)]
mod tests;
