//! Create: a new object, named by the client or by the server.

use serde_json::{Value, json};

use crate::crd;
use crate::managed_fields;
use crate::object;
use crate::registry::write::{check_namespace, read_body};
use crate::registry::{Registry, Target, Write, Written, is_crd, metadata, names, unowned, write_error};
use crate::resource::Resource;
use crate::service::body::Document;
use crate::status::{Cause, Status};
use crate::store::WriteError;

/// How many names are tried for a `generateName`.
const GENERATED_NAMES: usize = 8;

impl Registry {
    /// Creates the object in `document`.
    ///
    /// # Errors
    /// 400 for a body that doesn't fit the path, 403 and 404 for its namespace, 409 when the name is taken, 422 for its
    /// content.
    pub(crate) fn create(&self, target: &Target, mut document: Document, write: &mut Write) -> Result<Written, Status> {
        let resource = target.resource();
        read_body(resource, &mut document, write)?;
        let object = document.value;
        if is_crd(resource) {
            write.warnings.extend(crd::warnings(&object));
        }
        self.insert(target, object, None, write)
    }

    /// Creates `object`, whose kind has been checked. `managed_fields` are given by an apply; otherwise they are
    /// computed.
    pub(super) fn insert(
        &self,
        target: &Target,
        mut object: Value,
        managed_fields: Option<Value>,
        write: &mut Write,
    ) -> Result<Written, Status> {
        let resource = target.resource();
        if target.served.terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&resource.group, &resource.plural, object::name(&object), why));
        }
        check_namespace(resource, &target.namespace, &mut object)?;
        if !object::resource_version(&object).is_empty() {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
        }
        self.check_namespace_takes(resource, &target.namespace, object::name(&object))?;
        let generated = object::name(&object).is_empty() && !object::meta_str(&object, "generateName").is_empty();
        let mut attempts = if generated { GENERATED_NAMES } else { 1 };
        loop {
            attempts -= 1;
            let new = self.new_object(target, object.clone(), managed_fields.clone(), write)?;
            let name = object::name(&new).to_owned();
            match self.store_new(target, new, write) {
                Ok(written) => {
                    if !write.options.dry_run {
                        self.after_write(target, false);
                        self.furnish(resource, &name);
                    }
                    return Ok(written);
                }
                Err(WriteError::AlreadyExists) if attempts > 0 => {}
                Err(error) => return Err(self.name_not_free(target, &name, error)),
            }
        }
    }

    /// Why a name can't be had; one that is on its way out may be tried again.
    fn name_not_free(&self, target: &Target, name: &str, error: WriteError) -> Status {
        let mut status = write_error(target.resource(), name, error);
        let holder = self.store.get(target.storage(), &target.namespace, name);
        if error == WriteError::AlreadyExists && holder.is_some_and(|holder| object::is_terminating(&holder)) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    /// What would be stored for `object`.
    fn new_object(
        &self,
        target: &Target,
        mut object: Value,
        managed_fields: Option<Value>,
        write: &Write,
    ) -> Result<Value, Status> {
        let resource = target.resource();
        let now = self.clock.now_seconds();
        if object::name(&object).is_empty() {
            let base = object::meta_str(&object, "generateName").to_owned();
            if !base.is_empty() {
                let name = names::generate(&base, &mut self.rng());
                object::set_meta(&mut object, "name", json!(name));
            }
        }
        let uid = names::uid(&mut self.rng());
        // The body may say who owns fields that it doesn't set; those that it sets are the creator's.
        let sent = object::remove_meta(&mut object, "managedFields");
        metadata::begin_create(resource, &mut object, &target.namespace, uid, &now);
        if resource.has_subresource("status") && !resource.rules.keeps_status_on_create {
            object.as_object_mut().and_then(|root| root.remove("status"));
        }
        let left_out = unowned::left_out(resource, &object);
        self.admit(resource, "", None, &mut object)?;
        match managed_fields {
            Some(managed_fields) => object::set_meta(&mut object, "managedFields", managed_fields),
            None => {
                if let Some(sent) = sent {
                    object::set_meta(&mut object, "managedFields", sent);
                }
                let api_version = resource.api_version();
                let writer = write.writer(&api_version, "", &now);
                let taken = unowned::take(&mut object, &left_out);
                managed_fields::track_update(None, &mut object, resource.schema.view(), &writer);
                taken.restore(&mut object);
            }
        }
        // Only now: what the server hands out is nobody's.
        self.allocate(resource, None, &mut object)?;
        Ok(object)
    }

    fn store_new(&self, target: &Target, new: Value, write: &Write) -> Result<Written, WriteError> {
        let name = object::name(&new).to_owned();
        if write.options.dry_run {
            return match self.store.get(target.storage(), &target.namespace, &name) {
                Some(_) => Err(WriteError::AlreadyExists),
                None => Ok(Written { object: new, created: true }),
            };
        }
        let stored = self.store.create(target.storage(), target.served.to_storage(new, None))?;
        Ok(Written { object: target.served.view(&stored).into_owned(), created: true })
    }

    /// Checks that the namespace of a new object is there and not on its way out.
    fn check_namespace_takes(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), Status> {
        if !resource.namespaced {
            return Ok(());
        }
        let Some(found) = self.namespace(namespace) else {
            return Err(Status::not_found("", "namespaces", namespace));
        };
        if !object::is_terminating(&found) {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refused = Status::forbidden(&resource.group, &resource.plural, name, why);
        let details = refused.details.get_or_insert_default();
        let message = format!("namespace {namespace} is being terminated");
        details.causes.push(Cause::new("NamespaceTerminating", message, "metadata.namespace"));
        Err(refused)
    }
}
