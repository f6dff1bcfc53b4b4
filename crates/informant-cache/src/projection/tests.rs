//! Projections of JSON documents, held against the same paths walked in `serde_json::Value`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::found::Raw;
use super::plan::{Node, Pick};
use super::{Field, Projected, Step, Strings, json as walker};
use crate::Projection;
use crate::document::Document;
use crate::object::Metadata;
use crate::representation::{Held, Representation};

#[derive(Debug, PartialEq, Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct PodView {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.namespace")]
    namespace: Option<Arc<str>>,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "metadata.annotations[\"example.com/x\"]")]
    note: Option<String>,
    #[projection(path = "metadata.generation", default)]
    generation: i64,
    #[projection(path = "metadata.deletionTimestamp")]
    deleted: Option<String>,
    #[projection(path = "metadata.ownerReferences")]
    owners: Vec<OwnerReference>,
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    images: Vec<Arc<str>>,
    #[projection(path = "spec.containers[*].ports[*].containerPort")]
    ports: Vec<u16>,
    #[projection(path = "spec.containers[1].name")]
    second: Option<String>,
    #[projection(path = "status.conditions[type=Ready].status")]
    ready: Option<Arc<str>>,
    #[projection(path = "status.conditions[type=Ready].reason")]
    reason: Option<String>,
    #[projection(path = "spec.affinity")]
    affinity: Option<Affinity>,
    #[projection(path = "spec.hostNetwork", default)]
    host_network: bool,
}

fn project(text: &str) -> PodView {
    Document::json(text.as_bytes()).project().unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn each_field_is_taken_from_its_path_and_the_rest_is_not_looked_at() {
    let text = r#" { "kind" : "Pod", "metadata": {"name": "a\u0062", "namespace": "web", "labels": {"app": "x", "tier": "y"},
        "annotations": {"example.com/x": "note", "other": "\"}{"}, "generation": 7, "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": true}],
        "managedFields": [{"nobody": ["looks", "here"]}]},
        "spec": {"hostNetwork": true, "nodeName": "n1", "containers": [
            {"name": "one", "image": "i:1", "ports": [{"containerPort": 80}, {"containerPort": 443}]},
            {"name": "two", "image": null, "ports": null},
            {"image": "i:2", "ports": [{"containerPort": 8080, "name": "x"}]}],
          "affinity": {"nodeAffinity": {}}},
        "status": {"conditions": [{"type": "Initialized", "status": "False"}, {"status": "True", "type": "Ready", "reason": "R"},
            {"type": "Ready", "status": "no, it's the first"}], "unknown": tru }}  "#;
    let pod = project(text);
    assert_eq!((pod.name.as_str(), pod.namespace.as_deref(), pod.node.as_deref()), ("ab", Some("web"), Some("n1")));
    assert_eq!(
        pod.labels.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>(),
        [("app", "x"), ("tier", "y")]
    );
    assert_eq!(pod.images.iter().map(|image| &**image).collect::<Vec<_>>(), ["i:1", "i:2"]);
    assert_eq!((pod.ports.as_slice(), pod.second.as_deref()), (&[80, 443, 8080][..], Some("two")));
    assert_eq!((pod.ready.as_deref(), pod.reason.as_deref(), pod.host_network), (Some("True"), Some("R"), true));
    assert_eq!(pod.affinity, Some(Affinity { node_affinity: Some(Default::default()), ..Default::default() }));

    assert_eq!((Metadata::name(&pod), Metadata::namespace(&pod), pod.uid()), ("ab", Some("web"), None));
    assert_eq!(
        (pod.label("tier"), pod.label("none"), pod.annotation("example.com/x")),
        (Some("y"), None, Some("note"))
    );
    assert_eq!((Metadata::generation(&pod), pod.is_deleting(), pod.annotation("other")), (Some(7), true, None));
    let owners = Metadata::owners(&pod);
    assert_eq!((owners.len(), owners[0].kind, owners[0].controller), (1, "ReplicaSet", true));
}

