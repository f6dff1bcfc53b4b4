//! The server: sends objects as a kube-apiserver does, as fast as the connection takes them.
//!
//! Lists come in pages, in the order of keys, their continue token before their items; with `resourceVersion=0` in one
//! piece. Streams of initial events end with their bookmark. JSON or protobuf goes by `Accept`. What's sent is a copy of a
//! template with the object's own parts written over it, so the server is never what's waited for.
//!
//! What the benchmark tells it comes on paths below `/bench/`.

mod render;
mod state;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinSet, LocalSet};

use crate::Problem;
use crate::corpus::{Corpus, KINDS};
use render::{Form, Page};
use state::State;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// `informant-bench serve`
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// What to serve
    #[arg(long, default_value = "pods")]
    kind: String,
    /// How many
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    /// Make each object alone of its kind
    #[arg(long)]
    worst: bool,
    /// Speak TLS, with a certificate that's written to this file
    #[arg(long, value_name = "FILE")]
    tls: Option<std::path::PathBuf>,
    /// Of what the objects are made
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Serves until it's ended. Prints its URL as soon as it listens, and with TLS a second one without it, for commands.
///
/// # Errors
/// If there's no such kind or it can't listen.
pub fn run(args: &ServeArgs) -> Result<(), Problem> {
    let kind =
        KINDS.iter().find(|kind| kind.name == args.kind).ok_or_else(|| format!("no kind is called {}", args.kind))?;
    let state = Arc::new(State::new(Corpus::new(kind, args.objects, args.seed, args.worst)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, accept(state, args))
}

async fn accept(state: Arc<State>, args: &ServeArgs) -> Result<(), Problem> {
    let plain = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", plain.local_addr()?);
    let Some(file) = &args.tls else {
        println!("{url}");
        return accept_on(plain, state, None).await;
    };
    let secure = TcpListener::bind("127.0.0.1:0").await?;
    println!("https://{} {url}", secure.local_addr()?);
    let tls = Some(tls(file)?);
    tokio::try_join!(accept_on(plain, Arc::clone(&state), None), accept_on(secure, state, tls)).map(|_| ())
}

async fn accept_on(
    listener: TcpListener,
    state: Arc<State>,
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> Result<(), Problem> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (state, tls) = (Arc::clone(&state), tls.clone());
        connections.spawn_local(async move {
            let service = service_fn(move |request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(answer(&state, &request)) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            // A client that goes away is no trouble.
            match tls {
                None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        drop(http.serve_connection(TokioIo::new(stream), service).await);
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A certificate of its own making, which clients have to be given.
fn tls(file: &std::path::Path) -> Result<tokio_rustls::TlsAcceptor, Problem> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    std::fs::write(file, made.cert.pem())?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    Ok(Arc::new(config).into())
}

fn answer(state: &Arc<State>, request: &Request<Incoming>) -> Response<Body> {
    let query = Query::new(request.uri().query().unwrap_or_default());
    let path = request.uri().path();
    if let Some(command) = path.strip_prefix("/bench/") {
        return control(state, command, &query);
    }
    if path != state.corpus.kind.path {
        let message = format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"{path}"}}"#
        );
        return whole(StatusCode::NOT_FOUND, "application/json", message.into());
    }
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = Form::of(accept, state.corpus.kind);
    let body = if matches!(query.get("watch"), Some("true" | "1")) {
        let initial = query.get("sendInitialEvents") == Some("true");
        if initial {
            state.listed();
        }
        watch::body(state, form, initial)
    } else {
        state.listed();
        let from_cache = query.get("resourceVersion") == Some("0");
        let limit = query.get("limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0 && !from_cache);
        let start = query.get("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
        let page = Page::new(state, form, start, limit.unwrap_or(usize::MAX));
        stream::iter(page).map(|chunk| Ok(Frame::data(chunk))).boxed()
    };
    let content_type =
        if matches!(query.get("watch"), Some("true" | "1")) { form.stream_type() } else { form.content_type() };
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(body)));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

fn control(state: &Arc<State>, command: &str, query: &Query<'_>) -> Response<Body> {
    let number = |name: &str| query.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    match command {
        "events" => {
            let last = state.events(number("count"), number("rate"));
            whole(StatusCode::OK, "text/plain", last.to_string().into())
        }
        "expire" => {
            let version = state.expire(number("permille"));
            whole(StatusCode::OK, "text/plain", version.to_string().into())
        }
        "listed" => whole(StatusCode::OK, "text/plain", state.listed_at().to_string().into()),
        "sent" => whole(StatusCode::OK, "application/octet-stream", state.sent(number("from"), number("count")).into()),
        _ => whole(StatusCode::NOT_FOUND, "text/plain", Bytes::from_static(b"no such command")),
    }
}

fn whole(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

/// A query, of which only plain values are asked for.
struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    fn new(text: &'a str) -> Self {
        Self(text.split('&').filter_map(|pair| pair.split_once('=')).collect())
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}
