//! The rules of configuration, storage and the remaining kinds.

use serde_json::{Value, json};

use super::{At, NOT_NEGATIVE, not_supported, pod, selects};
use crate::builtin::quantity;
use crate::name_rules::qualified_name;
use crate::status::Cause;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const STANDARD_QUOTA: &[&str] = &[
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

pub(super) fn core(plural: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    match plural {
        "configmaps" => config_map(at, causes),
        "secrets" => secret(at, causes),
        "persistentvolumeclaims" => at.with("spec", |spec| claim(spec, causes)),
        "persistentvolumes" => at.with("spec", |spec| volume(spec, causes)),
        "resourcequotas" => at.with("spec", |spec| spec.entries("hard", |name, amount| quota(name, amount, causes))),
        "limitranges" => at.with("spec", |spec| spec.each("limits", |_, item| limit_range(item, causes))),
        "replicationcontrollers" => at.with("spec", |spec| replication_controller(spec, causes)),
        "podtemplates" => at.with("template", |template| pod::template(template, causes)),
        "nodes" => {
            at.with("spec", |spec| {
                spec.each("taints", |index, taint| {
                    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                    let effect = taint.text("effect");
                    if !effects.contains(&effect) {
                        let place = format!("metadata.taints[{index}].effect");
                        causes.push(not_supported(place, effect, &effects));
                    }
                });
            });
        }
        "events" => {
            let (about, own) = (at.get("involvedObject"), at.get("metadata"));
            let namespace = |value: &Value| value.get("namespace").and_then(Value::as_str).unwrap_or("").to_owned();
            if !namespace(about).is_empty() && namespace(about) != namespace(own) {
                let why = "does not match event.namespace";
                causes.push(Cause::invalid("involvedObject.namespace", &json!(namespace(about)), why));
            }
        }
        _ => {}
    }
}

pub(super) fn other(plural: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    match plural {
        "leases" => at.with("spec", |spec| {
            if spec.integer("leaseDurationSeconds").is_some_and(|seconds| seconds <= 0) {
                let (place, value) = (spec.place("leaseDurationSeconds"), spec.get("leaseDurationSeconds"));
                causes.push(Cause::invalid(place, value, "must be greater than 0"));
            }
            spec.not_negative(&["leaseTransitions"], causes);
        }),
        "storageclasses" => {
            at.required("provisioner", causes);
            at.one_of("reclaimPolicy", &["Delete", "Retain"], causes);
            at.one_of("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], causes);
        }
        "priorityclasses" => {
            let own = at.get("metadata").get("name").and_then(Value::as_str).unwrap_or("");
            if at.integer("value").unwrap_or(0) > 1_000_000_000 && !own.starts_with("system-") {
                let why = "maximum allowed value of a user defined priority is 1000000000";
                causes.push(Cause::forbidden(at.place("value"), why));
            }
            at.one_of("preemptionPolicy", &["PreemptLowerPriority", "Never"], causes);
        }
        "runtimeclasses" => {
            at.required("handler", causes);
        }
        _ => {}
    }
}

/// What is wrong with a key of a ConfigMap or Secret.
fn config_key(key: &str) -> Option<&'static str> {
    let fits = !key.is_empty()
        && key.len() <= 253
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if !fits {
        return Some(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    match key {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ => None,
    }
}

fn config_keys(at: At<'_>, name: &str, causes: &mut Vec<Cause>) {
    at.entries(name, |key, entry| {
        causes.extend(config_key(key).map(|why| Cause::invalid(entry.here(), &json!(key), why)));
    });
}

fn config_map(at: At<'_>, causes: &mut Vec<Cause>) {
    config_keys(at, "data", causes);
    at.entries("data", |key, entry| {
        if at.get("binaryData").get(key).is_some() {
            causes.push(Cause::invalid(entry.here(), &json!(key), "duplicate of key present in binaryData"));
        }
    });
    config_keys(at, "binaryData", causes);
}

fn secret(at: At<'_>, causes: &mut Vec<Cause>) {
    config_keys(at, "data", causes);
    let missing = |key: &str| at.get("data").get(key).is_none();
    let require = |keys: &[&str], causes: &mut Vec<Cause>| {
        let missing = keys.iter().filter(|key| missing(key));
        causes.extend(missing.map(|key| Cause::required(format!("data[{key}]"), "")));
    };
    match at.text("type") {
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"], causes),
        "kubernetes.io/dockercfg" => require(&[".dockercfg"], causes),
        "kubernetes.io/dockerconfigjson" => docker_config(at, causes),
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => {
            require(&["username", "password"], causes);
        }
        "kubernetes.io/ssh-auth" => require(&["ssh-privatekey"], causes),
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            let annotations = at.get("metadata").get("annotations");
            if annotations.and_then(|all| all.get(ACCOUNT)).and_then(Value::as_str).unwrap_or("").is_empty() {
                causes.push(Cause::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
            }
        }
        _ => {}
    }
}

fn docker_config(at: At<'_>, causes: &mut Vec<Cause>) {
    use base64::Engine;
    const KEY: &str = ".dockerconfigjson";
    let place = format!("data[{KEY}]");
    let Some(encoded) = at.get("data").get(KEY).and_then(Value::as_str) else {
        causes.push(Cause::required(place, ""));
        return;
    };
    let text = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    if serde_json::from_slice::<Value>(&text).is_err() {
        let first = String::from_utf8_lossy(&text).chars().next();
        let why = match first {
            Some(first) if !"{[\"0123456789-tfn".contains(first) => {
                format!("invalid character '{first}' looking for beginning of value")
            }
            _ => "unexpected end of JSON input".to_owned(),
        };
        causes.push(Cause::invalid(place, &json!("<secret contents redacted>"), why));
    }
}

fn claim(spec: At<'_>, causes: &mut Vec<Cause>) {
    if spec.count("accessModes") == 0 {
        causes.push(Cause::required(spec.place("accessModes"), "at least 1 access mode is required"));
    }
    access_modes(spec, causes);
    let place = format!("{}[storage]", spec.place("resources"));
    match spec.get("resources").get("requests").and_then(|requests| requests.get("storage")) {
        None => causes.push(Cause::required(place, "")),
        Some(amount) if quantity::parse(amount).is_some_and(|amount| amount <= 0.0) => {
            causes.push(Cause::invalid(place, amount, "must be greater than zero"));
        }
        Some(_) => {}
    }
}

fn access_modes(spec: At<'_>, causes: &mut Vec<Cause>) {
    for mode in spec.get("accessModes").as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !ACCESS_MODES.contains(&mode) {
            causes.push(not_supported(spec.place("accessModes"), mode, ACCESS_MODES));
        }
    }
}

fn volume(spec: At<'_>, causes: &mut Vec<Cause>) {
    const PLAIN: &[&str] = &[
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
    spec.required("accessModes", causes);
    access_modes(spec, causes);
    if spec.count("capacity") == 0 {
        causes.push(Cause::required(spec.place("capacity"), ""));
    }
    if spec.get("capacity").get("storage").is_none() {
        causes.push(Cause::not_supported(spec.place("capacity"), spec.get("capacity"), &[json!("storage")]));
    }
    spec.one_of("persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], causes);
    let fields = spec.value.as_object().into_iter().flatten();
    if fields.into_iter().all(|(name, value)| value.is_null() || PLAIN.contains(&name.as_str())) {
        causes.push(Cause::required(spec.here(), "must specify a volume type"));
    }
}

fn quota(name: &str, amount: At<'_>, causes: &mut Vec<Cause>) {
    if let Some(why) = qualified_name(name) {
        causes.push(Cause::invalid(amount.here(), &json!(name), why));
    }
    let standard = name.contains('/')
        || STANDARD_QUOTA.contains(&name)
        || ["requests.", "limits.", "hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if !standard {
        causes.push(Cause::invalid(amount.here(), &json!(name), "must be a standard resource for quota"));
    }
    amount.quantity(causes);
}

/// What is allowed at least may not be more than the defaults, nor those more than what is allowed at most.
fn limit_range(item: At<'_>, causes: &mut Vec<Cause>) {
    let amount = |kind: &str, name: &str| item.get(kind).get(name).and_then(quantity::parse);
    let shown = |kind: &str, name: &str| item.get(kind).get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let mut compare = |low: (&str, &str), high: (&str, &str), at: &str, name: &str| {
        if amount(low.0, name).zip(amount(high.0, name)).is_some_and(|(low, high)| low > high) {
            let (low_value, high_value) = (shown(low.0, name), shown(high.0, name));
            let why = format!("{} value {low_value} is greater than {} value {high_value}", low.1, high.1);
            // Upstream shows the lower bound for a default, the value itself for a default request.
            let value = if at == "default" && low.0 == "min" { low_value } else { shown(at, name) };
            causes.push(Cause::invalid(format!("{}[{name}]", item.place(at)), &json!(value), why));
        }
    };
    let mut names: Vec<&String> = ["min", "max", "default", "defaultRequest"]
        .iter()
        .filter_map(|kind| item.get(kind).as_object())
        .flat_map(|entries| entries.keys())
        .collect();
    names.sort_unstable();
    names.dedup();
    let (min, max) = (("min", "min"), ("max", "max"));
    let (default, request) = (("default", "default"), ("defaultRequest", "default request"));
    for name in names {
        compare(min, max, "min", name);
        compare(min, request, "defaultRequest", name);
        compare(request, max, "defaultRequest", name);
        compare(request, default, "defaultRequest", name);
        compare(min, default, "default", name);
        compare(default, max, "default", name);
    }
}

fn replication_controller(spec: At<'_>, causes: &mut Vec<Cause>) {
    if spec.count("selector") == 0 {
        causes.push(Cause::required(spec.place("selector"), ""));
    }
    if spec.integer("replicas").is_some_and(|replicas| replicas < 0) {
        causes.push(Cause::invalid(spec.place("replicas"), spec.get("replicas"), NOT_NEGATIVE));
    }
    if spec.get("template").is_null() {
        causes.push(Cause::required(spec.place("template"), ""));
        return;
    }
    let labels = spec.get("template").get("metadata").and_then(|meta| meta.get("labels")).unwrap_or(&Value::Null);
    if spec.count("selector") > 0 && !selects(&json!({"matchLabels": spec.get("selector")}), labels) {
        let place = format!("{}.metadata.labels", spec.place("template"));
        causes.push(Cause::invalid(place, labels, "`selector` does not match template `labels`"));
    }
    spec.with("template", |template| {
        pod::template(template, causes);
        pod::runs_on(template, causes);
    });
}
