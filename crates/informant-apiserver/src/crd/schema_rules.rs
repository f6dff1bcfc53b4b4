//! Which schemas a CRD may carry: structural ones, without the keywords that Kubernetes doesn't support.

use serde_json::{Value, json};

use super::default_rules;
use crate::schema::path::FieldPath;
use crate::schema::{AdditionalProperties, Schema, structural};
use crate::status::{Cause, Status};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const RULE_REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Every reason why a version can't have this schema; 400 when a keyword has the wrong type.
pub(crate) fn validate(open_api: &Value, has_status: bool, path: &str) -> Result<Vec<Cause>, Status> {
    let root = FieldPath::root(path);
    let mut unsupported = Vec::new();
    unsupported_keywords(open_api, &root, &mut unsupported);
    let schema = match super::parse_schema(open_api) {
        Ok(schema) => schema,
        Err(_) if !unsupported.is_empty() => return Ok(unsupported),
        Err(status) => return Err(status),
    };
    let mut causes = Vec::new();
    if has_status {
        causes.extend(root_with_status(&schema, path));
    }
    if schema.nullable {
        causes.push(Cause::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    // A reference has no type, and it's the reference that is wrong.
    let structure = structural::validate(&schema, &root);
    if structure.is_empty() {
        causes.extend(default_rules::validate(&schema, &root));
    }
    causes.extend(structure.into_iter().filter(|cause| unsupported.is_empty() || !is_missing_type(cause)));
    causes.extend(unsupported);
    let mut walk = Walk { causes };
    walk.node(&schema, &root, Place { root: true, ..Place::default() });
    Ok(walk.causes)
}

fn is_missing_type(cause: &Cause) -> bool {
    cause.reason == "FieldValueRequired" && cause.field.ends_with(".type")
}

/// With a status subresource, the root says little more than what its fields are.
fn root_with_status(schema: &Schema, path: &str) -> Option<Cause> {
    if schema.type_name != "object" {
        let why =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Cause::invalid(format!("{path}.type"), &json!(schema.type_name), why));
    }
    let allowed = Schema {
        title: schema.title.clone(),
        description: schema.description.clone(),
        type_name: schema.type_name.clone(),
        format: schema.format.clone(),
        maximum: schema.maximum,
        minimum: schema.minimum,
        exclusive_maximum: schema.exclusive_maximum,
        exclusive_minimum: schema.exclusive_minimum,
        max_length: schema.max_length,
        min_length: schema.min_length,
        pattern: schema.pattern.clone(),
        max_items: schema.max_items,
        min_items: schema.min_items,
        unique_items: schema.unique_items,
        multiple_of: schema.multiple_of,
        required: schema.required.clone(),
        items: schema.items.clone(),
        properties: schema.properties.clone(),
        preserve_unknown_fields: schema.preserve_unknown_fields,
        validations: schema.validations.clone(),
        ..Schema::default()
    };
    (allowed != *schema).then(|| {
        let why = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength \
                   Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
                   XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status \
                   subresource is enabled";
        Cause::invalid(path, &json!(schema.type_name), why)
    })
}

/// Keywords that the typed schema doesn't have, so they are looked for in the JSON.
fn unsupported_keywords(node: &Value, path: &FieldPath<'_>, causes: &mut Vec<Cause>) {
    let Some(fields) = node.as_object() else { return };
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if fields.contains_key(keyword) {
            causes.push(Cause::forbidden(&path.field(keyword), format!("{keyword} is not supported")));
        }
    }
    if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let path = path.field("x-kubernetes-preserve-unknown-fields");
        causes.push(Cause::invalid(&path, &json!(false), "must be true or undefined"));
    }
    for (keyword, value) in fields {
        let path = path.field(keyword);
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    unsupported_keywords(property, &path.key(name), causes);
                }
            }
            ("items", Value::Array(_)) => {
                causes.push(Cause::forbidden(&path, "items must be a schema object and not an array"));
            }
            ("items" | "additionalProperties" | "not", Value::Object(_)) => unsupported_keywords(value, &path, causes),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for (index, branch) in branches.iter().enumerate() {
                    unsupported_keywords(branch, &path.index(index), causes);
                }
            }
            _ => {}
        }
    }
}

