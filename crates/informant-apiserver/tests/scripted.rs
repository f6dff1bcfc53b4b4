//! The scripted server does what a test says, on a socket to the last byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::ErrorKind;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use informant_apiserver::scripted::{Listening, Script, ScriptBody};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::ServiceExt;

const GET: &str = "GET /api/v1/configmaps?watch=true&resourceVersion=7 HTTP/1.1\r\nhost: x\r\naccept: a/b\r\n\r\n";

fn script() -> Script {
    Script::of("v1", "ConfigMap")
}

fn call(script: &Script, uri: &str) -> impl Future<Output = std::io::Result<Response<ScriptBody>>> + use<> {
    script.service().oneshot(Request::get(uri).body(String::new()).unwrap())
}

async fn connect(listening: &Listening) -> TcpStream {
    TcpStream::connect(listening.addr()).await.unwrap()
}

async fn send(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// What comes until the end of the connection or a text.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) || end.is_empty() {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap() == 0 {
            break;
        }
        text.extend_from_slice(&byte);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn in_process_an_answer_has_the_status_headers_chunks_and_pauses_that_were_told() {
    let mut script = script();
    let (client, test) = (call(&script, "/api?limit=5&continue=a%3D"), Instant::now());
    let answer = tokio::join!(client, async {
        let request = script.taken().await;
        assert_eq!((request.path.as_str(), request.what().as_str()), ("/api", "LIST"));
        assert_eq!(request.query["continue"], "a%3D");
        let stream = request.with_header("retry-after", "3").begin(429);
        stream.in_chunks("abc", 2);
        stream.pause(Duration::from_secs(9));
        stream.bytes("d");
    });
    let mut answer = answer.0.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"3".parse().unwrap()));
    let mut chunks = Vec::new();
    while let Some(frame) = answer.body_mut().frame().await {
        chunks.push(frame.unwrap().into_data().unwrap());
    }
    assert_eq!(chunks, ["ab", "c", "d"]);
    assert_eq!(test.elapsed(), Duration::from_secs(9));
}

trait Taken {
    async fn taken(&mut self) -> informant_apiserver::scripted::Exchange;
}

impl Taken for Script {
    async fn taken(&mut self) -> informant_apiserver::scripted::Exchange {
        self.request_within(Duration::from_secs(60)).await.expect("a request")
    }
}

#[tokio::test(start_paused = true)]
async fn in_process_a_request_is_refused_ignored_or_half_answered() {
    let mut script = script();
    let (refused, ()) = tokio::join!(call(&script, "/"), async { script.taken().await.refuse() });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);

    let ignored = tokio::time::timeout(Duration::from_secs(900), call(&script, "/"));
    let (ignored, ()) = tokio::join!(ignored, async { script.taken().await.ignore() });
    assert!(ignored.is_err(), "no head comes");

    let (half, stream) = tokio::join!(call(&script, "/"), async { script.taken().await.open() });
    let mut body = half.unwrap().into_body();
    stream.event("ADDED", &json!({}));
    assert!(body.frame().await.unwrap().is_ok());
    stream.half_open();
    assert!(tokio::time::timeout(Duration::from_secs(900), body.frame()).await.is_err(), "no end comes");

    let service = script.service();
    drop(script);
    let over = service.oneshot(Request::get("/").body(String::new()).unwrap()).await;
    assert_eq!(over.unwrap_err().kind(), ErrorKind::ConnectionRefused, "the script is over");
}

#[tokio::test(start_paused = true)]
async fn the_test_sees_that_the_client_has_given_up() {
    let mut script = script();
    let (answer, stream) = tokio::join!(call(&script, "/"), async { script.taken().await.open() });
    assert!(!stream.is_closed());
    drop(answer);
    stream.closed().await;
}

