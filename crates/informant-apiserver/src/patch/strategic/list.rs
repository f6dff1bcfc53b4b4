//! Lists under a strategic merge patch: merged by key or by value, then brought into order.
//!
//! Items are looked up by the text of what they are told apart by, so that the work grows with the lists and not with their
//! product.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{PATCH, SET_ORDER, join, merge_object, plain, unknown_directive};
use crate::schema::SchemaView;
use crate::status::Status;

/// The most characters of an item that an error shows.
const MOST_SHOWN: usize = 200;

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
    let mut seen = HashSet::new();
    let both = live.iter().chain(patch);
    let merged = both.filter(|value| seen.insert(value.to_string())).cloned().collect();
    arrange(merged, patch, &live, None, path)
}

fn merge_objects(
    mut live: Vec<Value>,
    patch: &[Value],
    key: &str,
    items: Option<SchemaView<'_>>,
    path: &str,
) -> Result<Vec<Value>, Status> {
    let mut changes = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH) {
            None => changes.push(item),
            Some(directive) => match directive.as_str() {
                Some("replace") => replace = true,
                Some("delete") => {
                    deleted.insert(identity(item, key, path)?.to_string());
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
    if !deleted.is_empty() {
        live.retain(|old| old.get(key).is_none_or(|identity| !deleted.contains(&identity.to_string())));
    }
    let before = live.clone();
    let mut slots: HashMap<String, usize> = HashMap::with_capacity(live.len());
    for (index, identity) in live.iter().enumerate().filter_map(|(index, old)| Some((index, old.get(key)?))) {
        slots.entry(identity.to_string()).or_insert(index);
    }
    for &change in &changes {
        let identity = identity(change, key, path)?.to_string();
        let Some(slot) = slots.get(&identity).and_then(|index| live.get_mut(*index)) else {
            slots.insert(identity, live.len());
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
    let (ranks, places) = (positions(order, key, path)?, positions(before, key, path)?);
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let handle = handle(&item, key, path)?.to_string();
        let old = places.get(&handle).copied();
        match ranks.get(&handle).copied() {
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

/// Where each item first stands, by what it's told apart by.
fn positions(list: &[Value], key: Option<&str>, path: &str) -> Result<HashMap<String, usize>, Status> {
    let mut positions = HashMap::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        positions.entry(handle(item, key, path)?.to_string()).or_insert(index);
    }
    Ok(positions)
}

/// What an item is told apart by: its key's value, or itself.
fn handle<'a>(item: &'a Value, key: Option<&str>, path: &str) -> Result<&'a Value, Status> {
    key.map_or(Ok(item), |key| identity(item, key, path))
}

fn identity<'a>(item: &'a Value, key: &str, path: &str) -> Result<&'a Value, Status> {
    item.get(key).ok_or_else(|| {
        let item: String = item.to_string().chars().take(MOST_SHOWN).collect();
        Status::internal(format!(
            "{path}: map: {item} does not contain declared merge key: {key}; set {}",
            join(path, key)
        ))
    })
}
