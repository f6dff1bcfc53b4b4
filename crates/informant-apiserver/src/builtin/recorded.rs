//! Defaults and refusals held against what a real server answered. `peers/compare/record_builtin.py` records the cases.

use serde_json::{Value, json};

use super::{defaults, omit_empty, resources, validate};
use crate::object;
use crate::protobuf::zeros;
use crate::resource::Resource;
use crate::schema;
use crate::status::Cause;

fn cases() -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/builtin/recorded_cases.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn resource_of(object: &Value) -> Resource {
    let matches = |resource: &Resource| {
        object["apiVersion"] == json!(resource.api_version()) && object["kind"] == json!(resource.kind)
    };
    resources().iter().find(|resource| matches(resource)).map(|resource| Resource::clone(resource)).unwrap()
}

/// What the server makes of an object that is created.
fn admitted(resource: &Resource, input: &Value, uid: &str) -> Value {
    let mut object = input.clone();
    if resource.namespaced {
        object::set_meta(&mut object, "namespace", json!("default"));
    }
    object::set_meta(&mut object, "uid", json!(uid));
    if resource.has_subresource("status") && !resource.rules.keeps_status_on_create {
        object.as_object_mut().unwrap().remove("status");
    }
    let view = resource.schema.view();
    schema::prune::prune(&mut object, view);
    omit_empty::apply(&mut object, view);
    zeros::omit(&mut object, &resource.api_version(), &resource.kind);
    schema::default::apply(&mut object, view);
    defaults::apply(resource, &mut object);
    let again = {
        let mut again = object.clone();
        defaults::apply(resource, &mut again);
        again
    };
    assert_eq!(object, again, "defaulting twice is defaulting once");
    object
}

/// Takes out what the registry and other parts of a server decide: addresses and ports, taints, times; and nulls.
fn comparable(mut object: Value) -> Value {
    object::remove_meta(&mut object, "uid");
    for (kind, path, field) in [
        ("Service", "/spec", "clusterIP"),
        ("Service", "/spec", "clusterIPs"),
        ("Node", "/spec", "taints"),
        ("PersistentVolume", "/status", "lastPhaseTransitionTime"),
    ] {
        if object["kind"] == json!(kind)
            && let Some(Value::Object(place)) = object.pointer_mut(path)
        {
            place.remove(field);
        }
    }
    if object["kind"] == json!("Service") {
        for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().unwrap().remove("nodePort");
        }
    }
    without_nulls(&mut object);
    object
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn differences(path: &str, ours: &Value, real: &Value, found: &mut Vec<String>) {
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (ours, real) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}.{key}"), ours, real, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (ours, real)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{at}]"), ours, real, found);
            }
        }
        _ if ours == real => {}
        _ => found.push(format!("{path}: ours {ours}, real {real}")),
    }
}

#[test]
fn defaults_are_those_of_a_real_server() {
    let mut wrong = Vec::new();
    for case in cases().iter().filter(|case| case.get("output").is_some() && case.get("before").is_none()) {
        let resource = resource_of(&case["input"]);
        let ours = comparable(admitted(&resource, &case["input"], case["uid"].as_str().unwrap()));
        let mut found = Vec::new();
        differences(&resource.kind, &ours, &comparable(case["output"].clone()), &mut found);
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Causes in an order of their own, and without the values that upstream prints in its own structs' notation.
fn readable(causes: impl Iterator<Item = (String, String, String)>) -> Vec<String> {
    let own_notation = |message: &str| ["{\"", "null", "\n"].iter().any(|sign| message.contains(sign));
    let mut lines: Vec<String> = causes
        .map(|(field, reason, message)| {
            let message = if own_notation(&message) { "..." } else { message.as_str() };
            format!("{field}: {reason}: {message}")
        })
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn refusals_are_those_of_a_real_server() {
    let mut wrong = Vec::new();
    for case in cases() {
        let resource = resource_of(&case["input"]);
        let uid = case["uid"].as_str().unwrap_or("11111111-1111-1111-1111-111111111111");
        let before = case.get("before");
        let new = admitted(&resource, &case["input"], before.map_or(uid, object::uid));
        let causes = validate::validate(&resource, &new, before);
        let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or("").to_owned();
        let real = case["causes"].as_array().cloned().unwrap_or_default();
        let real =
            readable(real.iter().map(|cause| (text(cause, "field"), text(cause, "reason"), text(cause, "message"))));
        let ours = readable(causes.into_iter().map(|Cause { reason, message, field }| (field, reason, message)));
        // Where upstream prints a value in its own notation only the place and the reason are compared.
        let same = ours.len() == real.len()
            && ours.iter().zip(&real).all(|(ours, real)| {
                ours == real || real.strip_suffix("...").is_some_and(|real| ours.starts_with(real))
            });
        if !same {
            wrong.push(format!("{}\n  ours {ours:?}\n  real {real:?}", case["input"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
