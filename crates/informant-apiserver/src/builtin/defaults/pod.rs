//! The defaults of a Pod and of a Pod template.

use serde_json::{Value, json};

use super::{Fields, claim_spec, each, inside, set, set_absent, set_number, text, within};
use crate::builtin::quantity;

/// How long a Pod stays on a node that is gone, when it doesn't say.
const TOLERATION_SECONDS: i64 = 300;

/// A Pod of its own.
pub(super) fn pod(root: &mut Fields) {
    inside(root, "spec", |spec| {
        for list in ["containers", "initContainers"] {
            each(spec, list, requests_from_limits);
        }
        pod_spec(spec);
        set(spec, "enableServiceLinks", json!(true));
        set(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
        set(spec, "priority", json!(0));
        tolerations(spec);
        if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
            spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
        }
    });
    let class = root.get("spec").and_then(Value::as_object).map(quality_of_service);
    within(root, "status", |status| {
        set(status, "phase", json!("Pending"));
        if let Some(class) = class {
            set(status, "qosClass", json!(class));
        }
        addresses(status);
    });
}

/// What holds a template: `template.spec`.
pub(super) fn template(holder: &mut Fields) {
    inside(holder, "template", |template| inside(template, "spec", pod_spec));
}

fn pod_spec(spec: &mut Fields) {
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = json!(account);
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "schedulerName", json!("default-scheduler"));
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, |container| self::container(container, on_host));
    }
    each(spec, "volumes", volume);
}

fn container(container: &mut Fields, on_host: bool) {
    let policy = pull_policy(text(container, "image"));
    set(container, "imagePullPolicy", json!(policy));
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    each(container, "ports", |port| {
        set(port, "protocol", json!("TCP"));
        if on_host && let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
            set_number(port, "hostPort", number);
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        inside(container, name, probe);
    }
    inside(container, "lifecycle", |lifecycle| {
        for hook in ["preStop", "postStart"] {
            inside(lifecycle, hook, |hook| inside(hook, "httpGet", http_get));
        }
    });
    each(container, "env", |variable| inside(variable, "valueFrom", |from| inside(from, "fieldRef", field_ref)));
}

/// Always for the newest of an image, which may change; once for any other.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    let fixed = image.contains('@') || last.rsplit_once(':').is_some_and(|(_, tag)| tag != "latest");
    if fixed { "IfNotPresent" } else { "Always" }
}

fn probe(probe: &mut Fields) {
    set_number(probe, "timeoutSeconds", 1);
    set_number(probe, "periodSeconds", 10);
    set_number(probe, "successThreshold", 1);
    set_number(probe, "failureThreshold", 3);
    inside(probe, "httpGet", http_get);
    inside(probe, "grpc", |grpc| set_absent(grpc, "service", json!("")));
}

fn http_get(action: &mut Fields) {
    set(action, "path", json!("/"));
    set(action, "scheme", json!("HTTP"));
}

fn field_ref(field: &mut Fields) {
    set(field, "apiVersion", json!("v1"));
}

fn volume(volume: &mut Fields) {
    if volume.iter().all(|(name, value)| name == "name" || value.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    let mode = json!(0o644);
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        inside(volume, source, |source| set(source, "defaultMode", mode.clone()));
    }
    let items = |source: &mut Fields| each(source, "items", |item| inside(item, "fieldRef", field_ref));
    inside(volume, "downwardAPI", items);
    inside(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            inside(source, "downwardAPI", items);
            inside(source, "serviceAccountToken", |token| set(token, "expirationSeconds", json!(3600)));
        });
    });
    inside(volume, "hostPath", |path| set_absent(path, "type", json!("")));
    inside(volume, "image", |image| {
        let policy = pull_policy(text(image, "reference"));
        set(image, "pullPolicy", json!(policy));
    });
    inside(volume, "ephemeral", |ephemeral| {
        inside(ephemeral, "volumeClaimTemplate", |template| inside(template, "spec", claim_spec));
    });
}

/// What a container is limited to and doesn't request, it requests as much of.
fn requests_from_limits(container: &mut Fields) {
    inside(container, "resources", |resources| {
        let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
        within(resources, "requests", |requests| {
            for (name, quantity) in limits {
                requests.entry(name).or_insert(quantity);
            }
        });
    });
}

/// Every Pod bears with a lost node for a while.
fn tolerations(spec: &mut Fields) {
    set(spec, "tolerations", json!([]));
    let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let field = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or("");
            matches!(field("key"), "") && field("operator") == "Exists" && matches!(field("effect"), "" | "NoExecute")
                || field("key") == key && matches!(field("effect"), "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// How the node treats the Pod when it runs short: by what its containers request and are limited to.
fn quality_of_service(spec: &Fields) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for list in ["containers", "initContainers"] {
        for container in spec.get(list).and_then(Value::as_array).into_iter().flatten() {
            for resource in ["cpu", "memory"] {
                let amount = |kind: &str| {
                    let amount = container.get("resources")?.get(kind)?.get(resource)?;
                    quantity::parse(amount).filter(|amount| *amount > 0.0)
                };
                let (request, limit) = (amount("requests"), amount("limits"));
                any |= request.is_some() || limit.is_some();
                guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// `podIP` and the first of `podIPs` are the same.
fn addresses(status: &mut Fields) {
    let one = text(status, "podIP").to_owned();
    let first = status.get("podIPs").and_then(|ips| ips.get(0)).and_then(|ip| ip.get("ip")).and_then(Value::as_str);
    let first = first.unwrap_or("").to_owned();
    if !one.is_empty() && one != first {
        status.insert("podIPs".to_owned(), json!([{"ip": one}]));
    } else if one.is_empty() && !first.is_empty() {
        status.insert("podIP".to_owned(), json!(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fixed_tag_or_digest_is_pulled_once() {
        for image in ["nginx", "nginx:latest", "host:5000/nginx", "host:5000/a/b:latest"] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
        for image in ["nginx:1.2", "host:5000/nginx:v1", "nginx@sha256:00"] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }
}
