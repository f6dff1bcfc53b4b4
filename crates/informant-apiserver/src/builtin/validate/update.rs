//! What an update may not change.

use serde_json::{Value, json};

use super::{At, IMMUTABLE};
use crate::object::at_path;
use crate::resource::Resource;
use crate::status::Cause;

/// What may change in a Pod's spec.
const POD_UPDATE: &str = "pod updates may not change fields other than \
                          `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                          `spec.tolerations` (only additions to existing tolerations),\
                          `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const STATEFUL_SET_UPDATE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                                   'minReadySeconds' are forbidden";
const CLAIM_UPDATE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                            bound claims";

pub(super) fn check(resource: &Resource, new: At<'_>, old: &Value, causes: &mut Vec<Cause>) {
    let immutable = |paths: &[&str], causes: &mut Vec<Cause>| {
        for path in paths.iter().filter(|path| differs(new.value, old, path)) {
            causes.push(Cause::invalid(*path, at_path(new.value, path).unwrap_or(&Value::Null), IMMUTABLE));
        }
    };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "daemonsets") => immutable(&["spec.selector"], causes),
        ("apps", "statefulsets") => stateful_set(new.value, old, causes),
        ("batch", "jobs") => job(new.value, old, causes),
        ("", "secrets") => {
            immutable(&["type"], causes);
            frozen(new.value, old, &["data"], causes);
        }
        ("", "configmaps") => frozen(new.value, old, &["data", "binaryData"], causes),
        ("", "persistentvolumeclaims") => claim(new.value, old, causes),
        ("", "persistentvolumes") => volume(new.value, old, causes),
        ("", "pods") => pod(new.value, old, causes),
        ("", "services") => service(new.value, old, causes),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => immutable(&["roleRef"], causes),
        ("storage.k8s.io", "storageclasses") => {
            immutable(&["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"], causes);
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            for field in ["value", "preemptionPolicy"] {
                if differs(new.value, old, field) {
                    causes.push(Cause::forbidden(field, "may not be changed in an update."));
                }
            }
        }
        ("networking.k8s.io", "ingressclasses") => immutable(&["spec.controller"], causes),
        ("node.k8s.io", "runtimeclasses") => immutable(&["handler"], causes),
        ("discovery.k8s.io", "endpointslices") => immutable(&["addressType"], causes),
        _ => {}
    }
}

/// Whether two objects have other values at a path; a missing one and an empty one are the same.
fn differs(new: &Value, old: &Value, path: &str) -> bool {
    let value = |object| match at_path(object, path) {
        Some(Value::Object(map)) if map.is_empty() => &Value::Null,
        Some(Value::Bool(false)) | None => &Value::Null,
        Some(value) => value,
    };
    value(new) != value(old)
}

/// The object without some of its fields, given as JSON pointers; `*` stands for every item of a list.
fn without(object: &Value, pointers: &[&str]) -> Value {
    let mut object = object.clone();
    for pointer in pointers {
        let steps: Vec<&str> = pointer.split('/').collect();
        remove(&mut object, &steps);
    }
    object
}

fn remove(value: &mut Value, steps: &[&str]) {
    match (value, steps) {
        (Value::Object(fields), [last]) => drop(fields.remove(*last)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(*first) {
                remove(inner, rest);
            }
        }
        (Value::Array(items), ["*", rest @ ..]) => items.iter_mut().for_each(|item| remove(item, rest)),
        _ => {}
    }
}

fn spec(object: &Value) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

fn stateful_set(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let immutable = ["podManagementPolicy", "selector", "serviceName", "volumeClaimTemplates"];
    let mut named = false;
    for field in immutable {
        let path = format!("spec.{field}");
        if field == "podManagementPolicy" && differs(new, old, &path) {
            named = true;
            causes.push(Cause::invalid(path.as_str(), at_path(new, &path).unwrap_or(&Value::Null), IMMUTABLE));
        }
    }
    let free = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if !named && without(spec(new), &free) != without(spec(old), &free) {
        causes.push(Cause::forbidden("spec", STATEFUL_SET_UPDATE));
    }
}

/// A Job's template stands still once it has one, but for what may change while it's suspended.
fn job(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let mut fields = vec!["spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex"];
    if at_path(old, "spec.completionMode").and_then(Value::as_str) != Some("Indexed") {
        fields.push("spec.completions");
    }
    if at_path(old, "spec.suspend").and_then(Value::as_bool) != Some(true) {
        fields.push("spec.template");
    }
    for path in fields.into_iter().filter(|path| differs(new, old, path)) {
        causes.push(Cause::invalid(path, at_path(new, path).unwrap_or(&Value::Null), IMMUTABLE));
    }
}

/// An object that was declared immutable stays so, with its content.
fn frozen(new: &Value, old: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    if old.get("immutable").and_then(Value::as_bool) != Some(true) {
        return;
    }
    let thawed = new.get("immutable").and_then(Value::as_bool) != Some(true);
    let changed = fields.iter().copied().filter(|field| differs(new, old, field));
    for field in thawed.then_some("immutable").into_iter().chain(changed) {
        causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
    }
}

fn claim(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let bound = at_path(old, "status.phase").and_then(Value::as_str) == Some("Bound");
    let mut free = vec!["volumeName"];
    if bound {
        free.extend(["resources/requests/storage", "volumeAttributesClassName"]);
    }
    if at_path(old, "spec.storageClassName").is_none() {
        free.push("storageClassName");
    }
    if without(spec(new), &free) != without(spec(old), &free) {
        causes.push(Cause::forbidden("spec", CLAIM_UPDATE));
    }
}

fn volume(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let free = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if without(spec(new), &free) != without(spec(old), &free) {
        let why = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", why));
    }
    if differs(new, old, "spec.volumeMode") {
        causes.push(Cause::invalid(
            "spec.volumeMode",
            at_path(new, "spec.volumeMode").unwrap_or(&Value::Null),
            IMMUTABLE,
        ));
    }
}

fn pod(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let free = [
        "containers/*/image",
        "initContainers/*/image",
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        // By subresources: the scheduler's, the resizer's, the debugger's.
        "nodeName",
        "ephemeralContainers",
        "containers/*/resources",
        "initContainers/*/resources",
        "schedulingGates",
    ];
    if without(spec(new), &free) != without(spec(old), &free) {
        causes.push(Cause::forbidden("spec", POD_UPDATE));
    }
}

fn service(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let text = |object, path| at_path(object, path).and_then(Value::as_str).unwrap_or("");
    let kind = |object| text(object, "spec.type");
    let (before, after) = (text(old, "spec.clusterIP"), text(new, "spec.clusterIP"));
    let kept = kind(old) != "ExternalName" && kind(new) != "ExternalName";
    if kept && !before.is_empty() && !after.is_empty() && before != after {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([after]), "may not change once set"));
    }
}
