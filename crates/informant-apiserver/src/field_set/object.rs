//! The fields of an object, as server-side apply counts them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::place::{Place, Shape};
use super::{FieldSet, PathElement};

/// Every field that the object sets: scalars, atomic values, empty and null ones, keys of maps, and items of lists.
///
/// The objects that the schema names and that hold other fields aren't fields themselves.
pub(crate) fn field_set(place: Place<'_>, object: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(place, object, &mut Vec::new(), &mut set);
    set
}

fn collect(place: Place<'_>, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match place.shape(value) {
        Shape::Whole => set.insert(path),
        // Whoever holds an empty value decides whether it counts.
        Shape::Empty => {}
        Shape::Object(map) => {
            for (name, value) in map {
                path.push(PathElement::field(name));
                collect(place.field(name), value, path, set);
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || !place.names_field(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Shape::List(items) => {
            let elements: Vec<_> =
                items.iter().filter_map(|item| Some((place.item_element(item).ok()?, item))).collect();
            let mut counts: BTreeMap<&PathElement, usize> = BTreeMap::new();
            for (element, _) in &elements {
                *counts.entry(element).or_default() += 1;
            }
            for (element, item) in &elements {
                path.push(element.clone());
                // Items that can't be told from each other are owned together, as one.
                if counts.get(element) == Some(&1) {
                    collect(place.item(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
    }
}

/// The set with every object that the schema names and that has fields in the set added to it.
pub(crate) fn with_named_parents(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let mut full = set.map_below(|element, below| with_named_parents(place.step(element), below));
    for element in set.elements() {
        let named = element.field_name().is_some_and(|name| place.names_field(name));
        if named && set.below(element).is_some() {
            full.insert(std::slice::from_ref(element));
        }
    }
    full
}

/// The set as it must be read once a value that was owned by its fields has become atomic in the schema.
pub(crate) fn reconciled(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let mut reconciled = set.map_below(|element, below| reconciled(place.step(element), below));
    for element in set.elements() {
        if set.below(element).is_some() && place.step(element).is_atomic() {
            reconciled.collapse(element);
        }
    }
    reconciled
}
