//! An object within an object: it names its kind, and its metadata is metadata.

use serde_json::Value;

use crate::name_rules;
use crate::schema::object_meta;
use crate::schema::path::FieldPath;
use crate::status::Cause;

/// Every way in which an embedded object's identity is wrong.
pub(crate) fn validate(object: &Value, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for name in ["apiVersion", "kind"] {
        let path = path.field(name);
        match object.get(name) {
            None => causes.push(Cause::required(&path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(Cause::invalid(&path, &Value::from(""), "must not be empty"));
            }
            Some(Value::String(text)) => causes.extend(identity_error(name, text, &path)),
            Some(other) => causes.push(Cause::invalid(&path, other, "must be a string")),
        }
    }
    if let Some(metadata) = object.get("metadata") {
        causes.extend(validate_metadata(metadata, &path.field("metadata")));
    }
    causes
}

fn identity_error(name: &str, text: &str, path: &FieldPath<'_>) -> Option<Cause> {
    let value = Value::from(text);
    if name == "apiVersion" {
        let wrong = text.matches('/').count() > 1;
        return wrong.then(|| Cause::invalid(path, &value, format!("unexpected GroupVersion string: {text}")));
    }
    let why = name_rules::dns1035_label(&text.to_lowercase())?;
    Some(Cause::invalid(path, &value, format!("may have mixed case, but should otherwise match: {why}")))
}

fn validate_metadata(metadata: &Value, path: &FieldPath<'_>) -> Vec<Cause> {
    if let Some((field, expected)) = object_meta::type_error(metadata) {
        let place = if field.is_empty() { path.to_string() } else { path.field(&field).to_string() };
        let value = metadata.get(&field).unwrap_or(metadata);
        return vec![Cause::invalid(place, value, format!("must be a {expected}"))];
    }
    let mut causes = Vec::new();
    if let Some(name) = metadata.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        if let Some(why) = name_rules::path_segment(name) {
            causes.push(Cause::invalid(&path.field("name"), &Value::from(name), why));
        }
    }
    causes.extend(name_rules::labels(metadata.get("labels"), path));
    causes.extend(name_rules::annotations(metadata.get("annotations"), path));
    causes
}
