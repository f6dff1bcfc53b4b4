//! Whether a CRD may be stored: its name, group, names, versions, subresources, columns and conversion.
//!
//! Messages name fields as the real server does. It moves what all versions have in common to the top of the spec before it
//! looks: a CRD with one version is told about `spec.validation`, one with different versions about `spec.versions[0].schema`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Column, Conversion, CrdSpec, Names, SelectableField, Subresources, Version, VersionSchema, schema_rules};
use crate::crd_controller;
use crate::name_rules;
use crate::object;
use crate::schema::Schema;
use crate::status::{Cause, Status};

const APPROVAL: &str = "api-approved.kubernetes.io";
const APPROVAL_HELP: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// Fields that a version may offer to field selectors.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Every reason why `crd` can't be stored, `old` being the stored one on an update. 400 when it can't even be read.
///
/// `crd` has been through [`super::prepare`].
pub(crate) fn validate(crd: &Value, old: Option<&Value>) -> Result<Vec<Cause>, Status> {
    let spec = CrdSpec::parse(crd)?;
    let old_spec = old.map(CrdSpec::parse).transpose()?;
    let mut causes = name(object::name(crd), &spec);
    causes.extend(group(&spec.group));
    causes.extend(scope(&spec.scope));
    causes.extend(versions(&spec)?);
    causes.extend(names(&spec.names));
    causes.extend(spec.conversion.as_ref().map(conversion).unwrap_or_default());
    if let (Some(old), Some(old_spec)) = (old, &old_spec) {
        causes.extend(immutable(&spec, old_spec, crd_controller::is_established(old)));
    }
    causes.extend(stored_versions(crd, &spec));
    causes.extend(approval(crd, &spec.group, old));
    if spec.preserve_unknown_fields && !old_spec.is_some_and(|old| old.preserve_unknown_fields) {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    Ok(causes)
}

fn name(name: &str, spec: &CrdSpec) -> Vec<Cause> {
    let wrong = |why: String| Cause::invalid("metadata.name", &json!(name), why);
    let mut causes: Vec<Cause> = name_rules::dns1123_subdomain(name).map(wrong).into_iter().collect();
    if name != format!("{}.{}", spec.names.plural, spec.group) {
        causes.push(wrong("must be spec.names.plural+\".\"+spec.group".to_owned()));
    }
    causes
}

fn group(group: &str) -> Option<Cause> {
    if group.is_empty() {
        return Some(Cause::required("spec.group", ""));
    }
    let why = name_rules::dns1123_subdomain(group)
        .or_else(|| (!group.contains('.')).then(|| "should be a domain with at least one dot".to_owned()))?;
    Some(Cause::invalid("spec.group", &json!(group), why))
}

fn scope(scope: &str) -> Option<Cause> {
    match scope {
        "Cluster" | "Namespaced" => None,
        "" => Some(Cause::required("spec.scope", "")),
        _ => Some(Cause::not_supported("spec.scope", &json!(scope), &[json!("Cluster"), json!("Namespaced")])),
    }
}

fn versions(spec: &CrdSpec) -> Result<Vec<Cause>, Status> {
    let mut causes = Vec::new();
    for (index, version) in spec.versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        if version.open_api().is_none() {
            causes.push(Cause::required(format!("{path}.schema.openAPIV3Schema"), ""));
        }
        if let Some(why) = name_rules::dns1035_label(&version.name) {
            causes.push(Cause::invalid(format!("{path}.name"), &json!(version.name), why));
        }
        causes.extend(deprecation_warning(version, &path));
    }
    let names: Vec<&str> = spec.versions.iter().map(|version| version.name.as_str()).collect();
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        causes.push(Cause::invalid("spec.versions", &json!(names), "must contain unique version names"));
    }
    if spec.storage_versions().count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &json!(names), why));
    }
    let status_anywhere = spec.versions.iter().any(has_status);
    for (path, version) in places(&spec.versions, "schema", "validation", |version| &version.schema) {
        let has_status = if path == "spec.validation" { status_anywhere } else { has_status(version) };
        causes.extend(schema(version.schema.as_ref(), has_status, &path)?);
    }
    for (path, version) in places(&spec.versions, "subresources", "subresources", |version| &version.subresources) {
        causes.extend(version.subresources.as_ref().map(|declared| subresources(declared, &path)).unwrap_or_default());
    }
    for (path, version) in places(&spec.versions, "additionalPrinterColumns", "additionalPrinterColumns", |v| {
        &v.additional_printer_columns
    }) {
        let listed = version.additional_printer_columns.iter().enumerate();
        causes.extend(listed.flat_map(|(index, listed)| column(listed, &format!("{path}[{index}]"))));
    }
    for (path, version) in places(&spec.versions, "selectableFields", "selectableFields", |v| &v.selectable_fields) {
        causes.extend(selectable_fields(version, &path));
    }
    Ok(causes)
}

