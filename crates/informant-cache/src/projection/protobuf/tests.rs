//! Projections of Go's own protobuf, held against Go's own JSON of the same objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeSeed;
use serde_json::Value;

use super::super::found::Raw;
use super::super::plan::Node;
use super::super::tests::{fields, follow};
use super::super::{Nullable, Plain, Step};
use crate::Projection;
use crate::document::Document;
use crate::protobuf::tests::{cases, same};
use crate::protobuf::{Envelope, Object, to_json};

/// Every path that leads somewhere in a value; lists by position and as a whole, maps and objects by key.
fn paths(value: &Value, here: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    if !here.is_empty() {
        found.push(here.clone());
    }
    let mut below = |step: Step, value: &Value| {
        here.push(step);
        paths(value, here, found);
        here.pop();
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                below(Step::Key(key.clone().leak()), value);
            }
        }
        Value::Array(list) => {
            for (position, value) in list.iter().enumerate() {
                below(Step::At(position), value);
                below(Step::Each, value);
                for (key, scalar) in value.as_object().into_iter().flatten() {
                    if let Value::String(_) | Value::Bool(_) | Value::Number(_) = scalar {
                        let text = scalar.as_str().map_or_else(|| scalar.to_string(), str::to_owned);
                        below(Step::Where(key.clone().leak(), text.leak()), value);
                    }
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_path_in_objects_of_every_kind_leads_where_it_leads_in_gos_own_json() {
    let mut compared = 0;
    for (body, go) in cases() {
        let envelope = Envelope::open(&body).expect("an envelope");
        let object = Object::new(envelope.message().expect("a kind"), envelope.raw);
        let mut all = Vec::new();
        paths(&go, &mut Vec::new(), &mut all);
        // What's there of the list's item only, and beside the point.
        all.retain(|path| !matches!(path.first(), Some(Step::Key("apiVersion" | "kind"))));
        all.sort_by_key(|path| format!("{path:?}"));
        all.dedup();
        for some in all.chunks(100) {
            let fields = fields(some.to_vec());
            let root = Node::tree(fields.iter().enumerate());
            let hits = super::walk(&root, &object, fields.len()).expect("a sound object");
            let mut found = vec![Vec::new(); fields.len()];
            for (field, raw) in hits.iter() {
                let value = match raw {
                    Raw::Protobuf(value) => Nullable(Plain::<Value>::new()).deserialize(value).expect("a value"),
                    Raw::Json(text) => serde_json::from_slice(text).expect("JSON"),
                    Raw::Wrong(node, found) => panic!("{}", node.mismatch(found)),
                };
                found[field].push(value.unwrap_or(Value::Null));
            }
            for (field, found) in fields.iter().zip(&found) {
                let mut expected = Vec::new();
                let followed = follow(&go, field.steps, &mut expected);
                assert_eq!(followed, Ok(()), "{:?} in {go}", field.steps);
                let alike =
                    found.len() == expected.len() && found.iter().zip(&expected).all(|(ours, go)| same(ours, go));
                assert!(alike, "{:?}: ours {found:?}, go {expected:?}, in {go}", field.steps);
                compared += 1;
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[derive(Debug, PartialEq, Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct PodView {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "metadata.creationTimestamp")]
    created: Option<String>,
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    images: Vec<Option<Arc<str>>>,
    #[projection(path = "spec.containers[*].resources.limits[\"cpu\"]")]
    cpu: Vec<Quantity>,
    #[projection(path = "spec.containers[*].livenessProbe.httpGet.port")]
    probes: Vec<IntOrString>,
    #[projection(path = "status.conditions[type=Ready].status")]
    ready: Option<String>,
}

const POD: &str = r#"{"metadata": {"name": "a", "labels": {"app": "web"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"nodeName": "n", "containers": [
        {"name": "x", "image": "i:1", "resources": {"limits": {"cpu": "500m"}}, "livenessProbe": {"httpGet": {"port": "web"}}},
        {"name": "y", "resources": {}, "livenessProbe": {"httpGet": {"port": 8080}}}]},
    "status": {"conditions": [{"type": "Scheduled", "status": "False"}, {"type": "Ready", "status": "True"}]}}"#;

#[test]
fn what_is_taken_of_protobuf_is_what_is_taken_of_its_json() {
    let mut pods = 0;
    for (body, _) in cases() {
        let envelope = Envelope::open(&body).expect("an envelope");
        if (envelope.api_version, envelope.kind) != ("v1", "Pod") {
            continue;
        }
        pods += 1;
        let message = envelope.message().expect("a kind");
        let json = to_json(Object::new(message, envelope.raw)).expect("JSON");
        let from_json = Document::json(&json).project::<PodView>();
        let from_protobuf = Document::protobuf(message, envelope.raw).project::<PodView>();
        assert_eq!(from_protobuf, from_json, "{}", String::from_utf8_lossy(&json));
        for end in 0..envelope.raw.len() {
            // Anything but a panic.
            let _ = Document::protobuf(message, &envelope.raw[..end]).project::<PodView>();
        }
    }
    assert!(pods > 0);
    let pod: PodView = Document::json(POD.as_bytes()).project().expect("a Pod");
    assert_eq!((pod.images.len(), pod.cpu.len(), pod.probes.len()), (1, 1, 2));
}

#[test]
fn an_error_names_the_path_and_no_value() {
    #[derive(Debug, Projection)]
    #[projection(api_version = "v1", kind = "Pod")]
    struct Wrong {
        #[projection(path = "metadata.name")]
        _name: Digits,
    }
    #[derive(Debug)]
    struct Digits;
    impl<'de> serde::Deserialize<'de> for Digits {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            u8::deserialize(deserializer).map(|_| Self)
        }
    }
    // metadata (1): name (1) is "hunter2".
    let bytes = [0x0a, 0x09, 0x0a, 0x07, b'h', b'u', b'n', b't', b'e', b'r', b'2'];
    let message = crate::protobuf::table().kind("v1", "Pod").expect("a kind");
    let error = Document::protobuf(message, &bytes).project::<Wrong>().expect_err("it isn't a number").to_string();
    assert_eq!(error, "metadata.name: invalid type: string, expected u8");
    let error = Document::protobuf(message, &bytes[..8]).project::<Wrong>().expect_err("it's cut").to_string();
    assert!(error.contains("too early"), "{error}");
}
