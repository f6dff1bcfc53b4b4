//! Discovery: which groups, versions and resources are served, in the legacy and in the aggregated form.
//!
//! Pure functions from the served resources to documents. Order is part of the answer, because clients prefer what comes
//! first: the core group, then the other built-in groups in the table's order, then custom groups by name; within a group
//! stable versions before beta before alpha, the higher first; within a version resources by name.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::resource::{Resource, Subresource};

/// The forms in which `/api` and `/apis` answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One small document for each group version; what plain JSON asks for.
    Legacy,
    /// Everything in one `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.
    AggregatedV2,
    /// The same as `apidiscovery.k8s.io/v2beta1`.
    AggregatedV2Beta1,
}

/// The two roots of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// `/api`: the core group.
    Api,
    /// `/apis`: every named group.
    Apis,
}

// === impl Form ===

impl Form {
    /// The form that an `Accept` header asks for first; plain JSON, `*/*` and an empty header mean the legacy form.
    pub(crate) fn negotiate(accept: &str) -> Self {
        accept.split(',').find_map(Self::of_media_type).unwrap_or(Self::Legacy)
    }

    /// The `Content-Type` of an answer. Clients tell the form by its parameters.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Legacy => "application/json",
            Self::AggregatedV2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::AggregatedV2Beta1 => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        }
    }

    fn of_media_type(media_type: &str) -> Option<Self> {
        let mut parts = media_type.split(';').map(str::trim);
        let name = parts.next()?;
        if !matches!(name, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut group, mut version, mut kind) = ("", "", "");
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                "as" => kind = value.trim(),
                _ => {}
            }
        }
        match (kind, group, version) {
            ("", _, _) => Some(Self::Legacy),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Self::AggregatedV2),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Self::AggregatedV2Beta1),
            _ => None,
        }
    }
}

/// The document at `/api` or `/apis`.
pub(crate) fn root(resources: &[Arc<Resource>], root: Root, form: Form) -> Value {
    match (form, root) {
        (Form::Legacy, Root::Api) => api_versions(resources),
        (Form::Legacy, Root::Apis) => api_group_list(resources),
        (Form::AggregatedV2, _) => aggregated(resources, root, "v2"),
        (Form::AggregatedV2Beta1, _) => aggregated(resources, root, "v2beta1"),
    }
}

/// Legacy `/api`.
pub(crate) fn api_versions(resources: &[Arc<Resource>]) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": versions_of(resources, ""),
        "serverAddressByClientCIDRs": [],
    })
}

/// Legacy `/apis`.
pub(crate) fn api_group_list(resources: &[Arc<Resource>]) -> Value {
    let groups: Vec<Value> = groups(resources)
        .into_iter()
        .filter(|group| !group.is_empty())
        .map(|group| group_document(resources, group))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Legacy `/apis/<group>`; `None` when no version of the group is served.
pub(crate) fn api_group(resources: &[Arc<Resource>], group: &str) -> Option<Value> {
    if group.is_empty() || !resources.iter().any(|resource| resource.group == group) {
        return None;
    }
    let mut document = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Some(target), Value::Object(fields)) = (document.as_object_mut(), group_document(resources, group)) {
        target.extend(fields);
    }
    Some(document)
}

/// Legacy `/api/v1` and `/apis/<group>/<version>`; `None` when nothing of that group version is served.
pub(crate) fn api_resource_list(resources: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let served = resources_of(resources, group, version);
    if served.is_empty() {
        return None;
    }
    let mut entries = Vec::new();
    for resource in served {
        entries.push(resource_entry(resource));
        entries.extend(subresources_of(resource).into_iter().map(|sub| subresource_entry(resource, sub)));
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": entries});
    if !group.is_empty() {
        document["apiVersion"] = json!("v1");
    }
    Some(document)
}

/// A strong `ETag` for a body.
pub(crate) fn etag(body: &[u8]) -> String {
    format!("\"{}\"", content_hash(body))
}

/// 128 bits of FNV-1a in hexadecimal: tells one version of our own document from another, no more than that.
pub(crate) fn content_hash(body: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = body.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:032X}")
}

