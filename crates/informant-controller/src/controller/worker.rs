//! The workers of a controller: take a key, reconcile it, settle what comes next.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use informant_cache::ObjectKey;
use informant_queue::Item;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Outcome, Reconcile, Shared, numbers::Failure};
use crate::{
    Action, ControllerError, Request, clock,
    task_set::{TaskError, TaskSet, panic_message},
};

/// Runs the controller's workers until `stop`, and each of them until what it's at has ended.
pub(super) async fn run(
    shared: &Arc<Shared>,
    reconcile: &Reconcile,
    limit: Option<Duration>,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    let mut workers = TaskSet::default();
    for number in 0..shared.workers {
        let worker = Worker { shared: Arc::clone(shared), reconcile: Arc::clone(reconcile), limit, stop: stop.clone() };
        workers.spawn(format!("worker {number}"), async move {
            worker.run().await;
            Ok(())
        });
    }
    while let Some(ended) = workers.next().await {
        if let Err(TaskError::Panicked(message)) = ended.result {
            // The set is dropped with the other workers in it: half a controller is none.
            return Err(ControllerError::WorkerPanicked { message });
        }
    }
    Ok(())
}

struct Worker {
    shared: Arc<Shared>,
    reconcile: Reconcile,
    limit: Option<Duration>,
    stop: CancellationToken,
}

impl Worker {
    async fn run(self) {
        loop {
            let item = tokio::select! {
                // A stop comes before the keys that wait.
                biased;
                () = self.stop.cancelled() => return,
                item = self.shared.queue.next() => item,
            };
            let Some(item) = item else { return };
            self.handle(item).await;
        }
    }

    async fn handle(&self, item: Item<ObjectKey>) {
        let request = Request { key: item.key().clone(), attempt: item.num_requeues() };
        let span = tracing::error_span!(
            "reconcile",
            controller = %self.shared.name,
            namespace = request.key.namespace(),
            name = request.key.name(),
            attempt = request.attempt,
        );
        async {
            let key = request.key.clone();
            let running = Running::start(&self.shared, &key);
            let outcome = self.call(request).await;
            running.end(&outcome);
            settle(item, outcome);
        }
        .instrument(span)
        .await;
    }

    async fn call(&self, request: Request) -> Outcome {
        // The call itself may panic, not only the future that it returns.
        let reconcile = AssertUnwindSafe(async { (self.reconcile)(request).await }).catch_unwind();
        let answer = match self.limit {
            None => reconcile.await,
            Some(limit) => match timeout(limit, reconcile).await {
                Ok(answer) => answer,
                Err(_) => return Outcome::Failed(Failure::Timeout(limit)),
            },
        };
        match answer {
            Ok(Ok(action)) => Outcome::Action(action),
            Ok(Err(error)) if error.is_terminal() => Outcome::Failed(Failure::Terminal(error.to_string())),
            Ok(Err(error)) => Outcome::Failed(Failure::Retryable(error.to_string())),
            Err(panic) => Outcome::Failed(Failure::Panic(panic_message(panic.as_ref()))),
        }
    }
}

/// Gives the key back to the queue, with what is to become of it.
fn settle(item: Item<ObjectKey>, outcome: Outcome) {
    match outcome {
        Outcome::Action(Action::Done) => item.forget(),
        Outcome::Action(Action::RequeueAfter(delay)) => item.requeue_after(delay),
        Outcome::Action(Action::Requeue) => drop(item.retry()),
        Outcome::Failed(Failure::Terminal(message)) => {
            tracing::error!(error = %message, "reconcile failed for good; it waits for the next event");
            // The failures stay counted, as in controller-runtime: only a success forgets them.
            item.done();
        }
        Outcome::Failed(failure) => {
            let delay_ms = item.retry().map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            tracing::warn!(error = %failure, delay_ms, "reconcile failed; it's retried");
        }
    }
}

/// Keeps the account of a running reconcile, also if it's dropped on the way.
struct Running<'a> {
    shared: &'a Shared,
    key: &'a ObjectKey,
    ended: bool,
}

impl<'a> Running<'a> {
    fn start(shared: &'a Shared, key: &'a ObjectKey) -> Self {
        shared.numbers_mut(|numbers| numbers.started(key.clone(), Instant::now()));
        Self { shared, key, ended: false }
    }

    fn end(mut self, outcome: &Outcome) {
        self.ended = true;
        let wall = clock::now();
        self.shared.numbers_mut(|numbers| numbers.ended(self.key, outcome, Instant::now(), wall));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.numbers_mut(|numbers| numbers.aborted(self.key));
        }
    }
}

#[cfg(test)]
mod tests;
