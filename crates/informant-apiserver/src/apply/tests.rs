//! What a real 1.37 server made of the same applies. Kinds: ConfigMap, Deployment and Service with their real schemas, and a
//! custom kind with a field of every sort.

mod properties;

use std::sync::{Arc, LazyLock};

use serde_json::json;

use super::*;
use crate::managed_fields::{keep_times_of_unchanged, track_update};
use crate::resource::{Resource, ResourceSchema};
use crate::schema::Definitions;
use crate::status::Reason;

/// The table is read once: its schemas are parsed when they are first looked at.
static RESOURCES: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(crate::builtin::resources);

/// An object that is applied to, step by step; each step is a second later.
struct Cluster {
    schema: ResourceSchema,
    api_version: &'static str,
    kind: &'static str,
    live: Option<Value>,
    seconds: u32,
}

impl Cluster {
    fn of(api_version: &'static str, kind: &'static str) -> Self {
        let resource = RESOURCES.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version);
        let schema = resource.map_or_else(custom_schema, |resource| resource.schema.clone());
        Self { schema, api_version, kind, live: None, seconds: 0 }
    }

    fn object(&self, fields: Value) -> Value {
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": "x"}});
        for (name, value) in fields.as_object().unwrap() {
            match (name.as_str(), value) {
                ("metadata", Value::Object(fields)) => {
                    object["metadata"].as_object_mut().unwrap().extend(fields.clone())
                }
                _ => object[name] = value.clone(),
            }
        }
        object
    }

    fn try_apply(&mut self, manager: &str, fields: Value, force: bool) -> Result<&mut Self, Status> {
        self.seconds += 1;
        let now = format!("2026-12-01T06:00:{:02}Z", self.seconds);
        let writer = Writer { manager, api_version: self.api_version, subresource: "", now: &now };
        let mut applied = apply(self.live.as_ref(), &self.object(fields), self.schema.view(), &writer, force)?;
        if let Some(live) = &self.live {
            keep_times_of_unchanged(live, &mut applied);
        }
        self.live = Some(applied);
        Ok(self)
    }

    fn apply(&mut self, manager: &str, fields: Value) -> &mut Self {
        self.try_apply(manager, fields, false).unwrap_or_else(|status| panic!("{status}"))
    }

    fn force(&mut self, manager: &str, fields: Value) -> &mut Self {
        self.try_apply(manager, fields, true).unwrap_or_else(|status| panic!("{status}"))
    }

    /// A create or an update: the object then has these fields beside its metadata.
    fn update(&mut self, manager: &str, fields: Value) -> &mut Self {
        self.seconds += 1;
        let now = format!("2026-12-01T06:00:{:02}Z", self.seconds);
        let writer = Writer { manager, api_version: self.api_version, subresource: "", now: &now };
        let mut new = self.object(fields);
        track_update(self.live.as_ref(), &mut new, self.schema.view(), &writer);
        self.live = Some(new);
        self
    }

    fn conflict(&mut self, manager: &str, fields: Value) -> Status {
        match self.try_apply(manager, fields, false) {
            Ok(cluster) => panic!("no conflict: {:?}", cluster.live),
            Err(status) => status,
        }
    }

    fn get(&self, pointer: &str) -> Value {
        self.live.as_ref().unwrap().pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    /// `manager operation seconds` and fields of each entry.
    fn owners(&self) -> Value {
        let entries = self.get("/metadata/managedFields");
        let described = |entry: &Value| {
            let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
            let time = text("time").replace("2026-12-01T06:00:", "").replace('Z', "");
            json!([format!("{} {} {time}", text("manager"), text("operation")), entry["fieldsV1"]])
        };
        entries.as_array().unwrap_or(&Vec::new()).iter().map(described).collect()
    }
}

