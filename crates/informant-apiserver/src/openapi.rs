//! OpenAPI v3: one document for each group version, and an index whose addresses change with the content.
//!
//! kubectl can't `apply`, `create -f`, `replace`, `edit` or `explain` without it: it looks at the paths for the query
//! parameters that a kind's operations take, and at the schemas for the fields. Documents are made when they are asked for.

mod descriptions;
mod paths;
mod schemas;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

pub use self::descriptions::{Description, Descriptions};
use crate::builtin;
use crate::discovery::{content_hash, resources_of};
use crate::resource::Resource;

/// The document at `/openapi/v3`: where each group version's document is, with a hash of its content.
///
/// Reads no schema table: a built-in group's hash covers the whole table, a custom one's its schemas.
pub(crate) fn index(resources: &[Arc<Resource>], descriptions: &Descriptions) -> Value {
    let group_versions: BTreeSet<(&str, &str)> =
        resources.iter().map(|resource| (resource.group.as_str(), resource.version.as_str())).collect();
    let common = common_hash(descriptions);
    let paths: Map<String, Value> = group_versions
        .into_iter()
        .map(|(group, version)| {
            let path = path_of(group, version);
            let hash = hash_within(&common, resources, group, version);
            (path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of a group version; `None` when it isn't served.
///
/// The first one for a built-in group reads that group's schema table (a few milliseconds).
pub(crate) fn document(
    resources: &[Arc<Resource>],
    group: &str,
    version: &str,
    descriptions: &Descriptions,
) -> Option<Value> {
    let served = resources_of(resources, group, version);
    if served.is_empty() {
        return None;
    }
    let schemas = schemas::of(&served, resources, descriptions);
    let paths = paths::of(&served, &schemas);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths,
        "components": {"schemas": schemas.into_values()},
    }))
}

/// The content hash that the index carries for a group version; it makes answers cacheable for ever.
pub(crate) fn hash(resources: &[Arc<Resource>], group: &str, version: &str, descriptions: &Descriptions) -> String {
    hash_within(&common_hash(descriptions), resources, group, version)
}

/// A hash of what all documents have in common: this program, the built-in schemas, the text.
fn common_hash(descriptions: &Descriptions) -> String {
    let parts = [env!("CARGO_PKG_VERSION"), &builtin::fingerprint(), descriptions.marker()];
    content_hash(parts.join("\0").as_bytes())
}

fn hash_within(common: &str, resources: &[Arc<Resource>], group: &str, version: &str) -> String {
    let mut content = common.as_bytes().to_vec();
    let mut add = |part: &str| {
        content.extend_from_slice(part.as_bytes());
        content.push(0);
    };
    for resource in resources_of(resources, group, version) {
        add(&resource.plural);
        add(&resource.kind);
        add(if resource.namespaced { "namespaced" } else { "cluster" });
        add(&resource.verbs.join(","));
        resource.subresources.iter().for_each(|subresource| add(&subresource.name));
        if resource.custom {
            add(&serde_json::to_string(resource.schema.view().node()).unwrap_or_default());
        }
    }
    content_hash(&content)
}

/// `api/v1` or `apis/<group>/<version>`.
fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

#[cfg(test)]
mod tests;
