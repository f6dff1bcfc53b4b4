//! The pages for people and machines that look after the program: `/healthz`, `/readyz`, `/metrics`, `/katalog`.
//!
//! They're served from before the caches start until after everything else has stopped. There's no authentication: listen on loopback
//! or where only the cluster's own traffic comes in.
//!
//! Bounds: so many connections at a time (more wait in the system's backlog), a time and a size for the head of a request. Bodies are
//! never read.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use prometheus_client::{encoding::prometheus_text, registry::Registry};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    health::{self, Answer, Query, Results},
    katalog::Katalog,
    task_set::TaskSet,
};

/// Connections at a time: some for probes and scrapers, many for people.
const CONNECTIONS_MAX: usize = 256;

/// Time for the head of a request, and between two requests of a connection; what controller-runtime allows.
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// Size of the head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Pause after the system refused to accept a connection, as it does when the process has too many files open.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Pages {
    katalog: Arc<Katalog>,
    registry: Arc<Registry>,
}

/// A listener that was bound, with the address that it got.
pub(crate) struct Admin {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Admin {
    pub(crate) async fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves until `stop`, then until the requests that are under way are answered. Dropping the future closes all connections.
    pub(crate) async fn serve(self, katalog: Arc<Katalog>, stop: CancellationToken) {
        let pages = router(katalog);
        let mut connections = TaskSet::default();
        loop {
            let accepted = tokio::select! {
                // What ended makes room for what comes.
                biased;
                () = stop.cancelled() => break,
                _ = connections.next_or_pending() => continue,
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (pages, stop) = (pages.clone(), stop.clone());
                    connections.spawn(peer.to_string(), async move { Ok(connection(stream, pages, stop).await?) });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection can't be accepted");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
        drop(self.listener);
        while connections.next().await.is_some() {}
    }
}

/// Answers the requests of one connection.
async fn connection(stream: TcpStream, pages: Router, stop: CancellationToken) -> hyper::Result<()> {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    tokio::pin!(connection);
    tokio::select! {
        // A connection that has ended has ended.
        biased;
        result = connection.as_mut() => return result,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

fn router(katalog: Arc<Katalog>) -> Router {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Arc::clone(&katalog)));
    Router::new()
        .route("/", get(index))
        .route("/healthz", get(healthz))
        .route("/healthz/", get(healthz))
        .route("/healthz/{check}", get(healthz_check))
        .route("/readyz", get(readyz))
        .route("/readyz/", get(readyz))
        .route("/readyz/{check}", get(readyz_check))
        .route("/metrics", get(metrics))
        .route("/katalog", get(katalog_page))
        .with_state(Pages { katalog, registry: Arc::new(registry) })
}

async fn index(State(pages): State<Pages>) -> Response {
    let katalog = &pages.katalog;
    text(200, format!("{} {}\n/healthz\n/readyz\n/metrics\n/katalog\n", katalog.application, katalog.version))
}

async fn healthz(State(pages): State<Pages>, RawQuery(query): RawQuery) -> Response {
    whole("healthz", &pages.katalog.health(), query)
}

async fn readyz(State(pages): State<Pages>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(&query.unwrap_or_default());
    let mut whole = health::aggregate("readyz", &pages.katalog.readiness(), &query);
    if query.verbose {
        // Before the verdict, which is the last line.
        let verdict = whole.body.trim_end().rfind('\n').map_or(0, |end| end + 1);
        whole.body.insert_str(verdict, &pages.katalog.informer_lines());
    }
    answer(whole)
}

async fn healthz_check(State(pages): State<Pages>, Path(check): Path<String>) -> Response {
    answer(health::single("healthz", &check, &pages.katalog.health()))
}

async fn readyz_check(State(pages): State<Pages>, Path(check): Path<String>) -> Response {
    answer(health::single("readyz", &check, &pages.katalog.readiness()))
}

async fn metrics(State(pages): State<Pages>) -> Response {
    let mut body = String::new();
    match prometheus_text::encode(&mut body, &pages.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], body).into_response(),
        Err(error) => text(500, format!("the metrics can't be written: {error}\n")),
    }
}

async fn katalog_page(State(pages): State<Pages>) -> Response {
    match serde_json::to_string_pretty(&pages.katalog.status()) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body + "\n").into_response(),
        Err(error) => text(500, format!("the katalog can't be written: {error}\n")),
    }
}

fn whole(endpoint: &str, results: &Results, query: Option<String>) -> Response {
    answer(health::aggregate(endpoint, results, &Query::parse(&query.unwrap_or_default())))
}

fn answer(answer: Answer) -> Response {
    text(answer.status, answer.body)
}

fn text(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, body).into_response()
}
