//! What the check is sure of decodes, and what servers write it's sure of.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::json::samples;

fn is_sure(text: &str) -> bool {
    check(text.as_bytes(), Form::Any).is_ok()
}

#[test]
fn json_is_taken_and_nothing_else_is() {
    for text in [
        "{}",
        "[]",
        " [ 1 , -1.5e-3, 0, 0.0, \"\\u00e9\\ud83d\\ude00\\n\\/é\" ] \n",
        "null",
        "true",
        "\"\"",
        "-0",
        "12345678901234567890123",
        r#"{"a":{"b":[[],{}]},"a":null}"#,
    ] {
        assert!(is_sure(text), "{text}");
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
    for text in [
        "",
        " ",
        "{",
        "[",
        "]",
        "{}}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "1e999",
        "tru",
        "truee",
        "nul",
        "nulll",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\n\"",
        "\"\\",
        "[1 2]",
        "{\"a\":1 \"b\":2}",
        "[}",
        "{]",
        "\u{feff}{}",
        "\"a\u{0}\"",
        "[\"a\"\u{0c}]",
    ] {
        assert!(!is_sure(text), "{text:?}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
    }
    assert!(check(b"\"\xff\"", Form::Any).is_err());
}

#[test]
fn as_deep_as_a_parser_goes_and_no_deeper() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for inner in ["1", "[]", "{}"] {
            for depth in 120..135 {
                let text = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
                assert_eq!(is_sure(&text), serde_json::from_str::<Value>(&text).is_ok(), "{depth} and {inner}");
            }
        }
    }
}

#[test]
fn of_times_and_base64_only_what_decodes_is_sure() {
    let event = |time: &str| json!({"metadata": {"creationTimestamp": time}}).to_string();
    let secret = |data: &str| json!({"data": {"a": data}}).to_string();
    for time in ["2026-03-01T10:00:51Z", "2024-02-29T23:59:59Z", "2000-02-29T00:00:00.123456Z", "0001-01-01T00:00:00Z"]
    {
        assert!(sure_and_right::<Event>("v1", "Event", &event(time)), "{time}");
    }
    for time in [
        "",
        "2026-03-01",
        "2026-13-01T10:00:51Z",
        "2025-02-29T10:00:51Z",
        "2100-02-29T10:00:51Z",
        "2026-04-31T10:00:51Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T10:60:00Z",
        "2026-03-01T10:00:60Z",
        "2026-03-01T10:00:51",
        "2026-03-01T10:00:51.Z",
        "2026-03-01T10:00:51.1234567890Z",
        "2026-00-01T10:00:51Z",
        "2026-03-00T10:00:51Z",
        "2026-03-01T10:00:51+02:00",
        "2026-03-01X10:00:51Z",
        "9999-12-31T23:59:59Z",
    ] {
        assert!(!sure_and_right::<Event>("v1", "Event", &event(time)), "{time}");
    }
    for data in ["", "AA==", "AAA=", "AAAA", "+/09azAZ"] {
        assert!(sure_and_right::<Secret>("v1", "Secret", &secret(data)), "{data}");
    }
    for data in ["A", "AA", "AA=", "AAA", "AB==", "AAB=", "A===", "====", "AA-_", "AA= ", "AA==AA=="] {
        assert!(!sure_and_right::<Secret>("v1", "Secret", &secret(data)), "{data}");
    }
}

#[test]
fn an_object_of_another_kind_is_not_sure() {
    let object =
        |api_version: &str, kind: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {}}).to_string();
    assert!(sure_and_right::<Pod>("v1", "Pod", &object("v1", json!("Pod"))));
    for (api_version, kind) in [("v2", json!("Pod")), ("v1", json!("Node")), ("v1", Value::Null)] {
        assert!(!sure_and_right::<Pod>("v1", "Pod", &object(api_version, kind)));
    }
}

fn form(api_version: &str, kind: &str) -> Form {
    Form::Kind(table().kind(api_version, kind).expect("a known kind"))
}

/// Whether it's sure that a text decodes. If it is, it must.
fn sure_and_right<T: DeserializeOwned>(api_version: &str, kind: &str, text: &str) -> bool {
    let is_sure = check(text.as_bytes(), form(api_version, kind)).is_ok();
    if is_sure {
        if let Err(error) = serde_json::from_str::<T>(text) {
            panic!("{error}: {text}");
        }
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
    if check(text.as_bytes(), Form::Dynamic).is_ok()
        && let Err(error) = serde_json::from_str::<DynamicObject>(text)
    {
        panic!("{error}: {text}");
    }
    is_sure
}

/// Changes an object in random places, and asks each time.
fn torment<T: DeserializeOwned>(object: &Value, rounds: u64) {
    let (api_version, kind) =
        (object["apiVersion"].as_str().expect("it's given"), object["kind"].as_str().expect("it's given"));
    let text = object.to_string();
    assert!(sure_and_right::<T>(api_version, kind, &text), "{text}");
    assert!(sure_and_right::<T>(api_version, kind, &serde_json::to_string_pretty(object).expect("JSON")));
    let (mut decodable, mut sure) = (0, 0);
    for seed in 0..rounds {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut changed = object.clone();
        for _ in 0..=random.usize(..2) {
            change(&mut changed, &mut random);
        }
        let mut text = changed.to_string();
        if random.u8(..4) == 0 {
            spoil(&mut text, &mut random);
        }
        let is_sure = sure_and_right::<T>(api_version, kind, &text);
        sure += u64::from(is_sure);
        decodable += u64::from(is_sure || serde_json::from_str::<T>(&text).is_ok());
    }
    assert!(decodable > rounds / 10, "{kind}: of {rounds} only {decodable} decode");
    assert!(sure * 10 > decodable * 3, "{kind}: of {decodable} that decode only {sure} are sure");
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The value of that number, counted from the outside to the inside.
fn nth<'v>(value: &'v mut Value, number: &mut usize) -> Option<&'v mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| nth(value, number)),
        Value::Object(map) => map.values_mut().find_map(|value| nth(value, number)),
        _ => None,
    }
}

