//! No value of a Secret, no token and nothing of a kubeconfig shows in an error, a log, a metric or a page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/pages.rs"]
mod pages;

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::Full;
use informant_cache::{Cluster, InformerFactory};
use informant_controller::Manager;
use k8s_openapi::api::core::v1::Secret;
use tracing::field::{Field, Visit};

use crate::pages::{Running, get, until};

/// What none may see. It's in whatever the server or a file holds.
const HIDDEN: &str = "hunter2";

/// Takes down everything that's logged by the crates here, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("informant")
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut log = self.0.lock().unwrap();
        event.record(&mut Line(&mut log));
        log.push('\n');
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A cluster whose every answer is this.
fn answering(code: u16, body: &'static str) -> kube::Client {
    let service = tower::service_fn(move |_request: http::Request<kube::client::Body>| async move {
        let body = Full::new(Bytes::from_static(body.as_bytes()));
        Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
    });
    kube::Client::new(service, "default")
}

/// Runs a manager with an informer of Secrets until its page says `marker`, and looks at all that's shown.
async fn nothing_is_shown(cluster: impl Into<Cluster>, marker: &str) {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let manager =
        Manager::with_factory(InformerFactory::builder(cluster).watch_list(false).build()).serve("127.0.0.1:0");
    let secrets = manager.factory().informer::<Secret>().full();
    let running = Running::start(manager).await;
    let katalog = until(running.address, "/katalog", |page| page.contains(marker)).await;
    let pages = [katalog, get(running.address, "/metrics").await, get(running.address, "/readyz?verbose").await];
    let state = format!("{} {:?} {:?}", secrets.state(), secrets.status(), secrets);
    running.stop().await;
    let log = log.text();
    assert!(!log.is_empty(), "the log is taken down");
    for (place, text) in pages.iter().map(|page| ("a page", page)).chain([("the log", &log), ("the status", &state)]) {
        assert!(!text.contains(HIDDEN), "{place}: {text}");
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_decoded_is_named_without_its_values() {
    let list = r#"{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
        {"metadata":{"name":"not-base64","namespace":"web","uid":"1","resourceVersion":"2"},"data":{"password":"hunter2 hunter2!"}},
        {"metadata":{"name":"no-map","namespace":"web","uid":"2","resourceVersion":"3"},"data":"hunter2"},
        {"metadata":{"name":"a-list","namespace":"web","uid":"3","resourceVersion":"4"},"stringData":["hunter2"]},
        {"metadata":{"name":"kept","namespace":"web","uid":"4","resourceVersion":"5"},"data":{"password":"aHVudGVyMg=="},"stringData":{"x":"hunter2"}}]}"#;
    nothing_is_shown(answering(200, list), "web/not-base64").await;
}

#[tokio::test]
async fn a_server_that_quotes_a_token_is_not_quoted() {
    let refusal = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"no user for Authorization: Bearer hunter2.hunter2"}"#;
    nothing_is_shown(answering(401, refusal), "no user for Authorization").await;
    nothing_is_shown(answering(502, "<html>bad request: authorization: bearer hunter2</html>"), "bad request").await;
}

#[tokio::test]
async fn a_401_with_a_token_file_shows_neither_the_old_token_nor_the_new_one() {
    let file = std::env::temp_dir().join(format!("informant-token-{}", std::process::id()));
    std::fs::write(&file, "hunter2-old").unwrap();
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kubeconfig = format!(
        r#"{{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{{"name":"c","context":{{"cluster":"c","user":"u"}}}}],
        "clusters":[{{"name":"c","cluster":{{"server":"http://{}"}}}}],"users":[{{"name":"u","user":{{"tokenFile":{:?}}}}}]}}"#,
        server.local_addr().unwrap(),
        file.display().to_string(),
    );
    let seen = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&seen);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut request = vec![0; 8192];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let token = request.lines().find_map(|line| line.split_once("Bearer ")).map_or("none", |(_, token)| token);
            heard.lock().unwrap().push_str(&request);
            let body = format!("who is this? Bearer {token}");
            let length = body.len();
            let head =
                format!("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let cluster = Cluster::from_kubeconfig(&kubeconfig).await.unwrap();
    assert!(!format!("{cluster:?}").contains(HIDDEN));
    std::fs::write(&file, "hunter2-new").unwrap();
    nothing_is_shown(cluster, "who is this").await;
    std::fs::remove_file(&file).unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(seen.contains("hunter2-old") && seen.contains("hunter2-new"), "both were sent: {seen}");
}

/// An error with all that it's caused by, in both forms.
fn whole(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error} {error:?}\n")).collect()
}

#[tokio::test]
async fn a_broken_kubeconfig_is_told_of_without_its_tokens_and_keys() {
    let config = |user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: \"https://127.0.0.1:1\"}}}}]\nusers:\n- name: u\n  user: {user}\n"
        )
    };
    for user in [
        "{token: [hunter2]}",
        "{token: hunter2",
        "hunter2",
        "{token: {hunter2: hunter2}}",
        "{client-certificate-data: hunter2, client-key-data: hunter2}",
        "{client-certificate-data: aHVudGVyMg==, client-key-data: aHVudGVyMg==}",
        "{exec: {command: hunter2}}",
        "{exec: hunter2}",
        "{password: [hunter2], username: x}",
    ] {
        match Cluster::from_kubeconfig(&config(user)).await {
            Ok(cluster) => assert!(!format!("{cluster:?}").contains(HIDDEN)),
            Err(error) => {
                let text = whole(&error);
                assert!(!text.contains(HIDDEN) && !text.contains("aHVudGVy"), "{user}: {text}");
            }
        }
    }
}