/// Where each version's part is said to be: once at the top of the spec when all versions agree.
fn places<'a, T: PartialEq + 'a>(
    versions: &'a [Version],
    in_version: &str,
    at_top: &str,
    part: impl Fn(&'a Version) -> &'a T,
) -> Vec<(String, &'a Version)> {
    match versions {
        [first, rest @ ..] if rest.iter().all(|version| part(version) == part(first)) => {
            vec![(format!("spec.{at_top}"), first)]
        }
        _ => {
            let listed = versions.iter().enumerate();
            listed.map(|(index, version)| (format!("spec.versions[{index}].{in_version}"), version)).collect()
        }
    }
}

fn has_status(version: &Version) -> bool {
    version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some())
}

fn deprecation_warning(version: &Version, path: &str) -> Option<Cause> {
    let text = version.deprecation_warning.as_deref()?;
    let why = if !version.deprecated {
        "can only be set for deprecated versions"
    } else if text.len() > 256 {
        "must be <= 256 characters long"
    } else if text.is_empty() {
        "must not be an empty string"
    } else if text.chars().any(char::is_control) {
        "must only contain printable UTF-8 characters"
    } else {
        return None;
    };
    Some(Cause::invalid(format!("{path}.deprecationWarning"), &json!(text), why))
}

fn schema(schema: Option<&VersionSchema>, has_status: bool, path: &str) -> Result<Vec<Cause>, Status> {
    let Some(open_api) = schema.and_then(|schema| schema.open_api.as_ref()) else { return Ok(Vec::new()) };
    schema_rules::validate(open_api, has_status, &format!("{path}.openAPIV3Schema"))
}

fn subresources(declared: &Subresources, path: &str) -> Vec<Cause> {
    let Some(scale) = &declared.scale else { return Vec::new() };
    let mut causes = Vec::new();
    for (name, value, below) in [
        ("specReplicasPath", &scale.spec_replicas_path, ".spec."),
        ("statusReplicasPath", &scale.status_replicas_path, ".status."),
    ] {
        let path = format!("{path}.scale.{name}");
        if value.is_empty() {
            causes.push(Cause::required(path, ""));
        } else if let Some(cause) = json_path(value, &path) {
            causes.push(cause);
        } else if !value.starts_with(below) {
            let why = format!("should be a json path under {}", below.trim_end_matches('.'));
            causes.push(Cause::invalid(path, &json!(value), why));
        }
    }
    let selector = &scale.label_selector_path;
    if !selector.is_empty() {
        let path = format!("{path}.scale.labelSelectorPath");
        if let Some(cause) = json_path(selector, &path) {
            causes.push(cause);
        } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
            let why = "should be a json path under either .spec or .status";
            causes.push(Cause::invalid(path, &json!(selector), why));
        }
    }
    causes
}

fn json_path(value: &str, path: &str) -> Option<Cause> {
    let why = "must be a simple json path starting with .";
    (!value.starts_with('.')).then(|| Cause::invalid(path, &json!(value), why))
}

fn column(column: &Column, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if column.name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if column.type_name.is_empty() {
        causes.push(Cause::required(format!("{path}.type"), &types));
    } else if !COLUMN_TYPES.contains(&column.type_name.as_str()) {
        causes.push(Cause::invalid(format!("{path}.type"), &json!(column.type_name), types));
    }
    if !column.format.is_empty() && !COLUMN_FORMATS.contains(&column.format.as_str()) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        causes.push(Cause::invalid(format!("{path}.format"), &json!(column.format), why));
    }
    let path = format!("{path}.JSONPath");
    if column.json_path.is_empty() {
        causes.push(Cause::required(path, ""));
    } else {
        causes.extend(json_path(&column.json_path, &path));
    }
    causes
}

fn selectable_fields(version: &Version, path: &str) -> Vec<Cause> {
    let schema = version.open_api().and_then(|open_api| super::parse_schema(open_api).ok()).unwrap_or_default();
    let mut causes = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, field) in version.selectable_fields.iter().enumerate() {
        causes.extend(selectable_field(field, &schema, &format!("{path}[{index}].jsonPath")));
        if !field.json_path.is_empty() && !seen.insert(&field.json_path) {
            causes.push(Cause::duplicate(format!("{path}[{index}].jsonPath"), &json!(field.json_path)));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        causes.push(Cause::too_many(path, seen.len() as u64, MAX_SELECTABLE_FIELDS as u64));
    }
    causes
}

fn selectable_field(field: &SelectableField, schema: &Schema, path: &str) -> Option<Cause> {
    if field.json_path.is_empty() {
        return Some(Cause::required(path, ""));
    }
    let target = field
        .json_path
        .strip_prefix('.')
        .and_then(|dotted| dotted.split('.').try_fold(schema, |node, name| node.properties.get(name)));
    let why = match target.map(|node| node.type_name.as_str()) {
        None => "is an invalid path: does not refer to a valid field",
        Some("string" | "boolean" | "integer") => return None,
        Some(_) => {
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
        }
    };
    Some(Cause::invalid(path, &json!(field.json_path), why))
}

