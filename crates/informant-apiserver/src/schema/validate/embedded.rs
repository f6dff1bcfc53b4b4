//! An object within an object: it names its kind, and its metadata is metadata.

use serde_json::Value;

use crate::name_rules;
use crate::schema::path::FieldPath;
use crate::schema::{SchemaView, object_meta};
use crate::status::Cause;

/// Every way in which the identity of an object within `value` is wrong.
pub(crate) fn validate(value: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(value, schema, path, &mut causes);
    causes
}

fn walk(value: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if schema.node().embedded_resource {
                causes.extend(identity(value, path));
            }
            for (name, value) in fields {
                if let Some(property) = schema.property(name) {
                    walk(value, property, &path.field(name), causes);
                } else if let Some(map_value) = schema.map_value() {
                    walk(value, map_value, &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, &path.index(index), causes);
            }
        }
        _ => {}
    }
}

fn identity(object: &Value, path: &FieldPath<'_>) -> Vec<Cause> {
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
    if let Some(name) = metadata.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
        && let Some(why) = name_rules::path_segment(name)
    {
        causes.push(Cause::invalid(&path.field("name"), &Value::from(name), why));
    }
    if let Some(namespace) = metadata.get("namespace").and_then(Value::as_str).filter(|name| !name.is_empty())
        && let Some(why) = name_rules::dns1123_label(namespace)
    {
        causes.push(Cause::invalid(&path.field("namespace"), &Value::from(namespace), why));
    }
    causes.extend(name_rules::labels(metadata.get("labels"), path));
    causes.extend(name_rules::annotations(metadata.get("annotations"), path));
    causes
}
