//! Which fields differ between two states of an object.

use serde_json::Value;

/// Most paths that one change reports; the rest is summed up as `…`.
const PATHS_MAX: usize = 50;

/// The paths in which `new` differs from `old`, in order, for example `spec.replicas` or `status.conditions[0].status`.
///
/// `metadata.resourceVersion` and `metadata.managedFields` change with every write and are left out. At most 50 paths.
pub fn changed_paths(old: &Value, new: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare("", old, new, &mut paths);
    paths
}

fn compare(path: &str, old: &Value, new: &Value, paths: &mut Vec<String>) {
    if old == new || matches!(path, "metadata.resourceVersion" | "metadata.managedFields") {
        return;
    }
    if paths.len() >= PATHS_MAX {
        if paths.last().is_some_and(|last| last != "…") {
            paths.push("…".to_owned());
        }
        return;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let child = join(path, key);
                compare(&child, before.get(key).unwrap_or(&Value::Null), after.get(key).unwrap_or(&Value::Null), paths);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (was, is)) in before.iter().zip(after).enumerate() {
                compare(&format!("{path}[{index}]"), was, is, paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

/// A key with dots or brackets (an annotation, say) is quoted, so that a path stays readable.
fn join(path: &str, key: &str) -> String {
    if key.contains(['.', '/', '[', ' ']) {
        format!("{path}[\"{key}\"]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_each_field_that_differs_and_not_the_resource_version() {
        let old = json!({"metadata": {"resourceVersion": "1", "labels": {"a.b/c": "1"}}, "spec": {"replicas": 1, "args": ["x"]}});
        let new = json!({"metadata": {"resourceVersion": "2", "labels": {"a.b/c": "2"}}, "spec": {"replicas": 2, "args": ["y"], "paused": true}});
        assert_eq!(
            changed_paths(&old, &new),
            ["metadata.labels[\"a.b/c\"]", "spec.args[0]", "spec.paused", "spec.replicas"]
        );
    }

    #[test]
    fn lists_of_different_length_are_one_change() {
        assert_eq!(changed_paths(&json!({"a": [1]}), &json!({"a": [1, 2]})), ["a"]);
    }

    #[test]
    fn a_change_everywhere_is_cut_short() {
        let many = |value: u32| Value::Object((0..80).map(|i| (format!("k{i}"), json!(value))).collect());
        let paths = changed_paths(&many(1), &many(2));
        assert_eq!(paths.len(), PATHS_MAX + 1);
        assert_eq!(paths.last().map(String::as_str), Some("…"));
    }
}
