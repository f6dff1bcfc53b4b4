//! The socket of a scripted server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::ScriptService;
use super::connection::Connection;
use crate::task_set::TaskSet;

/// Most connections at a time; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 1_024;

/// A scripted server on a loopback socket, plain HTTP/1.1. Dropping it closes the socket and its connections.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    service: ScriptService,
    accepting: TaskSet,
    connections: TaskSet,
}

// === impl Listening ===

impl Listening {
    pub(super) async fn start(service: ScriptService) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listening =
            Self { address: any, service, accepting: TaskSet::default(), connections: TaskSet::default() };
        listening.accept().await?;
        Ok(listening)
    }

    /// The address with the port in use.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server, for example `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the listening socket, so that new connections are refused. Connections that are open stay.
    pub async fn refuse(&mut self) {
        std::mem::take(&mut self.accepting).shut_down(Duration::ZERO).await;
    }

    /// Listens again on the same port after [`refuse`](Self::refuse).
    ///
    /// # Errors
    /// When somebody else has taken the port meanwhile.
    pub async fn accept(&mut self) -> io::Result<()> {
        self.refuse().await;
        let listener = TcpListener::bind(self.address).await?;
        self.address = listener.local_addr()?;
        self.accepting.spawn(accept(listener, self.service.clone(), self.connections.clone()));
        Ok(())
    }

    /// Closes the socket and its connections, and waits until that's done.
    pub async fn shutdown(mut self) {
        self.refuse().await;
        self.connections.shut_down(Duration::ZERO).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abandon();
        self.connections.abandon();
    }
}

async fn accept(listener: TcpListener, service: ScriptService, connections: TaskSet) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                // Chunks are to go out as the test sends them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection stays with delayed sends");
                }
                let connection = Connection::new(stream, service.clone());
                connections.spawn(async move {
                    connection.serve().await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection couldn't be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
