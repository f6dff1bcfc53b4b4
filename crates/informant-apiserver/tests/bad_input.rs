//! Whatever is sent, the answer is a clear Status, and the server goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use informant_apiserver::ApiServer;
use serde_json::{Value, json};
use support::{Events, call, get, post};
use tower::ServiceExt;

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIG: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Sends each body and checks the code, that the answer is a Status with a message, and that nothing was stored.
async fn refused(cases: &[(&str, &str, &str, Vec<u8>, u16)]) {
    let server = ApiServer::builder().build();
    let version = server.resource_version();
    for (method, path, content_type, body, code) in cases {
        let answer = call(&server, method, path).body(content_type, body.clone()).send().await;
        let shown = String::from_utf8_lossy(body).chars().take(60).collect::<String>();
        assert_eq!(answer.code, *code, "{method} {path} {content_type} {shown}: {}", answer.text);
        assert_eq!(answer.json()["kind"], "Status", "{method} {path} {shown}");
        assert!(!answer.message().is_empty(), "{method} {path} {shown}");
        assert_eq!(server.resource_version(), version, "{method} {path} {shown}");
    }
    get(&server, "/readyz").await.expect(200);
}

fn json(value: Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_what_they_say() {
    let (plain, yaml, protobuf) = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf");
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (before, name) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        bomb.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(",")));
    }
    refused(&[
        ("POST", CONFIGS, plain, b"".to_vec(), 400),
        ("POST", CONFIGS, plain, b"{\"a\":".to_vec(), 400),
        ("POST", CONFIGS, plain, b"{} {}".to_vec(), 400),
        ("POST", CONFIGS, plain, b"null".to_vec(), 400),
        ("POST", CONFIGS, plain, b"{\"metadata\":{\"name\":\"\xff\"}}".to_vec(), 400),
        ("POST", CONFIGS, plain, b"{\"metadata\":{\"generation\":1e400}}".to_vec(), 400),
        ("POST", CONFIGS, plain, b"{\"data\":".repeat(100_000), 400),
        ("POST", CONFIGS, yaml, b"a: [".to_vec(), 400),
        ("POST", CONFIGS, yaml, b"\xc3\x28: 1".to_vec(), 400),
        ("POST", CONFIGS, yaml, bomb.into_bytes(), 400),
        ("POST", CONFIGS, yaml, b"- ".repeat(100_000), 400),
        ("POST", CONFIGS, protobuf, b"no magic".to_vec(), 400),
        ("POST", CONFIGS, protobuf, b"k8s\0\xff\xff\xff\xff".to_vec(), 400),
        ("POST", CONFIGS, "application/x-www-form-urlencoded", b"a=b".to_vec(), 415),
        ("POST", CONFIGS, plain, vec![b' '; 3 * 1024 * 1024 + 1], 413),
        ("PATCH", &format!("{CONFIG}?fieldManager=m"), "application/apply-patch+yaml", b"a: [".to_vec(), 400),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_wrong_shape() {
    let plain = "application/json";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    refused(&[
        ("POST", CONFIGS, plain, json(json!({"metadata": []})), 400),
        ("POST", CONFIGS, plain, json(json!({"kind": "Nothing", "metadata": {"name": "x"}})), 400),
        ("POST", CONFIGS, plain, json(json!({"metadata": {"name": "x", "namespace": "other"}})), 400),
        ("POST", CONFIGS, plain, json(json!({"metadata": {"name": "x", "labels": {"a": 1}}})), 400),
        ("POST", CONFIGS, plain, json(json!({"metadata": {"name": "x", "ownerReferences": ["a"]}})), 400),
        ("POST", CONFIGS, plain, json(json!({"metadata": {"name": "a/b"}})), 422),
        (
            "POST",
            deployments,
            plain,
            json(json!({"metadata": {"name": "x"}, "spec": {"replicas": 99_999_999_999_u64}})),
            400,
        ),
        (
            "POST",
            CRDS,
            plain,
            json(json!({"metadata": {"name": "a.b"}, "spec": {"names": "x", "versions": [{"schema": 5}]}})),
            400,
        ),
        ("PUT", &format!("{deployments}/none/scale"), plain, b"[]".to_vec(), 400),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", plain, json(json!({"spec": 5})), 400),
        ("DELETE", CONFIG, plain, json(json!({"gracePeriodSeconds": {}})), 400),
        ("DELETE", CONFIG, plain, json(json!({"kind": "ConfigMap"})), 400),
        ("DELETE", CONFIG, plain, json(json!({"preconditions": 5})), 400),
        ("DELETE", CONFIG, plain, json(json!({"preconditions": {"uid": 5}})), 400),
        ("DELETE", CONFIG, plain, json(json!({"orphanDependents": "x"})), 400),
        ("DELETE", CONFIG, plain, json(json!({"propagationPolicy": 5})), 400),
        ("DELETE", CONFIG, plain, json(json!({"dryRun": [5]})), 400),
        ("POST", CONFIGS, plain, json(json!({"kind": 5, "metadata": {"name": "x"}})), 400),
        (
            "POST",
            &format!("{CONFIGS}?fieldValidation=Strict"),
            plain,
            json(json!({"metadata": {"name": "x", "colour": "red"}})),
            400,
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn patches_that_destroy_what_they_patch() {
    let (merge, list) = ("application/merge-patch+json", "application/json-patch+json");
    let doubling: Vec<Value> =
        (0..60).map(|at| json!({"op": "copy", "from": "", "path": format!("/data/k{at}")})).collect();
    let annotations = json!({"op": "add", "path": "/metadata/annotations", "value": {}});
    let there = json!({"op": "move", "from": "/data", "path": "/metadata/annotations/d"});
    let back = json!({"op": "move", "from": "/metadata/annotations/d", "path": "/data"});
    let pairs = std::iter::repeat_n([there, back], 4_900).flatten();
    let shuffling: Vec<Value> = std::iter::once(annotations).chain(pairs).collect();
    let large = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(10_000)}});
    let server = ApiServer::builder().build();
    post(&server, CONFIGS, &large).await.expect(201);
    let answer = call(&server, "PATCH", &format!("{CONFIGS}/large")).body(list, json(json!(shuffling))).send().await;
    assert_eq!(answer.code, 413, "{}", answer.text);
    refused(&[
        ("PATCH", CONFIG, merge, b"null".to_vec(), 400),
        ("PATCH", CONFIG, merge, json(json!({"metadata": null})), 400),
        ("PATCH", CONFIG, merge, json(json!({"data": 5})), 422),
        ("PATCH", CONFIG, list, json(json!([{"op": "replace", "path": "", "value": 5}])), 422),
        ("PATCH", CONFIG, list, json(json!([{"op": "remove", "path": "/metadata"}])), 400),
        ("PATCH", CONFIG, list, json(json!(doubling)), 413),
        ("PATCH", CONFIG, "application/strategic-merge-patch+json", json(json!({"$patch": "delete"})), 422),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn paths_and_parameters_that_make_no_sense() {
    let none = Vec::new;
    refused(&[
        ("GET", "/api/v1/namespaces/%ff/pods", "", none(), 400),
        ("GET", "/api/v1/namespaces/default/pods/%00", "", none(), 404),
        ("GET", "/api/v1/a/b/c/d/e/f/g", "", none(), 404),
        ("GET", &format!("{CONFIGS}?limit=99999999999999999999"), "", none(), 400),
        ("GET", &format!("{CONFIGS}?resourceVersion=99999999999999999999999"), "", none(), 400),
        ("GET", &format!("{CONFIGS}?continue=garbage"), "", none(), 400),
        ("GET", &format!("{CONFIGS}?labelSelector={}", "a%20in%20(".repeat(1_000)), "", none(), 400),
        ("GET", &format!("{CONFIGS}?fieldSelector=spec.x%3D1"), "", none(), 400),
        ("GET", &format!("{CONFIGS}?watch=1&resourceVersionMatch=Exact"), "", none(), 422),
        ("BREW", CONFIGS, "", none(), 405),
    ])
    .await;
}

/// A body that breaks off, or never ends.
struct Broken {
    stalls: bool,
}

impl Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.stalls { Poll::Pending } else { Poll::Ready(Some(Err(std::io::Error::other("cut")))) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_or_stalls_ends_its_own_request_only() {
    let server = ApiServer::builder().build();
    for (stalls, code) in [(false, 400), (true, 504)] {
        let request = Request::builder().method("POST").uri(CONFIGS).body(Broken { stalls }).unwrap();
        let answer: Result<_, Infallible> = server.service().oneshot(request).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), code);
        let status: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(status["kind"], "Status");
    }
    get(&server, CONFIG).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn more_watches_than_allowed_are_refused_until_one_closes() {
    let server = ApiServer::builder().max_watches(2).build();
    let path = format!("{CONFIGS}?watch=1");
    let first = Events::open(&server, &path).await;
    let _second = Events::open(&server, &path).await;
    assert_eq!(call(&server, "GET", &path).send().await.expect(429).reason(), "TooManyRequests");
    drop(first);
    let _third = Events::open(&server, &path).await;
    get(&server, CONFIG).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn an_object_too_large_to_be_stored_is_refused() {
    let server = ApiServer::builder().max_object_bytes(10_000).build();
    let body = |bytes: usize| json!({"metadata": {"name": "big"}, "data": {"a": "x".repeat(bytes)}});
    assert_eq!(post(&server, CONFIGS, &body(20_000)).await.expect(413).reason(), "RequestEntityTooLarge");
    post(&server, CONFIGS, &body(5_000)).await.expect(201);
}
