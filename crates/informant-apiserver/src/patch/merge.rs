//! JSON merge patch (RFC 7386): the patch looks like the document, null removes, anything but an object replaces.

use serde_json::{Map, Value};

/// `document` with `patch` merged into it.
pub(crate) fn apply(document: &Value, patch: &Value) -> Value {
    let mut patched = document.clone();
    merge(&mut patched, patch);
    patched
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (field, change) in patch {
        if change.is_null() {
            target.remove(field);
        } else {
            merge(target.entry(field.as_str()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (document, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(apply(&document, &patch), result, "{document} + {patch}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("x")), Just(json!([1, {"a": null}]))];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect()))
        })
    }

    /// The leaves of a document by path; an empty object is a leaf too.
    fn leaves(path: &str, value: &Value, into: &mut Vec<(String, Value)>) {
        match value.as_object().filter(|map| !map.is_empty()) {
            Some(map) => map.iter().for_each(|(key, value)| leaves(&format!("{path}/{key}"), value, into)),
            None => into.push((path.to_owned(), value.clone())),
        }
    }

    proptest! {
        #[test]
        fn every_leaf_of_the_patch_is_in_the_result_and_every_null_is_gone(document in value(), patch in value()) {
            let merged = apply(&document, &patch);
            let mut asked = Vec::new();
            leaves("", &patch, &mut asked);
            for (path, value) in asked {
                let found = merged.pointer(&path);
                match value {
                    Value::Null if !path.is_empty() => prop_assert_eq!(found, None),
                    Value::Object(_) => prop_assert!(found.is_some_and(Value::is_object)),
                    other => prop_assert_eq!(found, Some(&other)),
                }
            }
        }

        #[test]
        fn what_the_patch_does_not_name_stays(document in value(), patch in value()) {
            prop_assume!(patch.is_object());
            let merged = apply(&document, &patch);
            let mut before = Vec::new();
            leaves("", &document, &mut before);
            for (path, value) in before {
                // A step that the patch names with something other than an object, or names at all as the last one, may change.
                let steps: Vec<&str> = path.split('/').skip(1).collect();
                let touched = (1..=steps.len()).any(|length| {
                    let prefix = format!("/{}", steps[..length].join("/"));
                    patch.pointer(&prefix).is_some_and(|change| !change.is_object() || length == steps.len())
                });
                if !touched && !steps.is_empty() {
                    prop_assert_eq!(merged.pointer(&path), Some(&value));
                }
            }
        }

        #[test]
        fn applying_twice_is_applying_once(document in value(), patch in value()) {
            let once = apply(&document, &patch);
            prop_assert_eq!(apply(&once, &patch), once);
        }
    }
}
