//! The task that calls a handler with its events.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Item};
use crate::event::Event;

impl<K: Send + Sync + 'static> Feed<K> {
    /// Handles events until the handler or the informer ends. When the informer does, a call that waits is dropped.
    pub(crate) async fn run<F: Future<Output = ()>>(
        mut self,
        mut handle: impl FnMut(Event<K>) -> F,
        cancel: CancellationToken,
    ) {
        let queue = Arc::clone(&self.queue);
        let _running = Running::start(&queue.running);
        if let Some(task) = tokio::task::try_id() {
            let _ = queue.task.set(task);
        }
        let work = async {
            let mut in_a_row = 0_u32;
            while let Some(item) = poll_fn(|context| self.poll_next(context)).await {
                match item {
                    Item::InitialStateEnd => queue.mark_synced(),
                    Item::Event(event, arrived) => {
                        let key = event.key().clone();
                        // The closure is the user's; what it left half done is its own affair, and ours isn't touched.
                        let call = AssertUnwindSafe(async { handle(event).await });
                        if call.catch_unwind().await.is_err() {
                            queue.panicked(&key);
                        }
                        queue.handled(arrived);
                        in_a_row += 1;
                        // A long backlog mustn't keep the thread from other tasks.
                        if in_a_row.is_multiple_of(32) {
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = work => {}
        }
        queue.shut();
    }
}

/// Says that a task runs, until it's dropped: also when the task is.
struct Running<'a> {
    flag: &'a watch::Sender<bool>,
}

impl<'a> Running<'a> {
    fn start(flag: &'a watch::Sender<bool>) -> Self {
        flag.send_replace(true);
        Self { flag }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.flag.send_replace(false);
    }
}
