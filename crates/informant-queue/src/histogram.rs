//! Durations counted in buckets, as Prometheus wants them, without Prometheus.

use std::time::Duration;

/// How often durations fell below each of twelve bounds, from 10 ns to 1000 s, each ten times the one before.
///
/// The bounds are controller-runtime's for `workqueue_queue_duration_seconds` and `workqueue_work_duration_seconds`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// One count per bound, and one for what is above all bounds; not cumulative.
    counts: [u64; Self::BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    const BOUNDS: [Duration; 12] = [
        Duration::from_nanos(10),
        Duration::from_nanos(100),
        Duration::from_micros(1),
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_millis(1),
        Duration::from_millis(10),
        Duration::from_millis(100),
        Duration::from_secs(1),
        Duration::from_secs(10),
        Duration::from_secs(100),
        Duration::from_secs(1000),
    ];

    pub(crate) fn observe(&mut self, duration: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < duration);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(duration);
    }

    /// Number of durations seen.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations seen.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets from the lowest: the upper bound (included), `None` for the last one, and how many durations fell into this
    /// bucket and no lower one.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        Self::BOUNDS.iter().copied().map(Some).chain([None]).zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_is_not_below_it() {
        let mut histogram = Histogram::default();
        for duration in [
            Duration::ZERO,
            Duration::from_nanos(10),
            Duration::from_nanos(11),
            Duration::from_secs(1000),
            Duration::from_secs(1001),
        ] {
            histogram.observe(duration);
        }
        let buckets: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(
            buckets,
            [
                (Some(Duration::from_nanos(10)), 2),
                (Some(Duration::from_nanos(100)), 1),
                (Some(Duration::from_secs(1000)), 1),
                (None, 1)
            ]
        );
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::new(2001, 21));
    }
}
