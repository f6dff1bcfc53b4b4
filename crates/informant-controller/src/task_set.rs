//! Tasks with names: the one place of this crate that spawns. Whoever holds the set waits for its tasks; dropping it aborts them.

use std::{collections::HashMap, error::Error, future::Future};

use tokio::task::{Id, JoinError, JoinSet};

/// Any error.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug, Default)]
pub(crate) struct TaskSet {
    tasks: JoinSet<Result<(), BoxError>>,
    names: HashMap<Id, String>,
}

/// A task that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) result: Result<(), TaskError>,
}

/// How a task failed.
#[derive(Debug)]
pub(crate) enum TaskError {
    Failed(BoxError),
    Panicked(String),
    Aborted,
}

impl TaskSet {
    pub(crate) fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = Result<(), BoxError>> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name.into());
    }

    /// Waits for the next task to end; `None` if there is none left.
    ///
    /// Cancel safe: an end that was not returned is returned by the next call.
    pub(crate) async fn next(&mut self) -> Option<Ended> {
        let (id, result) = match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => (id, result.map_err(TaskError::Failed)),
            Err(error) => (error.id(), Err(TaskError::from(error))),
        };
        Some(Ended { name: self.names.remove(&id).unwrap_or_default(), result })
    }

    /// As [`TaskSet::next`], but waits for ever if there is no task.
    pub(crate) async fn next_or_pending(&mut self) -> Ended {
        match self.next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    /// Number of tasks that have not been seen to end.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// The names of the tasks that have not been seen to end, sorted.
    pub(crate) fn running(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names.values().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Asks all tasks to end at their next await.
    pub(crate) fn abort(&mut self) {
        self.tasks.abort_all();
    }
}

impl From<JoinError> for TaskError {
    fn from(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(panic) => Self::Panicked(panic_message(panic.as_ref())),
            Err(_) => Self::Aborted,
        }
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
