//! What a controller counts. Plain values; the caller holds the lock and passes the time.

use std::time::Duration;

use informant_cache::ObjectKey;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{ControllerPhase, LastError, ReconcileCounts};
use crate::Action;

/// Upper bounds of the buckets of `controller_runtime_reconcile_time_seconds`, in milliseconds, as controller-runtime has them.
const BOUNDS_MS: [u64; 40] = [
    5, 10, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000, 1250, 1500, 1750, 2000, 2500,
    3000, 3500, 4000, 4500, 5000, 6000, 7000, 8000, 9000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000,
    60_000,
];

#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) phase: ControllerPhase,
    pub(crate) counts: ReconcileCounts,
    pub(crate) time: Durations,
    pub(crate) last_error: Option<LastError>,
    /// What is reconciled now, since when. As many as there are workers at most.
    running: Vec<(ObjectKey, Instant)>,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Action(Action),
    Failed(Failure),
}

/// Why a reconcile failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It returned an error.
    Retryable(String),
    /// It returned an error that no retry can mend.
    Terminal(String),
    Panic(String),
    Timeout(Duration),
}

/// Durations in controller-runtime's buckets.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    counts: [u64; BOUNDS_MS.len() + 1],
    pub(crate) sum: Duration,
}

impl Numbers {
    pub(crate) fn started(&mut self, key: ObjectKey, now: Instant) {
        self.running.push((key, now));
    }

    /// A reconcile was dropped before it ended.
    pub(crate) fn aborted(&mut self, key: &ObjectKey) {
        self.running.retain(|(running, _)| running != key);
    }

    pub(crate) fn ended(&mut self, key: &ObjectKey, outcome: &Outcome, now: Instant, wall: Timestamp) {
        if let Some(position) = self.running.iter().position(|(running, _)| running == key) {
            let (_, since) = self.running.swap_remove(position);
            self.time.observe(now.saturating_duration_since(since));
        }
        let counts = &mut self.counts;
        let failure = match outcome {
            Outcome::Action(Action::Done) => return counts.success += 1,
            Outcome::Action(Action::RequeueAfter(_)) => return counts.requeue_after += 1,
            Outcome::Action(Action::Requeue) => return counts.requeue += 1,
            Outcome::Failed(failure) => failure,
        };
        counts.error += 1;
        match failure {
            Failure::Retryable(_) => {}
            Failure::Terminal(_) => counts.terminal_errors += 1,
            Failure::Panic(_) => counts.panics += 1,
            Failure::Timeout(_) => counts.timeouts += 1,
        }
        self.last_error = Some(LastError { at: wall, key: key.clone(), message: failure.to_string() });
    }

    pub(crate) fn active(&self) -> usize {
        self.running.len()
    }

    /// The keys that are reconciled now, longest first.
    pub(crate) fn running(&self) -> Vec<ObjectKey> {
        let mut running = self.running.clone();
        running.sort_by_key(|(_, since)| *since);
        running.into_iter().map(|(key, _)| key).collect()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Retryable(message) | Self::Terminal(message) => f.write_str(message),
            Self::Panic(message) => write!(f, "panic: {message} [recovered]"),
            Self::Timeout(limit) => write!(f, "took longer than the allowed {limit:?}"),
        }
    }
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: [0; BOUNDS_MS.len() + 1], sum: Duration::ZERO }
    }
}

impl Durations {
    fn observe(&mut self, duration: Duration) {
        let bucket = BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < duration);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(duration);
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Upper bound, `None` for the last, and what fell into this bucket alone.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let bounds = BOUNDS_MS.iter().map(|bound| Some(Duration::from_millis(*bound)));
        bounds.chain([None]).zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// controller-runtime fact 46.
    #[test]
    fn each_outcome_moves_its_own_result_by_one_and_the_histogram_too() {
        let mut numbers = Numbers::default();
        let key = ObjectKey::namespaced("a", "b");
        let now = Instant::now();
        let failures = [
            Failure::Retryable("no".into()),
            Failure::Terminal("never".into()),
            Failure::Panic("oops".into()),
            Failure::Timeout(Duration::from_secs(1)),
        ];
        let actions = [Action::Done, Action::RequeueAfter(Duration::ZERO), Action::Requeue].map(Outcome::Action);
        for outcome in actions.into_iter().chain(failures.into_iter().map(Outcome::Failed)) {
            numbers.started(key.clone(), now);
            assert_eq!(numbers.active(), 1);
            numbers.ended(&key, &outcome, now + Duration::from_millis(7), Timestamp::UNIX_EPOCH);
        }
        let counts = &numbers.counts;
        assert_eq!((counts.success, counts.requeue_after, counts.requeue, counts.error), (1, 1, 1, 4));
        assert_eq!((counts.terminal_errors, counts.panics, counts.timeouts), (1, 1, 1));
        assert_eq!((numbers.time.count(), numbers.active()), (7, 0));
        assert_eq!(numbers.time.buckets().find(|(_, count)| *count > 0), Some((Some(Duration::from_millis(10)), 7)));
        assert_eq!(numbers.last_error.map(|error| error.message), Some("took longer than the allowed 1s".to_owned()));
    }

    #[test]
    fn what_runs_longest_is_named_first() {
        let mut numbers = Numbers::default();
        let now = Instant::now();
        let keys = ["a", "b", "c"].map(ObjectKey::cluster);
        for (key, age) in keys.iter().zip([1, 3, 2]) {
            numbers.started(key.clone(), now - Duration::from_secs(age));
        }
        numbers.aborted(&keys[2]);
        assert_eq!(numbers.running(), [keys[1].clone(), keys[0].clone()]);
    }
}
