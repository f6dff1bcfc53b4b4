//! What every object goes through before it's stored: pruning, defaulting, validation.

use serde_json::Value;

use crate::builtin::{defaults, omit_empty, validate};
use crate::object;
use crate::protobuf::zeros;
use crate::registry::{Registry, is_crd, metadata};
use crate::resource::Resource;
use crate::status::{Cause, Reason, Status};
use crate::{crd, schema};

impl Registry {
    /// Makes `new`, written through `subresource`, what would be stored in place of `old`, or says why it can't be.
    ///
    /// # Errors
    /// 422 with one cause for each field, 413 for an object that is too large.
    pub(super) fn admit(
        &self,
        resource: &Resource,
        subresource: &str,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<(), Status> {
        let view = resource.schema.view();
        if resource.custom {
            object::normalize_numbers(new);
        }
        schema::prune::prune(new, view);
        if !resource.custom {
            omit_empty::apply(new, view);
            zeros::omit(new, &resource.api_version(), &resource.kind);
        }
        schema::default::apply(new, view);
        if !resource.custom {
            defaults::apply(resource, new);
        }
        if is_crd(resource) && subresource.is_empty() {
            crd::prepare(new, old);
        }
        let mut causes = metadata::check(resource, new);
        causes.extend(old.into_iter().flat_map(|old| metadata::check_update(old, new)));
        if resource.custom {
            causes.extend(schema::validate::validate(new, old, view));
        } else if subresource.is_empty() {
            causes.extend(validate::validate(resource, new, old));
        }
        if is_crd(resource) {
            causes.extend(crd::validate(new, old)?);
        }
        refuse(resource, new, causes)?;
        let bytes = object::json_size(new);
        if bytes > self.max_object_bytes {
            let limit = self.max_object_bytes;
            return Err(Status::new(
                Reason::RequestEntityTooLarge,
                format!(
                    "{resource} \"{}\" is too large to be stored: {bytes} bytes, limit is {limit}",
                    object::name(new)
                ),
            ));
        }
        Ok(())
    }
}

fn refuse(resource: &Resource, object: &Value, causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&resource.group, &resource.kind, object::name(object), causes))
}
