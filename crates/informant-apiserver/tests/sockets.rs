//! The same server over real sockets: HTTP/1.1 and HTTP/2, TLS and plain, its bounds, and its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "the client's connections are tasks of the test")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use informant_apiserver::{ApiServer, ListenOptions, Listening};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const SOON: Duration = Duration::from_secs(10);

async fn listen(options: ListenOptions) -> (ApiServer, Listening) {
    let server = ApiServer::builder().build();
    let listening = server.listen(options).await.unwrap();
    (server, listening)
}

async fn tls(listening: &Listening, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(listening.ca_certificate().unwrap().as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(listening.addr()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("host", "server");
    request.header("content-type", "application/json").body(Full::new(body)).unwrap()
}

fn config(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn json_of(body: Incoming) -> Value {
    serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
}

/// The next event of a watch whose frames are whole lines.
async fn event(body: &mut Incoming) -> Value {
    let frame = timeout(SOON, body.frame()).await.unwrap().unwrap().unwrap();
    serde_json::from_slice(&frame.into_data().unwrap()).unwrap()
}

#[tokio::test]
async fn many_watches_and_writes_share_one_http2_connection() {
    let (server, listening) = listen(ListenOptions::default()).await;
    let stream = tls(&listening, b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let version = server.resource_version();
    let mut watches = Vec::new();
    for _ in 0..150 {
        let path = format!("https://server{CONFIGS}?watch=1&resourceVersion={version}");
        let response = sender.clone().send_request(request("GET", &path, &Value::Null)).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
        watches.push(response.into_body());
    }
    assert_eq!(server.watchers(), 150);
    let path = format!("https://server{CONFIGS}");
    let created = sender.clone().send_request(request("POST", &path, &config("one"))).await.unwrap();
    assert_eq!(created.status(), 201);
    for watch in &mut watches {
        assert_eq!(event(watch).await["object"]["metadata"]["name"], "one");
    }
    drop(watches);
    drop(sender);
    timeout(SOON, connection).await.unwrap().unwrap().unwrap();
    timeout(SOON, async {
        while server.watchers() > 0 {
            tokio::task::yield_now().await
        }
    })
    .await
    .unwrap();
    listening.shutdown().await;
}

#[tokio::test]
async fn http1_keeps_its_connection_and_streams_a_watch() {
    let (server, listening) = listen(ListenOptions::default()).await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(tls(&listening, b"http/1.1").await)).await.unwrap();
    tokio::spawn(connection);
    for name in ["one", "two"] {
        let response = sender.send_request(request("POST", CONFIGS, &config(name))).await.unwrap();
        assert_eq!(response.status(), 201);
        json_of(response.into_body()).await;
    }
    let path = format!("{CONFIGS}?watch=1&fieldSelector=metadata.name%3Dtwo");
    let mut watch = sender.send_request(request("GET", &path, &Value::Null)).await.unwrap().into_body();
    assert_eq!(event(&mut watch).await["type"], "ADDED");
    assert_eq!(server.watchers(), 1);
    // The watch holds the connection: the end of the server ends it.
    timeout(SOON, listening.shutdown()).await.unwrap();
    assert!(timeout(SOON, watch.frame()).await.unwrap().is_none_or(|frame| frame.is_err()));
    assert_eq!(server.watchers(), 0);
}

#[tokio::test]
async fn plain_http_is_spoken_when_it_is_asked_for() {
    let (_server, listening) = listen(ListenOptions::default().plain_http()).await;
    assert!(listening.url().starts_with("http://127.0.0.1:"));
    assert!(listening.kubeconfig().contains(&listening.url()));
    let stream = TcpStream::connect(listening.addr()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(request("GET", "/version", &Value::Null)).await.unwrap();
    assert_eq!(json_of(response.into_body()).await["minor"], "37");
    listening.shutdown().await;
}

#[tokio::test]
async fn bad_bytes_hurt_their_own_connection_only() {
    let (_server, listening) = listen(ListenOptions::default().plain_http()).await;
    let send = async |bytes: &[u8]| {
        let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // The server may reset a connection with bytes that it hasn't read.
        let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert!(send(b"this is no HTTP\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let long = format!("GET /version HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(66_000));
    assert!(send(long.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let large = format!("POST {CONFIGS} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4000000\r\n\r\n");
    let large = [large.into_bytes(), vec![b' '; 4_000_000]].concat();
    assert!(send(&large).await.starts_with("HTTP/1.1 413"));
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(TcpStream::connect(listening.addr()).await.unwrap())).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(request("GET", "/readyz", &Value::Null)).await.unwrap();
    assert_eq!(response.status(), 200);
    listening.shutdown().await;
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_says_so() {
    let (server, listening) = listen(ListenOptions::default()).await;
    let error = server.listen(ListenOptions::default().port(listening.addr().port())).await.unwrap_err();
    assert!(error.to_string().contains(&listening.addr().to_string()), "{error}");
    let address = listening.addr();
    listening.shutdown().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
