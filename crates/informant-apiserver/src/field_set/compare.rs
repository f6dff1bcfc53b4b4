//! In which fields two objects differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::place::{Place, Shape};
use super::{FieldSet, PathElement};

/// The differences between two objects. No path is in two of the sets; all are empty when the objects are equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// In the old object only.
    pub(crate) removed: FieldSet,
    /// In both, with other values.
    pub(crate) modified: FieldSet,
    /// In the new object only.
    pub(crate) added: FieldSet,
}

/// Compares field by field, as deep as the schema has fields.
pub(crate) fn compare(place: Place<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.visit(place, Some(old), Some(new), &mut Vec::new());
    comparison
}

/// Whether two values are equal, numbers by value: `1` is `1.0`.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

impl Comparison {
    /// Whether the objects are equal.
    pub(crate) fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    fn visit(&mut self, place: Place<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<PathElement>) {
        let old_shape = old.map_or(Shape::Empty, |old| place.shape(old));
        let new_shape = new.map_or(Shape::Empty, |new| place.shape(new));
        match (old_shape, new_shape) {
            (Shape::Whole, _) | (_, Shape::Whole) | (Shape::Empty, Shape::Empty) => {
                // A value that was looked into and is now a whole (or the other way round) loses (or gains) its fields too.
                self.visit_fields(place, old_shape, new_shape, path);
                self.leaf(old, new, path);
            }
            _ => {
                self.visit_fields(place, old_shape, new_shape, path);
                if old.is_none() {
                    self.added.insert(path);
                } else if new.is_none() {
                    self.removed.insert(path);
                }
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &[PathElement]) {
        match (old, new) {
            (None, None) => {}
            (None, Some(_)) => self.added.insert(path),
            (Some(_), None) => self.removed.insert(path),
            (Some(old), Some(new)) => {
                if !same(old, new) {
                    self.modified.insert(path);
                }
            }
        }
    }

    fn visit_fields(&mut self, place: Place<'_>, old: Shape<'_>, new: Shape<'_>, path: &mut Vec<PathElement>) {
        let nothing = Map::new();
        let (old_map, new_map) = (as_map(old).unwrap_or(&nothing), as_map(new).unwrap_or(&nothing));
        let added = new_map.keys().filter(|name| !old_map.contains_key(*name));
        for name in old_map.keys().chain(added) {
            path.push(PathElement::field(name));
            self.visit(place.field(name), old_map.get(name), new_map.get(name), path);
            path.pop();
        }
        let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in as_list(old) {
            if let Ok(element) = place.item_element(item) {
                items.entry(element).or_default().0.push(item);
            }
        }
        for item in as_list(new) {
            if let Ok(element) = place.item_element(item) {
                items.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in items {
            path.push(element);
            self.visit_items(place.item(), &old, &new, path);
            path.pop();
        }
    }

    /// Items of one identity; more than one of a side are compared as one atomic value.
    fn visit_items(&mut self, place: Place<'_>, old: &[&Value], new: &[&Value], path: &mut Vec<PathElement>) {
        match (old, new) {
            ([] | [_], [] | [_]) => self.visit(place, old.first().copied(), new.first().copied(), path),
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !same(old, new)) {
                    self.modified.insert(path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.visit(place, None, Some(new), path);
                }
                self.removed.insert(path);
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    self.visit(place, Some(old), None, path);
                }
                self.added.insert(path);
            }
        }
    }
}

fn as_map(shape: Shape<'_>) -> Option<&Map<String, Value>> {
    if let Shape::Object(map) = shape { Some(map) } else { None }
}

fn as_list(shape: Shape<'_>) -> &[Value] {
    if let Shape::List(items) = shape { items } else { &[] }
}
