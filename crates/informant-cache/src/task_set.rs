//! The tasks of a factory: the one place of this crate that spawns, so that whoever shuts down can wait for all.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// A set of tasks on one runtime. A clone is the same set.
#[derive(Clone, Debug)]
pub(crate) struct TaskSet {
    tracker: TaskTracker,
    /// The set that this one is a part of.
    whole: Option<TaskTracker>,
    runtime: Handle,
}

impl TaskSet {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { tracker: TaskTracker::new(), whole: None, runtime }
    }

    /// A new set within this one, for tasks that are also waited for apart. There's one level of these only.
    pub(crate) fn part(&self) -> Self {
        let whole = self.whole.as_ref().unwrap_or(&self.tracker);
        Self { tracker: TaskTracker::new(), whole: Some(whole.clone()), runtime: self.runtime.clone() }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The tracker joins it; the handle isn't needed, and a task here doesn't panic: user code in it is caught.
        match &self.whole {
            None => drop(self.tracker.spawn_on(task, &self.runtime)),
            Some(whole) => drop(self.tracker.spawn_on(whole.track_future(task), &self.runtime)),
        }
    }

    /// Waits until every task has ended. Any number of callers may wait.
    pub(crate) async fn join(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
