//! CustomResourceDefinitions: reading them, completing them, and what they make the server serve.
//!
//! A CRD is stored as it was sent (with its defaults); this module reads it into typed form when it is validated and when
//! its resources are built. Nothing here keeps state: names that clash are the matter of `crd_controller`.

mod default_rules;
mod schema_rules;
mod validation;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::object;
use crate::resource::{
    GenerationRule, PrinterColumn, Resource, ResourceSchema, Rules, ScalePaths, StorageId, Subresource,
};
use crate::schema::validate::format;
use crate::schema::{AdditionalProperties, Definitions, Schema};
use crate::status::Status;

pub(crate) use self::validation::validate;

/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A CRD's `spec`, in typed form. Missing fields read as empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CrdSpec {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) scope: String,
    pub(crate) versions: Vec<Version>,
    pub(crate) conversion: Option<Conversion>,
    pub(crate) preserve_unknown_fields: bool,
}

/// The names of a custom kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// One version of a custom kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    pub(crate) schema: Option<VersionSchema>,
    pub(crate) subresources: Option<Subresources>,
    pub(crate) additional_printer_columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

/// The holder of a version's schema.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct VersionSchema {
    /// Kept as JSON: validation looks at keywords that [`Schema`] doesn't have.
    #[serde(rename = "openAPIV3Schema")]
    pub(crate) open_api: Option<Value>,
}

/// Which subresources a version has.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<Map<String, Value>>,
    pub(crate) scale: Option<Scale>,
}

/// Where `scale` finds its numbers, as JSON paths with the leading dot.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: String,
}

/// An additional printer column.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

/// A field that field selectors may name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

/// How versions are converted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Conversion {
    pub(crate) strategy: String,
    pub(crate) webhook: Option<Map<String, Value>>,
}

// === impl CrdSpec ===

impl CrdSpec {
    /// Reads a CRD's spec; 400 when a field has the wrong type.
    pub(crate) fn parse(crd: &Value) -> Result<Self, Status> {
        let spec = crd.get("spec").cloned().unwrap_or(Value::Null);
        if spec.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(without_nulls(spec, false)).map_err(|error| unreadable(&error))
    }

    /// Whether objects live in namespaces.
    pub(crate) fn namespaced(&self) -> bool {
        self.scope == "Namespaced"
    }

    /// The versions that are stored; exactly one in a valid CRD.
    fn storage_versions(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.storage)
    }
}

/// Reads a version's schema; 400 when a keyword has the wrong type.
pub(crate) fn parse_schema(open_api: &Value) -> Result<Schema, Status> {
    serde_json::from_value(open_api.clone()).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Status {
    Status::bad_request(format!(
        "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: {error}"
    ))
}

/// A null stands for a missing field, except where any JSON may stand: defaults, enums and examples.
fn without_nulls(value: Value, names_are_free: bool) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let is_data = !names_are_free && matches!(name.as_str(), "default" | "enum" | "example");
                let value = if is_data { value } else { without_nulls(value, name == "properties" && !names_are_free) };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(|item| without_nulls(item, false)).collect(),
        other => other,
    }
}

