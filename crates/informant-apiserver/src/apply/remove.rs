//! Taking fields out of an object.

use serde_json::Value;

use crate::field_set::place::{Place, Shape};
use crate::field_set::{FieldSet, PathElement};

/// The object without the fields of `set`; an object or list that loses its last field goes too.
pub(super) fn remove(place: Place<'_>, object: &Value, set: &FieldSet) -> Value {
    remove_below(place, object, set).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

fn remove_below(place: Place<'_>, value: &Value, set: &FieldSet) -> Option<Value> {
    match place.shape(value) {
        Shape::Object(map) => {
            let kept: serde_json::Map<_, _> = map
                .iter()
                .filter_map(|(name, value)| {
                    let element = PathElement::field(name);
                    Some((name.clone(), keep(place.field(name), value, &element, set)?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Shape::List(items) => {
            let kept: Vec<_> = items
                .iter()
                .filter_map(|item| match place.item_element(item) {
                    Ok(element) => keep(place.item(), item, &element, set),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // There is nothing to look into, so whoever asks for something below means the whole.
        Shape::Whole | Shape::Empty if value.is_object() || value.is_array() => None,
        Shape::Whole | Shape::Empty => Some(value.clone()),
    }
}

fn keep(place: Place<'_>, value: &Value, element: &PathElement, set: &FieldSet) -> Option<Value> {
    if set.has_member(element) {
        return None;
    }
    match set.below(element) {
        Some(below) => remove_below(place, value, below),
        None => Some(value.clone()),
    }
}
