//! The last-applied annotation: how objects come over from client-side to server-side apply.
//!
//! `kubectl apply` used to keep its configuration in an annotation. When the manager `kubectl` applies to such an object,
//! what the annotation says it set, and what still has that value, is no conflict; and the annotation, if it's kept, is
//! brought up to date, so that client-side apply goes on working.

use serde_json::Value;

use super::conflict::Conflict;
use crate::field_set::FieldSet;
use crate::field_set::compare::compare;
use crate::field_set::object::field_set;
use crate::field_set::place::Place;
use crate::managed_fields::Writer;
use crate::object;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The one manager that has a past as a client-side applier.
const KUBECTL: &str = "kubectl";
/// The most bytes that all annotations of an object may have together.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// The conflicts that remain when those with the writer's own past are left out.
pub(super) fn without_own(
    place: Place<'_>,
    live: &Value,
    conflicts: Vec<Conflict>,
    writer: &Writer<'_>,
) -> Vec<Conflict> {
    match own_past(place, live, writer) {
        Some(own) => conflicts.into_iter().filter(|conflict| !own.has(&conflict.path)).collect(),
        None => conflicts,
    }
}

/// The fields that the annotation sets and that still have that value.
fn own_past(place: Place<'_>, live: &Value, writer: &Writer<'_>) -> Option<FieldSet> {
    if writer.manager != KUBECTL {
        return None;
    }
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion")?.as_str()? != writer.api_version {
        return None;
    }
    let since = compare(place, &applied, live);
    let changed = since.modified.union(&since.added).union(&since.removed);
    Some(field_set(place, &applied).difference(&changed))
}

/// Writes the configuration into the annotation, if the object has one.
pub(super) fn refresh(object: &mut Value, config: &Value, writer: &Writer<'_>) {
    if writer.manager != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut applied = config.clone();
    if let Some(annotations) = annotations_mut(&mut applied) {
        annotations.remove(ANNOTATION);
    }
    if let Some(annotations) = annotations_mut(object) {
        // Go's encoder ends with a line feed, and so does what clients compare with.
        annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{applied}\n")));
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MOST_ANNOTATION_BYTES {
            annotations.remove(ANNOTATION);
        }
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

fn annotations_mut(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object::meta_mut(object)?.get_mut("annotations")?.as_object_mut()
}