/// Orders versions by preference: stable, beta, alpha, each with the higher number first; other names last, by name.
pub(crate) fn compare_versions(left: &str, right: &str) -> Ordering {
    match (version_rank(left), version_rank(right)) {
        (Some(left), Some(right)) => right.cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// `v2beta3` as (beta = 1, 2, 3); `None` for names of another shape.
fn version_rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let (major, stage, minor) = if let Some((major, minor)) = rest.split_once("alpha") {
        (major, 0, minor)
    } else if let Some((major, minor)) = rest.split_once("beta") {
        (major, 1, minor)
    } else {
        return Some((2, version_number(rest)?, 0));
    };
    Some((stage, version_number(major)?, version_number(minor)?))
}

fn version_number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

/// Group names in the order of preference.
fn groups(resources: &[Arc<Resource>]) -> Vec<&str> {
    let mut built_in: Vec<&str> = Vec::new();
    for resource in resources.iter().filter(|resource| !resource.custom) {
        if !built_in.contains(&resource.group.as_str()) {
            built_in.push(&resource.group);
        }
    }
    built_in.sort_by_key(|group| !group.is_empty());
    let custom: BTreeSet<&str> = resources
        .iter()
        .filter(|resource| resource.custom && !built_in.contains(&resource.group.as_str()))
        .map(|resource| resource.group.as_str())
        .collect();
    built_in.into_iter().chain(custom).collect()
}

/// Versions of a group in the order of preference.
fn versions_of<'a>(resources: &'a [Arc<Resource>], group: &str) -> Vec<&'a str> {
    let versions: BTreeSet<&str> =
        resources.iter().filter(|resource| resource.group == group).map(|resource| resource.version.as_str()).collect();
    let mut versions: Vec<&str> = versions.into_iter().collect();
    versions.sort_by(|left, right| compare_versions(left, right));
    versions
}

/// The resources of a group version, in order of their plural names.
pub(crate) fn resources_of<'a>(resources: &'a [Arc<Resource>], group: &str, version: &str) -> Vec<&'a Resource> {
    let mut served: Vec<&Resource> = resources
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(Arc::as_ref)
        .collect();
    served.sort_by(|left, right| left.plural.cmp(&right.plural));
    served
}

fn subresources_of(resource: &Resource) -> Vec<&Subresource> {
    let mut subresources: Vec<&Subresource> = resource.subresources.iter().collect();
    if !resource.custom {
        subresources.sort_by(|left, right| left.name.cmp(&right.name));
    }
    subresources
}

fn group_document(resources: &[Arc<Resource>], group: &str) -> Value {
    let versions: Vec<Value> = versions_of(resources, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

fn resource_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    add_names(&mut entry, resource);
    entry
}

fn subresource_entry(resource: &Resource, subresource: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, subresource.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind_of(resource, subresource),
        "verbs": subresource.verbs,
    });
    if has_own_version(resource, subresource) {
        entry["group"] = json!(subresource.group);
        entry["version"] = json!(subresource.version);
    }
    entry
}

fn kind_of<'a>(resource: &'a Resource, subresource: &'a Subresource) -> &'a str {
    if subresource.kind.is_empty() { &resource.kind } else { &subresource.kind }
}

fn add_names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

fn aggregated(resources: &[Arc<Resource>], root: Root, api: &str) -> Value {
    let items: Vec<Value> = groups(resources)
        .into_iter()
        .filter(|group| group.is_empty() == (root == Root::Api))
        .map(|group| aggregated_group(resources, group))
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{api}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(resources: &[Arc<Resource>], group: &str) -> Value {
    let versions: Vec<Value> = versions_of(resources, group)
        .into_iter()
        .map(|version| {
            let served = resources_of(resources, group, version);
            let entries: Vec<Value> = served.into_iter().map(aggregated_resource).collect();
            json!({"version": version, "resources": entries, "freshness": "Current"})
        })
        .collect();
    let mut metadata = Map::new();
    if !group.is_empty() {
        metadata.insert("name".to_owned(), json!(group));
    }
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource, None),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    add_names(&mut entry, resource);
    let subresources: Vec<Value> =
        subresources_of(resource).into_iter().map(|sub| aggregated_subresource(resource, sub)).collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}

fn aggregated_subresource(resource: &Resource, subresource: &Subresource) -> Value {
    json!({
        "subresource": subresource.name,
        "responseKind": response_kind(resource, Some(subresource)),
        "verbs": subresource.verbs,
    })
}

/// Built-in kinds of the group version itself are named without it, as the real server does; custom ones with it.
fn response_kind(resource: &Resource, subresource: Option<&Subresource>) -> Value {
    let kind = subresource.map_or(resource.kind.as_str(), |subresource| kind_of(resource, subresource));
    let (group, version) = match subresource.filter(|subresource| has_own_version(resource, subresource)) {
        Some(subresource) => (subresource.group.as_str(), subresource.version.as_str()),
        None if resource.custom => (resource.group.as_str(), resource.version.as_str()),
        None => ("", ""),
    };
    json!({"group": group, "version": version, "kind": kind})
}

