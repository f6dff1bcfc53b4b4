//! What the server does to `metadata` on a write, and what it refuses there. Pure functions over values.

use serde_json::{Map, Value, json};

use crate::name_rules;
use crate::object::{self, meta_mut, meta_str};
use crate::registry::{is_crd, is_namespace, names};
use crate::resource::{GenerationRule, Resource};
use crate::schema::path::FieldPath;
use crate::status::Cause;

/// The path of what is checked here.
const METADATA: FieldPath<'static> = FieldPath::root("metadata");

/// Fields of `metadata` that only the server writes, and that a create resets.
const SERVER_FIELDS: &[&str] = &[
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
    "resourceVersion",
];

/// Resets what a client may not set on a create, and sets what the server does.
pub(crate) fn begin_create(resource: &Resource, object: &mut Value, namespace: &str, uid: String, now: &str) {
    let Some(meta) = meta_mut(object) else { return };
    for field in SERVER_FIELDS {
        meta.remove(*field);
    }
    if resource.namespaced {
        meta.insert("namespace".into(), json!(namespace));
    } else {
        meta.remove("namespace");
    }
    meta.insert("uid".into(), json!(uid));
    meta.insert("creationTimestamp".into(), json!(now));
    if resource.rules.generation != GenerationRule::None {
        meta.insert("generation".into(), json!(1));
    }
    drop_empty(meta);
}

/// Carries over what an update may leave out, and drops what a client can't set.
pub(crate) fn begin_update(resource: &Resource, old: &Value, new: &mut Value) {
    let Some(meta) = meta_mut(new) else { return };
    meta.remove("selfLink");
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = meta.get(field).is_some_and(|value| !value.is_null() && value != "");
        if !given {
            carry(meta, old, field);
        }
    }
    for field in ["generation", "name", "namespace", "creationTimestamp"] {
        carry(meta, old, field);
    }
    if !resource.namespaced {
        meta.remove("namespace");
    }
    drop_empty(meta);
}

/// The generation after an update: `Some` when it rises.
pub(crate) fn next_generation(resource: &Resource, old: &Value, new: &Value) -> Option<u64> {
    let changed = match resource.rules.generation {
        GenerationRule::None => return None,
        GenerationRule::Spec => old.get("spec") != new.get("spec"),
        GenerationRule::SpecOrAnnotations => {
            let annotations = |object| object::at_path(object, "metadata.annotations").cloned();
            old.get("spec") != new.get("spec") || annotations(old) != annotations(new)
        }
        GenerationRule::OutsideMetadata => {
            let has_status = resource.has_subresource("status");
            outside_metadata(old, has_status) != outside_metadata(new, has_status)
        }
    };
    changed.then(|| generation(old) + 1)
}

/// `metadata.generation`, or 0.
pub(crate) fn generation(object: &Value) -> u64 {
    object::at_path(object, "metadata.generation").and_then(Value::as_u64).unwrap_or(0)
}

/// What is wrong with the metadata of a new object, or of one after an update.
pub(crate) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::name(object);
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        causes.extend(names::check(resource, name));
    }
    let namespace = object::namespace(object);
    if let Some(why) = name_rules::dns1123_label(namespace).filter(|_| resource.namespaced) {
        causes.push(Cause::invalid("metadata.namespace", &json!(namespace), why));
    }
    let field = |name: &str| object.get("metadata").and_then(|meta| meta.get(name));
    causes.extend(name_rules::labels(field("labels"), &METADATA));
    causes.extend(name_rules::annotations(field("annotations"), &METADATA));
    causes.extend(name_rules::finalizers(field("finalizers"), &METADATA));
    check_owners(object, &mut causes);
    causes
}

/// What an update changes in metadata that can't change.
pub(crate) fn check_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let of = |object| object::at_path(object, &format!("metadata.{field}")).cloned().unwrap_or(Value::Null);
        if of(old) != of(new) {
            causes.push(Cause::invalid(format!("metadata.{field}"), &of(new), "field is immutable"));
        }
    }
    if object::is_terminating(old) {
        let added: Vec<&str> =
            object::finalizers(new).filter(|name| object::finalizers(old).all(|known| known != *name)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", why));
        }
    }
    causes
}

