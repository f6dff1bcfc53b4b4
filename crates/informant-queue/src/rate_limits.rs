//! How long a failed key waits: the longer of its own backoff and what the bucket shared by all keys asks for.
//!
//! Pure: time is passed in. `failures` holds one entry per key that failed and was not forgotten. A caller who never forgets
//! would grow it without end, so an entry whose last failure is older than twice the longest backoff may be dropped.

use std::{hash::Hash, time::Duration};

use hashbrown::HashMap;
use tokio::time::Instant;

/// A failure is remembered at least this long.
const MEMORY_MIN: Duration = Duration::from_secs(60);

/// Below this many failing keys nothing is ever purged.
const PURGE_FROM: usize = 1024;

/// The rate limits of a queue. The default is client-go's for controllers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RateLimits {
    /// What a key waits for its own failures. Default: 5 ms, doubled with each failure, at most 1000 s.
    pub backoff: Backoff,
    /// What all keys together may do. Default: ten a second, a hundred at once. `None`: no overall limit, which is
    /// controller-runtime's choice since it has a priority queue.
    ///
    /// A retry takes its turn from the bucket at once and gives it back never, so after a mass failure of `n` keys the last
    /// one waits `n / rate`.
    pub bucket: Option<Bucket>,
    /// No wait is longer than this, whatever the others say. Default: none.
    pub max_wait: Option<Duration>,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { backoff: Backoff::default(), bucket: Some(Bucket::default()), max_wait: None }
    }
}

impl RateLimits {
    /// Only a backoff per key: no bucket, no cap beyond the backoff's own.
    #[must_use]
    pub fn per_key(backoff: Backoff) -> Self {
        Self { backoff, bucket: None, max_wait: None }
    }

    /// Sets [`RateLimits::bucket`].
    #[must_use]
    pub fn bucket(mut self, bucket: Bucket) -> Self {
        self.bucket = Some(bucket);
        self
    }

    /// Sets [`RateLimits::max_wait`].
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }
}

/// How a key's wait grows with the number of its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backoff {
    /// `base`, doubled with each failure, at most `max`.
    Exponential {
        /// The wait after the first failure.
        base: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// `fast` for the first `attempts` failures, then `slow`.
    FastSlow {
        /// The wait after each of the first failures.
        fast: Duration,
        /// The wait after all others.
        slow: Duration,
        /// How many failures count as the first.
        attempts: u32,
    },
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Exponential { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The wait of a key that failed `earlier` times before this failure.
    #[must_use]
    pub fn wait(&self, earlier: u32) -> Duration {
        match *self {
            Self::Exponential { base, max } => {
                let factor = 1_u32.checked_shl(earlier).unwrap_or(u32::MAX);
                base.saturating_mul(factor).min(max)
            }
            Self::FastSlow { fast, slow, attempts } => {
                if earlier < attempts {
                    fast
                } else {
                    slow
                }
            }
        }
    }

    fn longest(&self) -> Duration {
        match *self {
            Self::Exponential { max, .. } => max,
            Self::FastSlow { fast, slow, .. } => fast.max(slow),
        }
    }
}

/// A token bucket: one token comes back every `interval`, and `burst` of them lie in it at first and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Time between two tokens.
    pub interval: Duration,
    /// How many can be taken at once.
    pub burst: u32,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { interval: Duration::from_millis(100), burst: 100 }
    }
}

/// The limits with what they remember.
#[derive(Debug)]
pub(crate) struct RateLimiter<K> {
    limits: RateLimits,
    failures: HashMap<K, Failures>,
    purge_at: usize,
    /// How far the bucket is from full, in time: each taken token adds an interval, passing time takes it away.
    debt: Duration,
    debt_at: Option<Instant>,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl<K: Eq + Hash> RateLimiter<K> {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self { limits, failures: HashMap::new(), purge_at: PURGE_FROM, debt: Duration::ZERO, debt_at: None }
    }