fn change(object: &mut Value, random: &mut fastrand::Rng) {
    let mut number = random.usize(1..count(object));
    let Some(value) = nth(object, &mut number) else { return };
    let others = [
        json!(null),
        json!(true),
        json!(7),
        json!(-3_000_000_000_i64),
        json!(u64::MAX),
        json!(1.5),
        json!("x"),
        json!(""),
        json!("ä\"\\\u{1}"),
        json!("AAA="),
        json!("2026-03-01T10:00:51Z"),
        json!("100m"),
        json!([]),
        json!({}),
        json!([null]),
        json!([1]),
        json!(["a"]),
        json!([{}]),
        json!({"a": null}),
        json!({"a": 1}),
        json!({"a": "b"}),
        json!({"a": {}}),
        json!({"a": ["b"]}),
    ];
    *value = match (&*value, random.u8(..4)) {
        (Value::Object(map), 0) => map.iter().skip(1).map(|(name, value)| (name.clone(), value.clone())).collect(),
        (Value::Object(map), 1) => {
            map.iter().map(|(name, value)| (name.replace(['a', 'n'], "o"), value.clone())).collect()
        }
        (Value::Array(list), 0) => list.iter().chain(list).cloned().collect(),
        (Value::Array(list), 1) => list.iter().cloned().chain([Value::Null]).collect(),
        _ => random.choice(others).unwrap_or_default(),
    };
}

/// Changes the text itself.
fn spoil(text: &mut String, random: &mut fastrand::Rng) {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let at = random.choice(places).unwrap_or_default();
    match random.u8(..5) {
        0 => drop(text.remove(at)),
        1 => text.truncate(at),
        2 => text.insert_str(
            at,
            random.choice([" ", ",", "\"", "\\", "{", "]", "\\u0041", "null", "0", "-", "e5"]).unwrap_or_default(),
        ),
        3 => {
            // A field twice.
            let twice = text.replacen(",\"", ",\"metadata\":{\"name\":\"b\"},\"spec\":null,\"", 1);
            *text = twice;
        }
        _ => *text = text.replacen(":1", ":-0", 1).replacen(":2", ":1e2", 1).replacen("\"a", "\"\\u0061", 1),
    }
}

#[test]
fn what_is_sure_of_a_pod_decodes() {
    let mut pod: Value = serde_json::from_str(&samples::pod(7)).expect("JSON");
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    torment::<Pod>(&pod, 150);
    pod["metadata"].as_object_mut().expect("metadata").remove("managedFields");
    torment::<Pod>(&pod, 600);
}

#[test]
fn what_is_sure_of_workloads_decodes() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i",
        "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 5}}], "securityContext": {"fsGroup": 1_000_650_000}}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "generation": 3},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "template": template},
        "status": {"observedGeneration": 3, "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "2026-03-01T10:00:51Z"}]}});
    torment::<Deployment>(&deployment, 600);
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "spec": {"serviceName": "a",
        "selector": {}, "template": template, "volumeClaimTemplates": [{"kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": "data", "creationTimestamp": null}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Pending"}}]}});
    torment::<StatefulSet>(&set, 600);
}

#[test]
fn what_is_sure_of_other_kinds_decodes() {
    torment::<Node>(
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": {"a": "{\"b\":1}"}},
        "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-03-01T10:00:51Z"}]},
        "status": {"capacity": {"cpu": "8", "pods": 110}, "images": [{"names": ["a", "b"], "sizeBytes": 3_000_000_000_u64}],
            "nodeInfo": {"kernelVersion": "6"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}}),
        600,
    );
    torment::<Event>(
        &json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "apiVersion": "v1"},
        "reason": "r", "count": 5, "eventTime": "2026-03-01T10:00:51.123456Z", "firstTimestamp": null, "series": {"count": 2}}),
        600,
    );
    torment::<ConfigMap>(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b\n", "c": ""},
        "binaryData": {"a": "AAAA", "b": null}, "immutable": true}),
        600,
    );
    torment::<Secret>(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {"a": "aHVudGVyMg=="}}),
        600,
    );
    torment::<Service>(
        &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "targetPort": "http"},
        {"port": 81, "targetPort": 8081}], "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"}, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
        600,
    );
    torment::<CustomResourceDefinition>(
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"},
        "spec": {"group": "b", "scope": "Namespaced", "names": {"plural": "a", "kind": "A"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", 1, null], "default": {"a": [1.5]}},
            "b": {"items": {"type": "string"}, "additionalProperties": false, "maximum": 1.5}, "c": {"items": [{"type": "string"}],
            "additionalProperties": {"type": "integer"}, "$ref": "x", "dependencies": {"a": ["b"], "c": {"type": "string"}}}}}}}]}}),
        1200,
    );
}

proptest! {
    #[test]
    fn of_any_text_what_is_sure_is_json(text in r#"[\[\]{},:"0-9.eE+\-truefalsn \\u]{0,30}"#) {
        if is_sure(&text) {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }

    #[test]
    fn any_json_is_sure(value in any_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
            prop_assert!(is_sure(&text), "{}", text);
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e80..1e80).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[^$]{0,20}", inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}
