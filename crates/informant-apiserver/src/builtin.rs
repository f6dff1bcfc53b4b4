//! The built-in kinds, from one checked-in table.
//!
//! `data/resources.tsv` holds what a real server's discovery says (names, scope, verbs, subresources) and is written by
//! `cargo xtask schemas`; `rules` adds by hand the few things in which kinds differ and which no document states.
//! Reading the table costs a fraction of a millisecond; schemas are read when they are first asked for.

pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod omit_empty;
mod quantity;
#[cfg(test)]
mod recorded;
mod rules;
mod schemas;
pub(crate) mod validate;

use std::sync::Arc;

use crate::resource::{Resource, ResourceSchema, ScalePaths, StorageId, Subresource};

const TABLE: &str = include_str!("../data/resources.tsv");

/// Every built-in resource, the core group first, in the order in which a real server lists groups.
pub(crate) fn resources() -> Vec<Arc<Resource>> {
    let groups = schemas::groups();
    let mut resources: Vec<Resource> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns.as_slice() {
            [api_version, plural, kind, singular, short_names, categories, scope, verbs] => {
                let (group, version) = split_api_version(api_version);
                resources.push(Resource {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: (*kind).to_owned(),
                    list_kind: format!("{kind}List"),
                    plural: (*plural).to_owned(),
                    singular: (*singular).to_owned(),
                    short_names: list(short_names),
                    categories: list(categories),
                    namespaced: *scope == "namespaced",
                    verbs: list(verbs),
                    subresources: Vec::new(),
                    storage: storage(group, plural),
                    schema: groups
                        .get(*api_version)
                        .map(|lazy| ResourceSchema::lazy(Arc::clone(lazy), group, version, kind))
                        .unwrap_or_default(),
                    custom: false,
                    rules: rules::of(group, plural),
                    printer_columns: Vec::new(),
                    selectable_fields: Vec::new(),
                    deprecation_warning: None,
                });
            }
            [name, kind, verbs] => {
                if let Some(parent) = resources.last_mut() {
                    parent.subresources.push(subresource(name.trim_start_matches('/'), kind, verbs));
                }
            }
            // The table is checked by a test: there are no other lines.
            _ => {}
        }
    }
    resources.into_iter().map(Arc::new).collect()
}

/// A hash of the schema tables: changes when any built-in schema does.
pub(crate) fn fingerprint() -> String {
    schemas::fingerprint()
}

/// `("", "v1")` of `v1`, `("apps", "v1")` of `apps/v1`.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn list(column: &str) -> Vec<String> {
    if column == "-" { Vec::new() } else { column.split(',').map(str::to_owned).collect() }
}

/// Events are served by two groups and stored once.
fn storage(group: &str, plural: &str) -> StorageId {
    let group = if (group, plural) == ("events.k8s.io", "events") { "" } else { group };
    StorageId { group: group.into(), plural: plural.into() }
}

/// `kind` is `Pod`, or `policy/v1/Eviction` where it isn't of the parent's own group and version.
fn subresource(name: &str, kind: &str, verbs: &str) -> Subresource {
    let mut parts = kind.rsplitn(3, '/');
    let kind = parts.next().unwrap_or_default().to_owned();
    let version = parts.next().unwrap_or_default().to_owned();
    let group = parts.next().unwrap_or_default().to_owned();
    let scale = (name == "scale").then(|| ScalePaths {
        spec_replicas: "spec.replicas".to_owned(),
        status_replicas: "status.replicas".to_owned(),
        label_selector: "spec.selector".to_owned(),
    });
    Subresource { name: name.to_owned(), group, version, kind, verbs: list(verbs), scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::GenerationRule;
    use crate::schema::ListType;

    fn find(group: &str, version: &str, plural: &str) -> Arc<Resource> {
        resources()
            .into_iter()
            .find(|resource| resource.group == group && resource.version == version && resource.plural == plural)
            .unwrap_or_else(|| panic!("{group}/{version} {plural} isn't in the table"))
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let read: usize = resources().iter().map(|resource| 1 + resource.subresources.len()).sum();
        assert_eq!(read, lines);
        assert!(lines > 100, "{lines} lines");
    }

    #[test]
    fn core_comes_first_and_no_version_is_alpha_or_beta() {
        let all = resources();
        assert_eq!(all.first().map(|resource| resource.api_version()).as_deref(), Some("v1"));
        for resource in all {
            assert!(!resource.version.contains("alpha") && !resource.version.contains("beta"), "{resource}");
        }
    }

    #[test]
    fn deployments_have_scale_status_and_count_annotations_into_the_generation() {
        let deployments = find("apps", "v1", "deployments");
        assert_eq!(deployments.kind, "Deployment");
        assert_eq!(deployments.short_names, ["deploy"]);
        assert_eq!(deployments.categories, ["all"]);
        assert!(deployments.namespaced && deployments.has_verb("watch") && deployments.has_subresource("status"));
        let scale = deployments.subresource("scale").unwrap();
        assert_eq!((scale.group.as_str(), scale.version.as_str(), scale.kind.as_str()), ("autoscaling", "v1", "Scale"));
        assert_eq!(deployments.rules.generation, GenerationRule::SpecOrAnnotations);
    }

    #[test]
    fn events_of_both_groups_share_one_store_and_reviews_store_nothing() {
        assert_eq!(find("", "v1", "events").storage, find("events.k8s.io", "v1", "events").storage);
        let review = find("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
        assert!(review.rules.virtual_only && !review.namespaced);
        assert!(!find("", "v1", "pods").rules.virtual_only);
    }

    #[test]
    fn every_stored_kind_has_a_schema_with_metadata() {
        for resource in resources().iter().filter(|resource| !resource.rules.virtual_only) {
            let view = resource.schema.view();
            assert!(view.property("metadata").is_some(), "{resource}");
            assert!(view.node().properties.len() > 2, "{resource}");
        }
    }

    #[test]
    fn the_schema_of_a_deployment_knows_defaults_merge_keys_and_list_types() {
        let deployments = find("apps", "v1", "deployments");
        let template = deployments.schema.view().property("spec").and_then(|spec| spec.property("template")).unwrap();
        let containers = template.property("spec").and_then(|spec| spec.property("containers")).unwrap();
        assert_eq!(containers.patch_merge_key(), Some("name"));
        let ports = containers.items().and_then(|container| container.property("ports")).unwrap();
        assert_eq!(ports.list_type(), ListType::Map(&["containerPort".to_owned(), "protocol".to_owned()]));
        let protocol = ports.items().and_then(|port| port.property("protocol")).unwrap();
        assert_eq!(protocol.default(), Some(&serde_json::json!("TCP")));
    }

    #[test]
    fn pods_are_graceful_and_their_deletion_answers_with_the_pod() {
        let pods = find("", "v1", "pods");
        assert!(pods.rules.graceful && pods.rules.returns_deleted_object);
        assert_eq!(pods.rules.generation, GenerationRule::Spec);
        assert_eq!(pods.subresource("eviction").map(|sub| sub.group.as_str()), Some("policy"));
        assert!(!find("", "v1", "configmaps").rules.returns_deleted_object);
        assert!(find("coordination.k8s.io", "v1", "leases").rules.create_on_update);
    }
}
