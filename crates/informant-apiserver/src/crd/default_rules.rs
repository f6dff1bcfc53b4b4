//! Defaults of a schema are values that the schema itself takes: of the right type, within bounds, without unknown fields.

use serde_json::Value;

use crate::schema::path::FieldPath;
use crate::schema::{Definitions, Schema, SchemaView, prune, validate};
use crate::status::Cause;

/// Every default in `schema` that the schema refuses. The values of maps aren't looked into, nor are they upstream.
pub(crate) fn validate(schema: &Schema, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    node(schema, path, true, &mut causes);
    causes
}

fn node(schema: &Schema, path: &FieldPath<'_>, root: bool, causes: &mut Vec<Cause>) {
    if let Some(value) = &schema.default {
        causes.extend(default_value(value, schema, &path.field("default")));
    }
    let properties = path.field("properties");
    for (name, property) in &schema.properties {
        // The object's own identity has no defaults at all; that is another rule's matter.
        if !(root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
            node(property, &properties.key(name), false, causes);
        }
    }
    if let Some(items) = &schema.items {
        node(items, &path.field("items"), false, causes);
    }
}

fn default_value(value: &Value, schema: &Schema, path: &FieldPath<'_>) -> Vec<Cause> {
    let definitions = Definitions::default();
    let view = SchemaView::new(schema, &definitions);
    if !prune::prune_part(&mut value.clone(), view).is_empty() {
        return vec![Cause::invalid(path, value, "must not have unknown fields")];
    }
    // Defaults within don't count: each one is valid by itself.
    validate::validate_default(value, view, path)
}