fn names(names: &Names) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (name, value) in [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ] {
        let path = format!("spec.names.{name}");
        let is_kind = name.to_lowercase().ends_with("kind");
        if value.is_empty() {
            causes.push(Cause::required(path, ""));
        } else if let Some(why) = name_rules::dns1035_label(&if is_kind { value.to_lowercase() } else { value.clone() })
        {
            let prefix = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
            causes.push(Cause::invalid(path, &json!(value), format!("{prefix}{why}")));
        }
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid("spec.names.listKind", &json!(names.list_kind), why));
    }
    for (list, values) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        for (index, value) in values.iter().enumerate() {
            if let Some(why) = name_rules::dns1035_label(value) {
                causes.push(Cause::invalid(format!("spec.names.{list}[{index}]"), &json!(value), why));
            }
        }
    }
    causes
}

fn conversion(conversion: &Conversion) -> Vec<Cause> {
    let path = "spec.conversion";
    let client = conversion.webhook.as_ref().and_then(|webhook| webhook.get("clientConfig"));
    let reviews = conversion.webhook.as_ref().and_then(|webhook| webhook.get("conversionReviewVersions"));
    let reviews: Vec<&str> =
        reviews.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let client_path = format!("{path}.webhookClientConfig");
    let reviews_path = format!("{path}.conversionReviewVersions");
    let mut causes = Vec::new();
    match conversion.strategy.as_str() {
        "Webhook" => {
            match client {
                None => causes.push(Cause::required(client_path, "required when strategy is set to Webhook")),
                Some(client) if client.get("url").is_some() == client.get("service").is_some() => {
                    causes.push(Cause::required(client_path, "exactly one of url or service is required"));
                }
                Some(_) => {}
            }
            if reviews.is_empty() {
                causes.push(Cause::required(reviews_path, ""));
            } else if !reviews.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
                causes.push(Cause::invalid(reviews_path, &json!(reviews), "must include at least one of v1, v1beta1"));
            }
        }
        strategy => {
            if strategy.is_empty() {
                causes.push(Cause::required(format!("{path}.strategy"), ""));
            } else if strategy != "None" {
                let supported = [json!("None"), json!("Webhook")];
                causes.push(Cause::not_supported(format!("{path}.strategy"), &json!(strategy), &supported));
            }
            let why = "should not be set when strategy is not set to Webhook";
            if client.is_some() {
                causes.push(Cause::forbidden(client_path, why));
            }
            if !reviews.is_empty() {
                causes.push(Cause::forbidden(reviews_path, why));
            }
        }
    }
    causes
}

fn immutable(new: &CrdSpec, old: &CrdSpec, established: bool) -> Vec<Cause> {
    let fields = [
        ("spec.scope", &new.scope, &old.scope, established),
        ("spec.names.kind", &new.names.kind, &old.names.kind, established),
        ("spec.group", &new.group, &old.group, true),
        ("spec.names.plural", &new.names.plural, &old.names.plural, true),
    ];
    let changed = fields.into_iter().filter(|(_, new, old, fixed)| *fixed && new != old);
    changed.map(|(path, new, _, _)| Cause::invalid(path, &json!(new), "field is immutable")).collect()
}

fn stored_versions(crd: &Value, spec: &CrdSpec) -> Vec<Cause> {
    let path = "status.storedVersions";
    let stored = crd.get("status").and_then(|status| status.get("storedVersions"));
    let stored: Vec<&str> = stored.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        return vec![Cause::invalid(path, &Value::Null, "must have at least one stored version")];
    }
    let unstored = spec.storage_versions().filter(|version| !stored.contains(&version.name.as_str()));
    let unstored = unstored
        .map(|version| Cause::invalid(path, &json!(stored), format!("must have the storage version {}", version.name)));
    let gone = |name: &str| !spec.versions.iter().any(|version| version.name == name);
    let lost = stored.iter().enumerate().filter(|(_, name)| gone(name));
    let lost = lost.map(|(index, name)| {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        Cause::invalid(format!("{path}[{index}]"), &json!(name), why)
    });
    unstored.chain(lost).collect()
}

/// Groups of the Kubernetes project itself need a word of approval.
fn approval(crd: &Value, group: &str, old: Option<&Value>) -> Option<Cause> {
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")));
    if !protected {
        return None;
    }
    let annotation = |crd: &Value| -> String {
        let annotations = crd.get("metadata").and_then(|metadata| metadata.get("annotations"));
        annotations.and_then(|all| all.get(APPROVAL)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let given = annotation(crd);
    if old.is_some_and(|old| annotation(old) == given) {
        return None;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    if given.is_empty() {
        let why = format!("protected groups must have approval annotation \"{APPROVAL}\", {APPROVAL_HELP}");
        return Some(Cause::required(path, &why));
    }
    let is_url = given.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    (!is_url && !given.starts_with("unapproved")).then(|| {
        let why = format!(
            "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \
             \"unapproved\", {APPROVAL_HELP}"
        );
        Cause::invalid(path, &json!(given), why)
    })
}