/// Whether a subresource speaks a kind of another group version (`scale` does).
fn has_own_version(resource: &Resource, subresource: &Subresource) -> bool {
    !subresource.version.is_empty()
        && (&subresource.group, &subresource.version) != (&resource.group, &resource.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{ResourceSchema, Rules, StorageId};

    fn resource(group: &str, version: &str, kind: &str, custom: bool) -> Arc<Resource> {
        let plural = format!("{}s", kind.to_lowercase());
        Arc::new(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.clone(),
            singular: kind.to_lowercase(),
            short_names: vec![],
            categories: vec![],
            namespaced: true,
            verbs: vec!["get".to_owned()],
            subresources: vec![],
            storage: StorageId { group: group.into(), plural: plural.into() },
            schema: ResourceSchema::default(),
            custom,
            rules: Rules::default(),
            printer_columns: vec![],
            selectable_fields: vec![],
            deprecation_warning: None,
        })
    }

    fn with_scale(resource: &Arc<Resource>) -> Arc<Resource> {
        let mut resource = Resource::clone(resource);
        for (name, group, version, kind) in [("status", "", "", ""), ("scale", "autoscaling", "v1", "Scale")] {
            resource.subresources.push(Subresource {
                name: name.to_owned(),
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                verbs: vec!["get".to_owned()],
                scale: None,
            });
        }
        Arc::new(resource)
    }

    fn table() -> Vec<Arc<Resource>> {
        vec![
            resource("zeta.example.com", "v1", "Zed", true),
            resource("", "v1", "Pod", false),
            with_scale(&resource("apps", "v1", "Deployment", false)),
            resource("autoscaling", "v1", "Scaler", false),
            resource("autoscaling", "v2", "Scaler", false),
            resource("alpha.example.com", "v1alpha1", "Egg", true),
            resource("alpha.example.com", "v1beta2", "Egg", true),
        ]
    }

    #[test]
    fn versions_are_ordered_stable_beta_alpha_then_others_by_name() {
        let mut versions =
            vec!["foo10", "v1", "v11alpha2", "v10", "v2", "foo1", "v12alpha1", "v3beta1", "v11beta2", "v10beta3"];
        versions.sort_by(|left, right| compare_versions(left, right));
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn groups_come_core_first_then_built_in_order_then_custom_by_name() {
        assert_eq!(groups(&table()), ["", "apps", "autoscaling", "alpha.example.com", "zeta.example.com"]);
    }

    #[test]
    fn legacy_group_prefers_the_first_version() {
        let group = api_group(&table(), "autoscaling").unwrap();
        assert_eq!(group["preferredVersion"], json!({"groupVersion": "autoscaling/v2", "version": "v2"}));
        assert_eq!(group["kind"], "APIGroup");
        assert_eq!(api_group(&table(), "nothing.example.com"), None);
    }

    #[test]
    fn legacy_resource_list_names_scale_with_its_own_group_and_status_without() {
        let list = api_resource_list(&table(), "apps", "v1").unwrap();
        let names: Vec<&str> =
            list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["deployments", "deployments/scale", "deployments/status"]);
        assert_eq!(list["resources"][1]["group"], "autoscaling");
        assert_eq!(list["resources"][1]["kind"], "Scale");
        assert_eq!(list["resources"][2].get("group"), None);
        assert_eq!(list["resources"][2]["kind"], "Deployment");
        assert_eq!(api_resource_list(&table(), "apps", "v2"), None);
    }

    #[test]
    fn aggregated_lists_core_under_api_and_the_rest_under_apis() {
        let core = root(&table(), Root::Api, Form::AggregatedV2);
        assert_eq!(core["items"].as_array().unwrap().len(), 1);
        assert_eq!(core["items"][0]["metadata"].get("name"), None);
        let rest = root(&table(), Root::Apis, Form::AggregatedV2Beta1);
        assert_eq!(rest["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        assert_eq!(rest["items"][0]["metadata"]["name"], "apps");
        let scale = &rest["items"][0]["versions"][0]["resources"][0]["subresources"][0];
        assert_eq!(scale["responseKind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
        assert_eq!(rest["items"][2]["versions"][0]["version"], "v1beta2");
    }

    #[test]
    fn accept_header_chooses_the_form_and_the_content_type_repeats_it() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                       application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(Form::negotiate(kubectl), Form::AggregatedV2);
        assert_eq!(Form::negotiate("*/*"), Form::Legacy);
        assert_eq!(Form::negotiate(""), Form::Legacy);
        let newer_only = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList, application/json";
        assert_eq!(Form::negotiate(newer_only), Form::Legacy);
        assert_eq!(Form::negotiate(Form::AggregatedV2Beta1.content_type()), Form::AggregatedV2Beta1);
    }

    #[test]
    fn etag_changes_with_the_body() {
        assert_eq!(etag(b"a"), etag(b"a"));
        assert_ne!(etag(b"a"), etag(b"b"));
    }
}
