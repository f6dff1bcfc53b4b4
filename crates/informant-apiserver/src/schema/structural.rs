//! Structural schemas: those in which what an object looks like is said outside of `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Only for them pruning, defaulting and server-side apply have one meaning; a CRD can have no other.

use serde_json::json;

use super::path::FieldPath;
use super::{AdditionalProperties, Schema};
use crate::status::Cause;

/// Every way in which `schema` isn't structural, in the order of path and message.
pub(crate) fn validate(schema: &Schema, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut checker = Checker { causes: Vec::new() };
    checker.node(schema, Level::Root, path);
    checker.complete_junctors(schema, Some(schema), path, path);
    checker.causes.sort_by_key(Cause::to_string);
    checker.causes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Checker {
    causes: Vec<Cause>,
}

// === impl Checker ===

impl Checker {
    fn node(&mut self, node: &Schema, level: Level, path: &FieldPath<'_>) {
        self.type_of(node, level, path);
        self.extensions(node, path);
        self.identity(node, level, path);
        self.junctors(node, path);
        match &node.items {
            Some(items) => self.node(items, Level::Item, &path.field("items")),
            None if node.type_name == "array" => {
                self.causes.push(Cause::required(&path.field("items"), "must be specified"));
            }
            None => {}
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            self.node(property, Level::Field, &properties.key(name));
        }
        if let Some(additional) = node.additional_properties.as_deref() {
            let path = path.field("additionalProperties");
            if level == Level::Root {
                self.causes.push(Cause::forbidden(&path, "must not be used at the root"));
            }
            if node.embedded_resource {
                let why = "must not be used if x-kubernetes-embedded-resource is set";
                self.causes.push(Cause::forbidden(&path, why));
            }
            if let AdditionalProperties::Schema(values) = additional {
                self.node(values, Level::Field, &path);
            }
        }
    }

    fn type_of(&mut self, node: &Schema, level: Level, path: &FieldPath<'_>) {
        let path = path.field("type");
        let name = node.type_name.as_str();
        if node.embedded_resource && name != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            self.causes.push(if name.is_empty() {
                Cause::required(&path, why)
            } else {
                Cause::invalid(&path, &json!(name), why)
            });
        } else if name.is_empty() && !node.int_or_string && !node.preserve_unknown_fields {
            let why = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.causes.push(Cause::required(&path, why));
        }
        if level == Level::Root && !name.is_empty() && name != "object" {
            self.causes.push(Cause::invalid(&path, &json!(name), "must be object at the root"));
        }
    }

    fn extensions(&mut self, node: &Schema, path: &FieldPath<'_>) {
        for (keyword, set) in [
            ("x-kubernetes-preserve-unknown-fields", node.preserve_unknown_fields),
            ("x-kubernetes-embedded-resource", node.embedded_resource),
        ] {
            if node.int_or_string && set {
                let why = "must be false if x-kubernetes-int-or-string is true";
                self.causes.push(Cause::invalid(&path.field(keyword), &json!(true), why));
            }
        }
        if node.embedded_resource && !node.preserve_unknown_fields && node.properties.is_empty() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.causes.push(Cause::required(&path.field("properties"), why));
        }
    }

    /// `apiVersion`, `kind` and `metadata` of a whole object can be narrowed, not changed.
    fn identity(&mut self, node: &Schema, level: Level, path: &FieldPath<'_>) {
        let properties = path.field("properties");
        if level == Level::Root || node.embedded_resource {
            for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
                if let Some(property) = node.properties.get(name).filter(|property| property.type_name != expected) {
                    let path = properties.key(name);
                    let why = format!("must be {expected}");
                    self.causes.push(Cause::invalid(&path.field("type"), &json!(property.type_name), why));
                }
            }
        }
        if let (Level::Root, Some(metadata)) = (level, node.properties.get("metadata")) {
            let narrowed = Schema {
                type_name: metadata.type_name.clone(),
                default: metadata.default.clone(),
                properties: metadata
                    .properties
                    .iter()
                    .filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
                    .map(|(name, property)| (name.clone(), property.clone()))
                    .collect(),
                ..Schema::default()
            };
            if narrowed != *metadata {
                let why =
                    "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.causes.push(Cause::forbidden(&properties.key("metadata"), why));
            }
        }
    }

    fn junctors(&mut self, node: &Schema, path: &FieldPath<'_>) {
        let skip_any_of = is_int_or_string(&node.any_of);
        let skip_first_all_of = node.all_of.first().is_some_and(|first| is_int_or_string(&first.any_of));
        self.value_rules(node, skip_any_of, skip_first_all_of, path);
    }

    fn value_rules(&mut self, node: &Schema, skip_any_of: bool, skip_first_all_of: bool, path: &FieldPath<'_>) {
        for (keyword, branches) in [("anyOf", &node.any_of), ("allOf", &node.all_of), ("oneOf", &node.one_of)] {
            if keyword == "anyOf" && skip_any_of {
                continue;
            }
            let path = path.field(keyword);
            for (index, branch) in branches.iter().enumerate() {
                let skip = keyword == "allOf" && index == 0 && skip_first_all_of;
                self.branch(branch, skip, &path.index(index));
            }
        }
        if let Some(not) = &node.not {
            self.branch(not, false, &path.field("not"));
        }
        if let Some((pattern, error)) = node.pattern.as_ref().and_then(|pattern| Some((pattern, pattern.error()?))) {
            let why = format!("must be a valid regular expression, but isn't: {error}");
            self.causes.push(Cause::invalid(&path.field("pattern"), &json!(pattern.as_str()), why));
        }
    }

    /// A branch judges values and brings no structure.
    fn branch(&mut self, node: &Schema, skip_any_of: bool, path: &FieldPath<'_>) {
        self.value_rules(node, skip_any_of, false, path);
        for (keyword, set, why) in [
            ("type", !node.type_name.is_empty(), "must be empty to be structural"),
            ("title", node.title.is_some(), "must be empty to be structural"),
            ("description", node.description.is_some(), "must be empty to be structural"),
            ("default", node.default.is_some(), "must be undefined to be structural"),
            ("nullable", node.nullable, "must be false to be structural"),
            ("additionalProperties", node.additional_properties.is_some(), "must be undefined to be structural"),
            ("x-kubernetes-preserve-unknown-fields", node.preserve_unknown_fields, "must be false to be structural"),
            ("x-kubernetes-embedded-resource", node.embedded_resource, "must be false to be structural"),
            ("x-kubernetes-int-or-string", node.int_or_string, "must be false to be structural"),
            ("x-kubernetes-list-map-keys", !node.list_map_keys.is_empty(), "must be empty to be structural"),
            ("x-kubernetes-list-type", !node.list_type.is_empty(), "must be undefined to be structural"),
            ("x-kubernetes-map-type", !node.map_type.is_empty(), "must be undefined to be structural"),
            ("x-kubernetes-validations", !node.validations.is_empty(), "must be empty to be structural"),
        ] {
            if set {
                self.causes.push(Cause::forbidden(&path.field(keyword), why));
            }
        }
        if let Some(items) = &node.items {
            self.branch(items, false, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, property) in &node.properties {
            let path = properties.key(name);
            if name == "metadata" {
                self.causes.push(Cause::forbidden(&path, "must not be specified in a nested context"));
            }
            self.branch(property, false, &path);
        }
    }

    /// What the root's branches speak of must be there in the structure.
    fn complete_junctors(
        &mut self,
        node: &Schema,
        structure: Option<&Schema>,
        path: &FieldPath<'_>,
        branch_path: &FieldPath<'_>,
    ) {
        if let Some(not) = &node.not {
            self.complete(not, structure, path, &branch_path.field("not"));
        }
        for (keyword, branches) in [("allOf", &node.all_of), ("anyOf", &node.any_of), ("oneOf", &node.one_of)] {
            let branch_path = branch_path.field(keyword);
            for (index, branch) in branches.iter().enumerate() {
                self.complete(branch, structure, path, &branch_path.index(index));
            }
        }
    }

    fn complete(
        &mut self,
        branch: &Schema,
        structure: Option<&Schema>,
        path: &FieldPath<'_>,
        branch_path: &FieldPath<'_>,
    ) {
        let Some(structure) = structure else {
            self.causes.push(Cause::required(path, &format!("because it is defined in {branch_path}")));
            return;
        };
        self.complete_junctors(branch, Some(structure), path, branch_path);
        if let Some(items) = &branch.items {
            let (path, branch_path) = (path.field("items"), branch_path.field("items"));
            self.complete(items, structure.items.as_deref(), &path, &branch_path);
        }
        let (properties, branch_properties) = (path.field("properties"), branch_path.field("properties"));
        for (name, property) in &branch.properties {
            let (path, branch_path) = (properties.key(name), branch_properties.key(name));
            self.complete(property, structure.properties.get(name), &path, &branch_path);
        }
    }
}

/// The one place where branches may have types: an integer or a string.
fn is_int_or_string(branches: &[Schema]) -> bool {
    let of_type = |name: &str| Schema { type_name: name.to_owned(), ..Schema::default() };
    matches!(branches, [first, second] if *first == of_type("integer") && *second == of_type("string"))
}
