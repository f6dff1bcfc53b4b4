//! What holds a handler in place, waits for it and removes it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::queue::{AnyQueue, Queue};
use crate::status::HandlerStatus;

/// Removes a handler from anywhere, its own calls included. A clone is for the same handler.
#[derive(Clone)]
pub struct Remover {
    queue: Arc<dyn AnyQueue>,
}

/// Holds a handler in place: it ends when this is dropped, unless [`detach`](Self::detach) is called.
#[must_use = "dropping it removes the handler; call detach() to keep the handler for as long as the informer lives"]
pub struct HandlerHandle {
    queue: Option<Arc<dyn AnyQueue>>,
}

// === impl HandlerHandle ===

impl HandlerHandle {
    pub(crate) fn new<K: Send + Sync + 'static>(queue: Arc<Queue<K>>) -> Self {
        Self { queue: Some(queue) }
    }

    /// Whether the handler has handled the whole initial state: the informer is synced, and every call for an object
    /// that was there has returned.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| *queue.synced().borrow())
    }

    /// Waits until [`has_synced`](Self::has_synced); false if the handler ended before that.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_synced(&self) -> bool {
        let Some(queue) = &self.queue else { return false };
        wait_synced(queue.synced(), queue.closed()).await
    }

    /// Waits until the handler ends by itself: because its informer stopped, or because its backlog reached its bound or
    /// it panicked and it asked to end then.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_ended(&self) {
        match &self.queue {
            Some(queue) => queue.closed().cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// The handler's state and numbers.
    #[must_use]
    pub fn status(&self) -> Option<HandlerStatus> {
        self.queue.as_ref().map(|queue| queue.status())
    }

    /// Something that removes the handler without waiting, also from within its own call.
    #[must_use]
    pub fn remover(&self) -> Option<Remover> {
        self.queue.as_ref().map(|queue| Remover { queue: Arc::clone(queue) })
    }

    /// Ends the handler and waits for a call that is running. No call starts after this returns; what waited in the
    /// backlog is dropped. Awaited by the handler's own call it doesn't wait for that one, which is the last.
    ///
    /// To remove without waiting, drop the handle or use its [`remover`](Self::remover).
    ///
    /// # Cancel safety
    /// The handler ends in any case; only the waiting is cut short.
    pub async fn remove(mut self) {
        if let Some(queue) = self.queue.take() {
            queue.close();
            if queue.is_current() {
                return;
            }
            let mut running = queue.running();
            // An error means that the task is gone, which is what's waited for.
            let _ = running.wait_for(|running| !running).await;
        }
    }

    /// Lets the handler live as long as its informer.
    pub fn detach(mut self) {
        self.queue = None;
    }
}

impl Drop for HandlerHandle {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandlerHandle").field(&self.status()).finish()
    }
}

async fn wait_synced(mut synced: watch::Receiver<bool>, closed: &CancellationToken) -> bool {
    tokio::select! {
        // Synced wins over ended: the answer was there first.
        biased;
        reached = synced.wait_for(|synced| *synced) => reached.is_ok(),
        () = closed.cancelled() => false,
    }
}

// === impl Remover ===

impl Remover {
    /// Removes the handler and doesn't wait: a call that's running comes to its end, and none starts after it. Calling it
    /// again, or after the handler ended, does nothing.
    pub fn remove_now(&self) {
        self.queue.close();
    }
}

impl fmt::Debug for Remover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remover").field(&self.queue.status()).finish()
    }
}