#[test]
fn what_is_absent_or_null_is_none_empty_or_default() {
    let empty =
        project(r#"{"metadata": {"name": "a", "labels": null, "generation": null}, "spec": null, "status": {}}"#);
    assert_eq!(empty, project(r#"{"metadata":{"name":"a"}}"#));
    assert_eq!((empty.node, empty.ready, empty.generation), (None, None, 0));
    assert!(empty.labels.is_empty() && empty.images.is_empty() && empty.owners.is_empty());
}

#[test]
fn an_object_that_is_not_as_the_struct_says_is_an_error_that_names_the_path_and_no_value() {
    for (text, shown) in [
        (r#"{"metadata": {}}"#, "metadata.name: it's absent, and the field `name` can't do without"),
        (r#"{"metadata": {"name": 5}}"#, "metadata.name: invalid type: integer, expected a string"),
        (
            r#"{"metadata": {"name": "a", "labels": {"a": {"x": "hunter2"}}}}"#,
            "metadata.labels.a: invalid type: map, expected a string",
        ),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"affinity": {"nodeAffinity": "hunter2"}}}"#,
            "spec.affinity.nodeAffinity: invalid type: string, expected NodeAffinity",
        ),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"ports": [{"containerPort": 99999}]}]}}"#,
            "spec.containers[*].ports[*].containerPort: invalid value: integer, expected u16",
        ),
        (r#"{"metadata": {"name": "a"}, "spec": "hunter2"}"#, "spec: found a text, expected an object"),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"containers": {}}}"#,
            "spec.containers: found an object, expected a list",
        ),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"containers": [5]}}"#,
            "spec.containers[*]: found a number, expected an object",
        ),
        ("[]", "the document: found a list, expected an object"),
        (r#"{"metadata": {"name": "a""#, "ends too early"),
        (r#"{"metadata" {"name": "a"}}"#, "isn't JSON"),
        ("", "ends too early"),
    ] {
        let error = Document::json(text.as_bytes()).project::<PodView>().expect_err(text).to_string();
        assert!(error.contains(shown), "{text}: {error}");
        assert!(!error.contains("hunter"), "{error}");
    }
}

#[test]
fn of_a_key_that_occurs_twice_the_last_counts() {
    let pod = project(
        r#"{"metadata": {"name": "old", "labels": {"a": "1"}}, "spec": {"nodeName": "old", "containers": [{"image": "old"}]},
            "metadata": {"name": "x", "name": "new", "\u006eame": "newer"},
            "spec": {"containers": [{"image": "a", "image": "b"}, {"image": "c", "image": null}]}}"#,
    );
    assert_eq!((pod.name.as_str(), pod.labels.len(), pod.node), ("newer", 0, None));
    assert_eq!(pod.images.iter().map(|image| &**image).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn texts_that_repeat_are_one_allocation_and_what_is_held_is_counted() {
    let text = |name: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"app":"web"}}}},"spec":{{"nodeName":"n1","containers":[{{"image":"n1"}}],
                "affinity":{{"podAffinity":{{}}}}}}}}"#
        )
    };
    let form = Projected::<PodView>::new();
    let hold = |name: &str| {
        let text = text(name);
        let document = Document::json(text.as_bytes());
        let held = form.hold(&document).expect(name);
        let bytes = form.held_bytes(&held, &document);
        (held.read(), bytes)
    };
    let ((a, a_bytes), (b, b_bytes)) = (hold("a"), hold("bcd"));
    assert!(Arc::ptr_eq(a.node.as_ref().unwrap(), b.node.as_ref().unwrap()));
    assert!(Arc::ptr_eq(a.node.as_ref().unwrap(), &b.images[0]));
    assert!(Arc::ptr_eq(&a.labels["app"], &b.labels["app"]));
    assert_eq!(b_bytes - a_bytes, 2, "their names differ by two bytes");
    let map = 11 * 32 + 16;
    let own = size_of::<PodView>() + 16 + "a".len() + map + 16 + r#"{"podAffinity":{}}"#.len();
    assert_eq!(a_bytes, own, "the struct, its name, its labels, its images and its affinity as JSON");
    // Without a table each has its own.
    let alone: PodView = Document::json(text("a").as_bytes()).project().expect("a Pod");
    assert!(!Arc::ptr_eq(alone.node.as_ref().unwrap(), &alone.images[0]));
    assert_eq!(alone, *a);
    assert!(matches!(form.hold(&Document::json(text("a").as_bytes())), Ok(Held::Full(_))));
}

#[test]
fn the_resource_is_that_of_the_kind() {
    #[derive(Projection)]
    #[projection(api_version = "example.com/v1", kind = "Sheep", plural = "sheep", cluster_scoped)]
    struct Sheep {
        #[projection(path = "spec.wool", default)]
        _wool: u32,
    }
    let sheep = Sheep::resource();
    assert_eq!((&*sheep.group, &*sheep.version, &*sheep.plural), ("example.com", "v1", "sheep"));
    assert_eq!((Sheep::KIND.cluster_scoped, PodView::KIND.cluster_scoped), (true, false));
    let pod = kube::api::ApiResource::erase::<Pod>(&());
    assert_eq!(PodView::resource(), pod);
}

