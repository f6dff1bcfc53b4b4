//! What older servers lack, switched off: so that clients can be tested on 1.33 to 1.37.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use informant_apiserver::{ApiServer, WatchListSupport};
use support::{call, get};

const STREAM: &str = "/api/v1/namespaces?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                      &allowWatchBookmarks=true&timeoutSeconds=1";

#[tokio::test(start_paused = true)]
async fn a_1_33_server_refuses_streams_of_the_present_state_as_the_real_one_does() {
    let server = ApiServer::builder().kubernetes_minor(33).build();
    assert_eq!(get(&server, "/version").await.expect(200).json()["gitVersion"], "v1.33.2");
    let refused = get(&server, STREAM).await.expect(422);
    assert_eq!(refused.reason(), "Invalid");
    let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    assert!(refused.message().contains(why), "{}", refused.message());
    let plain = call(&server, "GET", "/api/v1/namespaces?watch=true&timeoutSeconds=1").send().await.expect(200);
    assert_eq!(plain.text.matches("ADDED").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn from_1_34_on_the_end_of_the_present_state_is_marked() {
    for minor in [34, 37] {
        let server = ApiServer::builder().kubernetes_minor(minor).build();
        assert_eq!(get(&server, "/version").await.expect(200).json()["minor"], minor.to_string());
        let stream = call(&server, "GET", STREAM).send().await.expect(200);
        assert_eq!(stream.text.matches("k8s.io/initial-events-end").count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_told_never_to_mark_the_end_of_the_present_state() {
    let server = ApiServer::builder().watch_list(WatchListSupport::WithoutEndMark).build();
    let stream = call(&server, "GET", STREAM).send().await.expect(200);
    assert_eq!(stream.text.matches("ADDED").count(), 4);
    assert!(!stream.text.contains("initial-events-end"));
}
