//! Lists under a strategic merge patch: merged by key or by value, then brought into order.

use serde_json::Value;

use super::{PATCH, SET_ORDER, join, merge_object, plain, unknown_directive};
use crate::schema::SchemaView;
use crate::status::Status;

/// Merges the items of `patch` into `live`: objects by the schema's merge key, other values by equality.
pub(super) fn merge(
    live: Vec<Value>,
    patch: &[Value],
    schema: Option<SchemaView<'_>>,
    path: &str,
) -> Result<Vec<Value>, Status> {
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    let objects = live.iter().chain(patch).filter(|item| item.is_object()).count();
    if objects == 0 {
        return merge_values(live, patch, path);
    }
    if objects != live.len() + patch.len() {
        return Err(Status::internal(format!("{path}: the list's items aren't all objects")));
    }
    let Some(key) = schema.and_then(SchemaView::patch_merge_key) else {
        return Err(Status::internal(format!("{path}: cannot merge lists without merge key")));
    };
    merge_objects(live, patch, key, schema.and_then(SchemaView::items), path)
}

fn merge_values(live: Vec<Value>, patch: &[Value], path: &str) -> Result<Vec<Value>, Status> {
    let before = live.clone();
    let mut merged: Vec<Value> = Vec::with_capacity(live.len() + patch.len());
    for value in live.into_iter().chain(patch.iter().cloned()) {
        if !merged.contains(&value) {
            merged.push(value);
        }
    }
    arrange(merged, patch, &before, None, path)
}

fn merge_objects(
    mut live: Vec<Value>,
    patch: &[Value],
    key: &str,
    items: Option<SchemaView<'_>>,
    path: &str,
) -> Result<Vec<Value>, Status> {
    let mut changes = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        match item.get(PATCH) {
            None => changes.push(item),
            Some(directive) => match directive.as_str() {
                Some("replace") => replace = true,
                Some("delete") => {
                    let identity = identity(item, key, path)?;
                    live.retain(|old| old.get(key) != Some(identity));
                }
                Some("merge") => {
                    return Err(Status::internal(format!(
                        "{path}: merging lists cannot yet be specified in the patch"
                    )));
                }
                _ => return Err(unknown_directive(directive, path)),
            },
        }
    }
    if replace {
        return Ok(changes.into_iter().filter_map(plain).collect());
    }
    let before = live.clone();
    for &change in &changes {
        let identity = identity(change, key, path)?;
        let Some(slot) = live.iter_mut().find(|old| old.get(key) == Some(identity)) else {
            live.extend(plain(change));
            continue;
        };
        if let (Value::Object(old), Value::Object(change)) = (std::mem::take(slot), change) {
            *slot = Value::Object(merge_object(old, change, items, &format!("{path}[{key}={identity}]"))?);
        }
    }
    let changes: Vec<Value> = changes.into_iter().cloned().collect();
    arrange(live, &changes, &before, Some(key), path)
}

/// Brings `merged` into order: items that `order` names stand as there, the others as in `before`. Another one goes in front
/// of a named one only if `before` had it there; so what is new goes in front.
pub(super) fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: Option<&str>,
    path: &str,
) -> Result<Vec<Value>, Status> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let rank = position(order, &item, key, path)?;
        let old = position(before, &item, key, path)?;
        match rank {
            Some(rank) => named.push((rank, old, item)),
            None => others.push((old, item)),
        }
    }
    named.sort_by_key(|(rank, _, _)| *rank);
    others.sort_by_key(|(old, _)| old.unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, old, item) in named {
        let in_front = |other: &Option<usize>| matches!((other, old), (Some(other), Some(old)) if *other < old);
        while let Some((_, other)) = others.next_if(|(other, _)| in_front(other)) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, other)| other));
    Ok(arranged)
}

/// The items that a patch sets must stand in the order that it asks for, each of them named there.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: Option<&str>, path: &str) -> Result<(), Status> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let wanted = handle(item, key, path)?;
        if !rest.by_ref().any(|named| handle(named, key, path).is_ok_and(|named| named == wanted)) {
            let why = format!("{path}: the order in the patch list doesn't match {SET_ORDER} list at {wanted}");
            return Err(Status::internal(why));
        }
    }
    Ok(())
}

fn position(list: &[Value], item: &Value, key: Option<&str>, path: &str) -> Result<Option<usize>, Status> {
    let wanted = handle(item, key, path)?;
    for (index, candidate) in list.iter().enumerate() {
        if handle(candidate, key, path)? == wanted {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// What an item is told apart by: its key's value, or itself.
fn handle<'a>(item: &'a Value, key: Option<&str>, path: &str) -> Result<&'a Value, Status> {
    key.map_or(Ok(item), |key| identity(item, key, path))
}

fn identity<'a>(item: &'a Value, key: &str, path: &str) -> Result<&'a Value, Status> {
    item.get(key).ok_or_else(|| {
        Status::internal(format!(
            "{path}: map: {item} does not contain declared merge key: {key}; set {}",
            join(path, key)
        ))
    })
}
