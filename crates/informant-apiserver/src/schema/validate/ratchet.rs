//! What hasn't changed in an update isn't judged again.
//!
//! Counterparts are found by field name and, in lists of type `map`, by the key fields, so such a list may be reordered;
//! items of other lists have none.

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
            (list_type @ ListType::Map(_), Some(items)) => {
                new.len() == old.len()
                    && new
                        .iter()
                        .all(|item| counterpart(item, old, list_type).is_some_and(|old| is_unchanged(item, old, items)))
            }
            _ => new == old,
        },
        _ => new == old,
    }
}

/// The item of the old list that stands for the same thing; only lists of type `map` tell.
pub(super) fn counterpart<'a>(item: &Value, old: &'a [Value], list_type: ListType<'_>) -> Option<&'a Value> {
    let ListType::Map(keys) = list_type else { return None };
    let identity = key_fields(item, keys);
    old.iter().find(|candidate| key_fields(candidate, keys) == identity)
}

/// An item's identity: its key fields, as far as they are there.
pub(super) fn key_fields(item: &Value, keys: &[String]) -> Value {
    let fields: Map<String, Value> =
        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
    Value::Object(fields)
}
