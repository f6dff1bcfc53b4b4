//! What a user sees of failures: the state, its text and the lines of the log, as `docs/guide/failures.md` has them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Duration;

use futures::FutureExt;
use informant_cache::{InformerState, Scope, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::scripted::{InForm as _, Server, object};

/// What this thread logs, as programs see it that set nothing.
struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> Self {
        // One for all threads: a subscriber for one thread may miss what other threads' tests were first to log.
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::INFO)
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .with_writer(|| Self)
            .finish();
        // The second test finds that the first has set it.
        let _ = tracing::subscriber::set_global_default(subscriber);
        LOGGED.take();
        Self
    }

    /// The lines since the last call.
    fn taken(&self) -> Vec<String> {
        let bytes = LOGGED.take();
        String::from_utf8(bytes).unwrap().lines().map(|line| line.trim().to_owned()).collect()
    }
}

async fn in_trouble(informer: &SharedInformer<ConfigMap>) -> String {
    let trouble = informer.wait_state(|state| {
        matches!(state, InformerState::Forbidden { .. } | InformerState::Retrying { .. } | InformerState::Failed { .. })
    });
    trouble.await.to_string()
}

/// A state's text without its time.
fn timeless(state: &str) -> String {
    let words = state.split(' ').map(|word| word.strip_suffix(',').map_or((word, ""), |word| (word, ",")));
    let words = words.map(|(word, comma)| {
        let time = word.strip_suffix(':').unwrap_or(word);
        if time.parse::<jiff::Timestamp>().is_ok() { word.replace(time, "T") + comma } else { word.to_owned() + comma }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn each_failure_of_a_list_has_its_text_one_line_of_the_log_and_one_at_its_end() {
    let status = |code: u16, reason: &str, message: &str| {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}).to_string()
    };
    let cases = [
        (
            403,
            status(403, "Forbidden", "configmaps is forbidden: User \"u\" cannot list it"),
            "forbidden since T: configmaps is forbidden: User \"u\" cannot list it (403)",
        ),
        (401, status(401, "Unauthorized", "Unauthorized"), "failing since T, unauthorized: Unauthorized (401)"),
        (429, status(429, "TooManyRequests", "busy"), "failing since T, too many requests: busy (429)"),
        (500, status(500, "InternalError", "etcd is gone"), "failing since T, server error: etcd is gone (500)"),
        (
            400,
            status(400, "BadRequest", "unable to parse requirement"),
            "failing since T, invalid request: unable to parse requirement (400)",
        ),
        (502, "<html>bad gateway</html>".to_owned(), "failing since T, server error: <html>bad gateway</html> (502)"),
        (
            200,
            r#"{"error":"please sign in"}"#.to_owned(),
            "failing since T, malformed answer: the server answered the list of configmaps/v1 with something that is no list",
        ),
    ];
    for (code, body, text) in cases {
        let log = Log::begin();
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        // However often it fails.
        for _ in 0..5 {
            server.request().await.answer(code, &body);
            assert_eq!(timeless(&in_trouble(&informer).await), text);
        }
        let _watch = server.sync("10", &[]).await;
        informer.wait_synced().await.unwrap();
        let lines = log.taken();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0]
                .starts_with("WARN informer can't follow the server; it goes on trying informer=configmaps/v1 state="),
            "{}",
            lines[0]
        );
        assert!(timeless(&lines[0]).ends_with(&text[text.find(": ").unwrap()..]), "{}", lines[0]);
        assert_eq!(lines[1], "INFO informer is synced informer=configmaps/v1");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_and_a_silent_connection_have_their_texts() {
    let log = Log::begin();
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.refuse();
    let state = in_trouble(&informer).await;
    assert!(timeless(&state).starts_with("failing since T, connection refused: "), "{state}");
    let unanswered = server.request().await;
    let state = informer.wait_state(|state| state.to_string().contains("nothing")).await.to_string();
    assert_eq!(timeless(&state), "failing since T, connection error: the server sent nothing for 70 s");
    drop(unanswered);
    assert_eq!(log.taken().len(), 1, "it's one spell of trouble");
    factory.shutdown().await;
}

/// What a watch lives through by itself is no trouble: it's counted, and in the status as the last error.
#[tokio::test(start_paused = true)]
async fn what_a_watch_survives_is_no_line_of_the_log() {
    let log = Log::begin();
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    assert_eq!(log.taken(), ["INFO informer is synced informer=configmaps/v1"]);
    // Cut after a while, silent after a bookmark, too old.
    sleep(Duration::from_secs(60)).await;
    watch.cut();
    let watch = server.request().await.open();
    watch.bookmark("11");
    let again = server.request().await;
    assert_eq!(informer.state(), InformerState::Synced);
    let error = informer.status().last_error.unwrap();
    assert_eq!(error.message, "the server had sent bookmarks, and then was silent for 150 s");
    again.fail(410, "Expired");
    server.request().await.list("20", &[object("a", 1)]);
    let request = server.request().await;
    assert_eq!(request.what(), "WATCH 20");
    assert_eq!((informer.state(), informer.status().counters.failures), (InformerState::Synced, 3));
    assert_eq!(log.taken(), Vec::<String>::new());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_one_line_and_the_end_of_a_strict_informer() {
    for strict in [false, true] {
        let log = Log::begin();
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let builder = factory.informer::<ConfigMap>();
        let informer = if strict { builder.strict() } else { builder }.kept();
        factory.start(&cancel).unwrap();
        let mut bad = object("bad", 2);
        bad["data"] = json!(5);
        server.request().await.list("10", &[bad]);
        let reason = "data: invalid type: integer, expected a map";
        if strict {
            assert_eq!(
                timeless(&in_trouble(&informer).await),
                format!("failed for good at T: web/bad can't be decoded: {reason}")
            );
        } else {
            informer.wait_synced().await.unwrap();
            assert_eq!(informer.status().undecodable["web/bad"], reason);
        }
        let lines = log.taken();
        assert_eq!(
            lines[0],
            format!("WARN object can't be decoded; skipped informer=configmaps/v1 key=web/bad error={reason}")
        );
        assert_eq!(lines.len(), 2);
        let last = if strict {
            "ERROR informer has ended informer=configmaps/v1 state=failed for good at "
        } else {
            "INFO informer is synced"
        };
        assert!(lines[1].starts_with(last), "{}", lines[1]);
        factory.shutdown().await;
    }
}

/// A selector is the server's to judge.
#[tokio::test(start_paused = true)]
async fn a_selector_that_the_server_cannot_read_is_named_and_mends_nothing_else() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().scope(Scope::all().with_fields("spec.nope=1")).kept();
    factory.start(&cancel).unwrap();
    let message = "field label not supported: spec.nope";
    let body = json!({"kind": "Status", "code": 400, "reason": "BadRequest", "message": message}).to_string();
    server.request().await.answer(400, body);
    let state = in_trouble(&informer).await;
    assert_eq!(timeless(&state), format!("failing since T, invalid request: {message} (400)"));
    let error = informer.wait_synced().now_or_never();
    assert!(error.is_none() && informer.name().contains("spec.nope=1"), "{}", informer.name());
    factory.shutdown().await;
}

/// A connection that breaks in the middle of a stream of the present state.
#[tokio::test(start_paused = true)]
async fn a_present_state_that_breaks_off_is_trouble_until_the_next_attempt() {
    let log = Log::begin();
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.open().end();
    assert_eq!(
        timeless(&in_trouble(&informer).await),
        "failing since T, connection error: the initial events ended early"
    );
    let stream = server.request().await.open();
    stream.end_of_initial_events("10");
    informer.wait_synced().await.unwrap();
    assert_eq!(log.taken().len(), 2);
    factory.shutdown().await;
}
