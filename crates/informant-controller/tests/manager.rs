//! The manager without a cluster: order, deadlines, failures, and the pages. Time is paused except where real sockets are used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::Full;
use informant_controller::{Manager, ManagerError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

type Log = Arc<Mutex<Vec<String>>>;

/// A client of a server that has nothing. Without informers none of its answers matters.
fn no_cluster() -> kube::Client {
    let service = tower::service_fn(|_request| async {
        let answer = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"nothing here"}"#;
        Ok::<_, Infallible>(http::Response::builder().status(404).body(Full::new(bytes::Bytes::from(answer))).unwrap())
    });
    kube::Client::new(service, "default")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn log_of(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

/// A manager with a runnable that takes `after` to end once it's asked to, and says when it starts and ends.
fn with_slow(manager: Manager, log: &Log, name: &'static str, after: Duration) -> Manager {
    let log = Arc::clone(log);
    manager.runnable(name, move |stop| async move {
        log.lock().unwrap().push(format!("{name} starts"));
        stop.cancelled().await;
        sleep(after).await;
        log.lock().unwrap().push(format!("{name} ends"));
        Ok::<(), String>(())
    })
}

fn cancel_after(time: Duration) -> (CancellationToken, impl Future<Output = ()>) {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let later = async move {
        sleep(time).await;
        token.cancel();
    };
    (cancel, later)
}

/// controller-runtime fact 6.
#[tokio::test(start_paused = true)]
async fn a_cancelled_manager_waits_for_its_runnables_and_returns_no_error() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "slow", ms(500));
    let (cancel, later) = cancel_after(ms(100));
    let start = Instant::now();
    let (result, ()) = tokio::join!(manager.run(cancel), later);
    result.unwrap();
    assert_eq!(log_of(&log), ["slow starts", "slow ends"]);
    assert!(start.elapsed() >= ms(600) && start.elapsed() < ms(700), "{:?}", start.elapsed());
}

/// controller-runtime fact 5.
#[tokio::test(start_paused = true)]
async fn the_first_error_stops_the_rest_and_is_returned() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "slow", ms(500));
    let manager = manager.runnable("broken", |_stop| async {
        sleep(ms(10)).await;
        Err::<(), _>("out of coffee")
    });
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "runnable \"broken\" failed: out of coffee");
    assert_eq!(log_of(&log), ["slow starts", "slow ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_runnable_stops_the_rest_and_is_named() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "slow", ms(500));
    let manager = manager.runnable("broken", |stop| async move {
        assert!(stop.is_cancelled(), "nobody asked");
        Ok::<(), String>(())
    });
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "runnable \"broken\" panicked: nobody asked");
    assert_eq!(log_of(&log).last().map(String::as_str), Some("slow ends"));
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_ends_well_ends_nothing_else() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "slow", ms(0));
    let manager = manager.runnable("short", |_stop| async { Ok::<(), String>(()) });
    let (cancel, later) = cancel_after(ms(1000));
    let start = Instant::now();
    let (result, ()) = tokio::join!(manager.run(cancel), later);
    result.unwrap();
    assert!(start.elapsed() >= ms(1000));
}

/// controller-runtime fact 7.
#[tokio::test(start_paused = true)]
async fn a_stop_beyond_the_grace_period_aborts_what_runs_and_names_it() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "endless", Duration::from_secs(3600));
    let (cancel, later) = cancel_after(ms(10));
    let start = Instant::now();
    let (result, ()) = tokio::join!(manager.run(cancel), later);
    let error = result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not everything ended within the grace period of 30s: still running: runnable \"endless\""
    );
    assert!(start.elapsed() >= Duration::from_secs(30) && start.elapsed() < Duration::from_secs(31));
    sleep(Duration::from_secs(7200)).await;
    assert_eq!(log_of(&log), ["endless starts"], "it was aborted");
}