    /// Counts a failure of `key` and says how long it has to wait.
    pub(crate) fn failed(&mut self, key: K, now: Instant) -> Duration {
        self.purge(now);
        let failures = self.failures.entry(key).or_insert(Failures { count: 0, last: now });
        let own = self.limits.backoff.wait(failures.count);
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        let wait = own.max(self.take_token(now));
        self.limits.max_wait.map_or(wait, |max| wait.min(max))
    }

    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
        if self.failures.is_empty() {
            self.failures.shrink_to(PURGE_FROM);
        }
    }

    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).map_or(0, |failures| failures.count)
    }

    pub(crate) fn failing(&self) -> usize {
        self.failures.len()
    }

    fn take_token(&mut self, now: Instant) -> Duration {
        let Some(bucket) = self.limits.bucket else { return Duration::ZERO };
        let passed = self.debt_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.debt = self.debt.saturating_sub(passed).saturating_add(bucket.interval);
        self.debt_at = Some(now);
        self.debt.saturating_sub(bucket.interval.saturating_mul(bucket.burst))
    }

    /// Drops aged entries each time their number has doubled, so that the cost per failure stays constant.
    fn purge(&mut self, now: Instant) {
        if self.failures.len() < self.purge_at {
            return;
        }
        // A key that waits for its retry failed less than one longest backoff ago (the bucket aside), so it keeps its count.
        let kept = self.limits.backoff.longest().saturating_mul(2).max(MEMORY_MIN);
        self.failures.retain(|_, failures| now.saturating_duration_since(failures.last) <= kept);
        self.purge_at = self.failures.len().saturating_mul(2).max(PURGE_FROM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn limiter(limits: RateLimits) -> (RateLimiter<&'static str>, Instant) {
        (RateLimiter::new(limits), Instant::now())
    }

    /// client-go fact 130.
    #[test]
    fn backoff_doubles_per_key_until_forgotten() {
        let (mut limiter, now) =
            limiter(RateLimits::per_key(Backoff::Exponential { base: ms(1), max: Duration::from_secs(1000) }));
        let waits: Vec<_> = (0..5).map(|_| limiter.failed("one", now)).collect();
        assert_eq!(waits, [ms(1), ms(2), ms(4), ms(8), ms(16)]);
        assert_eq!(limiter.failed("two", now), ms(1));
        assert_eq!((limiter.failures(&"one"), limiter.failures(&"two")), (5, 1));
        limiter.forget(&"one");
        assert_eq!(limiter.failures(&"one"), 0);
        assert_eq!(limiter.failed("one", now), ms(1));
    }

    /// client-go fact 130.
    #[test]
    fn a_thousand_failures_end_at_the_cap_without_overflow() {
        let (mut limiter, now) = limiter(RateLimits::per_key(Backoff::default()));
        let last = (0..1000).map(|_| limiter.failed("one", now)).last();
        assert_eq!(last, Some(Duration::from_secs(1000)));
        let huge = Backoff::Exponential { base: Duration::MAX, max: Duration::MAX };
        assert_eq!(huge.wait(u32::MAX), Duration::MAX);
    }

    #[test]
    fn the_default_backoff_reaches_its_cap_at_the_eighteenth_failure() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(0), ms(5));
        assert_eq!(backoff.wait(17), ms(5 * 131_072));
        assert_eq!(backoff.wait(18), Duration::from_secs(1000));
    }

    /// client-go fact 131.
    #[test]
    fn fast_slow_is_fast_three_times_then_slow() {
        let slow = Duration::from_secs(10);
        let (mut limiter, now) = limiter(RateLimits::per_key(Backoff::FastSlow { fast: ms(5), slow, attempts: 3 }));
        let waits: Vec<_> = (0..5).map(|_| limiter.failed("one", now)).collect();
        assert_eq!(waits, [ms(5), ms(5), ms(5), slow, slow]);
        limiter.forget(&"one");
        assert_eq!(limiter.failed("one", now), ms(5));
    }

    /// client-go fact 131.
    #[test]
    fn the_longer_of_backoff_and_bucket_counts_and_max_wait_caps_both() {
        let bucket = Bucket { interval: ms(100), burst: 2 };
        let backoff = Backoff::Exponential { base: ms(150), max: ms(10_000) };
        let (mut limiter, now) = limiter(RateLimits::per_key(backoff).bucket(bucket).max_wait(ms(500)));
        assert_eq!(limiter.failed("a", now), ms(150), "a token is there, so the backoff counts");
        assert_eq!(limiter.failed("b", now), ms(150));
        assert_eq!(limiter.failed("c", now), ms(150), "100 ms for the bucket, 150 ms for the backoff");
        assert_eq!(limiter.failed("d", now), ms(200), "the bucket's wait is longer by now");
        assert_eq!(limiter.failed("a", now), ms(300));
        assert_eq!(limiter.failed("a", now), ms(500), "600 ms by backoff, capped");
    }

    #[test]
    fn the_bucket_gives_a_hundred_at_once_and_ten_a_second() {
        let now = Instant::now();
        let mut limits = RateLimiter::new(RateLimits {
            backoff: Backoff::FastSlow { fast: Duration::ZERO, slow: Duration::ZERO, attempts: 0 },
            ..RateLimits::default()
        });
        for _ in 0..100 {
            assert_eq!(limits.failed("a", now), Duration::ZERO);
        }
        assert_eq!(limits.failed("a", now), ms(100));
        assert_eq!(limits.failed("a", now), ms(200));
        let later = now + ms(1_000);
        assert_eq!(limits.failed("a", later), Duration::ZERO, "ten tokens came, two were owed");
        let full = later + Duration::from_secs(3600);
        for _ in 0..100 {
            assert_eq!(limits.failed("a", full), Duration::ZERO);
        }
        assert_eq!(limits.failed("a", full), ms(100), "an hour fills the bucket no higher than its burst");
    }

    #[test]
    fn counts_that_nobody_forgets_age_out() {
        let mut limiter = RateLimiter::new(RateLimits::per_key(Backoff::default()));
        let now = Instant::now();
        for key in 0..PURGE_FROM {
            limiter.failed(key, now);
        }
        let later = now + Duration::from_secs(2000) + ms(1);
        limiter.failed(usize::MAX, later);
        assert_eq!(limiter.failing(), 1);
        for key in 0..10 * PURGE_FROM {
            limiter.failed(key, later);
        }
        assert_eq!(limiter.failing(), 10 * PURGE_FROM + 1, "recent counts stay");
    }
}
