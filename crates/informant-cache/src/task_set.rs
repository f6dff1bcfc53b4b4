//! The tasks of a factory: the one place of this crate that spawns, so that whoever shuts down can wait for all.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// A set of tasks on one runtime. A clone is the same set.
#[derive(Clone, Debug)]
pub(crate) struct TaskSet {
    tracker: TaskTracker,
    runtime: Handle,
}

impl TaskSet {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { tracker: TaskTracker::new(), runtime }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The tracker joins it; the handle isn't needed, and a task here doesn't panic: user code in it is caught.
        drop(self.tracker.spawn_on(task, &self.runtime));
    }

    /// Waits until every task has ended. Any number of callers may wait.
    pub(crate) async fn join(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
