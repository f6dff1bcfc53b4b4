//! The structured merge of an applied configuration into a live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::field_set::PathElement;
use crate::field_set::place::{Place, Shape};
use crate::status::Status;

/// `live` with `config` merged into it: objects by field, lists by item, everything else replaced. Null is a value like
/// others: what it means is for the kind to say.
pub(super) fn merge(place: Place<'_>, live: &Value, config: &Value) -> Result<Value, Status> {
    merge_value(place, live, config).map_err(Status::internal)
}

fn merge_value(place: Place<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    match (place.shape(live), place.shape(config)) {
        (Shape::Object(live), Shape::Object(config)) => merge_objects(place, live, config),
        (Shape::List(live), Shape::List(config)) => merge_lists(place, live, config),
        // Something that is empty takes nothing away from an object or a list that is merged.
        (Shape::Object(_) | Shape::List(_), Shape::Empty) if config.is_null() || same_kind(live, config) => {
            Ok(live.clone())
        }
        _ => Ok(config.clone()),
    }
}

fn merge_objects(place: Place<'_>, live: &Map<String, Value>, config: &Map<String, Value>) -> Result<Value, String> {
    let mut merged = live.clone();
    for (name, wanted) in config {
        let value = match live.get(name) {
            Some(live) => merge_value(place.field(name), live, wanted)?,
            None => wanted.clone(),
        };
        merged.insert(name.clone(), value);
    }
    Ok(Value::Object(merged))
}

/// Merges two lists item by item. Items of the configuration keep their order; items that only the live list has stay
/// between the same neighbours as before, as far as that order lets them.
fn merge_lists(place: Place<'_>, live: &[Value], config: &[Value]) -> Result<Value, String> {
    let live = indexed(place, live)?;
    let config = indexed(place, config)?;
    let wanted: BTreeSet<&PathElement> = config.iter().map(|(element, _)| element).collect();
    let mut present: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (element, item) in &live {
        // Of items that can't be told from each other none is merged with: the configuration's stands in for all.
        present.entry(element).and_modify(|twin| *twin = None).or_insert(Some(item));
    }
    let merged_item = |element: &PathElement, item: &Value| match present.get(element).copied().flatten() {
        Some(live) => merge_value(place.item(), live, item),
        None => Ok(item.clone()),
    };
    let shared = config.iter().map(|(element, _)| element).filter(|element| present.contains_key(*element));
    let mut next_shared = shared.peekable();
    let mut taken = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let (mut old, mut new) = (0, 0);
    loop {
        match (live.get(old), config.get(new)) {
            (None, None) => return Ok(Value::Array(merged)),
            (Some((element, item)), _) if !wanted.contains(element) => {
                merged.push((*item).clone());
                old += 1;
            }
            // In both, but the configuration has another one first.
            (Some((element, _)), Some((next, _)))
                if element != next && next_shared.peek().is_some_and(|due| *due != element) =>
            {
                old += 1;
            }
            (at, Some((next, item))) => {
                if at.is_some_and(|(element, _)| element == next || taken.contains(element)) {
                    old += 1;
                }
                merged.push(merged_item(next, item)?);
                taken.insert(next);
                next_shared.next_if(|due| *due == next);
                new += 1;
            }
            // In both, and so merged already.
            (Some(_), None) => old += 1,
        }
    }
}

fn indexed<'v>(place: Place<'_>, items: &'v [Value]) -> Result<Vec<(PathElement, &'v Value)>, String> {
    items.iter().map(|item| Ok((place.item_element(item)?, item))).collect()
}

fn same_kind(a: &Value, b: &Value) -> bool {
    (a.is_object() && b.is_object()) || (a.is_array() && b.is_array())
}
