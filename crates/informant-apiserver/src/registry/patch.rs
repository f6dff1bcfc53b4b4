//! The four kinds of patch: JSON, merge, strategic merge, and server-side apply.

use serde_json::{Value, json};

use crate::apply;
use crate::object;
use crate::patch;
use crate::registry::decode::decode;
use crate::registry::update::{Candidate, show_scale};
use crate::registry::write::{check_kind, check_name, check_namespace};
use crate::registry::{Registry, Target, Write, Written, metadata, scale, scale_paths, subresource};
use crate::resource::Resource;
use crate::schema::{Definitions, Schema, SchemaView};
use crate::service::body::Document;
use crate::status::{Cause, Status};

/// The kind of a patch, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// RFC 6902
    Json,
    /// RFC 7386
    Merge,
    /// Merge with the list rules of built-in kinds.
    Strategic,
    /// Server-side apply.
    Apply,
}

// === impl PatchKind ===

impl PatchKind {
    /// The kind that goes with a media type, if the resource takes it.
    ///
    /// # Errors
    /// 415 that lists what it takes.
    pub(crate) fn of(media_type: &str, resource: &Resource) -> Result<Self, Status> {
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" if !resource.custom => Ok(Self::Strategic),
            _ => {
                let mut accepted = vec!["application/json-patch+json", "application/merge-patch+json"];
                if !resource.custom {
                    accepted.push("application/strategic-merge-patch+json");
                }
                accepted.push("application/apply-patch+yaml");
                Err(Status::unsupported_media_type(&accepted))
            }
        }
    }
}

impl Registry {
    /// Changes the object at `target` (or its subresource) by a patch; an apply creates a missing object.
    ///
    /// # Errors
    /// 400 for a malformed patch, 404, 409 for a conflict of versions or field managers, 422 for a patch that doesn't fit
    /// the object or a result that isn't valid.
    pub(crate) fn patch(
        &self,
        target: &Target,
        kind: PatchKind,
        document: Document,
        write: &mut Write,
    ) -> Result<Written, Status> {
        if kind != PatchKind::Apply && write.options.force.is_some() {
            let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", vec![cause]));
        }
        match (kind, target.subresource.as_str()) {
            (PatchKind::Apply, "scale") => self.apply_scale(target, &document.value, write),
            (PatchKind::Apply, _) => self.apply(target, document, write),
            (_, "scale") => self.patch_scale(target, kind, &document.value, write),
            _ => self.patch_object(target, kind, &document, write),
        }
    }

    fn patch_object(
        &self,
        target: &Target,
        kind: PatchKind,
        document: &Document,
        write: &mut Write,
    ) -> Result<Written, Status> {
        let resource = target.resource();
        let changed = self.change(target, write, |old, write| {
            let mut object = apply_patch(kind, old, &document.value, resource.schema.view())?;
            read_patched(resource, &mut object, &document.duplicates, write)?;
            check_name(&target.name, &object)?;
            check_uid(resource, old, &object)?;
            check_namespace(resource, &target.namespace, &mut object)?;
            Ok(Candidate { object, owned: false })
        })?;
        changed.ok_or_else(|| target.not_found())
    }

    fn patch_scale(
        &self,
        target: &Target,
        kind: PatchKind,
        patch: &Value,
        write: &mut Write,
    ) -> Result<Written, Status> {
        let paths = scale_paths(target)?;
        let resource = target.resource();
        let (any, none) = (Schema::default(), Definitions::default());
        let changed = self.change(target, write, |old, _| {
            let scale = apply_patch(kind, &scale::read(old, paths), patch, SchemaView::new(&any, &none))?;
            Ok(Candidate { object: scale::write(resource, old, paths, &scale)?, owned: false })
        })?;
        changed.map(|written| show_scale(target, written)).unwrap_or_else(|| Err(target.not_found()))
    }

    /// An applied `Scale` is a change of the one number that it holds.
    fn apply_scale(&self, target: &Target, config: &Value, write: &mut Write) -> Result<Written, Status> {
        require_manager(write)?;
        let paths = scale_paths(target)?;
        let resource = target.resource();
        let changed = self.change(target, write, |old, _| {
            Ok(Candidate { object: scale::write(resource, old, paths, config)?, owned: false })
        })?;
        changed.map(|written| show_scale(target, written)).unwrap_or_else(|| Err(target.not_found()))
    }

