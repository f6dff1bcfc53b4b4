//! What hasn't changed in an update isn't judged again.
//!
//! Counterparts are found by field name and, in lists of type `map`, by the key fields, so such a list may be reordered;
//! items of other lists have none.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::schema::{ListType, SchemaView};

/// Whether two values are the same, a reordered list of type `map` being the same list.
pub(super) fn is_unchanged(new: &Value, old: &Value, schema: SchemaView<'_>) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| match (old.get(name), schema.field(name)) {
                    (Some(old), Some(field)) => is_unchanged(value, old, field),
                    (old, _) => old == Some(value),
                })
        }
        (Value::Array(new), Value::Array(old)) => match (schema.list_type(), schema.items()) {
            (ListType::Map(_), Some(items)) if new.len() == old.len() => {
                let counterparts = Counterparts::among(old, schema.list_type());
                new.iter().all(|item| counterparts.of(item).is_some_and(|old| is_unchanged(item, old, items)))
            }
            _ => new == old,
        },
        _ => new == old,
    }
}

/// The items of an old list, by their key fields; empty for lists in which nothing tells what stands for what.
pub(super) struct Counterparts<'a> {
    keys: &'a [String],
    by_identity: HashMap<String, &'a Value>,
}

// === impl Counterparts ===

impl<'a> Counterparts<'a> {
    pub(super) fn among(old: &'a [Value], list_type: ListType<'a>) -> Self {
        let ListType::Map(keys) = list_type else { return Self { keys: &[], by_identity: HashMap::new() } };
        let by_identity = old.iter().map(|item| (key_fields(item, keys).to_string(), item)).collect();
        Self { keys, by_identity }
    }

    /// The old item that stands for the same thing.
    pub(super) fn of(&self, item: &Value) -> Option<&'a Value> {
        if self.by_identity.is_empty() {
            return None;
        }
        self.by_identity.get(&key_fields(item, self.keys).to_string()).copied()
    }
}

/// An item's identity: its key fields, as far as they are there.
pub(super) fn key_fields(item: &Value, keys: &[String]) -> Value {
    let fields: Map<String, Value> =
        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
    Value::Object(fields)
}
