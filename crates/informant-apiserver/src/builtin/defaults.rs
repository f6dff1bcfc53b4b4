//! What a server fills into objects of built-in kinds beyond the constants that their schemas state.
//!
//! Applied after the schema's defaults, on every create, update and patch, so everything here is idempotent and never
//! changes a value that is there. It includes the little that upstream's default admission adds to every object of a kind
//! (a Pod's priority and tolerations, protecting finalizers), since clients see no difference; it doesn't include what needs
//! other objects (service accounts, limit ranges, default storage classes).

mod pod;
mod service;
mod workload;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::object;
use crate::resource::Resource;

/// An object's fields.
type Fields = Map<String, Value>;

/// Fills in what `object`, of the kind of `resource`, leaves out.
pub(crate) fn apply(resource: &Resource, object: &mut Value) {
    let Some(root) = object.as_object_mut() else { return };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::pod(root),
        ("", "podtemplates") => pod::template(root),
        ("", "replicationcontrollers") => workload::replication_controller(root),
        ("", "services") => service::service(root),
        ("", "endpoints") => {
            each(root, "subsets", |subset| each(subset, "ports", |port| set(port, "protocol", json!("TCP"))));
        }
        ("", "secrets") => secret(root),
        ("", "namespaces") => namespace(object),
        ("", "persistentvolumes") => persistent_volume(object),
        ("", "persistentvolumeclaims") => persistent_volume_claim(object),
        ("", "limitranges") => inside(root, "spec", |spec| each(spec, "limits", limit_range_item)),
        ("", "nodes") => inside(root, "status", |status| {
            if let Some(capacity) = status.get("capacity").filter(|capacity| capacity.is_object()).cloned() {
                set(status, "allocatable", capacity);
            }
        }),
        ("apps", "deployments") => inside(root, "spec", workload::deployment),
        ("apps", "replicasets") => inside(root, "spec", workload::replica_set),
        ("apps", "statefulsets") => inside(root, "spec", workload::stateful_set),
        ("apps", "daemonsets") => workload::daemon_set(object),
        ("batch", "jobs") => workload::job(object),
        ("batch", "cronjobs") => inside(root, "spec", workload::cron_job),
        ("autoscaling", "horizontalpodautoscalers") => {
            inside(root, "spec", |spec| workload::autoscaler(spec, resource.version == "v1"));
        }
        ("networking.k8s.io", "networkpolicies") => inside(root, "spec", service::network_policy),
        ("networking.k8s.io", "ingressclasses") => {
            inside(root, "spec", |spec| inside(spec, "parameters", |at| set(at, "scope", json!("Cluster"))));
        }
        ("discovery.k8s.io", "endpointslices") => each(root, "ports", |port| {
            set(port, "protocol", json!("TCP"));
            set_absent(port, "name", json!(""));
        }),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => role_binding(root),
        ("storage.k8s.io", "storageclasses") => {
            set(root, "reclaimPolicy", json!("Delete"));
            set(root, "volumeBindingMode", json!("Immediate"));
        }
        ("storage.k8s.io", "csidrivers") => inside(root, "spec", csi_driver),
        ("scheduling.k8s.io", "priorityclasses") => set(root, "preemptionPolicy", json!("PreemptLowerPriority")),
        ("admissionregistration.k8s.io", plural) => admission(plural, root),
        _ => {}
    }
}

/// Sets a field that is missing, null or an empty text: for Go these are the same.
fn set(fields: &mut Fields, name: &str, value: Value) {
    let missing = match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if missing {
        fields.insert(name.to_owned(), value);
    }
}

/// Sets a field that is missing, null included, but not one that is empty.
fn set_absent(fields: &mut Fields, name: &str, value: Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value);
    }
}

/// Sets a number that is missing, null or zero.
fn set_number(fields: &mut Fields, name: &str, value: i64) {
    if fields.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
        fields.insert(name.to_owned(), json!(value));
    }
}

/// Looks into an object that is there.
fn inside(fields: &mut Fields, name: &str, change: impl FnOnce(&mut Fields)) {
    if let Some(Value::Object(inner)) = fields.get_mut(name) {
        change(inner);
    }
}

/// Looks into an object, which is made when it's missing.
fn within(fields: &mut Fields, name: &str, change: impl FnOnce(&mut Fields)) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), json!({}));
    }
    inside(fields, name, change);
}

/// Looks into each object of a list.
fn each(fields: &mut Fields, name: &str, change: impl Fn(&mut Fields)) {
    if let Some(Value::Array(items)) = fields.get_mut(name) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(change);
    }
}

fn text<'v>(fields: &'v Fields, name: &str) -> &'v str {
    fields.get(name).and_then(Value::as_str).unwrap_or("")
}

