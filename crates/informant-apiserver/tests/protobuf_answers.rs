//! Protobuf answers of built-in kinds: an object, a page, a watch, an error, and JSON where a kind has no such form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use http_body_util::BodyExt;
use informant_apiserver::ApiServer;
use serde_json::json;
use support::{call, delete, post};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Reads the fields of one message: number and content.
fn fields(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let varint = |bytes: &mut &[u8]| {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return number;
            }
        }
    };
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = varint(&mut bytes);
        let content = if key & 7 == 2 {
            let (content, rest) = bytes.split_at(usize::try_from(number).unwrap());
            bytes = rest;
            content.to_vec()
        } else {
            number.to_string().into_bytes()
        };
        fields.push((u32::try_from(key >> 3).unwrap(), content));
    }
    fields
}

/// The first field of that number, as a path of numbers leads to it.
fn at(bytes: &[u8], path: &[u32]) -> Vec<u8> {
    path.iter().fold(bytes.to_vec(), |bytes, tag| {
        fields(&bytes).into_iter().find(|(found, _)| found == tag).map(|(_, content)| content).unwrap_or_default()
    })
}

/// Kind and raw message of an envelope.
fn open(body: &[u8]) -> (String, Vec<u8>) {
    let rest = body.strip_prefix(b"k8s\0").expect("an envelope");
    (String::from_utf8(at(rest, &[1, 2])).unwrap(), at(rest, &[2]))
}

async fn body(server: &ApiServer, path: &str, accept: &str) -> (String, Vec<u8>) {
    let answer = call(server, "GET", path).header("accept", accept).open().await;
    let media_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    (media_type, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test(start_paused = true)]
async fn objects_pages_watches_and_errors_come_as_protobuf_when_asked_for() {
    let server = ApiServer::builder().build();
    for name in ["a", "b"] {
        post(&server, MAPS, &json!({"metadata": {"name": name}, "data": {"k": "v"}})).await.expect(201);
    }
    let (media_type, one) = body(&server, &format!("{MAPS}/a"), PROTOBUF).await;
    let (kind, raw) = open(&one);
    assert_eq!((media_type.as_str(), kind.as_str()), (PROTOBUF, "ConfigMap"));
    assert_eq!((at(&raw, &[1, 1]), at(&raw, &[2, 2])), (b"a".to_vec(), b"v".to_vec()));

    let (_, list) = body(&server, &format!("{MAPS}?limit=1"), PROTOBUF).await;
    let (kind, raw) = open(&list);
    assert_eq!(kind, "ConfigMapList");
    assert_eq!(at(&raw, &[2, 1, 1]), b"a");
    assert!(!at(&raw, &[1, 3]).is_empty(), "the token to go on with");

    let watch = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    );
    let (media_type, mut frames) = body(&server, &watch, PROTOBUF).await;
    assert_eq!(media_type, format!("{PROTOBUF};stream=watch"));
    let mut told = Vec::new();
    while !frames.is_empty() {
        let length = u32::from_be_bytes(frames[..4].try_into().unwrap()) as usize;
        let frame: Vec<u8> = frames.drain(..length + 4).skip(4).collect();
        let (kind, raw) = open(&at(&frame, &[2, 1]));
        let event = String::from_utf8(at(&frame, &[1])).unwrap();
        told.push((event, kind, String::from_utf8(at(&raw, &[1, 1])).unwrap()));
    }
    let line = |event: &str, name: &str| (event.to_owned(), "ConfigMap".to_owned(), name.to_owned());
    let expected = [line("ADDED", "a"), line("ADDED", "b"), line("ADDED", "kube-root-ca.crt"), line("BOOKMARK", "")];
    assert_eq!(told, expected);

    let (media_type, error) = body(&server, &format!("{MAPS}/none"), PROTOBUF).await;
    let (kind, raw) = open(&error);
    assert_eq!((media_type.as_str(), kind.as_str(), at(&raw, &[4])), (PROTOBUF, "Status", b"NotFound".to_vec()));
    delete(&server, &format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_comes_as_protobuf_too() {
    let server = ApiServer::builder().build();
    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let (_, list) = body(&server, "/api/v1/namespaces", &accept).await;
    let (kind, raw) = open(&list);
    assert_eq!((kind.as_str(), at(&raw, &[2, 1, 1])), ("PartialObjectMetadataList", b"default".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn custom_objects_have_json_only() {
    let server = ApiServer::builder().build();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.example.com"},
        "spec": {"group": "demo.example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await.expect(201);
    let widgets = "/apis/demo.example.com/v1/widgets";
    let (media_type, _) = body(&server, widgets, &format!("{PROTOBUF},application/json")).await;
    assert_eq!(media_type, "application/json");
    call(&server, "GET", widgets).header("accept", PROTOBUF).send().await.expect(406);
}
