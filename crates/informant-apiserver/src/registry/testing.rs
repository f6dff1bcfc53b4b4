//! Resources for the unit tests of this crate.

use crate::resource::{Resource, ResourceSchema, Rules, StorageId, Subresource};

/// A namespaced resource with ordinary rules and no schema.
pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: Vec::new(),
        storage: StorageId { group: group.into(), plural: plural.into() },
        schema: ResourceSchema::default(),
        custom: false,
        rules: Rules::default(),
        printer_columns: Vec::new(),
        selectable_fields: Vec::new(),
        deprecation_warning: None,
    }
}

/// The same with a status subresource.
pub(crate) fn resource_with_status(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    let mut resource = resource(group, version, kind, plural);
    resource.subresources.push(Subresource {
        name: "status".to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: Vec::new(),
        scale: None,
    });
    resource
}