/// Checks that the parts of metadata have the right JSON types, so that everything behind may rely on it.
///
/// # Errors
/// One sentence that names the field.
pub(crate) fn check_types(object: &Value) -> Result<(), String> {
    let wrong = |field: &str, wanted: &str| Err(format!("{field} must be {wanted}"));
    let meta = match object.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(meta)) => meta,
        Some(_) => return wrong("metadata", "an object"),
    };
    for (field, value) in meta.iter().filter(|(_, value)| !value.is_null()) {
        let path = format!("metadata.{field}");
        let fits = match field.as_str() {
            "labels" | "annotations" => {
                let fits = |map: &Map<String, Value>| map.values().all(|value| value.is_string() || value.is_null());
                value.as_object().is_some_and(fits)
            }
            "finalizers" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            "ownerReferences" | "managedFields" => {
                value.as_array().is_some_and(|list| list.iter().all(Value::is_object))
            }
            "generation" | "deletionGracePeriodSeconds" => value.is_i64() || value.is_u64(),
            "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp" | "selfLink" => value.is_string(),
            _ => true,
        };
        if !fits {
            let wanted = match field.as_str() {
                "labels" | "annotations" => "a map from strings to strings",
                "finalizers" => "a list of strings",
                "ownerReferences" | "managedFields" => "a list of objects",
                "generation" | "deletionGracePeriodSeconds" => "a whole number",
                _ => "a string",
            };
            return wrong(&path, wanted);
        }
    }
    Ok(())
}

fn check_owners(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object::at_path(object, "metadata.ownerReferences").and_then(Value::as_array);
    let mut controllers = 0;
    for (at, owner) in owners.into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).unwrap_or("").is_empty() {
                let path = format!("metadata.ownerReferences[{at}].{field}");
                causes.push(Cause::invalid(path, &json!(""), format!("{field} must not be empty")));
            }
        }
        controllers += usize::from(owner.get("controller").and_then(Value::as_bool).unwrap_or(false));
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        let owners: Vec<&Value> = owners.into_iter().flatten().collect();
        causes.push(Cause::invalid("metadata.ownerReferences", &json!(owners), why));
    }
}

fn carry(meta: &mut Map<String, Value>, old: &Value, field: &str) {
    match old.get("metadata").and_then(|old| old.get(field)) {
        Some(value) => meta.insert(field.to_owned(), value.clone()),
        None => meta.remove(field),
    };
}

/// Drops nulls and empty collections, which mean the same as a missing field, so that they compare equal.
fn drop_empty(meta: &mut Map<String, Value>) {
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(map)) = meta.get_mut(field) {
            for value in map.values_mut().filter(|value| value.is_null()) {
                *value = json!("");
            }
        }
    }
    meta.retain(|field, value| match value {
        Value::Null => false,
        Value::String(text) => !(text.is_empty() && field != "resourceVersion"),
        Value::Array(list) => !(list.is_empty() && field != "managedFields"),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
}

fn outside_metadata(object: &Value, without_status: bool) -> Vec<(&String, &Value)> {
    let ignored = |field: &str| field == "metadata" || field == "apiVersion" || (without_status && field == "status");
    object.as_object().into_iter().flatten().filter(|(field, _)| !ignored(field)).collect()
}

/// Sets `deletionTimestamp` and `deletionGracePeriodSeconds`, and raises a generation that is in use. Namespaces and
/// CRDs, which go by their own rules, get the time alone.
pub(crate) fn mark_deleted(resource: &Resource, object: &mut Value, timestamp: &str, grace_seconds: i64) {
    let generation = generation(object);
    let Some(meta) = meta_mut(object) else { return };
    let first = !meta.contains_key("deletionTimestamp");
    meta.insert("deletionTimestamp".into(), json!(timestamp));
    if is_namespace(resource) || is_crd(resource) {
        return;
    }
    meta.insert("deletionGracePeriodSeconds".into(), json!(grace_seconds));
    if first && generation > 0 {
        meta.insert("generation".into(), json!(generation + 1));
    }
}

/// Whether nothing holds an object that is being deleted: no finalizer and no grace period left.
pub(crate) fn may_vanish(object: &Value) -> bool {
    let held_by_namespace_finalizer = || {
        object.get("kind").and_then(Value::as_str) == Some("Namespace")
            && object.get("apiVersion").and_then(Value::as_str) == Some("v1")
            && object::at_path(object, "spec.finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    !meta_str(object, "deletionTimestamp").is_empty()
        && object::finalizers(object).next().is_none()
        && object::at_path(object, "metadata.deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && !held_by_namespace_finalizer()
}
