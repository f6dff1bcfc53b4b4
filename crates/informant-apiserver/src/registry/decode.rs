//! Reading a built-in kind's object as its type would: values of another type are refused, nulls mean nothing.
//!
//! Custom kinds aren't read this way: their schema is checked by validation, which tells all mistakes at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::resource::Resource;
use crate::schema::SchemaView;
use crate::schema::path::FieldPath;

/// Drops nulls from `object` and checks the type of everything that its schema knows.
///
/// # Errors
/// One sentence that names the first field which can't be read.
pub(super) fn decode(resource: &Resource, object: &mut Value) -> Result<(), String> {
    if resource.custom {
        return Ok(());
    }
    value(object, resource.schema.view(), &FieldPath::ROOT)
}

fn value(value: &mut Value, schema: SchemaView<'_>, path: &FieldPath<'_>) -> Result<(), String> {
    let node = schema.node();
    let int_or_string = node.int_or_string || node.format == "int-or-string";
    let any = node.type_name.is_empty() || int_or_string || !node.one_of.is_empty() || !node.any_of.is_empty();
    match value {
        Value::Object(_) | Value::Array(_) | Value::Bool(_) if int_or_string => {
            mismatch(path, "a whole number or a string", value)
        }
        _ if any && node.properties.is_empty() => Ok(()),
        Value::Object(fields) if node.type_name == "object" || any => {
            // A null in a map is the zero value of what the map holds, and not nothing.
            fields.retain(|name, value| !value.is_null() || schema.property(name).is_none());
            for (name, value) in fields {
                if let Some(schema) = schema.field(name) {
                    self::value(value, schema, &path.field(name))?;
                }
            }
            Ok(())
        }
        Value::Array(items) if node.type_name == "array" => {
            let Some(schema) = schema.items() else { return Ok(()) };
            items.iter_mut().enumerate().try_for_each(|(at, item)| self::value(item, schema, &path.index(at)))
        }
        Value::String(text) if node.type_name == "string" => string(text, &node.format, path),
        Value::Number(number) if node.type_name == "integer" => {
            let fits = match (number.as_i64(), node.format.as_str()) {
                (Some(number), "int32") => i32::try_from(number).is_ok(),
                (number, _) => number.is_some() || number_is_u64(value),
            };
            if fits { Ok(()) } else { mismatch(path, "a whole number that fits", value) }
        }
        Value::Number(_) if node.type_name == "number" => Ok(()),
        Value::Bool(_) if node.type_name == "boolean" => Ok(()),
        // A null in a list is an empty value.
        Value::Null => Ok(()),
        _ => mismatch(path, wanted(&node.type_name), value),
    }
}

fn number_is_u64(value: &Value) -> bool {
    value.as_u64().is_some()
}

fn string(text: &str, format: &str, path: &FieldPath<'_>) -> Result<(), String> {
    match format {
        "date-time" if text.parse::<jiff::Timestamp>().is_err() => {
            Err(format!("{path} must be a time as in 2006-01-02T15:04:05Z, not {text:?}"))
        }
        "byte" if STANDARD.decode(text.replace(['\n', '\r'], "")).is_err() => {
            Err(format!("{path} must be base64: illegal base64 data"))
        }
        _ => Ok(()),
    }
}

fn wanted(type_name: &str) -> &'static str {
    match type_name {
        "object" => "an object",
        "array" => "a list",
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "of another type",
    }
}

fn mismatch(path: &FieldPath<'_>, wanted: &str, found: &Value) -> Result<(), String> {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => found.to_string(),
        Value::String(text) => format!("the string {:?}", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Err(format!("{path} must be {wanted}, not {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::catalog::Catalog;
    use serde_json::json;

    fn check(group: &str, plural: &str, mut object: Value) -> Result<Value, String> {
        let catalog = Catalog::builtin();
        let served = catalog.find(group, "v1", plural).unwrap();
        decode(&served.resource, &mut object).map(|()| object)
    }

    #[test]
    fn nulls_vanish_and_what_any_type_may_hold_stays() {
        let pod = json!({"metadata": {"name": "p", "creationTimestamp": null}, "spec": {"nodeName": null, "containers": [
            {"name": "c", "resources": {"limits": {"cpu": "1", "memory": 5}}, "ports": [{"containerPort": 80}],
             "livenessProbe": {"httpGet": {"port": "http"}}}]}});
        let read = check("", "pods", pod).unwrap();
        assert_eq!(read["metadata"], json!({"name": "p"}));
        assert_eq!(read["spec"].get("nodeName"), None);
    }

    #[test]
    fn a_value_of_another_type_is_named_by_its_place() {
        let refused = |group: &str, plural: &str, object: Value| check(group, plural, object).unwrap_err();
        assert_eq!(refused("", "configmaps", json!({"data": {"a": 5}})), "data.a must be a string, not 5");
        assert_eq!(refused("", "configmaps", json!({"data": 5})), "data must be an object, not 5");
        assert_eq!(
            refused("apps", "deployments", json!({"spec": {"replicas": "3"}})),
            "spec.replicas must be a whole number, not the string \"3\""
        );
        assert!(
            refused("apps", "deployments", json!({"spec": {"replicas": 3_000_000_000_u64}})).contains("spec.replicas")
        );
        assert!(
            refused("", "pods", json!({"spec": {"containers": {"a": 1}}})).contains("must be a list, not an object")
        );
        assert!(refused("", "secrets", json!({"data": {"a": "%%"}})).contains("illegal base64"));
        assert!(refused("", "pods", json!({"metadata": {"creationTimestamp": "soon"}})).contains("must be a time"));
        assert!(
            refused("", "services", json!({"spec": {"ports": [{"targetPort": []}]}})).contains("ports[0].targetPort")
        );
    }
}
