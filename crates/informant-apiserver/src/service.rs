//! The tower service: route, read the body, act, answer.
//!
//! It's always ready and does all its work inside the future that it returns, so nothing that goes wrong with one request
//! (a panic included) reaches another.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod user;

mod documents;
mod render;
mod resources;
mod watching;

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, Method, Request, Response};
use http_body::Body;
use tokio::sync::Semaphore;

use self::answer::{Answer, ResponseBody};
use self::query::Query;
use self::resources::ResourceRequest;
use self::route::Route;
use self::user::{Tokens, User};
use crate::controllers::ControllerTask;
use crate::list::WatchListSupport;
use crate::openapi::Descriptions;
use crate::registry::{Registry, names};
use crate::status::Status;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) tokens: Tokens,
    /// Texts for the OpenAPI documents.
    pub(crate) descriptions: Descriptions,
    /// Longest request body, in bytes.
    pub(crate) max_body_bytes: usize,
    /// One for each watch that may still be opened.
    pub(crate) watch_permits: Arc<Semaphore>,
    /// What the ids of requests are drawn from, with their number.
    pub(crate) seed: u64,
    pub(crate) watch_list: WatchListSupport,
    /// The minor version of Kubernetes that it says it is.
    pub(crate) minor: u32,
    /// How many requests there were.
    pub(crate) requests: AtomicU64,
}

/// A request without its body, read.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) user: User,
}

/// The API server as a [`tower::Service`]: what `kube::Client::new` takes, and what a listener serves. Cheap to clone.
///
/// Its calls never fail: every error is an answer with a `Status` object. A response's body is whole, but for a watch,
/// whose frames come until it ends; dropping it closes the watch.
#[derive(Debug, Clone)]
pub struct ApiService {
    shared: Arc<Shared>,
    controllers: Arc<ControllerTask>,
}

// === impl Shared ===

impl Shared {
    /// An id for a request. It has its own source of randomness, so that asking doesn't change what is created.
    fn next_audit_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        names::uid(&mut fastrand::Rng::with_seed(self.seed.wrapping_add(number).wrapping_add(1 << 40)))
    }
}

// === impl ApiService ===

impl ApiService {
    pub(crate) fn new(shared: Arc<Shared>, controllers: Arc<ControllerTask>) -> Self {
        Self { shared, controllers }
    }

    async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let audit_id = match request.headers().get(HeaderName::from_static("audit-id")) {
            Some(given) => given.to_str().unwrap_or("").to_owned(),
            None => shared.next_audit_id(),
        };
        let head = request.method() == Method::HEAD;
        let format = negotiate::error_format(&all_values(request.headers(), ACCEPT), request.uri().path());
        let handled = AssertUnwindSafe(handle(&shared, request)).catch_unwind().await;
        let answer = match handled {
            Ok(Ok(answer)) => answer,
            Ok(Err(status)) => Answer::failure(&status).in_format(format),
            Err(_) => Answer::failure(&Status::internal("a defect of the server ended this request; see its output")),
        };
        answer.into_response(&audit_id, head)
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { shared, controllers } = self.clone();
        Box::pin(async move {
            controllers.start(&shared);
            Ok(Self::answer(shared, request).await)
        })
    }
}

async fn handle<B>(shared: &Shared, request: Request<B>) -> Result<Answer, Status>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let user = shared.tokens.authenticate(&parts.headers, shared.registry.clock().now())?;
    let caller = Caller {
        query: Query::parse(parts.uri.query().unwrap_or(""))?,
        path: parts.uri.path().to_owned(),
        accept: all_values(&parts.headers, ACCEPT),
        content_type: header(&parts.headers, CONTENT_TYPE),
        user_agent: header(&parts.headers, USER_AGENT),
        method: parts.method,
        headers: parts.headers,
        user,
    };
    if documents::is_outside_the_api(&shared.registry.catalog(), &caller.path) {
        return Ok(Answer::text(404, "404 page not found\n"));
    }
    match route::parse(&caller.path)? {
        Route::Resource(path) => {
            let request = ResourceRequest::new(shared, &caller, &path)?;
            let body = body::read(body, shared.max_body_bytes).await?;
            request.answer(body, path.watch).await
        }
        document => documents::answer(shared, &caller, &document),
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
}

/// All values of a header that may come in several lines.
fn all_values(headers: &HeaderMap, name: HeaderName) -> String {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}
