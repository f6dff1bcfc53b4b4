//! The paths of a document: which operations a resource has, which parameters they take, and which kind they speak.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::{group_version_kind, path_of};
use crate::resource::{Resource, Subresource};

/// A verb of the API, the HTTP method behind it, and the word that operations are named by.
const COLLECTION: [(&str, &str, &str); 3] =
    [("list", "get", "list"), ("create", "post", "create"), ("deletecollection", "delete", "deletecollection")];
const ITEM: [(&str, &str, &str); 4] =
    [("get", "get", "read"), ("update", "put", "replace"), ("patch", "patch", "patch"), ("delete", "delete", "delete")];
/// A subresource can be created below an object as well (`pods/eviction`).
const SUBRESOURCE: [(&str, &str, &str); 5] = [
    ("get", "get", "read"),
    ("create", "post", "create"),
    ("update", "put", "replace"),
    ("patch", "patch", "patch"),
    ("delete", "delete", "delete"),
];

/// The paths of all resources of one group version.
pub(super) fn of(served: &[&Resource], schemas: &Schemas) -> Map<String, Value> {
    let mut paths = Map::new();
    for resource in served {
        let root = format!("/{}", path_of(&resource.group, &resource.version));
        let home = if resource.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
        let collection = format!("{home}/{}", resource.plural);
        let item = format!("{collection}/{{name}}");
        let speaks = Speaks::resource(resource, schemas);
        if resource.namespaced && resource.has_verb("list") {
            let everywhere = speaks.operations(&COLLECTION[..1], &resource.verbs, "ForAllNamespaces");
            insert(&mut paths, format!("{root}/{}", resource.plural), everywhere, &[]);
        }
        let placed: &[&str] = if resource.namespaced { &["namespace"] } else { &[] };
        insert(&mut paths, collection, speaks.operations(&COLLECTION, &resource.verbs, ""), placed);
        let named: Vec<&str> = placed.iter().copied().chain(["name"]).collect();
        insert(&mut paths, item.clone(), speaks.operations(&ITEM, &resource.verbs, ""), &named);
        for subresource in &resource.subresources {
            let speaks = Speaks::subresource(resource, subresource, schemas);
            let operations = speaks.operations(&SUBRESOURCE, &subresource.verbs, &capitalized(&subresource.name));
            insert(&mut paths, format!("{item}/{}", subresource.name), operations, &named);
        }
    }
    paths
}

fn insert(paths: &mut Map<String, Value>, path: String, mut operations: Map<String, Value>, parameters: &[&str]) {
    if operations.is_empty() {
        return;
    }
    let described: Vec<Value> = parameters.iter().map(|name| path_parameter(name)).collect();
    if !described.is_empty() {
        operations.insert("parameters".to_owned(), Value::Array(described));
    }
    paths.insert(path, Value::Object(operations));
}

/// What the operations at a path speak of.
struct Speaks<'a> {
    resource: &'a Resource,
    kind: Value,
    object: Value,
    list: Value,
}

// === impl Speaks ===

impl<'a> Speaks<'a> {
    fn resource(resource: &'a Resource, schemas: &Schemas) -> Self {
        Self::of(resource, [&resource.group, &resource.version, &resource.kind], schemas)
    }

    fn subresource(resource: &'a Resource, subresource: &'a Subresource, schemas: &Schemas) -> Self {
        let kind = if subresource.kind.is_empty() { &resource.kind } else { &subresource.kind };
        let (group, version) = if subresource.version.is_empty() {
            (&resource.group, &resource.version)
        } else {
            (&subresource.group, &subresource.version)
        };
        Self::of(resource, [group, version, kind], schemas)
    }

    fn of(resource: &'a Resource, [group, version, kind]: [&str; 3], schemas: &Schemas) -> Self {
        let any = || json!({"type": "object"});
        Self {
            resource,
            kind: group_version_kind(group, version, kind),
            object: schemas.reference(group, version, kind).unwrap_or_else(any),
            list: schemas.reference(&resource.group, &resource.version, &resource.list_kind).unwrap_or_else(any),
        }
    }

    fn operations(&self, table: &[(&str, &str, &str)], verbs: &[String], suffix: &str) -> Map<String, Value> {
        table
            .iter()
            .filter(|(verb, _, _)| verbs.iter().any(|served| served == verb))
            .map(|(verb, method, word)| ((*method).to_owned(), self.operation(verb, word, suffix)))
            .collect()
    }

    fn operation(&self, verb: &str, word: &str, suffix: &str) -> Value {
        let resource = self.resource;
        let scope = if resource.namespaced && suffix != "ForAllNamespaces" { "Namespaced" } else { "" };
        let group: String = resource.group.split('.').next().map(capitalized).unwrap_or_default();
        let version = capitalized(&resource.version);
        let answer = if verb == "list" { &self.list } else { &self.object };
        let mut operation = json!({
            "operationId": format!("{word}{group}{version}{scope}{}{suffix}", resource.kind),
            "parameters": query_parameters(verb),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": if verb == "create" { "post" } else if verb == "update" { "put" } else { verb },
            "x-kubernetes-group-version-kind": self.kind,
        });
        let media_types: &[&str] = match verb {
            "create" | "update" => &["application/json", "application/yaml"],
            "patch" if resource.custom => {
                &["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
            }
            "patch" => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
            _ => return operation,
        };
        let schema = if verb == "patch" { json!({"type": "object"}) } else { self.object.clone() };
        let content: Map<String, Value> =
            media_types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect();
        operation["requestBody"] = json!({"required": true, "content": content});
        operation
    }
}

fn query_parameters(verb: &str) -> Value {
    let names: &[(&str, &str)] = match verb {
        "create" | "update" => &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")],
        "patch" => {
            &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")]
        }
        "delete" => &[
            ("dryRun", "string"),
            ("gracePeriodSeconds", "integer"),
            ("orphanDependents", "boolean"),
            ("propagationPolicy", "string"),
        ],
        "get" => &[("resourceVersion", "string")],
        _ => &[
            ("allowWatchBookmarks", "boolean"),
            ("continue", "string"),
            ("fieldSelector", "string"),
            ("labelSelector", "string"),
            ("limit", "integer"),
            ("resourceVersion", "string"),
            ("resourceVersionMatch", "string"),
            ("sendInitialEvents", "boolean"),
            ("timeoutSeconds", "integer"),
            ("watch", "boolean"),
        ],
    };
    names.iter().map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind}})).collect()
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
