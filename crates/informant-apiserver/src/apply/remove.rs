//! Taking fields out of an object.

use serde_json::Value;

use crate::field_set::place::{Place, Shape};
use crate::field_set::{FieldSet, PathElement};

/// The object without the fields of `set`. What loses its last field stays as an empty object or list, unless it's in the set
/// itself. (Real servers leave a null there, which then often isn't valid.)
pub(super) fn remove(place: Place<'_>, object: &Value, set: &FieldSet) -> Value {
    match place.shape(object) {
        Shape::Object(map) => Value::Object(
            map.iter()
                .filter_map(|(name, value)| {
                    Some((name.clone(), keep(place.field(name), value, &PathElement::field(name), set)?))
                })
                .collect(),
        ),
        Shape::List(items) => Value::Array(
            items
                .iter()
                .filter_map(|item| match place.item_element(item) {
                    Ok(element) => keep(place.item(), item, &element, set),
                    Err(_) => Some(item.clone()),
                })
                .collect(),
        ),
        Shape::Whole | Shape::Empty => object.clone(),
    }
}

fn keep(place: Place<'_>, value: &Value, element: &PathElement, set: &FieldSet) -> Option<Value> {
    if set.has_member(element) {
        return None;
    }
    Some(set.below(element).map_or_else(|| value.clone(), |below| remove(place, value, below)))
}
