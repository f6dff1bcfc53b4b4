//! A server that answers byte for byte as a test tells it to.
//!
//! [`ApiServer`](crate::ApiServer) behaves; this one does what no server should. A test holds a [`Script`], takes each
//! request that the client under test sends ([`Script::request`]) and answers it: with any status and headers, in chunks
//! split anywhere, with pauses, cut by a reset, ended early as if all were well, or never again a byte. It knows the
//! shapes of lists, watch events and `Status` objects, so that the usual answers take one line.
//!
//! It serves in process as a [`tower::Service`] ([`Script::service`]; works under paused time) and on a loopback socket
//! ([`Script::listen`]; speaks plain HTTP/1.1, and can be told what goes over the wire to the last byte). It knows nothing
//! of any client, so it tests every client, in any language.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use http_body_util::BodyExt;
//! use informant_apiserver::scripted::Script;
//! use serde_json::json;
//! use tower::ServiceExt;
//!
//! let mut script = Script::of("v1", "ConfigMap");
//!
//! // The client under test; here, one request by hand. With kube it's `kube::Client::new(script.service(), "default")`.
//! let request = http::Request::get("/api/v1/configmaps?watch=true&resourceVersion=7").body(String::new()).unwrap();
//! let client = script.service().oneshot(request);
//!
//! let test = async {
//!     let request = script.request().await;
//!     assert_eq!(request.what(), "WATCH 7");
//!     let watch = request.open();
//!     watch.event("ADDED", &json!({"metadata": {"name": "a", "resourceVersion": "8"}}));
//!     watch.bookmark("9");
//!     watch.bytes(r#"{"type":"MODI"#);
//!     watch.cut();
//! };
//! let (answer, ()) = tokio::join!(client, test);
//!
//! // Three chunks come, then the connection breaks.
//! let mut body = answer.unwrap().into_body();
//! for begin in ["{\"type\":\"ADDED\"", "{\"type\":\"BOOKMARK\"", "{\"type\":\"MODI"] {
//!     let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
//!     assert!(chunk.starts_with(begin.as_bytes()));
//! }
//! assert!(body.frame().await.unwrap().is_err());
//! # });
//! ```

mod answer;
mod connection;
mod documents;
mod exchange;
mod listening;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tokio::sync::mpsc;

pub use self::answer::ScriptBody;
pub use self::documents::{end_of_initial_events, event, list, status};
pub use self::exchange::{Exchange, Stream};
pub use self::listening::Listening;

/// Requests that may wait for the test to take them; further clients wait before they're heard.
const WAITING_MAX: usize = 1_024;
/// Longest request body that's read, in bytes.
const REQUEST_BODY_MAX: usize = 4 * 1024 * 1024;

/// A scripted server: the test's end of it.
///
/// Each request waits until the test takes it with [`request`](Self::request) and answers the [`Exchange`]; several may be
/// open at a time. What a test sends waits in memory until the client reads it: the script itself is the bound.
#[derive(Debug)]
pub struct Script {
    requests: mpsc::Receiver<Exchange>,
    service: ScriptService,
}

/// A [`Script`] as a tower service, for `kube::Client::new` and everything else that sends requests. Clones lead to the
/// same script. When the script is dropped, every request is refused.
#[derive(Debug, Clone)]
pub struct ScriptService {
    requests: mpsc::Sender<Exchange>,
    kind: Kind,
}

/// The kind of object that helpers write into lists and bookmarks.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

// === impl Script ===

impl Script {
    /// A script whose lists and bookmarks are of this kind; [`Exchange::of`] changes it for one answer.
    pub fn of(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        let (sender, requests) = mpsc::channel(WAITING_MAX);
        let kind = Kind { api_version: api_version.into(), kind: kind.into() };
        Self { requests, service: ScriptService { requests: sender, kind } }
    }

    /// The server in process.
    pub fn service(&self) -> ScriptService {
        self.service.clone()
    }

    /// The server on a free port of loopback.
    ///
    /// # Errors
    /// When the socket can't be had.
    pub async fn listen(&self) -> io::Result<Listening> {
        Listening::start(self.service()).await
    }

    /// The next request, however long it takes.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn request(&mut self) -> Exchange {
        match self.requests.recv().await {
            Some(exchange) => exchange,
            // Not reached: the script itself holds a sender.
            None => std::future::pending().await,
        }
    }

    /// The next request, if one comes within this time. Under paused time that costs no time at all.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn request_within(&mut self, time: Duration) -> Option<Exchange> {
        tokio::time::timeout(time, self.request()).await.ok()
    }
}

// === impl ScriptService ===

impl ScriptService {
    /// Gives a request to the test; fails if the test is over.
    async fn hand_over(&self, exchange: Exchange) -> io::Result<()> {
        self.requests.send(exchange).await.map_err(|_| refused())
    }

    async fn exchange<B>(self, request: Request<B>) -> io::Result<Response<ScriptBody>>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, REQUEST_BODY_MAX).collect().await.map_err(io::Error::other)?.to_bytes();
        let (exchange, answered) = Exchange::new(head, body, self.kind.clone());
        self.hand_over(exchange).await?;
        answered.await.map_err(|_| refused())?.into_response().await
    }
}

impl<B> tower::Service<Request<B>> for ScriptService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ScriptBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<ScriptBody>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}

fn refused() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionRefused)
}
