//! The server's own controllers, seen from outside: garbage collection and the end of namespaces and Pods.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use std::time::Duration;

use informant_apiserver::{ApiServer, ControllerOptions};
use serde_json::{Value, json};
use support::{call, delete, get, post};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    ApiServer::builder().seed(7).start_time("2026-01-02T03:04:05Z".parse().unwrap()).build()
}

/// Lets the controllers do what is to be done now: paused time moves only when they rest.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Creates `owner` and its dependent `child`.
async fn owner_and_child(server: &ApiServer) {
    let owner = post(server, CONFIG_MAPS, &json!({"metadata": {"name": "owner"}})).await.expect(201).json();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let child = json!({"metadata": {"name": "child", "ownerReferences": [reference]}});
    post(server, CONFIG_MAPS, &child).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn dependents_go_with_their_owner() {
    let server = server();
    owner_and_child(&server).await;
    delete(&server, &format!("{CONFIG_MAPS}/owner")).await.expect(200);
    settle().await;
    get(&server, &format!("{CONFIG_MAPS}/child")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn without_controllers_they_stay() {
    let server = ApiServer::builder().controllers(ControllerOptions::none()).build();
    owner_and_child(&server).await;
    delete(&server, &format!("{CONFIG_MAPS}/owner")).await.expect(200);
    settle().await;
    get(&server, &format!("{CONFIG_MAPS}/child")).await.expect(200);
}

#[test]
fn a_server_that_outlives_its_runtime_has_controllers_on_the_next_one() {
    let server = server();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime().block_on(owner_and_child(&server));
    runtime().block_on(async {
        delete(&server, &format!("{CONFIG_MAPS}/owner")).await.expect(200);
        settle().await;
        get(&server, &format!("{CONFIG_MAPS}/child")).await.expect(404);
    });
}

#[tokio::test(start_paused = true)]
async fn owners_in_a_circle_wait_for_each_other_at_rest() {
    let server = server();
    let mut uids = Vec::new();
    for name in ["self", "one", "two"] {
        let made = post(&server, CONFIG_MAPS, &json!({"metadata": {"name": name}})).await.expect(201).json();
        uids.push(made["metadata"]["uid"].clone());
    }
    for (name, owner, uid) in [("self", "self", &uids[0]), ("one", "two", &uids[2]), ("two", "one", &uids[1])] {
        let reference =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true});
        let patch = json!({"metadata": {"ownerReferences": [reference]}}).to_string().into_bytes();
        let path = format!("{CONFIG_MAPS}/{name}");
        call(&server, "PATCH", &path).body("application/merge-patch+json", patch).send().await.expect(200);
    }
    for name in ["self", "one", "two"] {
        let options = json!({"propagationPolicy": "Foreground"}).to_string().into_bytes();
        let path = format!("{CONFIG_MAPS}/{name}");
        call(&server, "DELETE", &path).body("application/json", options).send().await.expect(200);
    }
    // Comes back only if nobody is busy.
    settle().await;
    get(&server, &format!("{CONFIG_MAPS}/self")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_the_custom_objects_in_it() {
    let server = server();
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await.expect(201);
    post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.expect(201);
    let widgets = "/apis/example.com/v1/namespaces/shop/widgets";
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    post(&server, widgets, &widget).await.expect(201);
    let answer = delete(&server, "/api/v1/namespaces/shop").await.expect(200).json();
    assert_eq!(answer["status"]["phase"], "Terminating");
    settle().await;
    get(&server, "/api/v1/namespaces/shop").await.expect(404);
    let list = get(&server, "/apis/example.com/v1/widgets").await.expect(200).json();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_goes_after_its_grace_period() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    post(&server, pods, &pod).await.expect(201);
    let marked: Value = delete(&server, &format!("{pods}/web")).await.expect(200).json();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    tokio::time::sleep(Duration::from_secs(29)).await;
    get(&server, &format!("{pods}/web")).await.expect(200);
    tokio::time::sleep(Duration::from_secs(2)).await;
    get(&server, &format!("{pods}/web")).await.expect(404);
}
