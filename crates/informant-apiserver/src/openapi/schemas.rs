//! The schemas of a document: what the kinds look like, and every definition that they refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Description, Descriptions, group_version_kind};
use crate::object;
use crate::resource::Resource;
use crate::schema::Definitions;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const REFERENCE: &str = "#/components/schemas/";

/// The schemas of a document under construction, and which of them describes which kind.
pub(super) struct Schemas {
    values: Map<String, Value>,
    by_kind: BTreeMap<(String, String, String), String>,
}

/// The schemas of the resources of one group version; `all` are all resources, among which metadata's schema is found.
pub(super) fn of(served: &[&Resource], all: &[Arc<Resource>], descriptions: &Descriptions) -> Schemas {
    let mut schemas = Schemas { values: Map::new(), by_kind: BTreeMap::new() };
    if let Some(resource) = served.iter().find(|resource| !resource.custom) {
        schemas.add_definitions(resource.schema.definitions(), &descriptions.of(&resource.api_version()), None);
    }
    if served.iter().any(|resource| resource.custom) {
        // Any built-in group has metadata; this one's table is small.
        let source = all.iter().find(|resource| resource.group == "apiextensions.k8s.io");
        let roots = [format!("{META}.ObjectMeta"), format!("{META}.ListMeta")];
        match source {
            Some(source) => {
                let descriptions = descriptions.of(&source.api_version());
                schemas.add_definitions(source.schema.definitions(), &descriptions, Some(&roots));
            }
            None => schemas.values.extend(roots.map(|name| (name, json!({"type": "object"})))),
        }
    }
    for resource in served.iter().filter(|resource| resource.custom) {
        schemas.add_custom(resource);
    }
    schemas
}

// === impl Schemas ===

impl Schemas {
    /// The schemas by name.
    pub(super) fn into_values(self) -> Map<String, Value> {
        self.values
    }

    /// A reference to the schema of a kind, if it is described.
    pub(super) fn reference(&self, group: &str, version: &str, kind: &str) -> Option<Value> {
        let key = (group.to_owned(), version.to_owned(), kind.to_owned());
        self.by_kind.get(&key).map(|name| json!({"$ref": format!("{REFERENCE}{name}")}))
    }

    /// Adds the definitions that can be reached from `roots`, or all.
    fn add_definitions(
        &mut self,
        definitions: &Definitions,
        descriptions: &BTreeMap<String, Description>,
        roots: Option<&[String]>,
    ) {
        let wanted = roots.map(|roots| reachable(definitions, roots));
        for (name, schema) in &definitions.by_name {
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(name)) {
                continue;
            }
            let mut schema_value = serde_json::to_value(schema).unwrap_or_default();
            if let Some(description) = descriptions.get(name) {
                describe(&mut schema_value, description);
            }
            publish(&mut schema_value);
            for kind in &schema.group_version_kinds {
                let part = |field: &str| kind.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
                self.by_kind.insert((part("group"), part("version"), part("kind")), name.clone());
            }
            self.values.insert(name.clone(), schema_value);
        }
    }

    fn add_custom(&mut self, resource: &Resource) {
        let mut reversed: Vec<&str> = resource.group.split('.').collect();
        reversed.reverse();
        let prefix = format!("{}.{}", reversed.join("."), resource.version);
        let name = format!("{prefix}.{}", resource.kind);
        let mut object = serde_json::to_value(resource.schema.view().node()).unwrap_or_default();
        publish(&mut object);
        add_identity(&mut object, &resource.kind);
        object["type"] = json!("object");
        object["x-kubernetes-group-version-kind"] =
            json!([group_version_kind(&resource.group, &resource.version, &resource.kind)]);
        let list_name = format!("{prefix}.{}", resource.list_kind);
        let list = custom_list(resource, &name);
        for (kind, name, schema) in [(&resource.kind, name, object), (&resource.list_kind, list_name, list)] {
            let key = (resource.group.clone(), resource.version.clone(), kind.clone());
            self.by_kind.insert(key, name.clone());
            self.values.insert(name, schema);
        }
    }
}

fn custom_list(resource: &Resource, item: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": api_version(),
            "kind": kind(),
            "metadata": in_place(&format!("{META}.ListMeta"), "Metadata of the list: its resource version, and where to go on."),
            "items": {
                "type": "array",
                "description": format!("The {}.", resource.plural),
                "items": {"$ref": format!("{REFERENCE}{item}")},
            },
        },
        "x-kubernetes-group-version-kind":
            [group_version_kind(&resource.group, &resource.version, &resource.list_kind)],
    })
}

fn api_version() -> Value {
    json!({"type": "string", "description": "The group and version that the object is written in."})
}

fn kind() -> Value {
    json!({"type": "string", "description": "The kind of the object, in CamelCase."})
}

fn in_place(definition: &str, description: &str) -> Value {
    json!({"allOf": [{"$ref": format!("{REFERENCE}{definition}")}], "description": description})
}

/// Adds `apiVersion`, `kind` and `metadata`, which a CRD leaves out.
fn add_identity(object: &mut Value, owner: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = api_version();
    properties["kind"] = kind();
    properties["metadata"] = in_place(&format!("{META}.ObjectMeta"), &format!("Metadata of the {owner}."));
}

/// Puts text where there is none yet.
fn describe(schema: &mut Value, description: &Description) {
    let Some(fields) = schema.as_object_mut() else { return };
    if !description.text.is_empty() {
        fields.entry("description").or_insert_with(|| json!(description.text));
    }
    let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, text) in &description.fields {
        if let Some(property) = properties.get_mut(name).and_then(Value::as_object_mut) {
            property.entry("description").or_insert_with(|| json!(text));
        }
    }
}

/// Turns a schema of ours, at every depth, into one that OpenAPI tools read.
fn publish(node: &mut Value) {
    let Some(fields) = node.as_object_mut() else { return };
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(publish),
            ("items" | "additionalProperties" | "not", value) => publish(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => branches.iter_mut().for_each(publish),
            ("minimum" | "maximum" | "multipleOf", value) => object::normalize_numbers(value),
            _ => {}
        }
    }
    if fields.contains_key("x-kubernetes-int-or-string") && !fields.contains_key("anyOf") {
        fields.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    if fields.contains_key("x-kubernetes-embedded-resource") {
        add_identity(node, "embedded object");
        node["required"] = with_identity(node.get("required"));
        return;
    }
    let Some(Value::String(target)) = fields.remove("$ref") else { return };
    let reference = json!({"$ref": format!("{REFERENCE}{target}")});
    // What stands beside a reference is ignored by readers, unless the reference is a branch of its own.
    if fields.is_empty() {
        *node = reference;
    } else {
        fields.insert("allOf".to_owned(), json!([reference]));
    }
}

fn with_identity(required: Option<&Value>) -> Value {
    let mut names: Vec<Value> = required.and_then(Value::as_array).cloned().unwrap_or_default();
    for name in ["apiVersion", "kind"] {
        if !names.iter().any(|present| present == name) {
            names.push(json!(name));
        }
    }
    Value::Array(names)
}

/// Names of the definitions that can be reached from `roots`.
fn reachable(definitions: &Definitions, roots: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = roots.to_vec();
    while let Some(name) = open.pop() {
        let Some(schema) = definitions.by_name.get(&name) else { continue };
        if found.insert(name) {
            references(&serde_json::to_value(schema).unwrap_or_default(), &mut open);
        }
    }
    found
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(target)) => found.push(target.clone()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
