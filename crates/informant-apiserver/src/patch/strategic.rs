//! Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key.
//!
//! The patch looks like the document; besides plain values it may hold directives, which never reach the result:
//!
//! | directive | where | effect |
//! |---|---|---|
//! | `$patch: replace` | object | the rest of the object stands in for the old one |
//! | `$patch: delete` | object | an emptied object; as a list item, the item with that key goes |
//! | `$patch: replace` | list item | the other items of the patch stand in for the list |
//! | `$retainKeys: [a, b]` | object | fields of the old object that aren't named go |
//! | `$setElementOrder/f: [...]` | beside `f` | the order of the result's items, by key or value |
//! | `$deleteFromPrimitiveList/f: [...]` | beside `f` | these values go from the list `f` |

mod list;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::SchemaView;
use crate::status::{Reason, Status};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// `document` with `patch` merged into it by the rules of `schema`.
///
/// 400 when the patch or a directive isn't of the right form; 500, as a real server has it, when an item of a keyed list
/// lacks its key or a `$patch` directive is unknown.
pub(crate) fn apply(document: &Value, patch: &Value, schema: SchemaView<'_>) -> Result<Value, Status> {
    let Some(patch) = patch.as_object() else {
        return Err(Status::bad_request("a strategic merge patch must be an object"));
    };
    let live = document.as_object().cloned().unwrap_or_default();
    merge_object(live, patch, Some(schema), "").map(Value::Object)
}

fn merge_object(
    mut live: Map<String, Value>,
    patch: &Map<String, Value>,
    schema: Option<SchemaView<'_>>,
    path: &str,
) -> Result<Map<String, Value>, Status> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(without_directives(patch)),
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, path)),
        };
    }
    if let Some(names) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut live, names, patch, path)?;
    }
    for (key, order) in patch {
        if let Some(field) = key.strip_prefix(SET_ORDER) {
            merge_ordered_list(&mut live, patch, field, order, schema, path)?;
        }
    }
    for (field, change) in patch {
        let ordered = patch.contains_key(&format!("{SET_ORDER}{field}"));
        if !is_directive(field) && !ordered {
            merge_field(&mut live, field, change, schema, path)?;
        }
    }
    // Last, so that a value in both the list and the list of deletions is deleted in every case.
    for (key, values) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM_LIST) {
            delete_values(&mut live, field, values);
        }
    }
    Ok(live)
}

fn merge_field(
    live: &mut Map<String, Value>,
    field: &str,
    change: &Value,
    schema: Option<SchemaView<'_>>,
    path: &str,
) -> Result<(), Status> {
    let schema = schema.and_then(|schema| schema.field(field));
    let merged = match (live.remove(field), change) {
        (_, Value::Null) => None,
        (Some(Value::Object(old)), Value::Object(change)) => Some(Value::Object(if strategy(schema, "replace") {
            without_directives(change)
        } else {
            merge_object(old, change, schema, &join(path, field))?
        })),
        (Some(Value::Array(old)), Value::Array(change)) => {
            Some(Value::Array(merge_list(old, change, schema, &join(path, field))?))
        }
        (_, change) => plain(change),
    };
    if let Some(merged) = merged {
        live.insert(field.to_owned(), merged);
    }
    Ok(())
}

fn merge_list(
    live: Vec<Value>,
    patch: &[Value],
    schema: Option<SchemaView<'_>>,
    path: &str,
) -> Result<Vec<Value>, Status> {
    if strategy(schema, "merge") {
        return list::merge(live, patch, schema, path);
    }
    Ok(patch.iter().filter_map(plain).collect())
}

/// Merges the list `field` and brings it into the order that the patch asks for.
fn merge_ordered_list(
    live: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    field: &str,
    order: &Value,
    schema: Option<SchemaView<'_>>,
    path: &str,
) -> Result<(), Status> {
    let path = join(path, field);
    let schema = schema.and_then(|schema| schema.field(field));
    let key = schema.and_then(SchemaView::patch_merge_key);
    let order = as_list(order, SET_ORDER, &path)?;
    let change = match patch.get(field) {
        Some(Value::Null) => {
            live.remove(field);
            return Ok(());
        }
        Some(change) => Some(as_list(change, "", &path)?),
        None => None,
    };
    list::check_order(change.unwrap_or_default(), order, key, &path)?;
    let (before, merged) = match (live.remove(field), change) {
        (None, None) => return Ok(()),
        (Some(Value::Array(old)), None) => (old.clone(), old),
        (Some(Value::Array(old)), Some(change)) => (old.clone(), merge_list(old, change, schema, &path)?),
        (None, Some(change)) => (Vec::new(), change.iter().filter_map(plain).collect()),
        (Some(_), _) => return Err(Status::internal(format!("{path}: {SET_ORDER} is for lists, but this is none"))),
    };
    live.insert(field.to_owned(), Value::Array(list::arrange(merged, order, &before, key, &path)?));
    Ok(())
}

/// Drops what the patch doesn't name; what it sets must be among the names.
fn retain_keys(
    live: &mut Map<String, Value>,
    names: &Value,
    patch: &Map<String, Value>,
    path: &str,
) -> Result<(), Status> {
    let names = as_list(names, RETAIN_KEYS, path)?;
    let named = |field: &str| names.iter().any(|name| name.as_str() == Some(field));
    let stray = patch.iter().find(|(field, value)| !value.is_null() && !is_directive(field) && !named(field));
    if let Some((field, _)) = stray {
        let why = format!("invalid patch format of retainKeys: {} isn't among them", join(path, field));
        return Err(Status::bad_request(why));
    }
    live.retain(|field, _| named(field));
    Ok(())
}

fn delete_values(live: &mut Map<String, Value>, field: &str, values: &Value) {
    if let (Some(Value::Array(list)), Value::Array(values)) = (live.get_mut(field), values) {
        let values: HashSet<String> = values.iter().map(Value::to_string).collect();
        list.retain(|item| !values.contains(&item.to_string()));
    }
}

/// A value of the patch for a place that holds nothing yet: without nulls and directives; `None` if it's a directive itself.
fn plain(change: &Value) -> Option<Value> {
    match change {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(without_directives(map))),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(plain).collect())),
        other => Some(other.clone()),
    }
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(field, value)| !is_directive(field) && !value.is_null())
        .filter_map(|(field, value)| Some((field.clone(), plain(value)?)))
        .collect()
}

fn is_directive(field: &str) -> bool {
    field == PATCH || field == RETAIN_KEYS || field.starts_with(SET_ORDER) || field.starts_with(DELETE_FROM_LIST)
}

fn strategy(schema: Option<SchemaView<'_>>, wanted: &str) -> bool {
    schema.is_some_and(|schema| schema.patch_strategy().split(',').any(|strategy| strategy == wanted))
}

fn as_list<'a>(value: &'a Value, directive: &str, path: &str) -> Result<&'a [Value], Status> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| {
        let directive = directive.trim_start_matches('$').trim_end_matches('/');
        Status::bad_request(format!("invalid patch format of {directive} list: {path} must be a list"))
    })
}

fn unknown_directive(directive: &Value, path: &str) -> Status {
    Status::new(Reason::InternalError, format!("unknown patch type: {directive} at {}", shown(path)))
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the top of the patch" } else { path }
}

#[cfg(test)]
mod tests;
