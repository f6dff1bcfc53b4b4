//! What a real 1.37 server wrote into managedFields after the same writes.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::resource::{Resource, ResourceSchema};

/// The table is read once: its schemas are parsed when they are first looked at.
static RESOURCES: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(crate::builtin::resources);

fn schema(api_version: &str, kind: &str) -> ResourceSchema {
    let found = RESOURCES.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version);
    found.unwrap_or_else(|| panic!("no {kind}")).schema.clone()
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

/// The object after a write of `manager` at that second.
fn written(old: Option<&Value>, mut new: Value, manager: &str, second: u32) -> Value {
    let now = format!("2026-12-01T06:00:{second:02}Z");
    let writer = Writer { manager, api_version: "v1", subresource: "", now: &now };
    track_update(old, &mut new, schema("v1", "ConfigMap").view(), &writer);
    new
}

/// `manager seconds` and fields of each entry.
fn owners(object: &Value) -> Value {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let described = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        json!([
            format!("{} {}", text("manager"), text("time").replace("2026-12-01T06:00:", "").replace('Z', "")),
            entry["fieldsV1"]
        ])
    };
    entries.iter().map(described).collect()
}

#[test]
fn a_creator_owns_everything_but_what_belongs_to_the_server() {
    let mut new = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {
            "name": "x", "namespace": "default", "uid": "1", "resourceVersion": "2", "generation": 1, "selfLink": "/",
            "creationTimestamp": "2026-12-01T06:00:00Z", "labels": {"l": "1"}, "finalizers": ["e.org/a"],
        },
    });
    let writer = Writer { manager: "", api_version: "v1", subresource: "", now: "2026-12-01T06:00:01Z" };
    track_update(None, &mut new, schema("v1", "ConfigMap").view(), &writer);
    assert_eq!(
        new["metadata"]["managedFields"],
        json!([{
            "manager": "unknown", "operation": "Update", "apiVersion": "v1", "time": "2026-12-01T06:00:01Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:finalizers": {".": {}, "v:\"e.org/a\"": {}}, "f:labels": {".": {}, "f:l": {}}},
            },
        }])
    );
}

#[test]
fn structs_that_are_always_there_are_not_owned_but_their_fields_are() {
    let mut new = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"securityContext": {}, "containers": [{
                "name": "a", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "Y", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }]}},
        },
    });
    let writer = Writer { manager: "creator", api_version: "apps/v1", subresource: "", now: "2026-12-01T06:00:01Z" };
    track_update(None, &mut new, schema("apps/v1", "Deployment").view(), &writer);
    let container = json!({
        ".": {}, "f:name": {}, "f:resources": {},
        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}},
        "f:env": {".": {}, "k:{\"name\":\"Y\"}": {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}}},
    });
    assert_eq!(
        new["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:securityContext": {}, "f:containers": {"k:{\"name\":\"a\"}": container}},
            },
        }})
    );
}

#[test]
fn an_update_takes_the_fields_that_it_changes() {
    let first = written(None, config_map(json!({"a": "1", "b": "1"})), "one", 1);
    let mut next = first.clone();
    next["data"] = json!({"a": "2", "b": "1", "c": "1"});
    let second = written(Some(&first), next, "two", 2);
    assert_eq!(
        owners(&second),
        json!([["one 01", {"f:data": {".": {}, "f:b": {}}}], ["two 02", {"f:data": {"f:a": {}, "f:c": {}}}]])
    );
}

#[test]
fn a_write_that_changes_nothing_changes_no_time() {
    let first = written(None, config_map(json!({"a": "1"})), "one", 1);
    for manager in ["one", "two"] {
        assert_eq!(written(Some(&first), first.clone(), manager, 2), first);
    }
}

#[test]
fn a_removed_field_is_owned_by_nobody_and_removing_gains_nothing() {
    let first = written(None, config_map(json!({"a": "1", "b": "1"})), "one", 1);
    let mut next = first.clone();
    next["data"] = json!({"a": "1"});
    let second = written(Some(&first), next, "two", 2);
    assert_eq!(owners(&second), json!([["one 01", {"f:data": {".": {}, "f:a": {}}}]]));
    let mut next = second.clone();
    next.as_object_mut().unwrap().remove("data");
    assert_eq!(owners(&written(Some(&second), next, "two", 3)), json!([]));
}

