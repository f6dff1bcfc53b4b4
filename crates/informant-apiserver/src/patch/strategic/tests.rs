//! What kubectl and others send, and what a real 1.37 server makes of it.

use serde_json::json;

use super::*;
use crate::schema::{Definitions, Schema};

/// The merge rules of the parts of a Deployment and a Pod that the tests touch.
fn schema() -> (Schema, Definitions) {
    let keyed = |key: &str, items: Value| {
        json!({
            "type": "array", "items": items, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key
        })
    };
    let container = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"}, "image": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "env": keyed("name", json!({"type": "object", "properties": {"name": {"type": "string"}}})),
            "ports": keyed("containerPort", json!({"type": "object"})),
            "resources": {"type": "object", "properties": {
                "limits": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
        },
    });
    let mut volumes = keyed("name", json!({"type": "object"}));
    volumes["x-kubernetes-patch-strategy"] = json!("merge,retainKeys");
    let schema = json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            }},
            "spec": {"type": "object", "properties": {
                "replicas": {"type": "integer"},
                "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {
                    "type": {"type": "string"}, "rollingUpdate": {"type": "object"},
                }},
                "fixed": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
                "containers": keyed("name", container),
                "volumes": volumes,
                "tolerations": {"type": "array", "items": {"type": "object"}},
            }},
        },
    });
    (serde_json::from_value(schema).unwrap(), Definitions::default())
}

fn patched(live: Value, patch: Value) -> Value {
    let (schema, definitions) = schema();
    apply(&live, &patch, SchemaView::new(&schema, &definitions)).unwrap()
}

fn refusal(live: Value, patch: Value) -> Status {
    let (schema, definitions) = schema();
    apply(&live, &patch, SchemaView::new(&schema, &definitions)).unwrap_err()
}

fn spec(fields: Value) -> Value {
    json!({"spec": fields})
}

#[test]
fn containers_merge_by_name_and_keep_what_the_patch_does_not_name() {
    let live = spec(json!({"replicas": 2, "containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "b:1"},
    ]}));
    let patch = spec(json!({"containers": [{"name": "b", "image": "b:2"}]}));
    assert_eq!(
        patched(live, patch),
        spec(json!({"replicas": 2, "containers": [
            {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "b:2"},
        ]}))
    );
}

#[test]
fn a_new_item_goes_in_front_of_the_old_ones() {
    let live = spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let patch = spec(json!({"containers": [{"name": "new"}, {"name": "a", "image": "x"}]}));
    assert_eq!(
        patched(live, patch),
        spec(json!({"containers": [{"name": "new"}, {"name": "a", "image": "x"}, {"name": "b"}]}))
    );
}

#[test]
fn the_order_directive_decides_and_old_items_keep_their_place_beside_it() {
    let live = spec(json!({"containers": [{"name": "a"}, {"name": "injected"}, {"name": "b"}]}));
    let patch = spec(json!({
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
        "containers": [{"name": "c", "image": "c"}],
    }));
    assert_eq!(
        patched(live, patch),
        spec(json!({"containers": [{"name": "a"}, {"name": "injected"}, {"name": "b"}, {"name": "c", "image": "c"}]}))
    );
    let live = spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let swap = spec(json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}));
    assert_eq!(patched(live, swap.clone()), spec(json!({"containers": [{"name": "b"}, {"name": "a"}]})));
    assert_eq!(patched(spec(json!({})), swap), spec(json!({})), "an order alone makes no list");
}

