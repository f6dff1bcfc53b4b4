//! Lists of type `set` and `map`: their items are unique, and an item of a `map` is known by its key fields.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::ratchet::key_fields;
use crate::schema::path::FieldPath;
use crate::schema::{ListType, SchemaView};
use crate::status::Cause;

/// One `Duplicate value` for each value that occurs more than once in a list of an object, at its second place.
pub(crate) fn validate(value: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(value, schema, path, &mut causes);
    causes
}

fn walk(value: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(property) = schema.property(name) {
                    walk(value, property, &path.field(name), causes);
                } else if let Some(map_value) = schema.map_value() {
                    walk(value, map_value, &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            causes.extend(duplicates(items, schema.list_type(), path));
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, &path.index(index), causes);
            }
        }
        _ => {}
    }
}

fn duplicates(items: &[Value], list_type: ListType<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    // Identity, and whether it was told about.
    let mut seen: HashMap<String, bool> = HashMap::new();
    let mut causes = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match list_type {
            ListType::Atomic => return causes,
            ListType::Set => item.clone(),
            ListType::Map(_) if item.is_null() => continue,
            ListType::Map(_) if !item.is_object() => {
                let why = "must be an object for an array of list-type map";
                causes.push(Cause::invalid(&path.index(index), item, why));
                continue;
            }
            ListType::Map(keys) => key_fields(item, keys),
        };
        match seen.entry(identity.to_string()) {
            Entry::Vacant(first) => {
                first.insert(false);
            }
            Entry::Occupied(mut again) => {
                if !again.insert(true) {
                    causes.push(Cause::duplicate(&path.index(index), &identity));
                }
            }
        }
    }
    causes
}