/// controller-runtime fact 8.
#[tokio::test(start_paused = true)]
async fn a_failure_and_a_late_stop_are_both_told() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "endless", Duration::from_secs(3600));
    let manager = manager.runnable("broken", |_stop| async {
        sleep(ms(10)).await;
        Err::<(), _>("out of coffee")
    });
    let error = manager.grace_period(ms(5)).run(CancellationToken::new()).await.unwrap_err();
    let ManagerError::Both { run, stop } = error else { panic!("{error}") };
    assert!(matches!(*run, ManagerError::Failed { ref name, .. } if name == "runnable \"broken\""));
    assert!(matches!(*stop, ManagerError::StopTimeout { grace, .. } if grace == ms(5)));
}

/// controller-runtime facts 9 and 10.
#[tokio::test(start_paused = true)]
async fn a_grace_period_of_zero_waits_for_nothing_and_none_waits_for_everything() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()), &log, "slow", Duration::from_secs(100));
    let (cancel, later) = cancel_after(ms(10));
    let start = Instant::now();
    let (result, ()) = tokio::join!(manager.grace_period(Duration::ZERO).run(cancel), later);
    result.unwrap();
    assert!(start.elapsed() < ms(20));
    assert_eq!(log_of(&log), ["slow starts"]);

    let manager = with_slow(Manager::new(no_cluster()), &log, "patient", Duration::from_secs(100));
    let (cancel, later) = cancel_after(ms(10));
    let (result, ()) = tokio::join!(manager.without_grace_period().run(cancel), later);
    result.unwrap();
    assert_eq!(log_of(&log).last().map(String::as_str), Some("patient ends"));
}

/// controller-runtime fact 12.
#[tokio::test(start_paused = true)]
async fn what_fails_because_of_the_stop_is_no_error_of_the_run() {
    let manager = Manager::new(no_cluster()).runnable("touchy", |stop| async move {
        stop.cancelled().await;
        Err::<(), _>("interrupted")
    });
    let (cancel, later) = cancel_after(ms(10));
    let (result, ()) = tokio::join!(manager.run(cancel), later);
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_cancelled_already_starts_nothing() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()).serve("127.0.0.1:0"), &log, "slow", ms(0));
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    cancel.cancel();
    manager.run(cancel).await.unwrap();
    assert!(log_of(&log).is_empty());
    assert_eq!(handle.address().await, None);
    assert!(handle.status().is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_aborts_everything() {
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let manager = Manager::new(no_cluster()).runnable("holder", move |_stop| async move {
        let _held = inside;
        std::future::pending::<()>().await;
        Ok::<(), String>(())
    });
    assert!(timeout(ms(10), manager.run(CancellationToken::new())).await.is_err());
    sleep(ms(1)).await;
    assert_eq!(Arc::strong_count(&held), 1);
}

// === The pages, over real sockets ===

async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// controller-runtime facts 26 and 27.
#[tokio::test]
async fn the_pages_are_served_while_the_manager_runs() {
    let ready = Arc::new(Mutex::new(Err("no database yet".to_owned())));
    let check = Arc::clone(&ready);
    let manager = Manager::new(no_cluster())
        .application("myapp-operator", "1.2.3")
        .serve("127.0.0.1:0")
        .health_check("panics", || panic!("the check's own"))
        .ready_check("database", move || check.lock().unwrap().clone());
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(cancel.clone()));
    let address = handle.address().await.unwrap();
    assert_ne!(address.port(), 0);

    let (status, head, body) = get(address, "/readyz").await;
    assert_eq!(status, 500);
    assert!(head.contains("content-type: text/plain") && head.contains("nosniff"), "{head}");
    assert_eq!(
        body,
        "[-]database failed: no database yet\n[+]informer-sync ok\n[+]ping ok\n[+]shutdown ok\nreadyz check failed\n"
    );
    assert_eq!(get(address, "/readyz?exclude=database").await.2, "ok");
    *ready.lock().unwrap() = Ok(());
    assert_eq!(get(address, "/readyz").await.2, "ok");
    assert_eq!(
        get(address, "/readyz?verbose").await.2,
        "[+]database ok\n[+]informer-sync ok\n[+]ping ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    assert_eq!(get(address, "/readyz/database").await.2, "ok");
    assert_eq!(get(address, "/readyz/nothing").await.0, 404);
    let (status, _, body) = get(address, "/healthz").await;
    assert_eq!(
        (status, body.as_str()),
        (500, "[-]panics failed: the check panicked\n[+]ping ok\nhealthz check failed\n")
    );

    let (status, head, body) = get(address, "/katalog").await;
    assert_eq!(status, 200);
    assert!(head.contains("application/json"));
    let katalog: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(katalog["application"], "myapp-operator");
    assert_eq!(katalog["version"], "1.2.3");
    assert_eq!(katalog["ready"], true);
    assert_eq!(katalog["healthy"], false);
    assert_eq!(katalog["failingChecks"]["panics"], "the check panicked");
    assert_eq!(katalog["controllers"], serde_json::json!([]));

    assert_eq!(get(address, "/metrics").await.0, 200);
    assert_eq!(get(address, "/other").await.0, 404);

    cancel.cancel();
    tasks.join_next().await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "after the stop the port refuses");
    assert!(!handle.status().unwrap().ready);
}