#[tokio::test]
async fn on_a_socket_chunks_go_out_as_told_and_the_connection_serves_the_next_request() {
    let mut script = script();
    let listening = script.listen().await.unwrap();
    let mut client = connect(&listening).await;
    for _ in 0..2 {
        send(&mut client, GET).await;
        let request = script.taken().await;
        assert_eq!((request.what().as_str(), request.header("accept")), ("WATCH 7", "a/b"));
        let stream = request.open();
        stream.bytes("{\"a\"");
        stream.bytes(":1}\n");
        stream.end();
        let answer = read_until(&mut client, "0\r\n\r\n").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(head, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked");
        assert_eq!(body, "4\r\n{\"a\"\r\n4\r\n:1}\n\r\n0\r\n\r\n");
    }
    // A body is there for the test, by length and in chunks.
    for framing in ["content-length: 3\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"]
    {
        send(&mut client, &format!("POST /x HTTP/1.1\r\n{framing}")).await;
        let request = script.taken().await;
        assert_eq!((request.what().as_str(), &request.body[..]), ("POST /x", &b"abc"[..]));
        request.with_header("content-length", "0").answer(201, "");
        read_until(&mut client, "\r\n\r\n").await;
    }
    listening.shutdown().await;
}

#[tokio::test]
async fn on_a_socket_an_answer_ends_early_by_a_reset_or_as_if_all_were_well() {
    let mut script = script();
    let listening = script.listen().await.unwrap();
    for reset in [true, false] {
        let mut client = connect(&listening).await;
        send(&mut client, GET).await;
        let stream = script.taken().await.with_header("content-length", "100").open();
        stream.bytes("half");
        read_until(&mut client, "half").await;
        if reset {
            stream.cut();
            let mut buffer = [0; 9];
            assert_eq!(client.read(&mut buffer).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        } else {
            stream.end();
            assert_eq!(read_until(&mut client, "").await, "");
        }
    }
    let mut client = connect(&listening).await;
    send(&mut client, GET).await;
    script.taken().await.refuse();
    assert_eq!(client.read(&mut [0; 9]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn on_a_socket_raw_bytes_are_the_tests_own() {
    let mut script = script();
    let listening = script.listen().await.unwrap();
    let mut client = connect(&listening).await;
    send(&mut client, GET).await;
    let raw = script.taken().await.raw();
    raw.bytes("HTTP/1.1 299 Odd\r\nbad header\r\n");
    raw.end();
    assert_eq!(read_until(&mut client, "").await, "HTTP/1.1 299 Odd\r\nbad header\r\n");
}

#[tokio::test]
async fn on_a_socket_a_half_open_connection_stays_and_is_silent() {
    let mut script = script();
    let listening = script.listen().await.unwrap();
    let mut client = connect(&listening).await;
    send(&mut client, GET).await;
    script.taken().await.open().half_open();
    read_until(&mut client, "chunked\r\n\r\n").await;
    let mut byte = [0];
    assert!(tokio::time::timeout(Duration::from_millis(100), client.read(&mut byte)).await.is_err());
    listening.shutdown().await;
    assert_eq!(client.read(&mut byte).await.unwrap(), 0, "the listener's end is the connection's");
}

#[tokio::test]
async fn connections_are_refused_and_taken_again_while_open_ones_stay() {
    let mut script = script();
    let mut listening = script.listen().await.unwrap();
    let mut client = connect(&listening).await;
    send(&mut client, GET).await;
    let stream = script.taken().await.open();
    listening.refuse().await;
    let refused = TcpStream::connect(listening.addr()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    stream.bytes("still");
    read_until(&mut client, "still").await;
    listening.accept().await.unwrap();
    connect(&listening).await;
}

#[tokio::test]
async fn on_a_socket_too_the_test_sees_that_the_client_has_given_up() {
    let mut script = script();
    let listening = script.listen().await.unwrap();
    let mut client = connect(&listening).await;
    send(&mut client, GET).await;
    let stream = script.taken().await.open();
    drop(client);
    stream.closed().await;
}
