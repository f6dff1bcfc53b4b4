//! `managedFields` as the writers of an object leave them, made of the object itself.

use serde_json::{Map, Value, json};

/// The set of fields of `value`, as `fieldsV1` has it: lists of things by their keys, other lists as a whole.
pub(super) fn fields(value: &Value) -> Value {
    let mut set = Map::new();
    if let Value::Object(object) = value {
        for (name, value) in object {
            set.insert(format!("f:{name}"), field(name, value));
        }
    }
    Value::Object(set)
}

fn field(name: &str, value: &Value) -> Value {
    match (keys(name), value) {
        (Some(keys), Value::Array(items)) => {
            let mut set = Map::from_iter([(".".to_owned(), json!({}))]);
            for item in items {
                let key: Map<String, Value> =
                    keys.iter().filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone()))).collect();
                let mut inner = Map::from_iter([(".".to_owned(), json!({}))]);
                if let Value::Object(rest) = fields(item) {
                    inner.extend(rest);
                }
                set.insert(format!("k:{}", Value::Object(key)), Value::Object(inner));
            }
            Value::Object(set)
        }
        (_, Value::Object(object)) if !is_atomic(name) && !object.is_empty() => fields(value),
        _ => json!({}),
    }
}

/// By which fields the items of a list are told from each other; `None` for lists that are written as a whole.
fn keys(list: &str) -> Option<&'static [&'static str]> {
    match list {
        "containers" | "env" | "volumes" | "initContainers" => Some(&["name"]),
        "ports" => Some(&["containerPort", "protocol"]),
        "volumeMounts" => Some(&["mountPath"]),
        "conditions" => Some(&["type"]),
        "podIPs" | "hostIPs" => Some(&["ip"]),
        "ownerReferences" => Some(&["uid"]),
        _ => None,
    }
}

fn is_atomic(name: &str) -> bool {
    matches!(name, "fieldRef" | "secretKeyRef" | "configMapKeyRef" | "nodeSelector")
}

/// One entry, of the order that Go writes it in.
pub(super) fn entry(manager: &str, operation: &str, time: &str, subresource: &str, fields: &Value) -> String {
    let version = "v1";
    let tail = if subresource.is_empty() { String::new() } else { format!(r#","subresource":"{subresource}""#) };
    format!(
        r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"{version}","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{fields}{tail}}}"#
    )
}
