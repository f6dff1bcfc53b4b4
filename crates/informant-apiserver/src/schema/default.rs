//! Defaulting: a missing field gets the schema's default where its parent is there.
//!
//! A null in a place that isn't nullable counts as missing: it becomes the default, or goes when there is none.

use serde_json::Value;

use super::SchemaView;

/// Fills in the defaults of `schema` and removes nulls that stand where null is no value. Idempotent.
///
/// The object's own `metadata`, `apiVersion` and `kind` carry no defaults: a CRD can't give them any.
pub(crate) fn apply(value: &mut Value, schema: SchemaView<'_>) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties() {
                let Some(default) = property.default() else { continue };
                match fields.get_mut(name) {
                    Some(present) if present.is_null() && !property.nullable() => *present = default.clone(),
                    Some(_) => {}
                    None => {
                        fields.insert(name.to_owned(), default.clone());
                    }
                }
            }
            fields.retain(|name, value| match schema.field(name) {
                Some(field) => {
                    fill_null(value, field);
                    apply(value, field);
                    !value.is_null() || field.nullable()
                }
                None => true,
            });
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                fill_null(item, schema);
                apply(item, schema);
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, schema: SchemaView<'_>) {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable(), schema.default()) {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Definitions, Schema};
    use serde_json::json;

    fn defaulted(schema: Value, mut value: Value) -> Value {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let definitions = Definitions::default();
        let view = SchemaView::new(&schema, &definitions);
        apply(&mut value, view);
        let once = value.clone();
        apply(&mut value, view);
        assert_eq!(value, once, "defaulting twice changes nothing more");
        value
    }

    fn spec(properties: Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    }

    #[test]
    fn a_default_needs_its_parent() {
        let schema = spec(json!({"replicas": {"type": "integer", "default": 1}}));
        assert_eq!(defaulted(schema.clone(), json!({})), json!({}));
        assert_eq!(defaulted(schema.clone(), json!({"spec": {}})), json!({"spec": {"replicas": 1}}));
        assert_eq!(defaulted(schema, json!({"spec": {"replicas": 0}})), json!({"spec": {"replicas": 0}}));
    }

    #[test]
    fn a_default_is_filled_in_itself() {
        let schema = spec(json!({"a": {"type": "object", "default": {}, "properties":
            {"b": {"type": "string", "default": "x"}}}}));
        assert_eq!(defaulted(schema, json!({"spec": {}})), json!({"spec": {"a": {"b": "x"}}}));
    }

    #[test]
    fn null_is_a_value_only_where_nullable() {
        let schema = spec(json!({
            "plain": {"type": "string"},
            "filled": {"type": "string", "default": "d"},
            "kept": {"type": "string", "nullable": true, "default": "d"},
        }));
        let value = json!({"spec": {"plain": null, "filled": null, "kept": null, "unknown": null}});
        assert_eq!(defaulted(schema, value), json!({"spec": {"filled": "d", "kept": null, "unknown": null}}));
    }

    #[test]
    fn items_and_map_values_are_filled_in() {
        let item = json!({"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}});
        let schema = spec(json!({"list": {"type": "array", "items": item}, "map": {"type": "object",
            "additionalProperties": item}}));
        assert_eq!(
            defaulted(schema, json!({"spec": {"list": [{}, {"p": "UDP"}], "map": {"k": {}, "n": null}}})),
            json!({"spec": {"list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": {"p": "TCP"}}}})
        );
    }
}
