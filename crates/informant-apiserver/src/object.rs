//! Reading and writing the metadata of an object that is a JSON value.
//!
//! Objects are `serde_json::Value` throughout this crate: a server for every kind can't have a Rust type for each.

use serde_json::{Map, Value};

/// A string at `metadata.<field>`, or the empty string.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or("")
}

/// `metadata.name`, or the empty string.
pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`, or the empty string.
pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`, or the empty string.
pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`, or the empty string.
pub(crate) fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// A label's value.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// The names in `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object
        .get("metadata")
        .and_then(|meta| meta.get("finalizers"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !meta_str(object, "deletionTimestamp").is_empty()
}

/// The value at a dotted path (`status.conditions`), if every step is there.
pub(crate) fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, field| value.get(field))
}

/// `metadata` as a map, made when it is missing; `None` when the object or its metadata isn't a JSON object.
pub(crate) fn meta_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let root = object.as_object_mut()?;
    let meta = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if meta.is_null() {
        *meta = Value::Object(Map::new());
    }
    meta.as_object_mut()
}

/// Sets `metadata.<field>`; does nothing when the object has no metadata map.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Value) {
    if let Some(meta) = meta_mut(object) {
        meta.insert(field.to_owned(), value);
    }
}

/// Removes `metadata.<field>`.
pub(crate) fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    meta_mut(object)?.remove(field)
}

/// Writes fractions that are integers (`1.0`) as integers, at every depth, as the real server stores custom objects.
pub(crate) fn normalize_numbers(value: &mut Value) {
    /// Integers up to here are exact as fractions too.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < EXACT);
            #[allow(clippy::cast_possible_truncation, reason = "an integer within 2^53 is exact in both")]
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

/// About how many bytes a value takes as JSON, without writing it.
pub(crate) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(list) => list.iter().map(|item| json_size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + 4 + json_size(value)).sum::<usize>() + 2,
    }
}

/// How many lists and objects lie within each other; 0 for a scalar.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(depth).max().unwrap_or(0) + 1,
        Value::Object(map) => map.values().map(depth).max().unwrap_or(0) + 1,
        _ => 0,
    }
}
