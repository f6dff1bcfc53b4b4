//! The rules of a Pod's spec, in a Pod and in a template.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{At, label_map, not_supported, port_name};
use crate::builtin::quantity;
use crate::name_rules::{dns1123_label, dns1123_subdomain, qualified_name};
use crate::status::Cause;

/// The sources of a volume, in the order in which a second one is noticed.
const VOLUME_SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flexVolume",
    "configMap",
    "rbd",
    "cinder",
    "cephfs",
    "downwardAPI",
    "fc",
    "azureFile",
    "flocker",
    "vsphereVolume",
    "quobyte",
    "portworxVolume",
    "azureDisk",
    "photonPersistentDisk",
    "persistentVolumeClaim",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Names that are seen once in a Pod.
#[derive(Default)]
struct Names<'a> {
    volumes: HashSet<&'a str>,
    containers: HashSet<String>,
}

/// A pod template: its labels are checked by what selects them.
pub(super) fn template(at: At<'_>, causes: &mut Vec<Cause>) {
    at.with("spec", |spec| self::spec(spec, causes));
}

pub(super) fn spec(at: At<'_>, causes: &mut Vec<Cause>) {
    let mut names = Names::default();
    for volume in at.get("volumes").as_array().into_iter().flatten() {
        names.volumes.insert(volume.get("name").and_then(Value::as_str).unwrap_or(""));
    }
    volumes(at, causes);
    at.required("containers", causes);
    at.each("containers", |_, one| container(one, &mut names, causes));
    at.each("initContainers", |_, one| container(one, &mut names, causes));
    at.each("ephemeralContainers", |_, one| container(one, &mut names, causes));
    at.one_of("restartPolicy", &["Always", "OnFailure", "Never"], causes);
    at.one_of("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], causes);
    if at.integer("activeDeadlineSeconds").is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(at.place("activeDeadlineSeconds"), at.get("activeDeadlineSeconds"), why));
    }
    at.named("nodeName", dns1123_subdomain, causes);
    at.named("serviceAccountName", dns1123_subdomain, causes);
    at.named("hostname", dns1123_label, causes);
    at.named("subdomain", dns1123_label, causes);
    label_map(at, "nodeSelector", causes);
    at.each("tolerations", |_, one| toleration(one, causes));
}

fn toleration(at: At<'_>, causes: &mut Vec<Cause>) {
    let operator = at.text("operator");
    if at.text("key").is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.push(Cause::invalid(at.place("operator"), &json!(operator), why));
    }
    at.named("key", qualified_name, causes);
    at.one_of("operator", &["Equal", "Exists"], causes);
    at.one_of("effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], causes);
}

fn volumes(spec: At<'_>, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    spec.each("volumes", |_, at| {
        let name = at.text("name");
        if at.required("name", causes) {
            at.named("name", dns1123_label, causes);
            if !seen.insert(name.to_owned()) {
                causes.push(Cause::duplicate(at.place("name"), &json!(name)));
            }
        }
        let sources = VOLUME_SOURCES.iter().filter(|source| !at.get(source).is_null());
        for second in sources.skip(1) {
            causes.push(Cause::forbidden(at.place(second), "may not specify more than 1 volume type"));
        }
        for (source, field) in [
            ("secret", "secretName"),
            ("configMap", "name"),
            ("persistentVolumeClaim", "claimName"),
            ("hostPath", "path"),
            ("csi", "driver"),
        ] {
            at.if_there(source, |source| {
                source.required(field, causes);
            });
        }
    });
}

fn container(at: At<'_>, names: &mut Names<'_>, causes: &mut Vec<Cause>) {
    let name = at.text("name");
    if at.required("name", causes) {
        match dns1123_label(name) {
            Some(why) => causes.push(Cause::invalid(at.place("name"), &json!(name), why)),
            None if !names.containers.insert(name.to_owned()) => {
                causes.push(Cause::duplicate(at.place("name"), &json!(name)));
            }
            None => {}
        }
    }
    let image = at.text("image");
    if at.required("image", causes) && image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(at.place("image"), &json!(image), why));
    }
    at.one_of("imagePullPolicy", &["Always", "IfNotPresent", "Never"], causes);
    at.one_of("terminationMessagePolicy", &["FallbackToLogsOnError", "File"], causes);
    ports(at, causes);
    at.each("env", |_, variable| environment(variable, causes));
    at.each("volumeMounts", |_, mount| {
        let name = mount.text("name");
        mount.required("name", causes);
        if !names.volumes.contains(name) {
            let message = format!("Not found: {}", json!(name));
            causes.push(Cause::new("FieldValueNotFound", message, mount.place("name")));
        }
        mount.required("mountPath", causes);
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        at.if_there(probe, |at| self::probe(at, probe != "readinessProbe", causes));
    }
    at.with("resources", |resources| self::resources(resources, causes));
}

