//! A controller's state at one moment, readable in code and as JSON.

use informant_cache::ObjectKey;
use jiff::Timestamp;
use serde::Serialize;

use super::Shared;

/// What a controller is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ControllerPhase {
    /// Waits until its sources have handed over their initial state.
    #[default]
    Syncing,
    /// Its workers take keys.
    Running,
    /// Ended.
    Stopped,
}

/// How reconciles ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileCounts {
    /// With [`Action::Done`](crate::Action::Done).
    pub success: u64,
    /// With [`Action::RequeueAfter`](crate::Action::RequeueAfter).
    pub requeue_after: u64,
    /// With [`Action::Requeue`](crate::Action::Requeue).
    pub requeue: u64,
    /// With an error of any kind, also a panic or a timeout.
    pub error: u64,
    /// Of those: with an error that isn't retried.
    pub terminal_errors: u64,
    /// Of those: by a panic.
    pub panics: u64,
    /// Of those: by the time allowed for a reconcile.
    pub timeouts: u64,
}

/// The last failed reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When it ended.
    pub at: Timestamp,
    /// What was reconciled.
    pub key: ObjectKey,
    /// What went wrong.
    pub message: String,
}

/// A controller's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Keys that wait for a worker.
    pub depth: usize,
    /// Keys whose time hasn't come: retries and what is to be looked at again later.
    pub delayed: usize,
    /// Keys that failed and have not succeeded since.
    pub failing: usize,
    /// Keys added; one that waited already doesn't count.
    pub adds: u64,
    /// Keys added with a delay.
    pub retries: u64,
}

/// A controller's state and numbers at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerStatus {
    /// Its name.
    pub name: String,
    /// What it reconciles, such as `deployments.apps`.
    pub resource: String,
    /// What it's doing.
    pub phase: ControllerPhase,
    /// How many keys it reconciles at a time, at most.
    pub workers: usize,
    /// What it reconciles now, longest first.
    pub reconciling: Vec<ObjectKey>,
    /// Its queue.
    pub queue: QueueStatus,
    /// How reconciles ended so far.
    pub reconciles: ReconcileCounts,
    /// The last failure, also if all is well since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
}

impl ReconcileCounts {
    /// All reconciles that ended.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.success + self.requeue_after + self.requeue + self.error
    }
}

impl Shared {
    pub(crate) fn status(&self) -> ControllerStatus {
        let stats = self.queue.stats();
        let numbers = self.numbers_mut(|numbers| numbers.clone());
        ControllerStatus {
            name: self.name.clone(),
            resource: self.resource.clone(),
            phase: numbers.phase,
            workers: self.workers,
            reconciling: numbers.running(),
            queue: QueueStatus {
                depth: stats.depth,
                delayed: stats.delayed,
                failing: stats.failing,
                adds: stats.adds,
                retries: stats.retries,
            },
            reconciles: numbers.counts,
            last_error: numbers.last_error,
        }
    }
}
