//! Why a controller ended although nobody asked it to.

use std::time::Duration;

use informant_cache::StartError;

/// Why a controller ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// Its informers couldn't be started.
    #[error(transparent)]
    Start(StartError),
    /// An informer that it gets its events from was stopped.
    #[error("informer {informer} ended, so the controller gets no more events")]
    InformerEnded {
        /// Name of the informer.
        informer: String,
    },
    /// Its sources weren't synced in time.
    #[error("not synced within {limit:?}: {}; see the informer's state for the reason", informers.join(", "))]
    SyncTimeout {
        /// The time that was allowed.
        limit: Duration,
        /// Names of the informers that weren't synced.
        informers: Vec<String>,
    },
    /// A worker ended by a panic outside the reconcile function.
    #[error("a worker panicked: {message}")]
    WorkerPanicked {
        /// What the panic said.
        message: String,
    },
}