/// Where a node is: decides whether it may have a default.
#[derive(Debug, Clone, Copy, Default)]
struct Place<'a> {
    root: bool,
    /// Below `metadata`, `apiVersion` or `kind` of the object or of an embedded one.
    in_meta: bool,
    /// The field of the object itself, below which no default may be.
    top_level_meta: Option<&'a str>,
    /// In the values of a map within metadata, where no default may be either.
    in_meta_map: bool,
}

struct Walk {
    causes: Vec<Cause>,
}

// === impl Walk ===

impl Walk {
    fn node(&mut self, node: &Schema, path: &FieldPath<'_>, place: Place<'_>) {
        self.keywords(node, path, place);
        self.map_type(node, path);
        self.list_type(node, path);
        self.list_map_keys(node, path);
        self.rules(node, path);
        self.children(node, path, place);
    }

    fn children(&mut self, node: &Schema, path: &FieldPath<'_>, place: Place<'_>) {
        let inner = Place { root: false, ..place };
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            let mut place_of_property = inner;
            if (place.root || node.embedded_resource) && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
                place_of_property.in_meta = true;
                if place.root {
                    place_of_property.top_level_meta = Some(name);
                }
            }
            self.node(property, &properties.key(name), place_of_property);
        }
        if let Some(AdditionalProperties::Schema(values)) = node.additional_properties.as_deref() {
            let place = Place { in_meta_map: place.in_meta_map || place.in_meta, ..inner };
            self.node(values, &path.field("additionalProperties"), place);
        }
        if let Some(items) = &node.items {
            self.node(items, &path.field("items"), inner);
        }
        if let Some(not) = &node.not {
            self.node(not, &path.field("not"), inner);
        }
        for (keyword, branches) in [("allOf", &node.all_of), ("oneOf", &node.one_of), ("anyOf", &node.any_of)] {
            let path = path.field(keyword);
            for (index, branch) in branches.iter().enumerate() {
                self.node(branch, &path.index(index), inner);
            }
        }
    }

    fn keywords(&mut self, node: &Schema, path: &FieldPath<'_>, place: Place<'_>) {
        if !node.type_name.is_empty() && !TYPES.contains(&node.type_name.as_str()) {
            let path = path.field("type");
            self.causes.push(Cause::not_supported(&path, &json!(node.type_name), &TYPES.map(Value::from)));
            if node.type_name == "null" {
                let why = "type cannot be set to null, use nullable as an alternative";
                self.causes.push(Cause::forbidden(&path, why));
            }
        }
        if node.default.is_some() {
            let path = path.field("default");
            if place.in_meta_map {
                let why = "must not be set inside additionalProperties applying to object metadata";
                self.causes.push(Cause::forbidden(&path, why));
            } else if let Some(field) = place.top_level_meta {
                self.causes.push(Cause::forbidden(&path, format!("must not be set in top-level {field}")));
            }
        }
        if place.in_meta && node.embedded_resource {
            let path = path.field("x-kubernetes-embedded-resource");
            self.causes.push(Cause::forbidden(&path, "must not be used inside of resource meta"));
        }
        if node.unique_items {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.causes.push(Cause::forbidden(&path.field("uniqueItems"), why));
        }
        let closed = !matches!(node.additional_properties.as_deref(), None | Some(AdditionalProperties::Allowed(true)));
        if closed && !node.properties.is_empty() {
            let why = "additionalProperties and properties are mutual exclusive";
            self.causes.push(Cause::forbidden(&path.field("additionalProperties"), why));
        }
    }

    fn map_type(&mut self, node: &Schema, path: &FieldPath<'_>) {
        if node.map_type.is_empty() {
            return;
        }
        self.needs_type("object", "must be object if x-kubernetes-map-type is specified", node, path);
        if !matches!(node.map_type.as_str(), "atomic" | "granular") {
            let path = path.field("x-kubernetes-map-type");
            let supported = [json!("atomic"), json!("granular")];
            self.causes.push(Cause::not_supported(&path, &json!(node.map_type), &supported));
        }
    }

    fn list_type(&mut self, node: &Schema, path: &FieldPath<'_>) {
        if node.list_type.is_empty() {
            return;
        }
        self.needs_type("array", "must be array if x-kubernetes-list-type is specified", node, path);
        if !matches!(node.list_type.as_str(), "atomic" | "set" | "map") {
            let supported = [json!("atomic"), json!("set"), json!("map")];
            let path = path.field("x-kubernetes-list-type");
            self.causes.push(Cause::not_supported(&path, &json!(node.list_type), &supported));
        }
        let Some(items) = &node.items else { return };
        let items_path = path.field("items");
        if node.list_type == "set" {
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            if items.type_name == "array" && !matches!(items.list_type.as_str(), "" | "atomic") {
                let path = items_path.field("x-kubernetes-list-type");
                self.causes.push(Cause::invalid(&path, &json!(items.list_type), why));
            }
            if items.type_name == "object" && items.map_type != "atomic" {
                let shown = if items.map_type.is_empty() { Value::Null } else { json!(items.map_type) };
                self.causes.push(Cause::invalid(&items_path.field("x-kubernetes-map-type"), &shown, why));
            }
        }
        if items.nullable && matches!(node.list_type.as_str(), "set" | "map") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {}", node.list_type);
            self.causes.push(Cause::forbidden(&items_path.field("nullable"), why));
        }
    }

    fn needs_type(&mut self, type_name: &str, why: &str, node: &Schema, path: &FieldPath<'_>) {
        let path = path.field("type");
        if node.type_name.is_empty() {
            self.causes.push(Cause::required(&path, why));
        } else if node.type_name != type_name {
            self.causes.push(Cause::invalid(&path, &json!(node.type_name), why));
        }
    }

    fn list_map_keys(&mut self, node: &Schema, path: &FieldPath<'_>) {
        let keys = &node.list_map_keys;
        let keys_path = path.field("x-kubernetes-list-map-keys");
        if !keys.is_empty() && node.list_type != "map" {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            let path = path.field("x-kubernetes-list-type");
            self.causes.push(if node.list_type.is_empty() {
                Cause::required(&path, why)
            } else {
                Cause::invalid(&path, &json!(node.list_type), why)
            });
        }
        if node.list_type != "map" {
            return;
        }
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.causes.push(Cause::required(&keys_path, why));
        }
        let Some(items) = &node.items else { return };
        let items_path = path.field("items");
        if items.type_name != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            self.causes.push(Cause::invalid(&items_path.field("type"), &json!(items.type_name), why));
            return;
        }
        let properties = items_path.field("properties");
        for (index, key) in keys.iter().enumerate() {
            match items.properties.get(key) {
                Some(property) => self.key_property(property, items.required.contains(key), &properties.key(key)),
                None => {
                    let why = "entries must all be names of item properties";
                    self.causes.push(Cause::invalid(&keys_path, &json!(keys), why));
                }
            }
            if keys.iter().take(index).any(|earlier| earlier == key) {
                self.causes.push(Cause::invalid(&keys_path, &json!(keys), "must not contain duplicate entries"));
            }
        }
    }

    /// A key field is a scalar that is always there.
    fn key_property(&mut self, property: &Schema, required: bool, path: &FieldPath<'_>) {
        if matches!(property.type_name.as_str(), "array" | "object") {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            self.causes.push(Cause::invalid(&path.field("type"), &json!(property.type_name), why));
        }
        if !required && property.default.is_none() {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            self.causes.push(Cause::required(&path.field("default"), why));
        }
        if property.nullable {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            self.causes.push(Cause::forbidden(&path.field("nullable"), why));
        }
    }

    /// The form of CEL rules; what they say isn't looked at.
    fn rules(&mut self, node: &Schema, path: &FieldPath<'_>) {
        let path = path.field("x-kubernetes-validations");
        for (index, rule) in node.validations.iter().enumerate() {
            let path = path.index(index);
            let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
            let message = text("message");
            if text("rule").trim().is_empty() {
                self.causes.push(Cause::required(&path.field("rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                let why = "must be non-empty if specified";
                self.causes.push(Cause::invalid(&path.field("message"), &json!(message), why));
            } else if message.trim().contains(['\n', '\r']) {
                let why = "must not contain line breaks";
                self.causes.push(Cause::invalid(&path.field("message"), &json!(message), why));
            } else if text("rule").trim().contains(['\n', '\r']) && message.trim().is_empty() {
                let why = "message must be specified if rule contains line breaks";
                self.causes.push(Cause::required(&path.field("message"), why));
            }
            if let Some(reason) = rule.get("reason").and_then(Value::as_str)
                && !RULE_REASONS.contains(&reason)
            {
                let supported = RULE_REASONS.map(Value::from);
                self.causes.push(Cause::not_supported(&path.field("reason"), &json!(reason), &supported));
            }
        }
    }
}
