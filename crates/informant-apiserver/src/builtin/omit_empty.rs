//! What a server that holds built-in objects in Go structs makes of them when it writes them. Quantities are in their shortest
//! form. Left out are nulls, and lists and maps that are optional and empty. So `data: {}` in a ConfigMap is the same as no data, to clients and to server-side apply alike.
//!
//! Empty structs (`emptyDir: {}`) and empty lists that are required (`rules: []`) stay.

use serde_json::{Map, Value, json};

use super::quantity;
use crate::schema::SchemaView;

/// The definition whose zero value is written `0`.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Brings an object of a built-in kind into the form in which it's stored. Idempotent; fields that the schema doesn't know stay.
pub(crate) fn apply(object: &mut Value, schema: SchemaView<'_>) {
    if schema.definition_name() == Some(QUANTITY) {
        if let Some(shortest) = quantity::canonical(object) {
            *object = Value::String(shortest);
        }
        return;
    }
    match object {
        Value::Object(fields) => {
            fields.retain(|name, value| keep_field(name, value, schema));
            for (name, value) in fields.iter_mut() {
                if let Some(field) = schema.field(name) {
                    apply(value, field);
                }
            }
            // Once more, for what has only now become empty.
            fields.retain(|name, value| keep_field(name, value, schema));
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                items.iter_mut().for_each(|item| apply(item, schema));
            }
        }
        _ => {}
    }
}

/// Whether the field stays; a null in a map becomes its zero value, if that is a scalar.
fn keep_field(name: &str, value: &mut Value, schema: SchemaView<'_>) -> bool {
    let Some(field) = schema.property(name) else {
        if let (Value::Null, Some(zero)) = (&value, schema.map_value().and_then(zero)) {
            *value = zero;
        }
        return !value.is_null();
    };
    let required = schema.node().required.iter().any(|required| required == name);
    let empty = match value {
        Value::Null => return false,
        // An empty list of managedFields asks for a reset.
        Value::Array(items) => items.is_empty() && name != "managedFields",
        Value::Object(map) => map.is_empty() && field.map_value().is_some(),
        _ => false,
    };
    required || !empty
}

fn zero(schema: SchemaView<'_>) -> Option<Value> {
    match schema.node().type_name.as_str() {
        _ if schema.definition_name() == Some(QUANTITY) => Some(json!("0")),
        "string" => Some(json!("")),
        "integer" | "number" => Some(json!(0)),
        "boolean" => Some(json!(false)),
        "object" => schema.map_value().is_none().then(|| Value::Object(Map::new())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Definitions, Schema};

    fn written(mut object: Value) -> Value {
        let text = json!({"type": "string"});
        let schema: Schema = serde_json::from_value(json!({
            "type": "object",
            "required": ["rules"],
            "properties": {
                "data": {"type": "object", "additionalProperties": text},
                "rules": {"type": "array", "items": {"type": "object"}},
                "spec": {"type": "object", "properties": {
                    "emptyDir": {"type": "object", "properties": {"medium": text}},
                    "args": {"type": "array", "items": text},
                    "selector": {"type": "object", "properties": {
                        "matchLabels": {"type": "object", "additionalProperties": text},
                    }},
                }},
            },
        }))
        .unwrap();
        apply(&mut object, SchemaView::new(&schema, &Definitions::default()));
        object
    }

    #[test]
    fn empty_optional_lists_and_maps_and_nulls_are_left_out() {
        assert_eq!(written(json!({"data": {}, "spec": {"args": [], "emptyDir": null}})), json!({"spec": {}}));
        assert_eq!(written(json!({"data": null, "rules": null})), json!({}));
    }

    #[test]
    fn empty_structs_and_required_lists_stay() {
        let object = json!({"rules": [], "spec": {"emptyDir": {}, "selector": {}}});
        assert_eq!(written(object.clone()), object);
        assert_eq!(written(json!({"spec": {"selector": {"matchLabels": {}}}})), json!({"spec": {"selector": {}}}));
    }

    #[test]
    fn a_null_in_a_map_of_texts_is_the_empty_text() {
        assert_eq!(written(json!({"data": {"a": null, "b": "x"}})), json!({"data": {"a": "", "b": "x"}}));
    }

    #[test]
    fn what_the_schema_does_not_know_stays() {
        assert_eq!(written(json!({"new": {"list": []}})), json!({"new": {"list": []}}));
    }
}