fn ports(container: At<'_>, causes: &mut Vec<Cause>) {
    let mut names = HashSet::new();
    container.each("ports", |_, at| {
        let name = at.text("name");
        if !name.is_empty() {
            match port_name(name) {
                Some(why) => causes.push(Cause::invalid(at.place("name"), &json!(name), why)),
                None if !names.insert(name.to_owned()) => {
                    causes.push(Cause::duplicate(at.place("name"), &json!(name)));
                }
                None => {}
            }
        }
        match at.integer("containerPort") {
            None | Some(0) => causes.push(Cause::required(at.place("containerPort"), "")),
            Some(_) => at.port("containerPort", causes),
        }
        if at.integer("hostPort").is_some_and(|port| port != 0) {
            at.port("hostPort", causes);
        }
        at.one_of("protocol", PROTOCOLS, causes);
    });
}

fn environment(at: At<'_>, causes: &mut Vec<Cause>) {
    let name = at.text("name");
    if at.required("name", causes) && !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        causes.push(Cause::invalid(at.place("name"), &json!(name), why));
    }
    if !at.text("value").is_empty() && !at.get("valueFrom").is_null() {
        let why = "may not be specified when `value` is not empty";
        causes.push(Cause::invalid(at.place("valueFrom"), &json!(""), why));
    }
}

fn probe(at: At<'_>, once: bool, causes: &mut Vec<Cause>) {
    let mut handlers = HANDLERS.iter().filter(|handler| !at.get(handler).is_null());
    if handlers.next().is_none() {
        causes.push(Cause::required(at.here(), "must specify a handler type"));
    }
    for second in handlers {
        causes.push(Cause::forbidden(at.place(second), "may not specify more than 1 handler type"));
    }
    at.if_there("httpGet", |action| action.port("port", causes));
    at.if_there("tcpSocket", |action| action.port("port", causes));
    at.if_there("grpc", |action| action.port("port", causes));
    let numbers = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    at.not_negative(&numbers, causes);
    if once && at.integer("successThreshold").is_some_and(|count| count != 1) {
        causes.push(Cause::invalid(at.place("successThreshold"), at.get("successThreshold"), "must be 1"));
    }
}

fn resources(at: At<'_>, causes: &mut Vec<Cause>) {
    for kind in ["limits", "requests"] {
        at.entries(kind, |name, amount| {
            if !name.contains('/') {
                let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
                if !standard {
                    let whys = [
                        "must be a standard resource type or fully qualified",
                        "must be a standard resource for containers",
                    ];
                    causes.extend(whys.map(|why| Cause::invalid(amount.here(), &json!(name), why)));
                }
            }
            amount.quantity(causes);
        });
    }
    let limits = at.get("limits");
    for (name, request) in at.get("requests").as_object().into_iter().flatten() {
        let Some(limit) = limits.get(name) else { continue };
        if quantity::parse(request).zip(quantity::parse(limit)).is_some_and(|(request, limit)| request > limit) {
            let limit = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
            let why = format!("must be less than or equal to {name} limit of {limit}");
            causes.push(Cause::invalid(at.place("requests"), request, why));
        }
    }
}

/// The restart policy of a template whose Pods must run on.
pub(super) fn runs_on(template: At<'_>, causes: &mut Vec<Cause>) {
    template.with("spec", |spec| {
        let policy = spec.text("restartPolicy");
        // An unknown policy has its own cause.
        if matches!(policy, "OnFailure" | "Never") {
            causes.push(not_supported(spec.place("restartPolicy"), policy, &["Always"]));
        }
    });
}

/// The restart policy of a template whose Pods must come to an end.
pub(super) fn comes_to_an_end(template: At<'_>, causes: &mut Vec<Cause>) {
    template.with("spec", |spec| {
        if matches!(spec.text("restartPolicy"), "Always" | "") {
            causes.push(Cause::required(spec.place("restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
        }
    });
}