#[test]
fn a_selector_compares_texts_numbers_and_booleans_and_only_what_it_selects_is_visited() {
    #[derive(Projection)]
    #[projection(api_version = "example.com/v1", kind = "Thing")]
    struct Thing {
        #[projection(path = "list[port=443].name")]
        number: Option<String>,
        #[projection(path = "list[main=true].name")]
        boolean: Option<String>,
        #[projection(path = "list[name=\"a b\"].in.side")]
        text: Option<u8>,
        #[projection(path = "list[port=443]")]
        whole: Option<Value>,
    }
    let text = br#"{"list": [5, "x", {"name": "z", "in": "no object"}, {"name": "p", "port": 443}, {"name": "a\u0020b", "in": {"side": 3}},
        {"main": true, "name": "m", "port": "443"}]}"#;
    let thing: Thing = Document::json(text).project().expect("a Thing");
    assert_eq!((thing.number.as_deref(), thing.boolean.as_deref(), thing.text), (Some("p"), Some("m"), Some(3)));
    assert_eq!(thing.whole, Some(json!({"name": "p", "port": 443})));
}

// === any path in any document ===

/// What a path leads to, the slow way.
pub(super) fn follow<'v>(value: &'v Value, steps: &[Step], found: &mut Vec<&'v Value>) -> Result<(), ()> {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return Ok(());
    };
    match (value, *step) {
        (Value::Null, _) => Ok(()),
        (Value::Object(map), Step::Key(key)) => map.get(key).map_or(Ok(()), |value| follow(value, rest, found)),
        (Value::Array(list), Step::Each) => list.iter().try_for_each(|value| follow(value, rest, found)),
        (Value::Array(list), Step::At(position)) => {
            list.get(position).map_or(Ok(()), |value| follow(value, rest, found))
        }
        (Value::Array(list), Step::Where(key, wanted)) => {
            let selected = list.iter().find(|element| match &element[key] {
                Value::String(text) => text == wanted,
                Value::Object(_) | Value::Array(_) => false,
                Value::Null => element.get(key).is_some() && wanted == "null",
                other => wanted == &*other.to_string(),
            });
            selected.map_or(Ok(()), |value| follow(value, rest, found))
        }
        _ => Err(()),
    }
}

const KEYS: [&str; 4] = ["a", "b", "type", "k/\"é"];

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab]",
        4 => "\\PC{0,12}",
        2 => "[\\x00-\\x1f\"\\\\/]{0,6}",
        1 => Just("x\"\\".repeat(20_000)),
    ]
}

/// JSON text, not a value: with white space, escapes, keys twice and numbers of every kind.
fn any_json() -> impl Strategy<Value = String> {
    let quoted = any_text().prop_map(|text| Value::String(text).to_string());
    let escaped = any_text().prop_map(|text| {
        let units = text.encode_utf16().take(300).map(|unit| format!("\\u{unit:04x}"));
        format!("\"{}\"", units.collect::<String>())
    });
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        Just("-0".to_owned()),
        Just("1.50E+3".to_owned()),
    ];
    let deep = (1..100_usize).prop_map(|depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
    let leaf = prop_oneof![
        4 => quoted,
        2 => escaped,
        3 => number,
        3 => prop_oneof![Just("null".to_owned()), Just("true".to_owned()), Just("false".to_owned())],
        1 => deep,
    ];
    let space = || prop_oneof![4 => Just(""), 1 => Just(" \n\t\r ")];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let key = prop_oneof![
            9 => prop::sample::select(&KEYS[..]).prop_map(|key| json!(key).to_string()),
            1 => prop::sample::select(&["\"\\u0061\"", "\"typ\\u0065\""][..]).prop_map(str::to_owned),
            1 => "\"[c-z]{0,5}\"",
        ];
        prop_oneof![
            3 => (prop::collection::vec((key, inner.clone()), 0..6), space())
                .prop_map(|(entries, space)| object(&entries, space)),
            2 => (prop::collection::vec(inner, 0..6), space())
                .prop_map(|(elements, space)| format!("[{space}{}{space}]", elements.join(&format!("{space},{space}")))),
        ]
    })
}

fn object(entries: &[(String, String)], space: &str) -> String {
    let entries: Vec<_> =
        entries.iter().map(|(key, value)| format!("{space}{key}{space}:{space}{value}{space}")).collect();
    format!("{{{space}{}}}", entries.join(","))
}

