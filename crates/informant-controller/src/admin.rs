//! The pages for people and machines that look after the program: `/healthz`, `/readyz`, `/metrics`, `/katalog`.
//!
//! They're served from before the caches start until after everything else has stopped. There's no authentication: listen on loopback
//! or where only the cluster's own traffic comes in.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::{encoding::prometheus_text, registry::Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    health::{self, Answer, Query, Results},
    katalog::Katalog,
};

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

    /// Serves until `stop`, then until the requests that are under way are answered.
    pub(crate) async fn serve(self, katalog: Arc<Katalog>, stop: CancellationToken) -> io::Result<()> {
        let router = router(katalog);
        axum::serve(self.listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
    }
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
    whole("readyz", &pages.katalog.readiness(), query)
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
