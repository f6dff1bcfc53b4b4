//! Looking at a manager from outside while it runs.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::watch;

use crate::{ManagerStatus, katalog::Katalog};

/// Tells of a manager from outside. A clone tells of the same one, and none keeps it alive.
#[derive(Clone, Debug)]
pub struct ManagerHandle {
    address: watch::Receiver<Option<SocketAddr>>,
    katalog: watch::Receiver<Option<Arc<Katalog>>>,
}

/// The manager's end of its handles.
pub(super) struct Publisher {
    pub(super) address: watch::Sender<Option<SocketAddr>>,
    pub(super) katalog: watch::Sender<Option<Arc<Katalog>>>,
}

impl Default for Publisher {
    fn default() -> Self {
        Self { address: watch::Sender::new(None), katalog: watch::Sender::new(None) }
    }
}

impl Publisher {
    pub(super) fn handle(&self) -> ManagerHandle {
        ManagerHandle { address: self.address.subscribe(), katalog: self.katalog.subscribe() }
    }
}

impl ManagerHandle {
    /// Waits until the pages are served and tells the address, with the port that was chosen. `None` if the manager ended, or was
    /// dropped, without serving any.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn address(&self) -> Option<SocketAddr> {
        let mut address = self.address.clone();
        address.wait_for(Option::is_some).await.ok().and_then(|address| *address)
    }

    /// The manager's state now: what `/katalog` shows. `None` before it runs. After its end it tells how it ended.
    #[must_use]
    pub fn status(&self) -> Option<ManagerStatus> {
        let katalog = self.katalog.borrow().clone();
        katalog.map(|katalog| katalog.status())
    }
}