fn custom_schema() -> ResourceSchema {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let mut atomic = texts.clone();
    atomic["x-kubernetes-map-type"] = json!("atomic");
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "plain": {"type": "array", "items": text},
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text,
                "opts": {"type": "object", "properties": {"a": text, "b": text}},
            }},
        },
        "gran": texts,
        "atom": atomic,
        "struct": {"type": "object", "properties": {"a": text, "deep": {"type": "object", "properties": {"x": text}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    ResourceSchema::new(serde_json::from_value(schema).unwrap(), Arc::new(Definitions::default()))
}

fn config_map() -> Cluster {
    Cluster::of("v1", "ConfigMap")
}

fn widget() -> Cluster {
    Cluster::of("demo.example.org/v1", "Widget")
}

fn data(data: Value) -> Value {
    json!({"data": data})
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn deployment(containers: Value) -> Value {
    json!({"spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}},
    }})
}

#[test]
fn an_apply_creates_the_object_and_owns_what_it_says() {
    let mut cluster = config_map();
    cluster.apply("one", json!({"metadata": {"labels": {"x": "y"}}, "data": {"a": "1", "b": "2"}}));
    assert_eq!(cluster.get("/data"), json!({"a": "1", "b": "2"}));
    let fields = json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:data": {"f:a": {}, "f:b": {}}});
    assert_eq!(cluster.owners(), json!([["one Apply 01", fields]]));
}

#[test]
fn the_same_apply_again_changes_nothing_not_even_the_time() {
    let mut cluster = config_map();
    cluster.apply("one", data(json!({"a": "1"})));
    let first = cluster.live.clone();
    cluster.apply("one", data(json!({"a": "1"})));
    assert_eq!(cluster.live, first);
}

#[test]
fn what_a_manager_no_longer_applies_goes() {
    let mut cluster = config_map();
    cluster.apply("one", json!({"metadata": {"labels": {"l": "1"}}, "data": {"a": "1", "b": "2"}}));
    cluster.apply("one", data(json!({"a": "1"})));
    assert_eq!(cluster.get("/data"), json!({"a": "1"}));
    assert_eq!(cluster.get("/metadata/labels"), Value::Null);
    cluster.apply("one", json!({}));
    assert_eq!(cluster.get("/data"), Value::Null);
    assert_eq!(cluster.owners(), json!([]));
}

#[test]
fn another_owner_with_another_value_is_a_conflict_with_a_cause_for_each_field() {
    let mut cluster = config_map();
    cluster.apply("one", data(json!({"a": "1", "b": "2"})));
    let status = cluster.conflict("two", data(json!({"a": "9"})));
    assert_eq!((status.code, status.reason), (409, Reason::Conflict));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"});
    assert_eq!(status.to_value()["details"], json!({"causes": [cause]}));
    let status = cluster.conflict("two", data(json!({"a": "9", "b": "8"})));
    assert_eq!(status.message, "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b");
    assert_eq!(cluster.get("/data"), json!({"a": "1", "b": "2"}));
}

#[test]
fn force_takes_the_field_from_its_owner() {
    let mut cluster = config_map();
    cluster.apply("one", data(json!({"a": "1", "b": "2"}))).force("two", data(json!({"a": "9"})));
    assert_eq!(cluster.get("/data"), json!({"a": "9", "b": "2"}));
    assert_eq!(
        cluster.owners(),
        json!([["one Apply 01", {"f:data": {"f:b": {}}}], ["two Apply 02", {"f:data": {"f:a": {}}}]])
    );
    let status = cluster.conflict("one", data(json!({"a": "1", "b": "2"})));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"two\": .data.a");
}

#[test]
fn an_owner_by_update_is_named_with_its_version() {
    let mut cluster = config_map();
    cluster.update("creator", data(json!({"a": "1"})));
    let status = cluster.conflict("one", data(json!({"a": "2"})));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"creator\" using v1: .data.a");
}

#[test]
fn equal_values_are_shared_and_stay_until_the_last_owner_gives_them_up() {
    let mut cluster = config_map();
    cluster.apply("one", data(json!({"a": "1", "b": "2"}))).apply("two", data(json!({"a": "1"})));
    // Whoever joins without a change has no time yet.
    assert_eq!(
        cluster.owners(),
        json!([["two Apply -", {"f:data": {"f:a": {}}}], ["one Apply 01", {"f:data": {"f:a": {}, "f:b": {}}}]])
    );
    cluster.apply("one", data(json!({"b": "2"})));
    assert_eq!(cluster.get("/data"), json!({"a": "1", "b": "2"}));
    cluster.apply("two", json!({}));
    assert_eq!(cluster.get("/data"), json!({"b": "2"}));
}

