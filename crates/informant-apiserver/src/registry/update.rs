//! Update, and the path that every change of an existing object takes: read, make the new object, commit against what was
//! read, and once more from the start when somebody else was faster.

use serde_json::{Value, json};

use crate::managed_fields;
use crate::object;
use crate::registry::write::{check_name, check_namespace, read_body};
use crate::registry::{
    ATTEMPTS, Registry, Target, Write, Written, metadata, scale, scale_paths, stale, subresource, write_error,
};
use crate::resource::Resource;
use crate::service::body::Document;
use crate::status::{Cause, Status};
use crate::store::{Object, WriteError};

/// What a change makes of an object.
pub(super) struct Candidate {
    /// The object, in the version of the request.
    pub(super) object: Value,
    /// Whether its `managedFields` are final, as an apply leaves them.
    pub(super) owned: bool,
}

impl Registry {
    /// Replaces the object at `target` (or its subresource) by the one in `document`.
    ///
    /// # Errors
    /// 400 for a body that doesn't fit the path, 404, 409 when the object has changed meanwhile, 422 for its content.
    pub(crate) fn update(&self, target: &Target, mut document: Document, write: &mut Write) -> Result<Written, Status> {
        if target.subresource == "scale" {
            return self.update_scale(target, &document.value, write);
        }
        let resource = target.resource();
        read_body(resource, &mut document, write)?;
        let mut object = document.value;
        check_name(&target.name, &object)?;
        check_namespace(resource, &target.namespace, &mut object)?;
        let unversioned = object::resource_version(&object).is_empty();
        let changed = self.change(target, write, |old, _| {
            if unversioned && !resource.rules.unconditional_update {
                let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
                return Err(Status::invalid(&resource.group, &resource.plural, object::name(old), vec![cause]));
            }
            Ok(Candidate { object: object.clone(), owned: false })
        })?;
        match changed {
            Some(written) => Ok(written),
            None if resource.rules.create_on_update && target.subresource.is_empty() => {
                // There is nothing that the version could be compared with.
                object::remove_meta(&mut object, "resourceVersion");
                self.insert(target, object, None, write)
            }
            None => Err(target.not_found()),
        }
    }

    fn update_scale(&self, target: &Target, body: &Value, write: &mut Write) -> Result<Written, Status> {
        let paths = scale_paths(target)?;
        check_name(&target.name, body)?;
        let resource = target.resource();
        let changed = self.change(target, write, |old, _| {
            Ok(Candidate { object: scale::write(resource, old, paths, body)?, owned: false })
        })?;
        changed.map(|written| show_scale(target, written)).unwrap_or_else(|| Err(target.not_found()))
    }

    /// Changes the object at `target` to what `make` makes of it; `None` when there is none.
    ///
    /// `make` is called again with the newer object when another write came between, up to a bound; so a candidate that
    /// names a resource version is refused then, and one that doesn't is built anew.
    pub(super) fn change(
        &self,
        target: &Target,
        write: &mut Write,
        mut make: impl FnMut(&Value, &mut Write) -> Result<Candidate, Status>,
    ) -> Result<Option<Written>, Status> {
        let resource = target.resource();
        let warnings = write.warnings.len();
        for _ in 0..ATTEMPTS {
            write.warnings.truncate(warnings);
            let Some(current) = self.store.get(target.storage(), &target.namespace, &target.name) else {
                return Ok(None);
            };
            let old = target.served.view(&current);
            let candidate = make(&old, write)?;
            check_preconditions(resource, &old, &candidate.object)?;
            let new = self.changed_object(target, &old, candidate, write)?;
            match self.store_change(target, &current, new, write) {
                Ok(written) => return Ok(Some(written)),
                Err(WriteError::Conflict { .. }) => {}
                Err(WriteError::NotFound) => return Ok(None),
                Err(error) => return Err(write_error(resource, &target.name, error)),
            }
        }
        Err(stale(resource, &target.name))
    }

    /// What would be stored for a candidate.
    fn changed_object(
        &self,
        target: &Target,
        old: &Value,
        candidate: Candidate,
        write: &Write,
    ) -> Result<Value, Status> {
        let resource = target.resource();
        let mut new = candidate.object;
        metadata::begin_update(resource, old, &mut new);
        let managed_fields = object::remove_meta(&mut new, "managedFields");
        subresource::restrict(resource, &target.subresource, old, &mut new);
        // Every endpoint writes who owns what it wrote.
        object::remove_meta(&mut new, "managedFields");
        if let Some(managed_fields) = managed_fields {
            object::set_meta(&mut new, "managedFields", managed_fields);
        }
        self.admit(resource, &target.subresource, Some(old), &mut new)?;
        if let Some(generation) = metadata::next_generation(resource, old, &new) {
            object::set_meta(&mut new, "generation", json!(generation));
        }
        object::set_meta(&mut new, "resourceVersion", json!(object::resource_version(old)));
        if candidate.owned {
            managed_fields::keep_times_of_unchanged(old, &mut new);
        } else {
            let (api_version, now) = (resource.api_version(), self.clock.now_seconds());
            let writer = write.writer(&api_version, &target.subresource, &now);
            managed_fields::track_update(Some(old), &mut new, resource.schema.view(), &writer);
        }
        self.allocate(resource, Some(old), &mut new)?;
        Ok(new)
    }

    fn store_change(
        &self,
        target: &Target,
        current: &Object,
        new: Value,
        write: &Write,
    ) -> Result<Written, WriteError> {
        let expected = current.resource_version();
        if write.options.dry_run {
            return Ok(Written { object: new, created: false });
        }
        if metadata::may_vanish(&new) {
            // The last hold is off: the write that took it off is what removes the object.
            let gone = self.store.delete(target.storage(), &target.namespace, &target.name, Some(expected))?;
            self.after_write(target, true);
            let mut object = new;
            object::set_meta(&mut object, "resourceVersion", json!(object::resource_version(&gone)));
            return Ok(Written { object, created: false });
        }
        let stored = self.store.update(target.storage(), target.served.to_storage(new, Some(current)), expected)?;
        if stored.resource_version() != expected {
            self.after_write(target, false);
        }
        Ok(Written { object: target.served.view(&stored).into_owned(), created: false })
    }
}

/// The answer of a write to the `scale` subresource.
pub(super) fn show_scale(target: &Target, written: Written) -> Result<Written, Status> {
    let paths = scale_paths(target)?;
    Ok(Written { object: scale::read(&written.object, paths), created: written.created })
}

/// A resource version or uid in a candidate says on which object the writer bases it.
fn check_preconditions(resource: &Resource, old: &Value, new: &Value) -> Result<(), Status> {
    let name = object::name(old);
    let version = object::resource_version(new);
    if !version.is_empty() && version != object::resource_version(old) {
        if version.parse::<u64>().is_err() {
            let cause = Cause::invalid("metadata.resourceVersion", &json!(version), "must be a whole number");
            return Err(Status::invalid(&resource.group, &resource.kind, name, vec![cause]));
        }
        return Err(stale(resource, name));
    }
    let (given, found) = (object::uid(new), object::uid(old));
    if !given.is_empty() && given != found {
        let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {found}");
        return Err(Status::conflict(&resource.group, &resource.plural, name, why));
    }
    Ok(())
}
