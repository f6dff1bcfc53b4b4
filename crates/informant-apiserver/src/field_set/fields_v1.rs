//! FieldsV1: the JSON form of a field set in `metadata.managedFields`.
//!
//! `{"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}` holds `.metadata.labels` (the dot) and `.metadata.labels.app`
//! (a step with nothing below it), but not `.metadata`.

use serde_json::{Map, Value};

use super::{FieldSet, Node, PathElement};

/// The set itself, within its node.
const SELF: &str = ".";

/// The set as JSON.
pub(crate) fn encode(set: &FieldSet) -> Value {
    let fields = set.nodes.iter().map(|(element, node)| {
        let mut below = encode(&node.children);
        if let Some(map) = below.as_object_mut().filter(|map| node.member && !map.is_empty()) {
            map.insert(SELF.to_owned(), Value::Object(Map::new()));
        }
        (element.0.clone(), below)
    });
    Value::Object(fields.collect())
}

/// The set behind the JSON; the error says which part isn't understood.
///
/// Steps of an unknown kind are left out, so that newer forms do no harm.
pub(crate) fn decode(fields: &Value) -> Result<FieldSet, String> {
    let map = fields.as_object().ok_or_else(|| format!("fieldsV1 must be an object, but has {fields}"))?;
    let mut set = FieldSet::default();
    for (step, below) in map.iter().filter(|(step, _)| *step != SELF) {
        let Some(element) = element(step)? else { continue };
        let children = decode(below)?;
        let member = children.is_empty() || below.get(SELF).is_some();
        set.nodes.insert(element, Node { member, children });
    }
    Ok(set)
}

/// A step in canonical form: keys in order, no blanks.
fn element(step: &str) -> Result<Option<PathElement>, String> {
    let unclear = |why: String| format!("the fieldsV1 step \"{step}\" isn't understood: {why}");
    let (kind, text) = step.split_once(':').ok_or_else(|| unclear("it has no colon".to_owned()))?;
    match kind {
        "f" => Ok(Some(PathElement(step.to_owned()))),
        "k" => match serde_json::from_str(text) {
            Ok(keys) => Ok(Some(PathElement::key(&keys))),
            Err(error) => Err(unclear(error.to_string())),
        },
        "v" => match serde_json::from_str(text) {
            Ok(value) => Ok(Some(PathElement::value(&value))),
            Err(error) => Err(unclear(error.to_string())),
        },
        "i" => match text.parse::<i64>() {
            Ok(index) => Ok(Some(PathElement(format!("i:{index}")))),
            Err(error) => Err(unclear(error.to_string())),
        },
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_real_servers_write_round_trips() {
        let fields = json!({
            "f:metadata": {
                "f:finalizers": {".": {}, "v:\"example.org/x\"": {}},
                "f:labels": {"f:a:b": {}, "f:app": {}},
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"1\"}": {}},
            },
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                ".": {}, "f:name": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
            }}},
            "f:list": {"i:0": {}},
        });
        assert_eq!(encode(&decode(&fields).unwrap()), fields);
    }

    #[test]
    fn keys_are_compared_by_content() {
        let a = decode(&json!({"k:{\"port\": 80, \"name\":\"x\"}": {}})).unwrap();
        let b = decode(&json!({"k:{\"name\":\"x\",\"port\":80}": {"f:new-kind": {".": {}}, ".": {}}})).unwrap();
        assert_eq!(a.difference(&b), FieldSet::default());
    }

    #[test]
    fn unknown_steps_are_left_out_and_garbage_is_refused() {
        assert_eq!(decode(&json!({"z:new": {}})).unwrap(), FieldSet::default());
        for garbage in [
            json!([]),
            json!({"f:a": 1}),
            json!({"plain": {}}),
            json!({"k:[]": {}}),
            json!({"v:": {}}),
            json!({"i:x": {}}),
        ] {
            assert!(decode(&garbage).is_err(), "{garbage}");
        }
    }
}
