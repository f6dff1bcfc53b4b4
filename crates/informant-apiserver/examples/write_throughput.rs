//! How many writes the server takes per second while watches look on, each at its own hundredth of the objects.
//!
//! Everything runs in one process, through the same service that a listener serves, so every write is parsed, defaulted,
//! validated, tracked by field manager, stored, and encoded for the watches that it matches.
//!
//! ```text
//! cargo run --release -p informant-apiserver --example write_throughput [-- WRITES [WATCHES]]
//! ```

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use informant_apiserver::{ApiServer, ApiService, ResponseBody};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt;

/// Each watch selects one shard of this many.
const SHARDS: usize = 100;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let writes = arguments.next().map_or(Ok(30_000), |text| text.parse())?;
    let watches = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:>8} {:>8} {:>10} {:>10} {:>10} {:>12}",
        "watches", "events", "create/s", "update/s", "delete/s", "drained ms"
    );
    runtime.block_on(async {
        measure(writes, 0).await?;
        measure(writes, watches).await
    })
}

/// Creates, updates and deletes `writes / 3` objects while `watches` watches look on, and prints a line.
async fn measure(writes: usize, watches: usize) -> Outcome<()> {
    let service = ApiServer::builder().build().service();
    let objects = writes / 3;
    let mut readers = JoinSet::new();
    for watch in 0..watches {
        let shard = watch % SHARDS;
        let matching = objects / SHARDS + usize::from(shard < objects % SHARDS);
        let uri = format!("/api/v1/configmaps?watch=true&labelSelector=shard%3D{shard}");
        let body = send(&service, Method::GET, &uri, Bytes::new()).await?.into_body();
        readers.spawn(read_events(body, matching * 3));
    }
    let mut rates = Vec::new();
    for (method, suffix) in [(Method::POST, false), (Method::PUT, true), (Method::DELETE, true)] {
        let begin = Instant::now();
        for index in 0..objects {
            let name = if suffix { format!("/c{index}") } else { String::new() };
            let uri = format!("/api/v1/namespaces/default/configmaps{name}");
            let body = if method == Method::DELETE { Bytes::new() } else { object(index, method == Method::PUT) };
            let response = send(&service, method.clone(), &uri, body).await?;
            if !response.status().is_success() {
                return Err(format!("{method} {uri} was answered with {}", response.status()).into());
            }
        }
        rates.push(objects as f64 / begin.elapsed().as_secs_f64());
    }
    let written = Instant::now();
    let mut events = 0;
    while let Some(read) = readers.join_next().await {
        events += read??;
    }
    let drained = written.elapsed().as_secs_f64() * 1000.0;
    let rate = |index: usize| rates.get(index).copied().unwrap_or(0.0);
    println!("{watches:>8} {events:>8} {:>10.0} {:>10.0} {:>10.0} {drained:>12.1}", rate(0), rate(1), rate(2));
    Ok(())
}

async fn send(
    service: &ApiService,
    method: Method,
    uri: &str,
    body: Bytes,
) -> Result<Response<ResponseBody>, Box<dyn Error + Send + Sync>> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "application/json")
        .header("user-agent", "write-throughput/1")
        .body(Full::new(body))?;
    let answer: Result<_, Infallible> = service.clone().oneshot(request).await;
    Ok(answer?)
}

/// Reads a watch until it has brought `expected` events.
async fn read_events(mut body: ResponseBody, expected: usize) -> Outcome<usize> {
    let mut events = 0;
    while events < expected {
        let Some(frame) = body.frame().await else {
            return Err(format!("a watch ended after {events} events of {expected}").into());
        };
        let frame = frame.map_err(|error| format!("a watch broke: {error}"))?;
        events += frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
    }
    Ok(events)
}

/// A ConfigMap of about a kilobyte.
fn object(index: usize, updated: bool) -> Bytes {
    let filler = "x".repeat(800);
    let shard = index % SHARDS;
    Bytes::from(format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c{index}","labels":{{"shard":"{shard}"}}}},"data":{{"filler":"{filler}","updated":"{updated}"}}}}"#
    ))
}