    fn apply(&self, target: &Target, document: Document, write: &mut Write) -> Result<Written, Status> {
        require_manager(write)?;
        let resource = target.resource();
        let config = self.applied_config(target, document, write)?;
        let force = write.options.force.unwrap_or(false);
        let (api_version, now) = (resource.api_version(), self.clock.now_seconds());
        let view = resource.schema.view();
        let changed = self.change(target, write, |old, write| {
            let writer = write.writer(&api_version, &target.subresource, &now);
            let mut object = apply::apply(Some(old), &config, view, &writer, force)?;
            check_uid(resource, old, &object)?;
            // The version in the applied configuration is a precondition, never a value.
            object::set_meta(&mut object, "resourceVersion", json!(object::resource_version(&config)));
            Ok(Candidate { object, owned: true })
        })?;
        if let Some(written) = changed {
            return Ok(written);
        }
        if !target.subresource.is_empty() {
            return Err(target.not_found());
        }
        let writer = write.writer(&api_version, "", &now);
        let mut object = apply::apply(None, &config, view, &writer, force)?;
        let managed_fields = object::remove_meta(&mut object, "managedFields");
        self.insert(target, object, managed_fields, write)
    }

    /// The configuration of an apply, checked and without the fields that its endpoint doesn't write.
    fn applied_config(&self, target: &Target, document: Document, write: &mut Write) -> Result<Value, Status> {
        let resource = target.resource();
        let mut config = document.value;
        for field in ["apiVersion", "kind"] {
            if config.get(field).and_then(Value::as_str).unwrap_or("").is_empty() {
                return Err(Status::bad_request(format!("an applied object must have {field}")));
            }
        }
        check_applied_kind(resource, &config)?;
        metadata::check_types(&config).map_err(Status::bad_request)?;
        // Unknown fields are the apply's to refuse, in every mode.
        write.check_duplicates(&document.duplicates).map_err(Status::bad_request)?;
        let given = object::name(&config);
        if !given.is_empty() && given != target.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({})",
                target.name
            )));
        }
        // The manager owns and is told what it said, and not what the path adds to it.
        check_namespace(resource, &target.namespace, &mut config.clone())?;
        object::set_meta(&mut config, "name", json!(target.name));
        if object::at_path(&config, "metadata.managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        subresource::strip_config(resource, &target.subresource, &mut config);
        Ok(config)
    }
}

fn apply_patch(kind: PatchKind, old: &Value, patch: &Value, view: SchemaView<'_>) -> Result<Value, Status> {
    if kind != PatchKind::Json && !patch.is_object() {
        return Err(Status::bad_request("a merge patch must be a JSON object"));
    }
    match kind {
        PatchKind::Json => patch::json::apply(old, patch),
        PatchKind::Strategic => patch::strategic::apply(old, patch, view),
        PatchKind::Merge | PatchKind::Apply => Ok(patch::merge::apply(old, patch)),
    }
}

/// An apply says which kind it means, also where the path would be enough.
fn check_applied_kind(resource: &Resource, config: &Value) -> Result<(), Status> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == resource.api_version() && kind == resource.kind {
        return Ok(());
    }
    let core = if api_version.contains('/') { "" } else { "/" };
    Err(Status::bad_request(format!("invalid object type: {core}{api_version}, Kind={kind}")))
}

/// A patch can't make another object of an object, not even one of the same name.
fn check_uid(resource: &Resource, old: &Value, new: &Value) -> Result<(), Status> {
    let given = object::uid(new);
    if given.is_empty() || given == object::uid(old) {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &json!(given), "field is immutable");
    Err(Status::invalid(&resource.group, &resource.kind, object::name(old), vec![cause]))
}

/// Reads what a patch has made of an object as a body is read; what can't be read is the patch's fault.
fn read_patched(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[String],
    write: &mut Write,
) -> Result<(), Status> {
    if resource.custom {
        check_kind(resource, object)?;
    }
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    let same_kind = text("apiVersion") == resource.api_version() && text("kind") == resource.kind;
    let read = if same_kind {
        metadata::check_types(object)
            .and_then(|()| decode(resource, object))
            .and_then(|()| write.check_fields(resource, object, duplicates))
    } else {
        Err(format!("no kind \"{}\" of version \"{}\" is taken on this path", text("kind"), text("apiVersion")))
    };
    read.map_err(|why| {
        let cause = Cause::invalid("patch", &json!(object.to_string()), why);
        Status::invalid("", "", "", vec![cause])
    })
}

fn require_manager(write: &Write) -> Result<(), Status> {
    if write.options.field_manager.is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", vec![cause]));
    }
    Ok(())
}