#[test]
fn what_an_updater_still_owns_stays() {
    let mut cluster = config_map();
    cluster
        .update("creator", data(json!({"a": "1", "b": "2"})))
        .apply("one", data(json!({"a": "1"})))
        .apply("one", json!({}));
    assert_eq!(cluster.get("/data"), json!({"a": "1", "b": "2"}));
}

#[test]
fn an_object_that_nobody_tracked_belongs_to_nobody_in_particular() {
    let mut cluster = config_map();
    cluster.live = Some(cluster.object(data(json!({"a": "1"}))));
    cluster.apply("one", data(json!({"q": "1"})));
    assert_eq!(
        cluster.owners(),
        json!([
            ["one Apply 01", {"f:data": {"f:q": {}}}],
            ["before-first-apply Update 01", {"f:data": {".": {}, "f:a": {}}}],
        ])
    );
}

#[test]
fn sets_keyed_lists_and_maps_are_shared_by_item() {
    let mut cluster = widget();
    cluster.apply("one", spec(json!({
        "size": 1, "tags": ["a", "b"], "plain": ["p"], "ports": [{"port": 80, "name": "x"}, {"port": 80, "protocol": "UDP"}],
        "gran": {"a": "1"}, "atom": {"b": "2"}, "struct": {"a": "1", "deep": {"x": "1"}}, "free": {"q": {"r": [1]}},
    })));
    let one = json!({"f:spec": {
        "f:size": {}, "f:plain": {}, "f:atom": {}, "f:gran": {"f:a": {}}, "f:struct": {"f:a": {}, "f:deep": {"f:x": {}}},
        "f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}, "f:free": {"f:q": {".": {}, "f:r": {}}},
        "f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
        },
    }});
    assert_eq!(cluster.owners(), json!([["one Apply 01", one]]));
    cluster.apply("two", spec(json!({
        "tags": ["c", "a"], "ports": [{"port": 80, "opts": {"a": "1"}}], "gran": {"b": "2"}, "free": {"q": {"z": 1}, "n": {}},
    })));
    assert_eq!(
        cluster.get("/spec/ports"),
        json!([{"port": 80, "name": "x", "opts": {"a": "1"}}, {"port": 80, "protocol": "UDP"}])
    );
    assert_eq!(cluster.get("/spec/free"), json!({"q": {"r": [1], "z": 1}, "n": {}}));
    let status = cluster.conflict("two", spec(json!({"plain": ["q"], "atom": {"c": "3"}})));
    assert_eq!(status.message, "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.atom\n- .spec.plain");
    cluster.apply("one", json!({}));
    assert_eq!(
        cluster.get("/spec"),
        json!({
            "tags": ["c", "a"], "ports": [{"port": 80, "opts": {"a": "1"}}], "gran": {"b": "2"},
            "free": {"q": {"z": 1}, "n": {}},
        })
    );
}

#[test]
fn the_last_apply_decides_the_order_and_others_items_stay_between() {
    let mut cluster = widget();
    let mut tags = |manager: &str, tags: Value| {
        cluster.apply(manager, spec(json!({"tags": tags})));
        cluster.get("/spec/tags")
    };
    assert_eq!(tags("one", json!(["a", "b", "c", "d"])), json!(["a", "b", "c", "d"]));
    assert_eq!(tags("two", json!(["d", "x", "b"])), json!(["a", "c", "d", "x", "b"]));
    assert_eq!(tags("three", json!(["y", "a"])), json!(["y", "a", "c", "d", "x", "b"]));
    assert_eq!(tags("three", json!(["c", "a", "z"])), json!(["c", "d", "x", "b", "a", "z"]));
}

