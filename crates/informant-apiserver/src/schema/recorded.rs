//! The schema engine against a real kube-apiserver 1.37.2.
//!
//! `recorded_cases.json` holds one schema and what the real server answered, with `dryRun=All`, to each `spec`: the spec as
//! it would be stored, or the causes of its 422. (Left out: a list where a string with a format should be, which the real
//! server takes.) `updates` holds the old spec as well, stored before the schema forbade it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Definitions, Schema, SchemaView, default, prune, validate};

#[derive(Deserialize)]
struct Recording {
    schema: Schema,
    cases: Vec<Case>,
    updates: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    old: Option<Value>,
    spec: Value,
    #[serde(default)]
    stored: Option<Value>,
    /// Reason, field and message of each cause.
    #[serde(default)]
    causes: Vec<[String; 3]>,
}

fn recording() -> Recording {
    serde_json::from_str(include_str!("recorded_cases.json")).unwrap()
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "cases.example.com/v1", "kind": "Case", "metadata": {}, "spec": spec})
}

/// What we make of a case: the stored spec, or the sorted causes.
fn answer(case: &Case, schema: SchemaView<'_>) -> Result<Value, Vec<[String; 3]>> {
    let mut object_value = object(&case.spec);
    crate::object::normalize_numbers(&mut object_value);
    default::apply(&mut object_value, schema);
    prune::prune(&mut object_value, schema);
    let old = case.old.as_ref().map(object);
    let causes = validate::validate(&object_value, old.as_ref(), schema);
    if causes.is_empty() {
        return Ok(object_value["spec"].clone());
    }
    let mut causes: Vec<[String; 3]> =
        causes.into_iter().map(|cause| [cause.reason, cause.field, cause.message]).collect();
    causes.sort();
    Err(causes)
}

fn compare(cases: &[Case], schema: &Schema) {
    let definitions = Definitions::default();
    let view = SchemaView::new(schema, &definitions);
    let mut wrong = Vec::new();
    for case in cases {
        let expected = case.stored.clone().ok_or_else(|| {
            let mut causes = case.causes.clone();
            causes.sort();
            causes
        });
        let ours = answer(case, view);
        if ours != expected {
            wrong.push(format!("{}\n  ours: {ours:?}\n  real: {expected:?}", case.spec));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn creates_are_answered_as_recorded() {
    let recording = recording();
    compare(&recording.cases, &recording.schema);
}

#[test]
fn updates_are_answered_as_recorded() {
    let recording = recording();
    compare(&recording.updates, &recording.schema);
}