#[test]
fn what_apply_adds_again_stands_in_front_of_what_others_added() {
    let live = spec(json!({"containers": [{"name": "web", "env": [{"name": "B"}, {"name": "C"}, {"name": "D"}]}]}));
    let patch = spec(json!({
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{
            "name": "web", "$setElementOrder/env": [{"name": "A"}, {"name": "B"}], "env": [{"name": "A", "value": "1"}],
        }],
    }));
    let wanted = json!([{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C"}, {"name": "D"}]);
    assert_eq!(patched(live, patch)["spec"]["containers"][0]["env"], wanted);
    let live = json!({"metadata": {"finalizers": ["x"]}});
    let patch = json!({"metadata": {"finalizers": ["z"]}});
    assert_eq!(patched(live, patch), json!({"metadata": {"finalizers": ["z", "x"]}}));
}

#[test]
fn set_image_as_kubectl_sends_it() {
    let live = spec(json!({"containers": [{"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80}]}]}));
    let patch = spec(json!({
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{"image": "nginx:2", "name": "web"}],
    }));
    let wanted = json!({"containers": [{"name": "web", "image": "nginx:2", "ports": [{"containerPort": 80}]}]});
    assert_eq!(patched(live, patch), spec(wanted));
}

#[test]
fn set_env_removes_and_adds_within_an_item() {
    let live = spec(json!({"containers": [{"name": "web", "env": [{"name": "A", "value": "1"}, {"name": "B"}]}]}));
    let patch = spec(json!({
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{
            "name": "web",
            "$setElementOrder/env": [{"name": "B"}, {"name": "C"}],
            "env": [{"$patch": "delete", "name": "A"}, {"name": "C", "value": "3"}],
        }],
    }));
    let wanted = json!({"containers": [{"name": "web", "env": [{"name": "B"}, {"name": "C", "value": "3"}]}]});
    assert_eq!(patched(live, patch), spec(wanted));
}

#[test]
fn ports_merge_by_number() {
    let live = spec(json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}]}));
    let patch = spec(json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}));
    let wanted = json!([{"containerPort": 80, "name": "http", "protocol": "TCP"}]);
    assert_eq!(patched(live, patch)["spec"]["containers"][0]["ports"], wanted);
}

#[test]
fn null_removes_and_a_null_for_nothing_is_dropped() {
    let live = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": null}, "annotations": {"x": null, "y": "1"}}});
    assert_eq!(patched(live, patch), json!({"metadata": {"labels": {"b": "2"}, "annotations": {"y": "1"}}}));
}

#[test]
fn retain_keys_drops_the_other_members_of_a_union() {
    let live = spec(json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}));
    let patch = spec(json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}));
    assert_eq!(patched(live.clone(), patch), spec(json!({"strategy": {"type": "Recreate"}})));
    let stray = refusal(live, spec(json!({"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}})));
    assert_eq!(stray.code, 400);
    assert!(stray.message.contains("spec.strategy.type"), "{stray}");

    let live = spec(json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    let patch = spec(json!({
        "$setElementOrder/volumes": [{"name": "v"}, {"name": "w"}],
        "volumes": [
            {"$retainKeys": ["name", "configMap"], "name": "v", "configMap": {"name": "c"}},
            {"$retainKeys": ["name", "emptyDir"], "name": "w", "emptyDir": {}},
        ],
    }));
    assert_eq!(
        patched(live, patch),
        spec(json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]}))
    );
}

#[test]
fn the_patch_directive_replaces_and_deletes_objects() {
    let live = spec(json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}, "replicas": 1}));
    let replace = spec(json!({"strategy": {"$patch": "replace", "type": "Recreate"}}));
    assert_eq!(patched(live.clone(), replace)["spec"]["strategy"], json!({"type": "Recreate"}));
    let delete = spec(json!({"strategy": {"$patch": "delete"}}));
    assert_eq!(patched(live.clone(), delete.clone()), spec(json!({"strategy": {}, "replicas": 1})));
    assert_eq!(patched(spec(json!({})), delete), spec(json!({})));
    let unknown = refusal(live, spec(json!({"strategy": {"$patch": "mend"}})));
    assert!(unknown.message.contains("unknown patch type: \"mend\" at spec.strategy"), "{unknown}");
}

#[test]
fn the_patch_directive_replaces_and_deletes_in_lists() {
    let live = spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let delete = spec(json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}]}));
    assert_eq!(patched(live.clone(), delete), spec(json!({"containers": [{"name": "c"}, {"name": "b"}]})));
    let replace = spec(json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}));
    assert_eq!(patched(live.clone(), replace), spec(json!({"containers": [{"name": "c"}]})));
    let absent = spec(json!({"containers": [{"name": "z", "$patch": "delete"}]}));
    assert_eq!(patched(live.clone(), absent), live);
    let merge = refusal(live, spec(json!({"containers": [{"name": "a", "$patch": "merge"}]})));
    assert!(merge.message.contains("merging lists cannot yet be specified"), "{merge}");
}