#[test]
fn containers_are_merged_by_name_and_removed_with_their_last_owner() {
    let mut cluster = Cluster::of("apps/v1", "Deployment");
    let names = |cluster: &Cluster| -> Vec<String> {
        let containers = cluster.get("/spec/template/spec/containers");
        containers.as_array().unwrap().iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    cluster.apply("one", deployment(json!([container("a", "a"), container("b", "b"), container("c", "c")])));
    cluster.apply("one", deployment(json!([container("c", "c"), container("x", "x"), container("a", "a")])));
    assert_eq!(names(&cluster), ["c", "x", "a"]);
    cluster.apply(
        "two",
        deployment(json!([container("y", "y"), container("a", "a"), container("w", "w"), container("c", "c")])),
    );
    assert_eq!(names(&cluster), ["x", "y", "a", "w", "c"]);
    cluster.apply("one", deployment(json!([container("a", "a")])));
    assert_eq!(names(&cluster), ["y", "a", "w", "c"]);
    let status = cluster.conflict("two", deployment(json!([container("a", "a:2")])));
    let path = ".spec.template.spec.containers[name=\"a\"].image";
    assert_eq!(status.message, format!("Apply failed with 1 conflict: conflict with \"one\": {path}"));
}

#[test]
fn a_key_that_is_left_out_counts_as_its_default() {
    let mut cluster = Cluster::of("v1", "Service");
    cluster.apply(
        "one",
        spec(json!({"ports": [{"port": 80, "name": "a"}, {"port": 53, "protocol": "UDP", "name": "u"}]})),
    );
    cluster.apply("two", spec(json!({"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080, "name": "a"}]})));
    assert_eq!(cluster.get("/spec/ports/0"), json!({"port": 80, "protocol": "TCP", "targetPort": 8080, "name": "a"}));
    assert_eq!(cluster.get("/spec/ports/1/port"), 53);
    cluster.apply("one", spec(json!({"ports": [{"port": 53, "protocol": "UDP", "name": "u"}]})));
    assert_eq!(cluster.get("/spec/ports").as_array().map(Vec::len), Some(2));
}

#[test]
fn metadata_lists_are_merged_in_every_kind() {
    for mut cluster in [config_map(), widget()] {
        let owner = |uid: &str, name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
        cluster.apply(
            "one",
            json!({"metadata": {"finalizers": ["e.org/a", "e.org/b"], "ownerReferences": [owner("1", "p")]}}),
        );
        cluster.apply("two", json!({"metadata": {"finalizers": ["e.org/c"], "ownerReferences": [owner("2", "q")]}}));
        assert_eq!(cluster.get("/metadata/finalizers"), json!(["e.org/a", "e.org/b", "e.org/c"]));
        let status = cluster.conflict("two", json!({"metadata": {"ownerReferences": [owner("1", "z")]}}));
        assert!(status.message.ends_with("conflict with \"one\": .metadata.ownerReferences[uid=\"1\"]"), "{status}");
        cluster.apply("one", json!({"metadata": {"finalizers": ["e.org/b"]}}));
        assert_eq!(cluster.get("/metadata/finalizers"), json!(["e.org/b", "e.org/c"]));
        assert_eq!(cluster.get("/metadata/ownerReferences"), json!([owner("2", "q")]));
    }
}

#[test]
fn an_empty_list_or_map_takes_nothing_away() {
    let mut cluster = widget();
    cluster.apply("one", spec(json!({"tags": [], "gran": {}, "struct": {}})));
    cluster.apply("two", spec(json!({"tags": ["x"], "gran": {"y": "z"}, "struct": {"a": "1"}})));
    cluster.apply("one", spec(json!({"tags": [], "gran": {}, "struct": {}})));
    assert_eq!(cluster.get("/spec"), json!({"tags": ["x"], "gran": {"y": "z"}, "struct": {"a": "1"}}));
}

#[test]
fn what_is_owned_stays_as_an_empty_object_when_its_last_field_is_given_up() {
    let mut cluster = widget();
    cluster.apply("one", spec(json!({"struct": {}, "gran": {}, "free": {"q": {}}})));
    cluster.apply("two", spec(json!({"struct": {"a": "1"}, "gran": {"b": "1"}, "free": {"q": {"r": 1}}})));
    cluster.apply("two", json!({}));
    assert_eq!(cluster.get("/spec"), json!({"struct": {}, "gran": {}, "free": {"q": {}}}));
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client_side() {
    let mut cluster = config_map();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1", "b": "2"}});
    let metadata = json!({"annotations": {annotation: last.to_string()}});
    cluster.update("kubectl-client-side-apply", json!({"metadata": metadata, "data": {"a": "1", "b": "2"}}));
    assert_eq!(cluster.conflict("someone", data(json!({"a": "5"}))).code, 409);
    cluster.apply("kubectl", data(json!({"a": "5", "b": "2"})));
    assert_eq!(cluster.get("/data/a"), "5");
    let text = cluster.get("/metadata/annotations")[annotation].as_str().unwrap().to_owned();
    assert!(text.ends_with("}\n"), "{text:?}");
    let applied: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(applied["data"], json!({"a": "5", "b": "2"}));
    // What somebody else has changed since is a conflict also for kubectl.
    let annotations = json!({"annotations": {annotation: text}});
    cluster.update("intruder", json!({"metadata": annotations, "data": {"a": "9", "b": "2"}}));
    let status = cluster.conflict("kubectl", data(json!({"a": "6", "b": "2"})));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"intruder\" using v1: .data.a");
}

#[test]
fn managed_fields_in_the_body_are_refused() {
    let status = config_map().conflict("one", json!({"metadata": {"managedFields": []}}));
    assert_eq!((status.code, status.message.as_str()), (400, "metadata.managedFields must be nil"));
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_with_the_path() {
    let cases = [
        (json!({"tags": ["a", "a"]}), ".spec.tags: duplicate entries for key [=\"a\"]"),
        (json!({"size": "big"}), ".spec.size: expected numeric (int or float), got \"big\""),
        (json!({"unknown": 1}), ".spec.unknown: field not declared in schema"),
        (json!({"gran": "x"}), ".spec.gran: expected map, got \"x\""),
        (json!({"tags": {"a": 1}}), ".spec.tags: expected list, got {\"a\":1}"),
        (json!({"gran": {"a": 1}}), ".spec.gran.a: expected string, got 1"),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (json!({"ports": ["x"]}), ".spec.ports: element 0: associative list with keys may not have non-map elements"),
    ];
    for (fields, why) in cases {
        let status = widget().conflict("one", spec(fields));
        assert_eq!(status.code, 500);
        let wanted = format!("failed to create typed patch object (/x; demo.example.org/v1, Kind=Widget): {why}");
        assert_eq!(status.message, wanted);
    }
    let status = widget().conflict("one", spec(json!({"a": 1, "b": 2})));
    assert!(status.message.contains("errors:\n  .spec.a: field not declared in schema\n  .spec.b: "), "{status}");
}

#[test]
fn what_is_wrong_with_a_large_configuration_is_named_up_to_a_bound() {
    let fields: Map<String, Value> = (0..5_000).map(|at| (format!("f{at}"), json!("x"))).collect();
    let status = widget().conflict("one", spec(json!(fields)));
    assert_eq!(status.message.matches("field not declared in schema").count(), 100);
    let status = widget().conflict("one", spec(json!({"size": "x".repeat(1_000_000)})));
    assert!(status.message.len() < 1_000, "{}", status.message.len());
    let mut cluster = config_map();
    let owned: Map<String, Value> = (0..2_000).map(|at| (format!("f{at}"), json!("1"))).collect();
    let wanted: Map<String, Value> = (0..2_000).map(|at| (format!("f{at}"), json!("2"))).collect();
    cluster.apply("one", data(json!(owned)));
    let status = cluster.conflict("two", data(json!(wanted)));
    assert!(status.message.starts_with("Apply failed with 2000 conflicts: "), "{}", status.message.len());
    assert_eq!(status.details.map(|details| details.causes.len()), Some(1_000));
}

#[test]
fn a_list_of_thousands_is_applied_in_a_moment() {
    let mut cluster = widget();
    let tags = |from: usize| -> Vec<String> { (from..from + 10_000).map(|at| at.to_string()).collect() };
    cluster.apply("one", spec(json!({"tags": tags(0)}))).apply("two", spec(json!({"tags": tags(5_000)})));
    assert_eq!(cluster.get("/spec/tags").as_array().map(Vec::len), Some(15_000));
    cluster.apply("one", json!({}));
    assert_eq!(cluster.get("/spec/tags").as_array().map(Vec::len), Some(10_000));
}

#[test]
fn null_is_the_zero_value_in_a_built_in_map_and_itself_in_a_custom_kind() {
    let mut cluster = config_map();
    cluster.apply("one", data(json!({"a": "1"}))).apply("one", data(json!({"a": null})));
    assert_eq!(cluster.get("/data"), json!({"a": ""}));
    let mut cluster = widget();
    cluster.apply("one", spec(json!({"size": null})));
    assert_eq!(cluster.live.unwrap()["spec"], json!({"size": null}));
}
