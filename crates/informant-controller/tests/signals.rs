//! SIGTERM, sent to this very process: so there's one test here, and a file of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{convert::Infallible, process::Command, time::Duration};

use informant_controller::{Manager, ManagerError};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

fn terminate_myself() {
    let status = Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// A manager with a runnable that takes `after` to end, and a channel that tells when it starts and when it's asked to stop.
fn manager(after: Duration) -> (Manager, mpsc::Receiver<&'static str>) {
    let service = tower::service_fn(|_request| async {
        Ok::<_, Infallible>(http::Response::new(http_body_util::Full::new(bytes::Bytes::new())))
    });
    let (tell, told) = mpsc::channel(4);
    let manager = Manager::new(kube::Client::new(service, "default")).stop_on_signals();
    let manager = manager.runnable("slow", move |stop| async move {
        tell.send("started").await?;
        stop.cancelled().await;
        tell.send("stopping").await?;
        tokio::time::sleep(after).await;
        Ok::<(), mpsc::error::SendError<&str>>(())
    });
    (manager, told)
}

async fn within_ten_seconds<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), future).await.expect("it took longer than ten seconds")
}

#[tokio::test]
async fn the_first_signal_stops_in_order_and_the_second_at_once() {
    let (patient, mut told) = manager(Duration::from_millis(10));
    let mut tasks = JoinSet::new();
    tasks.spawn(patient.run(CancellationToken::new()));
    assert_eq!(within_ten_seconds(told.recv()).await, Some("started"));
    terminate_myself();
    within_ten_seconds(tasks.join_next()).await.unwrap().unwrap().unwrap();

    let (stubborn, mut told) = manager(Duration::from_secs(3600));
    tasks.spawn(stubborn.run(CancellationToken::new()));
    assert_eq!(within_ten_seconds(told.recv()).await, Some("started"));
    terminate_myself();
    assert_eq!(within_ten_seconds(told.recv()).await, Some("stopping"));
    terminate_myself();
    let error = within_ten_seconds(tasks.join_next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, ManagerError::StopForced { .. }));
    assert_eq!(error.to_string(), "a second signal cut the stop short: still running: runnable \"slow\"");
}
