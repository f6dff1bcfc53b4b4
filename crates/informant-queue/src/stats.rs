//! A queue's numbers at one moment, for metrics and status pages.

use std::time::Duration;

use crate::Histogram;

/// What a queue has done and holds. Each field names the client-go metric that shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys that are ready and not with a worker (`workqueue_depth`).
    pub depth: usize,
    /// Keys whose time has not come.
    pub delayed: usize,
    /// Keys that are with a worker.
    pub in_flight: usize,
    /// Keys with at least one failure that was not followed by a `forget`.
    pub failing: usize,
    /// Additions that were not merged into one that waits (`workqueue_adds_total`). A delayed key counts when its time comes.
    pub adds: u64,
    /// Delayed additions, also those with no delay (`workqueue_retries_total`).
    pub retries: u64,
    /// Additions refused at the limit.
    pub refused: u64,
    /// From ready to handed out (`workqueue_queue_duration_seconds`).
    pub queue_duration: Histogram,
    /// From handed out to done (`workqueue_work_duration_seconds`).
    pub work_duration: Histogram,
    /// The running time of all keys that are with a worker, added up (`workqueue_unfinished_work_seconds`).
    pub unfinished: Duration,
    /// The running time of the key that is longest with a worker (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
}