#[test]
fn an_object_with_the_replace_strategy_is_replaced() {
    let live = spec(json!({"fixed": {"a": 1, "b": 2}}));
    assert_eq!(patched(live, spec(json!({"fixed": {"a": 3}}))), spec(json!({"fixed": {"a": 3}})));
}

#[test]
fn a_list_without_the_merge_strategy_is_replaced() {
    let live = spec(json!({"tolerations": [{"key": "a"}, {"key": "b"}], "containers": [{"name": "c", "args": ["x"]}]}));
    let patch = spec(json!({"tolerations": [{"key": "c"}], "containers": [{"name": "c", "args": []}]}));
    assert_eq!(
        patched(live, patch),
        spec(json!({"tolerations": [{"key": "c"}], "containers": [{"name": "c", "args": []}]}))
    );
}

#[test]
fn lists_of_values_merge_and_lose_values_by_directive() {
    let live = json!({"metadata": {"finalizers": ["a", "b"]}});
    let add = json!({"metadata": {"finalizers": ["b", "c"]}});
    assert_eq!(patched(live.clone(), add), json!({"metadata": {"finalizers": ["a", "b", "c"]}}));
    let remove = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a", "z"], "$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"],
    }});
    assert_eq!(patched(live.clone(), remove), json!({"metadata": {"finalizers": ["c", "b"]}}));
    let last = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "b"]}});
    assert_eq!(patched(live, last.clone()), json!({"metadata": {"finalizers": []}}));
    assert_eq!(patched(json!({"metadata": {}}), last), json!({"metadata": {}}));
}

#[test]
fn an_item_without_its_key_is_an_error_that_names_the_place() {
    let live = spec(json!({"containers": [{"name": "a"}]}));
    for item in [json!({"image": "x"}), json!({"$patch": "delete"})] {
        let error = refusal(live.clone(), spec(json!({"containers": [item]})));
        assert!(error.message.starts_with("spec.containers: map: "), "{error}");
        assert!(error.message.contains("does not contain declared merge key: name"), "{error}");
    }
}

#[test]
fn a_patch_of_the_wrong_form_is_refused() {
    assert_eq!(refusal(json!({}), json!([])).code, 400);
    assert_eq!(refusal(spec(json!({})), spec(json!({"$setElementOrder/containers": "a"}))).code, 400);
    assert_eq!(refusal(spec(json!({})), spec(json!({"$retainKeys": "a"}))).code, 400);
    let live = spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let patch = spec(json!({
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{"name": "b"}, {"name": "a"}],
    }));
    assert!(refusal(live.clone(), patch).message.contains("doesn't match $setElementOrder/"));
    assert!(refusal(live, spec(json!({"containers": ["a"]}))).message.contains("aren't all objects"));
}

#[test]
fn what_has_another_shape_is_replaced() {
    assert_eq!(patched(spec(json!({"a": [1]})), spec(json!({"a": {"b": null, "c": 1}}))), spec(json!({"a": {"c": 1}})));
    assert_eq!(patched(spec(json!({"a": {"b": 1}})), spec(json!({"a": "x"}))), spec(json!({"a": "x"})));
}

#[test]
fn long_lists_are_merged_in_proportion_to_their_length() {
    let names =
        |from: usize| -> Vec<Value> { (from..from + 20_000).map(|at| json!({"name": at.to_string()})).collect() };
    let texts = |from: usize| -> Vec<String> { (from..from + 20_000).map(|at| at.to_string()).collect() };
    let live = json!({"metadata": {"finalizers": texts(0)}, "spec": {"containers": names(0)}});
    let patch = json!({"metadata": {"finalizers": texts(10_000)}, "spec": {"containers": names(10_000)}});
    let merged = patched(live, patch);
    assert_eq!(merged["metadata"]["finalizers"].as_array().map(Vec::len), Some(30_000));
    assert_eq!(merged["spec"]["containers"].as_array().map(Vec::len), Some(30_000));
}
