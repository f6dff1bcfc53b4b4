//! Pruning: a field that the schema doesn't know isn't stored.
//!
//! `x-kubernetes-preserve-unknown-fields` keeps what isn't named at its own node; what is named below is pruned by its
//! own schema again. `metadata`, `apiVersion` and `kind` of the object, and of objects embedded in it, have rules of
//! their own: the root's are left alone, an embedded object's metadata loses fields that metadata doesn't have.

use serde_json::{Map, Value};

use super::path::FieldPath;
use super::{AdditionalProperties, SchemaView, object_meta};

/// Removes every field that `schema` doesn't know and returns their paths, such as `spec.containers[0].bar`, sorted.
///
/// Costs one walk; paths are only built for what is removed. Idempotent.
pub(crate) fn prune(value: &mut Value, schema: SchemaView<'_>) -> Vec<String> {
    let mut pruner = Pruner { removed: Vec::new() };
    pruner.object_root(value, schema);
    pruner.removed.sort();
    pruner.removed
}

/// The fields that [`prune`] would remove.
pub(crate) fn unknown_fields(value: &Value, schema: SchemaView<'_>) -> Vec<String> {
    prune(&mut value.clone(), schema)
}

/// Removes what `schema` doesn't know from a value that isn't a whole object (a default, for example).
pub(crate) fn prune_part(value: &mut Value, schema: SchemaView<'_>) -> Vec<String> {
    let mut pruner = Pruner { removed: Vec::new() };
    pruner.value(value, Some(schema), &FieldPath::ROOT);
    pruner.removed.sort();
    pruner.removed
}

struct Pruner {
    removed: Vec<String>,
}

// === impl Pruner ===

impl Pruner {
    fn object_root(&mut self, value: &mut Value, schema: SchemaView<'_>) {
        if let Value::Object(fields) = value {
            self.fields(fields, schema, &FieldPath::ROOT, true);
        }
    }

    /// Without a schema nothing is known, so nothing stays.
    fn value(&mut self, value: &mut Value, schema: Option<SchemaView<'_>>, path: &FieldPath<'_>) {
        match (value, schema) {
            (Value::Object(fields), Some(schema)) if !is_opaque(schema) => {
                self.fields(fields, schema, path, schema.node().embedded_resource);
            }
            (Value::Object(fields), None) => self.retain(fields, path, |_| false),
            (Value::Array(items), schema) => {
                let item_schema = schema.and_then(SchemaView::items);
                // Items without a schema under a node that keeps unknown fields are unknown themselves: they stay.
                if schema.is_some_and(|schema| is_opaque(schema) || (item_schema.is_none() && keeps(schema))) {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, item_schema, &path.index(index));
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>, schema: SchemaView<'_>, path: &FieldPath<'_>, whole: bool) {
        let is_meta = |name: &str| whole && matches!(name, "apiVersion" | "kind" | "metadata");
        if !keeps(schema) {
            let any_key = !matches!(
                schema.node().additional_properties.as_deref(),
                None | Some(AdditionalProperties::Allowed(false))
            );
            self.retain(fields, path, |name| any_key || is_meta(name) || schema.property(name).is_some());
        }
        for (name, value) in fields.iter_mut() {
            let path = path.field(name);
            if is_meta(name) {
                if name == "metadata" {
                    self.embedded_metadata(value, &path);
                }
                continue;
            }
            match schema.field(name) {
                Some(field) => self.value(value, Some(field), &path),
                None if keeps(schema) => {}
                None => self.value(value, None, &path),
            }
        }
    }

    fn embedded_metadata(&mut self, metadata: &mut Value, path: &FieldPath<'_>) {
        if let Value::Object(fields) = metadata {
            // Nulls are what typed metadata leaves out; nobody is told of them.
            fields.retain(|_, value| !value.is_null());
            self.retain(fields, path, object_meta::is_field);
        }
    }

    fn retain(&mut self, fields: &mut Map<String, Value>, path: &FieldPath<'_>, keep: impl Fn(&str) -> bool) {
        fields.retain(|name, _| {
            let keep = keep(name);
            if !keep {
                self.removed.push(path.field(name).to_string());
            }
            keep
        });
    }
}

fn keeps(schema: SchemaView<'_>) -> bool {
    schema.preserves_unknown_fields()
}

/// A shared definition without structure stands for any JSON (RawExtension, FieldsV1); a custom schema without
/// structure stands for an empty object.
fn is_opaque(schema: SchemaView<'_>) -> bool {
    let node = schema.node;
    schema.site.reference.is_some()
        && node.properties.is_empty()
        && node.additional_properties.is_none()
        && node.items.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Definitions, Schema};
    use serde_json::json;

    fn pruned(schema: Value, mut value: Value) -> (Value, Vec<String>) {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let removed = prune(&mut value, SchemaView::new(&schema, &Definitions::default()));
        (value, removed)
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}}});
        let value = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "other": 1,
            "spec": {"foo": {"bar": 1}, "list": [{"a": "x", "b": 1}]}});
        let (value, removed) = pruned(schema, value);
        assert_eq!(removed, ["other", "spec.foo", "spec.list[0].b"]);
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"list": [{"a": "x"}]}})
        );
    }

    #[test]
    fn preserved_fields_stay_but_named_ones_are_pruned_again() {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "named": {"type": "object", "properties": {"a": {"type": "string"}}}}});
        let (value, removed) = pruned(schema, json!({"free": {"x": [1]}, "named": {"a": "1", "b": 2}}));
        assert_eq!(value, json!({"free": {"x": [1]}, "named": {"a": "1"}}));
        assert_eq!(removed, ["named.b"]);
    }

    #[test]
    fn an_object_without_properties_is_emptied() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        assert_eq!(pruned(schema, json!({"spec": {"a": 1}})).0, json!({"spec": {}}));
    }

    #[test]
    fn map_values_are_pruned_by_their_schema() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "additionalProperties":
            {"type": "object", "properties": {"a": {"type": "string"}}}}}});
        assert_eq!(pruned(schema, json!({"spec": {"k": {"a": "1", "b": 1}}})).0, json!({"spec": {"k": {"a": "1"}}}));
    }

    #[test]
    fn an_embedded_object_keeps_its_identity_and_known_metadata() {
        let schema = json!({"type": "object", "properties": {"template": {"type": "object",
            "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}});
        let value = json!({"template": {"apiVersion": "v1", "kind": "Pod", "status": {},
            "metadata": {"labels": {"a": "b"}, "colour": "red", "creationTimestamp": null}, "spec": {"x": 1}}});
        let (value, removed) = pruned(schema, value);
        assert_eq!(
            value,
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {}}})
        );
        assert_eq!(removed, ["template.metadata.colour", "template.spec.x", "template.status"]);
    }

    #[test]
    fn a_shared_definition_without_structure_is_any_json() {
        let schema: Schema = serde_json::from_value(
            json!({"type": "object", "properties": {"raw": {"$ref": "Raw"}, "ref": {"$ref": "Named"}}}),
        )
        .unwrap();
        let definitions: Definitions = serde_json::from_value(json!({"Raw": {"type": "object"},
            "Named": {"type": "object", "properties": {"a": {"type": "string"}}}}))
        .unwrap();
        let value = json!({"raw": {"any": {"thing": 1}}, "ref": {"a": "1", "b": 1}});
        assert_eq!(unknown_fields(&value, SchemaView::new(&schema, &definitions)), ["ref.b"]);
    }
}
