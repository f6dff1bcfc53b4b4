//! Whether an applied configuration fits the schema well enough to be merged.
//!
//! Values are validated later, with the whole object; here it matters that fields are known, that objects and lists are
//! where the schema has them, and that the items of keyed lists can be told apart.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field_set::PathElement;
use crate::field_set::place::{Place, Shape};
use crate::object;
use crate::status::Status;

/// The most faults that an answer names.
const MOST_FAULTS: usize = 100;
/// The most characters of a value that a fault shows.
const MOST_SHOWN: usize = 200;

/// 500 with the faults and their paths, as a real server has it.
pub(super) fn check(place: Place<'_>, config: &Value) -> Result<(), Status> {
    let mut faults = Vec::new();
    visit(place, config, &mut String::new(), &mut faults);
    let faults = match faults.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or("");
    let (namespace, name) = (object::namespace(config), object::name(config));
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let core = if api_version.contains('/') { "" } else { "/" };
    Err(Status::internal(format!(
        "failed to create typed patch object ({namespace}/{name}; {core}{api_version}, Kind={kind}): {faults}"
    )))
}

fn visit(place: Place<'_>, value: &Value, path: &mut String, faults: &mut Vec<String>) {
    if faults.len() >= MOST_FAULTS {
        return;
    }
    let expected = match (place.type_name(), value) {
        (_, Value::Null) => None,
        ("object", value) => (!value.is_object()).then_some("map"),
        ("array", value) => (!value.is_array()).then_some("list"),
        ("string", value) if place.is_plain_text() => (!value.is_string()).then_some("string"),
        ("integer" | "number", value) => (!value.is_number()).then_some("numeric (int or float)"),
        ("boolean", value) => (!value.is_boolean()).then_some("boolean"),
        _ => None,
    };
    if let Some(expected) = expected {
        let shown: String = value.to_string().chars().take(MOST_SHOWN).collect();
        faults.push(format!("{path}: expected {expected}, got {shown}"));
        return;
    }
    match (place.shape(value), value) {
        (Shape::Object(_), Value::Object(map)) => {
            for (name, value) in map {
                let length = path.len();
                path.push('.');
                path.push_str(name);
                if place.allows_field(name) {
                    visit(place.field(name), value, path, faults);
                } else if faults.len() < MOST_FAULTS {
                    faults.push(format!("{path}: field not declared in schema"));
                }
                path.truncate(length);
            }
        }
        (Shape::List(items), _) => visit_items(place, items, path, faults),
        _ => {}
    }
}

fn visit_items(place: Place<'_>, items: &[Value], path: &mut String, faults: &mut Vec<String>) {
    let mut seen: BTreeSet<PathElement> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if faults.len() >= MOST_FAULTS {
            return;
        }
        match place.item_element(item) {
            Err(why) => faults.push(format!("{path}: element {index}: {why}")),
            Ok(element) if seen.contains(&element) => {
                faults.push(format!("{path}: duplicate entries for key {element}"));
            }
            Ok(element) => {
                let length = path.len();
                path.push_str(&element.to_string());
                visit(place.item(), item, path, faults);
                path.truncate(length);
                seen.insert(element);
            }
        }
    }
}
