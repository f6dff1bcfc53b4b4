//! An informer whose object type doesn't matter: how the factory starts and stops it.

use std::any::Any;
use std::sync::Arc;

use kube::api::ApiResource;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use crate::informer_factory::Identity;
use crate::lock::lock;
use crate::parts;
use crate::status::{InformerState, InformerStatus, StatusCell};
use crate::task_set::TaskSet;

/// An informer whose object type doesn't matter, for the factory.
pub(crate) trait AnyInformer: Send + Sync {
    fn name(&self) -> &str;
    fn identity(&self) -> Arc<Identity>;
    fn resource(&self) -> &ApiResource;
    /// Begins to run, once `awaits` are settled. Does nothing if it runs or has stopped.
    fn start(self: Arc<Self>, tasks: TaskSet, awaits: Vec<Arc<dyn AnyInformer>>);
    /// Begins to stop; at once if it never ran.
    fn cancel(&self);
    /// The tasks of an informer that was started.
    fn tasks(&self) -> Option<TaskSet>;
    fn status(&self) -> InformerStatus;
    fn cell(&self) -> &StatusCell;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Send + Sync + 'static> AnyInformer for Shared<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.identity)
    }

    fn resource(&self) -> &ApiResource {
        &self.resource
    }

    fn start(self: Arc<Self>, tasks: TaskSet, awaits: Vec<Arc<dyn AnyInformer>>) {
        let cancel = CancellationToken::new();
        {
            let mut handlers = lock(&self.handlers);
            if handlers.running.is_some() || handlers.stopped {
                return;
            }
            handlers.running = Some((tasks.clone(), cancel.clone()));
            for task in std::mem::take(&mut handlers.waiting) {
                task(&tasks, &cancel);
            }
        }
        self.status.set_state(InformerState::Starting);
        // Made here, not by the task: a runtime that has ended drops the task unseen.
        let running = StopAtEnd(self);
        tasks.spawn(async move {
            let informer = &running.0;
            let run = async {
                informer.wait_for_turn(awaits).await;
                parts::run(informer, &cancel).await;
            };
            tokio::select! {
                // Being cancelled goes before any work.
                biased;
                () = cancel.cancelled() => {}
                () = run => {}
            }
            drop(running);
        });
    }

    fn cancel(&self) {
        let never_ran = {
            let mut handlers = lock(&self.handlers);
            if let Some((_, cancel)) = &handlers.running {
                cancel.cancel();
            }
            let never_ran = handlers.running.is_none();
            // At once, so that it can't be started in between.
            handlers.stopped |= never_ran;
            never_ran
        };
        if never_ran {
            self.stop();
        }
    }

    fn tasks(&self) -> Option<TaskSet> {
        lock(&self.handlers).running.as_ref().map(|(tasks, _)| tasks.clone())
    }

    fn status(&self) -> InformerStatus {
        Shared::status(self)
    }

    fn cell(&self) -> &StatusCell {
        &self.status
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Notes that an informer has stopped, also when its runtime ended and took the task along: whoever waits on another
/// runtime is let go.
struct StopAtEnd<K: Send + Sync + 'static>(Arc<Shared<K>>);

impl<K: Send + Sync + 'static> Drop for StopAtEnd<K> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