/// Completes a CRD before it is validated: default names and conversion, and the part of `status` that follows from the
/// spec (on a create a fresh status; on an update the old one, with a new storage version added).
pub(crate) fn prepare(crd: &mut Value, old: Option<&Value>) {
    apply_defaults(crd);
    let mut status = old.and_then(|old| old.get("status")).cloned().unwrap_or_else(
        || json!({"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}),
    );
    if let Some(storage) = CrdSpec::parse(crd).ok().as_ref().and_then(|spec| spec.storage_versions().next()) {
        add_stored_version(&mut status, &storage.name);
    }
    if let Some(root) = crd.as_object_mut() {
        root.insert("status".to_owned(), status);
    }
}

/// Fills in `spec.names.singular`, `spec.names.listKind` and `spec.conversion`.
fn apply_defaults(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind.is_empty() {
        return;
    }
    for (name, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(name).is_none_or(|present| present.is_null() || present == "") {
            names.insert(name.to_owned(), Value::from(value));
        }
    }
}

fn add_stored_version(status: &mut Value, version: &str) {
    let Some(status) = status.as_object_mut() else { return };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut().filter(|stored| !stored.iter().any(|present| present == version)) {
        stored.push(Value::from(version));
    }
}

/// What a create or an update answers warnings about, each once.
pub(crate) fn warnings(crd: &Value) -> Vec<String> {
    let Ok(spec) = CrdSpec::parse(crd) else { return Vec::new() };
    let mut warnings = Vec::new();
    for version in &spec.versions {
        let Some(schema) = version.open_api().and_then(|open_api| parse_schema(open_api).ok()) else { continue };
        schema_warnings(&schema, &version.name, &mut warnings);
    }
    if spec.conversion.is_some_and(|conversion| conversion.strategy == "Webhook") {
        warnings.push("this server calls no conversion webhook: versions differ in apiVersion only".to_owned());
    }
    warnings
}

fn schema_warnings(node: &Schema, version: &str, warnings: &mut Vec<String>) {
    let mut warn = |text: String| {
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    };
    if !node.format.is_empty() && !format::is_known(&node.format) {
        warn(format!("unrecognized format \"{}\"", node.format));
    }
    if !node.validations.is_empty() {
        warn(format!(
            "this server does not evaluate x-kubernetes-validations: the rules of version \"{version}\" are only stored"
        ));
    }
    let values = match node.additional_properties.as_deref() {
        Some(AdditionalProperties::Schema(values)) => Some(values),
        _ => None,
    };
    for child in node.properties.values().chain(values).chain(node.items.as_deref()) {
        schema_warnings(child, version, warnings);
    }
}

/// The resources that a CRD makes the server serve: one for each served version, in the order of the spec.
///
/// Whether the names are free is for `crd_controller` to say; a CRD that isn't established has its resources all the same.
/// Those of a CRD that is being deleted no longer list `create`, `update` and `patch`, though updates and patches are still
/// taken, so that finalizers can go; a create is forbidden.
pub(crate) fn resources(crd: &Value) -> Result<Vec<Resource>, Status> {
    let spec = CrdSpec::parse(crd)?;
    let storage = StorageId { group: spec.group.as_str().into(), plural: spec.names.plural.as_str().into() };
    let served = spec.versions.iter().filter(|version| version.served);
    served.map(|version| resource(crd, &spec, version, &storage)).collect()
}

/// The schema by which objects are stored, whichever version they are written in.
pub(crate) fn storage_schema(crd: &Value) -> Result<ResourceSchema, Status> {
    let spec = CrdSpec::parse(crd)?;
    spec.storage_versions().next().map_or_else(|| Ok(ResourceSchema::default()), Version::resource_schema)
}

fn resource(crd: &Value, spec: &CrdSpec, version: &Version, storage: &StorageId) -> Result<Resource, Status> {
    let schema = version.resource_schema()?;
    // While the objects are being removed, nothing may come or change.
    let verbs: &[&str] = if object::is_terminating(crd) {
        &["delete", "deletecollection", "get", "list", "watch"]
    } else {
        &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    };
    Ok(Resource {
        group: spec.group.clone(),
        version: version.name.clone(),
        kind: spec.names.kind.clone(),
        list_kind: spec.names.list_kind.clone(),
        plural: spec.names.plural.clone(),
        singular: spec.names.singular.clone(),
        short_names: spec.names.short_names.clone(),
        categories: spec.names.categories.clone(),
        namespaced: spec.namespaced(),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        subresources: version.subresources(&spec.group, &spec.names.kind),
        storage: storage.clone(),
        schema,
        custom: true,
        rules: Rules { generation: GenerationRule::OutsideMetadata, unconditional_update: false, ..Rules::default() },
        printer_columns: version.additional_printer_columns.iter().map(Column::to_printer_column).collect(),
        selectable_fields: version.selectable_fields.iter().map(|field| field.json_path.clone()).collect(),
        deprecation_warning: version.deprecated.then(|| version.warning(&spec.group, &spec.names.kind)),
    })
}

// === impl Version ===

impl Version {
    /// The schema as JSON, if there is one.
    pub(crate) fn open_api(&self) -> Option<&Value> {
        self.schema.as_ref().and_then(|schema| schema.open_api.as_ref())
    }

    /// The schema of an object; one that takes anything when the version has none.
    fn resource_schema(&self) -> Result<ResourceSchema, Status> {
        let schema = match self.open_api() {
            Some(open_api) => parse_schema(open_api)?,
            None => Schema { preserve_unknown_fields: true, ..Schema::default() },
        };
        Ok(ResourceSchema::new(schema, Arc::new(Definitions::default())))
    }

    fn warning(&self, group: &str, kind: &str) -> String {
        self.deprecation_warning.clone().unwrap_or_else(|| format!("{group}/{} {kind} is deprecated", self.name))
    }

    fn subresources(&self, group: &str, kind: &str) -> Vec<Subresource> {
        let Some(declared) = &self.subresources else { return Vec::new() };
        let subresource = |name: &str, group: &str, version: &str, kind: &str, scale: Option<ScalePaths>| Subresource {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
            scale,
        };
        let status = declared.status.as_ref().map(|_| subresource("status", group, &self.name, kind, None));
        let scale = declared.scale.as_ref().map(|scale| {
            let paths = ScalePaths {
                spec_replicas: without_dot(&scale.spec_replicas_path),
                status_replicas: without_dot(&scale.status_replicas_path),
                label_selector: without_dot(&scale.label_selector_path),
            };
            subresource("scale", "autoscaling", "v1", "Scale", Some(paths))
        });
        status.into_iter().chain(scale).collect()
    }
}

fn without_dot(path: &str) -> String {
    path.strip_prefix('.').unwrap_or(path).to_owned()
}

// === impl Column ===

impl Column {
    fn to_printer_column(&self) -> PrinterColumn {
        PrinterColumn {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            format: self.format.clone(),
            description: self.description.clone(),
            priority: self.priority,
            json_path: self.json_path.clone(),
        }
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