#[test]
fn one_manager_has_an_entry_for_each_version_and_subresource() {
    let first = written(None, config_map(json!({"a": "1"})), "one", 1);
    let mut next = first.clone();
    next["data"]["b"] = json!("1");
    let now = "2026-12-01T06:00:02Z";
    let writer = Writer { manager: "one", api_version: "v1", subresource: "status", now };
    track_update(Some(&first), &mut next, schema("v1", "ConfigMap").view(), &writer);
    let entries = next["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
}

#[test]
fn an_empty_list_or_an_empty_entry_resets_and_then_nobody_is_tracked() {
    let first = written(None, config_map(json!({"a": "1"})), "one", 1);
    for reset in [json!([]), json!([{}])] {
        let mut next = first.clone();
        next["metadata"]["managedFields"] = reset;
        let mut second = written(Some(&first), next, "two", 2);
        assert_eq!(second["metadata"].get("managedFields"), None);
        second["data"]["b"] = json!("2");
        let third = written(Some(&first), first.clone(), "two", 3);
        assert_eq!(third, first, "a request that says nothing of managedFields keeps them");
        let old = second.clone();
        assert_eq!(written(Some(&old), second, "two", 4)["metadata"].get("managedFields"), None);
    }
}

#[test]
fn a_request_may_edit_entries_but_not_break_them() {
    let first = written(None, config_map(json!({"a": "1"})), "one", 1);
    let entry = |operation: &str, fields_type: &str, fields: Value| {
        json!([{
            "manager": "x", "operation": operation, "apiVersion": "v1", "fieldsType": fields_type, "fieldsV1": fields,
        }])
    };
    let mut next = first.clone();
    next["metadata"]["managedFields"] = entry("Apply", "FieldsV1", json!({"f:data": {"f:a": {}}}));
    assert_eq!(owners(&written(Some(&first), next, "two", 2)), json!([["x -", {"f:data": {"f:a": {}}}]]));
    for broken in [
        entry("Nonsense", "FieldsV1", json!({"f:data": {}})),
        entry("Update", "Other", json!({"f:data": {}})),
        entry("Update", "FieldsV1", json!({"bad": {}})),
        json!("x"),
        json!(null),
    ] {
        let mut next = first.clone();
        next["metadata"]["managedFields"] = broken;
        assert_eq!(written(Some(&first), next, "two", 2), first);
    }
}

#[test]
fn past_ten_updaters_the_oldest_are_merged() {
    let mut object = written(None, config_map(json!({"k": "0"})), "creator", 0);
    for index in 0..13u32 {
        let mut next = object.clone();
        next["data"][format!("k{index}")] = json!("1");
        object = written(Some(&object), next, &format!("m{index:02}"), index + 1);
    }
    let managers: Vec<String> =
        owners(&object).as_array().unwrap().iter().map(|entry| entry[0].as_str().unwrap().to_owned()).collect();
    let rest = (4..13).map(|index| format!("m{index:02} {:02}", index + 1));
    assert_eq!(managers, ["ancient-changes 04".to_owned()].into_iter().chain(rest).collect::<Vec<_>>());
    let fields = json!({"f:data": {".": {}, "f:k": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}});
    assert_eq!(owners(&object)[0][1], fields);
}

#[test]
fn entries_are_listed_applies_first_then_by_time_and_name() {
    let entry = |manager: &str, operation: &str, time: Option<u32>| {
        let mut entry = json!({
            "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        });
        if let Some(time) = time {
            entry["time"] = json!(format!("2026-12-01T06:00:{time:02}Z"));
        }
        entry
    };
    let sorted = json!([
        entry("z", "Apply", None),
        entry("b", "Apply", Some(2)),
        entry("c", "Apply", Some(2)),
        entry("a", "Apply", Some(3)),
        entry("y", "Update", Some(1)),
        entry("x", "Update", Some(4)),
    ]);
    let mut shuffled = sorted.clone();
    shuffled.as_array_mut().unwrap().reverse();
    let mut object = json!({"metadata": {}});
    ManagedFields::decode(&shuffled).unwrap().write(&mut object);
    assert_eq!(object["metadata"]["managedFields"], sorted);
}

#[test]
fn only_a_change_of_times_is_taken_back() {
    let old = written(None, config_map(json!({"a": "1"})), "one", 1);
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2026-12-01T06:00:09Z");
    let mut same = new.clone();
    keep_times_of_unchanged(&old, &mut same);
    assert_eq!(same, old);
    let mut changed = new.clone();
    changed["data"]["a"] = json!("2");
    let unchanged = changed.clone();
    keep_times_of_unchanged(&old, &mut changed);
    assert_eq!(changed, unchanged);
}

#[test]
fn a_field_that_has_become_atomic_is_owned_as_a_whole() {
    let atomic = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    }}}});
    let schema = ResourceSchema::new(serde_json::from_value(atomic).unwrap(), std::sync::Arc::default());
    let entries = json!([{
        "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:list": {"v:\"a\"": {}}, "f:map": {".": {}, "f:x": {}}, "f:other": {"f:y": {}}}},
    }]);
    let managed = ManagedFields::decode(&entries).unwrap().reconciled(Place::root(schema.view()));
    let mut object = json!({});
    managed.write(&mut object);
    assert_eq!(
        object["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:list": {}, "f:map": {}, "f:other": {"f:y": {}}}})
    );
}

proptest! {
    #[test]
    fn each_field_of_the_data_has_exactly_one_updater(
        steps in prop::collection::vec((0..3usize, prop::collection::btree_map("[abc]", "[12]", 0..4)), 1..8)
    ) {
        let mut object: Option<Value> = None;
        for (second, (manager, data)) in (1..).zip(steps) {
            let mut next = object.clone().unwrap_or_else(|| config_map(json!({})));
            next["data"] = json!(data);
            object = Some(written(object.as_ref(), next, ["one", "two", "three"][manager], second));
        }
        let object = object.unwrap();
        let managed = ManagedFields::read(&object).unwrap();
        let place_schema = schema("v1", "ConfigMap");
        let all = crate::field_set::object::field_set(Place::root(place_schema.view()), &json!({"data": object["data"]}));
        for path in all.paths() {
            let owners = managed.iter().filter(|(_, entry)| entry.fields.has(&path)).count();
            prop_assert_eq!(owners, 1, "{}", crate::field_set::path_text(&path));
        }
    }
}
