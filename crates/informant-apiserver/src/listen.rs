//! Sockets: HTTP/1.1 and HTTP/2, TLS or plain, and the kubeconfig that leads there.

mod kubeconfig;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::Service;

use self::tls::Identity;
use crate::service::ApiService;
use crate::service::answer::ResponseBody;
use crate::task_set::TaskSet;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long an HTTP/1.1 connection may be without a whole header: idle ones are closed after it.
const IDLE: Duration = Duration::from_secs(90);
/// How long open requests may go on once the listener is to end.
const PATIENCE: Duration = Duration::from_millis(200);
/// Largest header of a request, in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// How many requests one HTTP/2 connection may have open: each watch is one.
const MAX_STREAMS: u32 = 1_000;

/// Where and how to listen. The default is TLS on a free port of loopback.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListenOptions {
    /// The address; port 0 takes a free one. **Everybody who reaches it can do everything**: keep it on loopback.
    pub address: SocketAddr,
    /// Whether to speak TLS, with a certificate authority made for this listener alone.
    pub tls: bool,
    /// Most connections at a time; more wait in the system's queue.
    pub max_connections: usize,
}

/// A listener that serves until it's shut down. Dropping it cuts its connections without waiting for it.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    ca: Option<String>,
    token: String,
    tasks: TaskSet,
}

/// Why a listener couldn't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address can't be listened on: it's in use or not ours.
    #[error("can't listen on {address}: {source}; choose another address, or port 0 for a free port")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The certificate couldn't be made.
    #[error("can't make a certificate for {address}: {reason}")]
    Certificate {
        /// The address that it should have been for.
        address: SocketAddr,
        /// What is wrong.
        reason: String,
    },
}

// === impl ListenOptions ===

impl Default for ListenOptions {
    fn default() -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), tls: true, max_connections: 4_096 }
    }
}

impl ListenOptions {
    /// On this port of loopback.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.address.set_port(port);
        self
    }

    /// On this address.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Plain HTTP instead of TLS.
    #[must_use]
    pub fn plain_http(mut self) -> Self {
        self.tls = false;
        self
    }
}

// === impl Listening ===

impl Listening {
    pub(crate) async fn start(service: ApiService, token: String, options: ListenOptions) -> Result<Self, ListenError> {
        let bind_error = |source| ListenError::Bind { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let identity = if options.tls {
            let made = Identity::new(address.ip()).and_then(|identity| Ok((identity.acceptor()?, identity)));
            Some(made.map_err(|reason| ListenError::Certificate { address, reason })?)
        } else {
            None
        };
        let (acceptor, ca) = match identity {
            Some((acceptor, identity)) => (Some(acceptor), Some(identity.into_ca_pem())),
            None => (None, None),
        };
        let tasks = TaskSet::default();
        let permits = Arc::new(Semaphore::new(options.max_connections));
        let connections = Connections { service, acceptor, permits, tasks: tasks.clone() };
        tasks.spawn(connections.accept(listener));
        Ok(Self { address, ca, token, tasks })
    }

    /// The address with the port in use.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server, for example `https://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        let scheme = if self.ca.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate of the authority that signed the server's own, as PEM; `None` without TLS.
    pub fn ca_certificate(&self) -> Option<&str> {
        self.ca.as_deref()
    }

    /// A kubeconfig that leads here, as YAML: for kubectl, helm and every other client.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::write(&self.url(), self.ca_certificate(), &self.token)
    }

    /// Stops listening, lets open requests end for a moment, cuts what is left (watches), and joins everything.
    pub async fn shutdown(self) {
        self.tasks.shut_down(PATIENCE).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.tasks.abandon();
    }
}

/// What the accepting task hands to each connection.
#[derive(Clone)]
struct Connections {
    service: ApiService,
    acceptor: Option<TlsAcceptor>,
    permits: Arc<Semaphore>,
    tasks: TaskSet,
}

// === impl Connections ===

impl Connections {
    async fn accept(self, listener: TcpListener) {
        let stop = self.tasks.stop().clone();
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connections = self.clone();
                    self.tasks.spawn(async move {
                        connections.serve(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: it passes when connections end.
                    tracing::warn!(%error, "a connection couldn't be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        // Events are small and wanted at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays with delayed sends");
        }
        let Some(acceptor) = &self.acceptor else {
            return self.speak(stream).await;
        };
        match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.speak(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let mut builder = auto::Builder::new(Spawner(self.tasks.clone()));
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(MAX_HEADER_BYTES)
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX))
            .keep_alive_interval(Duration::from_secs(30));
        let service = TowerToHyperService::new(Adapter(self.service.clone()));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = self.tasks.stop().cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

/// Names the request body, which the service leaves open.
#[derive(Debug, Clone)]
struct Adapter(ApiService);

impl Service<Request<Incoming>> for Adapter {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = <ApiService as Service<Request<Incoming>>>::Future;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        Service::<Request<Incoming>>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.0.call(request)
    }
}

/// Starts the streams of HTTP/2 connections among the listener's own tasks.
#[derive(Debug, Clone)]
struct Spawner(TaskSet);

impl<F> Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}