/// `stringData` is a way to write `data` and is never read back.
fn secret(root: &mut Fields) {
    set(root, "type", json!("Opaque"));
    let Some(Value::Object(texts)) = root.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    within(root, "data", |data| {
        for (key, text) in texts {
            data.insert(key, json!(BASE64.encode(text.as_str().unwrap_or_default())));
        }
    });
}

fn namespace(object: &mut Value) {
    let name = object::name(object).to_owned();
    if !name.is_empty()
        && let Some(meta) = object::meta_mut(object)
    {
        within(meta, "labels", |labels| drop(labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name))));
    }
    let terminating = object::is_terminating(object);
    let Some(root) = object.as_object_mut() else { return };
    // On its way out a namespace loses its finalizer and doesn't get it back.
    if !terminating {
        within(root, "spec", |spec| set(spec, "finalizers", json!(["kubernetes"])));
    }
    within(root, "status", |status| set(status, "phase", json!("Active")));
}

fn persistent_volume(object: &mut Value) {
    protect(object, "kubernetes.io/pv-protection");
    let Some(root) = object.as_object_mut() else { return };
    inside(root, "spec", |spec| {
        set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
        set(spec, "volumeMode", json!("Filesystem"));
        inside(spec, "hostPath", |path| set_absent(path, "type", json!("")));
    });
    within(root, "status", |status| set(status, "phase", json!("Pending")));
}

fn persistent_volume_claim(object: &mut Value) {
    protect(object, "kubernetes.io/pvc-protection");
    let Some(root) = object.as_object_mut() else { return };
    inside(root, "spec", claim_spec);
    within(root, "status", |status| set(status, "phase", json!("Pending")));
}

/// The spec of a claim, also of those within Pods and StatefulSets.
fn claim_spec(spec: &mut Fields) {
    set(spec, "volumeMode", json!("Filesystem"));
}

/// Adds a finalizer to an object that is new: what is stored has a resource version, and may have lost it on purpose.
fn protect(object: &mut Value, finalizer: &str) {
    let is_new = object::resource_version(object).is_empty() && !object::is_terminating(object);
    if !is_new || object::finalizers(object).any(|present| present == finalizer) {
        return;
    }
    let Some(meta) = object::meta_mut(object) else { return };
    set(meta, "finalizers", json!([]));
    if let Some(Value::Array(finalizers)) = meta.get_mut("finalizers") {
        finalizers.push(json!(finalizer));
    }
}

/// Limits of containers imply each other: what is allowed at most is the default, the default is requested.
fn limit_range_item(item: &mut Fields) {
    if text(item, "type") != "Container" {
        return;
    }
    let entries = |name: &str| item.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let limits = filled(entries("default"), [entries("max")]);
    let requests = filled(entries("defaultRequest"), [limits.clone(), entries("min")]);
    for (name, entries) in [("default", limits), ("defaultRequest", requests)] {
        if !entries.is_empty() {
            item.insert(name.to_owned(), Value::Object(entries));
        }
    }
}

/// The entries, with those of the others that they don't have.
fn filled(mut entries: Fields, others: impl IntoIterator<Item = Fields>) -> Fields {
    for (name, value) in others.into_iter().flatten() {
        entries.entry(name).or_insert(value);
    }
    entries
}

fn role_binding(root: &mut Fields) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    inside(root, "roleRef", |role| set(role, "apiGroup", json!(GROUP)));
    each(root, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            set(subject, "apiGroup", json!(GROUP));
        }
    });
}

fn csi_driver(spec: &mut Fields) {
    set(spec, "attachRequired", json!(true));
    set(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    let off =
        ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount", "preventPodSchedulingIfMissing"];
    for name in off {
        set(spec, name, json!(false));
    }
}

fn admission(plural: &str, root: &mut Fields) {
    let rule = |rule: &mut Fields| set(rule, "scope", json!("*"));
    let selectors = |fields: &mut Fields| {
        set(fields, "matchPolicy", json!("Equivalent"));
        set(fields, "namespaceSelector", json!({}));
        set(fields, "objectSelector", json!({}));
    };
    match plural {
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => each(root, "webhooks", |webhook| {
            selectors(webhook);
            set(webhook, "failurePolicy", json!("Fail"));
            set(webhook, "timeoutSeconds", json!(10));
            each(webhook, "rules", rule);
            inside(webhook, "clientConfig", |client| inside(client, "service", |at| set(at, "port", json!(443))));
            if plural.starts_with("mutating") {
                set(webhook, "reinvocationPolicy", json!("Never"));
            }
        }),
        _ => inside(root, "spec", |spec| {
            for resources in ["matchConstraints", "matchResources"] {
                inside(spec, resources, |matched| {
                    selectors(matched);
                    each(matched, "resourceRules", rule);
                    each(matched, "excludeResourceRules", rule);
                });
            }
            if plural.ends_with("policies") {
                set(spec, "failurePolicy", json!("Fail"));
            }
        }),
    }
}
