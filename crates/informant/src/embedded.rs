//! The embedded API server and a [`Cluster`] that speaks to it, without a socket.

use std::ops::Deref;

use informant_apiserver::ApiServer;
use informant_cache::Cluster;

/// An API server in this process, and the cluster that it is. Derefs to [`Cluster`].
///
/// Dropping it ends the server's own controllers; its objects are gone with it.
#[derive(Debug)]
pub struct Embedded {
    server: ApiServer,
    cluster: Cluster,
}

/// Starts an API server in this process, with its garbage collection and namespace controllers, and gives the cluster.
///
/// No socket, no TLS: requests are function calls, so a test under paused tokio time runs in no time and, with
/// [`ApiServer::builder`]'s seed, the same way each time. Allow-all; keeps everything in memory.
///
/// # Panics
/// Outside a tokio runtime.
pub fn embedded() -> Embedded {
    Embedded::new(ApiServer::builder().build())
}

impl Embedded {
    /// The cluster of a server with options of your own.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(server: ApiServer) -> Self {
        let client = kube::Client::new(server.service(), "default");
        Self { server, cluster: Cluster::from_client(client) }
    }

    /// The server: time, history, listeners.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The cluster, as any other.
    pub fn cluster(&self) -> Cluster {
        self.cluster.clone()
    }
}

impl Deref for Embedded {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl From<&Embedded> for Cluster {
    fn from(embedded: &Embedded) -> Self {
        embedded.cluster()
    }
}
