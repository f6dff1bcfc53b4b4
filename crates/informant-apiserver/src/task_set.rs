//! The one place that spawns: tasks that belong to an owner, who cancels and joins them.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks with one owner. Clones are the same set.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskSet {
    tracker: TaskTracker,
    /// Asks the tasks to come to an end.
    stop: CancellationToken,
    /// Drops the tasks where they are.
    abort: CancellationToken,
}

// === impl TaskSet ===

impl TaskSet {
    /// Starts a task. It's dropped where it is when the set is aborted.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        self.tracker.spawn(async move {
            abort.run_until_cancelled(task).await;
        });
    }

    /// Asked for when the tasks are to end by themselves.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Asks the tasks to end, drops those that haven't after `patience`, and waits until none is left.
    pub(crate) async fn shut_down(&self, patience: std::time::Duration) {
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(patience, self.tracker.wait()).await.is_err() {
            self.abort.cancel();
            self.tracker.wait().await;
        }
    }

    /// Drops the tasks without waiting for it.
    pub(crate) fn abandon(&self) {
        self.stop.cancel();
        self.abort.cancel();
    }
}
