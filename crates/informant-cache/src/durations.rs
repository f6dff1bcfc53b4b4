//! How long things took, counted in buckets: plain atomics for who counts, a plain value for who reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// The upper bounds of the buckets, from a millisecond to ten seconds; what's longer is in one more.
const BOUNDS: [Duration; 13] = [
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How often something took how long, at one moment. In JSON: `count` and `sumMillis`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

/// Counts durations without a lock. A reader may see one that's counted and not yet in the sum.
#[derive(Debug, Default)]
pub(crate) struct DurationCounter {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

// === impl Durations ===

impl Durations {
    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All durations added up.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets from the lowest: the upper bound (included), `None` for the last one, and how many durations fell into
    /// this bucket and no lower one.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        BOUNDS.iter().copied().map(Some).chain([None]).zip(self.counts.iter().copied())
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut durations = serializer.serialize_struct("Durations", 2)?;
        durations.serialize_field("count", &self.count())?;
        durations.serialize_field("sumMillis", &u64::try_from(self.sum.as_millis()).unwrap_or(u64::MAX))?;
        durations.end()
    }
}

// === impl DurationCounter ===

impl DurationCounter {
    pub(crate) fn observe(&self, duration: Duration) {
        let bucket = BOUNDS.partition_point(|bound| *bound < duration);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // Five centuries until it overflows.
        self.sum_nanos.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn durations(&self) -> Durations {
        let sum = Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed));
        let mut durations = Durations { sum, ..Durations::default() };
        for (count, counter) in durations.counts.iter_mut().zip(&self.counts) {
            *count = counter.load(Ordering::Relaxed);
        }
        durations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_is_not_below_it() {
        let counter = DurationCounter::default();
        for millis in [0, 1, 2, 10_000, 10_001] {
            counter.observe(Duration::from_millis(millis));
        }
        let durations = counter.durations();
        let buckets: Vec<_> = durations.buckets().filter(|(_, count)| *count > 0).collect();
        let millis = |millis| Some(Duration::from_millis(millis));
        let two = Some(Duration::from_micros(2_500));
        assert_eq!(buckets, [(millis(1), 2), (two, 1), (millis(10_000), 1), (None, 1)]);
        assert_eq!((durations.count(), durations.sum()), (5, Duration::from_millis(20_004)));
        let json = serde_json::to_string(&durations).expect("is JSON");
        assert_eq!(json, r#"{"count":5,"sumMillis":20004}"#);
    }
}