fn any_document() -> impl Strategy<Value = String> {
    prop::collection::vec((prop::sample::select(&KEYS[..]).prop_map(|key| json!(key).to_string()), any_json()), 0..5)
        .prop_map(|entries| object(&entries, " "))
}

fn any_path() -> impl Strategy<Value = Vec<Step>> {
    let key = || prop::sample::select(&KEYS[..]);
    let step = prop_oneof![
        5 => key().prop_map(Step::Key),
        3 => Just(Step::Each),
        1 => (0..3_usize).prop_map(Step::At),
        2 => (key(), prop::sample::select(&["a", "b", "true", "null", ""][..])).prop_map(|(key, value)| Step::Where(key, value)),
    ];
    (key(), prop::collection::vec(step, 0..4))
        .prop_map(|(first, rest)| std::iter::once(Step::Key(first)).chain(rest).collect())
}

pub(super) fn fields(paths: Vec<Vec<Step>>) -> &'static [Field] {
    let fields = paths.into_iter().map(|steps| Field { name: "f", path: "p", steps: steps.leak(), opaque: false });
    fields.collect::<Vec<_>>().leak()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_path_leads_where_it_leads_in_the_parsed_document(text in any_document(), paths in prop::collection::vec(any_path(), 1..6)) {
        let whole: Value = serde_json::from_str(&text).expect("the test makes JSON");
        let fields = fields(paths);
        let root = Node::tree(fields.iter().enumerate());
        let expected: Vec<_> = fields
            .iter()
            .map(|field| {
                let mut values = Vec::new();
                follow(&whole, field.steps, &mut values).map(|()| values)
            })
            .collect();
        let hits = walker::walk(&root, text.as_bytes(), fields.len()).expect("it's JSON");
        let mut found: Vec<Result<Vec<Value>, ()>> = vec![Ok(Vec::new()); fields.len()];
        for (field, raw) in hits.iter() {
            match (raw, &mut found[field]) {
                (Raw::Json(raw), Ok(values)) => values.push(serde_json::from_slice(raw).expect("a value")),
                (_, found) => *found = Err(()),
            }
        }
        let expected: Vec<Result<Vec<Value>, ()>> =
            expected.into_iter().map(|values| values.map(|values| values.into_iter().cloned().collect())).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_make_a_walk_fail_otherwise_than_by_an_error(mut text in any_document().prop_map(String::into_bytes),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), paths in prop::collection::vec(any_path(), 1..4)) {
        for (at, byte) in cuts {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let fields = fields(paths);
        let _ = walker::walk(&Node::tree(fields.iter().enumerate()), &text, fields.len());
        for end in (0..text.len().min(200)).step_by(7) {
            let _ = walker::walk(&Node::tree(fields.iter().enumerate()), &text[..end], fields.len());
        }
        let _ = Document::json(&text).project::<PodView>();
    }
}

#[test]
fn more_selectors_than_bits_are_still_told_apart() {
    let names: Vec<&'static str> = (0..70).map(|number| &*format!("n{number}").leak()).collect();
    let paths = names.iter().map(|name| vec![Step::Key("a"), Step::Where("type", name)]).collect();
    let fields = fields(paths);
    let root = Node::tree(fields.iter().enumerate());
    assert_eq!(root.keys[0].1.picks.last().map(|(pick, _)| *pick), Some(Pick::Where("type", "n69")));
    let text = r#"{"a": [{"type": "n69", "x": 1}, {"type": "n69", "x": 2}, {"type": "n3"}]}"#;
    let hits = walker::walk(&root, text.as_bytes(), 70).expect("JSON");
    let firsts: Vec<_> = hits.iter().filter(|(field, _)| *field == 69).collect();
    let Raw::Json(first) = firsts[0].1 else { panic!("it's an object") };
    assert_eq!(first, br#"{"type": "n69", "x": 1}"#);
    assert_eq!(hits.iter().filter(|(field, _)| *field == 3).count(), 1);
}

#[test]
fn what_is_interned_is_let_go_with_the_objects() {
    let strings = Strings::new();
    for number in 0..5_000 {
        let text = format!(r#"{{"metadata":{{"name":"a","namespace":"ns-{number}"}}}}"#);
        let _: PodView = Document::json(text.as_bytes()).project_with(&strings).expect("a Pod");
    }
    assert!(strings.len() <= 1024, "{}", strings.len());
}
