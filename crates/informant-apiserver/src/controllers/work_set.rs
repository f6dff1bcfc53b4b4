//! What a controller has to look at, and when. Each key is there once; what failed comes back later and later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Keys with their due times. No bound of its own: there's at most one entry for each object that there is.
#[derive(Debug)]
pub(crate) struct WorkSet<K> {
    by_time: BTreeSet<(Instant, K)>,
    by_key: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
}

// === impl WorkSet ===

impl<K> Default for WorkSet<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new(), failures: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> WorkSet<K> {
    /// Makes the key due at `at`, whatever it was before.
    pub(crate) fn set(&mut self, key: K, at: Instant) {
        if let Some(before) = self.by_key.insert(key.clone(), at) {
            self.by_time.remove(&(before, key.clone()));
        }
        self.by_time.insert((at, key));
    }

    /// Forgets the key.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
        self.failures.remove(key);
    }

    /// Takes the key that is due for the longest.
    pub(crate) fn take(&mut self, now: Instant) -> Option<K> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// The work on a taken key failed: it's due again later.
    pub(crate) fn failed(&mut self, key: K, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let wait = FIRST_WAIT.saturating_mul(1 << (*failures).min(16)).min(LONGEST_WAIT);
        *failures += 1;
        self.set(key, now + wait);
    }

    /// The work on a taken key is done.
    pub(crate) fn done(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// When the next key is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_once_at_its_last_time() {
        let now = Instant::now();
        let mut work = WorkSet::default();
        work.set("a", now);
        work.set("a", now + LONGEST_WAIT);
        work.set("b", now);
        assert_eq!(work.take(now), Some("b"));
        assert_eq!(work.take(now), None);
        assert_eq!(work.next_due(), Some(now + LONGEST_WAIT));
        work.remove(&"a");
        assert_eq!(work.next_due(), None);
    }

    #[test]
    fn failures_wait_longer_and_longer_until_one_succeeds() {
        let now = Instant::now();
        let mut work = WorkSet::default();
        let wait = |work: &mut WorkSet<&'static str>| {
            work.failed("a", now);
            let wait = work.next_due().map(|at| at - now);
            assert_eq!(work.take(now + LONGEST_WAIT), Some("a"));
            wait
        };
        assert_eq!(wait(&mut work), Some(FIRST_WAIT));
        assert_eq!(wait(&mut work), Some(FIRST_WAIT * 2));
        for _ in 0..40 {
            wait(&mut work);
        }
        assert_eq!(wait(&mut work), Some(LONGEST_WAIT));
        work.done(&"a");
        assert_eq!(wait(&mut work), Some(FIRST_WAIT));
    }
}
