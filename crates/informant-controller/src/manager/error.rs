//! Why a manager didn't run, or ended otherwise than asked.

use std::{io, time::Duration};

use informant_cache::StartError;

use crate::{reconcile_error::chain, task_set::BoxError};

/// Why a manager didn't run, or ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// Two controllers have one name, which would mix up their metrics and logs. Nothing was started.
    #[error("two controllers are named {name:?}; give each a name of its own")]
    DuplicateController {
        /// The name.
        name: String,
    },
    /// The address for the pages can't be listened on. Nothing was started.
    #[error("can't serve at {address:?}: {error}; choose another address, or port 0 for any free port")]
    Listen {
        /// The address that was asked for.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system doesn't let us listen for signals. Nothing was started.
    #[error("can't listen for SIGINT and SIGTERM: {error}")]
    Signals {
        /// What the system says.
        error: io::Error,
    },
    /// The informers can't be started.
    #[error("can't start the informers: {error}")]
    Start {
        /// Why.
        error: StartError,
    },
    /// A controller, a runnable or the server of the pages failed, which stopped the manager.
    #[error("{name} failed: {}", chain(error.as_ref()))]
    Failed {
        /// What failed, such as `controller "apps"`.
        name: String,
        /// Its error.
        error: BoxError,
    },
    /// A runnable panicked, which stopped the manager.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// What panicked.
        name: String,
        /// What the panic said.
        message: String,
    },
    /// The stop took longer than the grace period. What still ran was aborted.
    #[error("not everything ended within the grace period of {grace:?}: still running: {}", running.join(", "))]
    StopTimeout {
        /// The grace period.
        grace: Duration,
        /// What still ran, such as `controller "apps" (at default/web)`.
        running: Vec<String>,
    },
    /// A signal during the stop. What still ran was aborted.
    #[error("a second signal cut the stop short: still running: {}", running.join(", "))]
    StopForced {
        /// What still ran.
        running: Vec<String>,
    },
    /// Something failed, and the stop that followed did, too.
    #[error("{run}; and the stop that followed: {stop}")]
    Both {
        /// Why the manager stopped.
        run: Box<ManagerError>,
        /// How the stop failed.
        stop: Box<ManagerError>,
    },
}

impl ManagerError {
    /// Joins how a run and the stop after it ended.
    pub(super) fn join(run: Result<(), Self>, stop: Result<(), Self>) -> Result<(), Self> {
        match (run, stop) {
            (Err(run), Err(stop)) => Err(Self::Both { run: Box::new(run), stop: Box::new(stop) }),
            (run, stop) => run.and(stop),
        }
    }
}
