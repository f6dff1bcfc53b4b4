//! Which part of an object each endpoint writes, and the small subresources that are writes in disguise.

use serde_json::{Map, Value, json};

use crate::object::{self, at_path};
use crate::registry::deletion::DeleteOptions;
use crate::registry::update::Candidate;
use crate::registry::{ATTEMPTS, Deleted, Registry, Target, Write, Written, is_crd, is_namespace, stale, write_error};
use crate::resource::Resource;
use crate::service::query::Query;
use crate::status::Status;
use crate::store::WriteError;

/// Keeps of `new` what the endpoint writes, and everything else of `old`.
pub(super) fn restrict(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    match subresource {
        "" => {
            if resource.has_subresource("status") {
                carry(new, old, "status");
            }
            if is_namespace(resource) {
                carry_path(new, old, "finalizers");
            }
        }
        "status" => {
            let status = new.get("status").cloned();
            let metadata = new.get("metadata").cloned();
            *new = old.clone();
            put(new, "status", status);
            // The status of a custom object comes alone; that of a built-in one may bring labels and annotations.
            if !resource.custom && !is_crd(resource) {
                put(new, "metadata", metadata);
                keep_meta(new, old, "ownerReferences");
            }
        }
        "finalize" => {
            let finalizers = at_path(new, "spec.finalizers").cloned();
            *new = old.clone();
            if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
                match finalizers {
                    Some(finalizers) => spec.insert("finalizers".into(), finalizers),
                    None => spec.remove("finalizers"),
                };
            }
        }
        "approval" => {
            let status = new.get("status").cloned();
            *new = old.clone();
            put(new, "status", status);
        }
        _ => {
            let spec = new.get("spec").cloned();
            *new = old.clone();
            put(new, "spec", spec);
        }
    }
}

/// Takes out of an applied configuration what its endpoint doesn't write, so that the manager doesn't come to own it.
pub(super) fn strip_config(resource: &Resource, subresource: &str, config: &mut Value) {
    let Some(root) = config.as_object_mut() else { return };
    match subresource {
        "" if resource.has_subresource("status") => {
            root.remove("status");
        }
        "" => {}
        "status" => {
            root.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            if resource.custom {
                strip_metadata(root);
            }
        }
        _ => strip_metadata(root),
    }
}

fn strip_metadata(root: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = root.get_mut("metadata") {
        meta.retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
    }
}

impl Registry {
    /// `pods/binding`: puts the Pod on a node.
    ///
    /// # Errors
    /// 400 without a node, 404, 409 when the Pod is on one already.
    pub(crate) fn bind(&self, target: &Target, body: &Value, write: &Write) -> Result<(), Status> {
        let node = at_path(body, "target.name").and_then(Value::as_str).unwrap_or("");
        if node.is_empty() {
            return Err(Status::bad_request("a Binding must name a node in target.name"));
        }
        for _ in 0..ATTEMPTS {
            let current = self.get(target)?;
            let name = object::name(&current);
            let on = at_path(&current, "spec.nodeName").and_then(Value::as_str).unwrap_or("");
            if !on.is_empty() {
                let why = format!("pod {name} is already assigned to node \"{on}\"");
                return Err(Status::conflict("", "pods/binding", name, why));
            }
            // Neither generation nor field ownership hear of a binding.
            let mut bound = current.value().clone();
            put_at(&mut bound, "spec", "nodeName", json!(node));
            set_condition(&mut bound, "PodScheduled", &self.clock.now_seconds());
            if write.options.dry_run {
                return Ok(());
            }
            match self.store.update(&target.served.resource.storage, bound, current.resource_version()) {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(write_error(target.resource(), &target.name, error)),
            }
        }
        Err(stale(target.resource(), &target.name))
    }

    /// `pods/eviction`: a delete with the options in the body. Disruption budgets aren't looked at.
    ///
    /// # Errors
    /// Those of a delete.
    pub(crate) fn evict(&self, target: &Target, body: &Value, dry_run: bool) -> Result<Deleted, Status> {
        let mut options = DeleteOptions::read(&Query::default(), body.get("deleteOptions"))?;
        options.dry_run |= dry_run;
        let pod = Target { subresource: String::new(), ..target.clone() };
        self.delete(&pod, &options)
    }

    /// Changes an object (or its subresource) as the server itself; `None` when there is none.
    ///
    /// `change` is called again with the newer object when another write came between.
    ///
    /// # Errors
    /// Those of an update.
    pub(crate) fn write_own(
        &self,
        target: &Target,
        manager: &str,
        change: impl Fn(&mut Value),
    ) -> Result<Option<Written>, Status> {
        self.change(target, &mut Write::internal(manager), |old, _| {
            let mut object = old.clone();
            change(&mut object);
            Ok(Candidate { object, owned: false })
        })
    }
}

fn set_condition(object: &mut Value, kind: &str, now: &str) {
    let Some(root) = object.as_object_mut() else { return };
    let status = root.entry("status").or_insert_with(|| json!({}));
    let Some(status) = status.as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|condition| condition.get("type").and_then(Value::as_str) != Some(kind));
        list.push(json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    }
}

/// Sets `new.<field>` to what `old` has there.
fn carry(new: &mut Value, old: &Value, field: &str) {
    put(new, field, old.get(field).cloned());
}

/// Sets `new.spec.<field>` to what `old` has there.
fn carry_path(new: &mut Value, old: &Value, field: &str) {
    let kept = old.get("spec").and_then(|spec| spec.get(field)).cloned();
    let Some(root) = new.as_object_mut() else { return };
    let spec = root.entry("spec").or_insert_with(|| json!({}));
    put(spec, field, kept);
}

fn put_at(object: &mut Value, parent: &str, field: &str, value: Value) {
    if let Some(parent) = object.get_mut(parent) {
        put(parent, field, Some(value));
    }
}

fn keep_meta(new: &mut Value, old: &Value, field: &str) {
    if let Some(meta) = new.get_mut("metadata") {
        put(meta, field, old.get("metadata").and_then(|meta| meta.get(field)).cloned());
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    match value {
        Some(value) => map.insert(field.to_owned(), value),
        None => map.remove(field),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource_with_status;

    #[test]
    fn each_endpoint_writes_its_own_part() {
        let resource = resource_with_status("apps", "v1", "Deployment", "deployments");
        let old = json!({"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"y": 1}});
        let both = json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "spec": {"x": 2}, "status": {"y": 2}});
        let mut main = both.clone();
        restrict(&resource, "", &old, &mut main);
        assert_eq!((main.get("spec"), main.get("status")), (both.get("spec"), old.get("status")));
        let mut status = both.clone();
        restrict(&resource, "status", &old, &mut status);
        assert_eq!((status.get("spec"), status.get("status")), (old.get("spec"), both.get("status")));
        let mut custom = resource.clone();
        custom.custom = true;
        let mut status = both.clone();
        restrict(&custom, "status", &old, &mut status);
        assert_eq!(status.get("metadata"), old.get("metadata"));
    }
}