#[tokio::test]
async fn the_pages_say_that_it_is_stopping_while_a_stop_goes_on() {
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()).serve("127.0.0.1:0"), &log, "slow", ms(300));
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(cancel.clone()));
    let address = handle.address().await.unwrap();
    assert_eq!(get(address, "/readyz").await.2, "ok");
    while log_of(&log).is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    while handle.status().unwrap().ready {
        tokio::task::yield_now().await;
    }
    assert!(get(address, "/readyz").await.2.contains("[-]shutdown failed: the manager is stopping\n"));
    assert_eq!(get(address, "/healthz").await.2, "ok", "it's no reason to be killed");
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_never_ends_its_request_does_not_hold_up_the_stop() {
    let manager = Manager::new(no_cluster()).serve("127.0.0.1:0");
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(cancel.clone()));
    let address = handle.address().await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: te").await.unwrap();
    assert_eq!(get(address, "/readyz").await.2, "ok");
    cancel.cancel();
    let stopped = timeout(Duration::from_secs(10), tasks.join_next()).await.expect("it stops");
    stopped.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn more_connections_than_allowed_wait_and_are_served_when_others_end() {
    let manager = Manager::new(no_cluster()).serve("127.0.0.1:0");
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(cancel.clone()));
    let address = handle.address().await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(timeout(ms(100), get(address, "/healthz")).await.is_err(), "256 are served at a time");
    idle.clear();
    let served = timeout(Duration::from_secs(10), get(address, "/healthz")).await.expect("others have ended");
    assert_eq!(served.2, "ok");
    cancel.cancel();
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn garbage_instead_of_a_request_ends_its_connection_only() {
    let manager = Manager::new(no_cluster()).serve("127.0.0.1:0");
    let handle = manager.handle();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(cancel.clone()));
    let address = handle.address().await.unwrap();
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 200_000]].concat();
    for garbage in [b"\x16\x03\x01\x02\x00".as_slice(), b"\r\n\r\n\r\n", b"GET", &endless] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close before it has read everything.
        let _ = stream.write_all(garbage).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    assert_eq!(get(address, "/readyz?exclude=%00&&=&verbose=&exclude").await.0, 200);
    assert_eq!(get(address, "/readyz/%ff").await.0, 400);
    cancel.cancel();
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

/// controller-runtime fact 2.
#[tokio::test]
async fn an_address_that_is_taken_is_an_error_before_anything_starts() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let log = Log::default();
    let manager = with_slow(Manager::new(no_cluster()).serve(&address), &log, "slow", ms(0));
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("can't serve at \"{address}\": ")), "{error}");
    assert!(log_of(&log).is_empty());
}
