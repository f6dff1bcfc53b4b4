//! The defaults of Services and network policies. Addresses and node ports are handed out by the registry.

use serde_json::{Value, json};

use super::{Fields, each, inside, set, text, within};

/// How long clients stick to an endpoint.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn service(root: &mut Fields) {
    inside(root, "spec", spec);
    within(root, "status", |status| set(status, "loadBalancer", json!({})));
}

fn spec(spec: &mut Fields) {
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => within(spec, "sessionAffinityConfig", |config| {
            within(config, "clientIP", |client| set(client, "timeoutSeconds", json!(AFFINITY_SECONDS)));
        }),
        _ => {}
    }
    each(spec, "ports", |port| {
        set(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or(json!(0));
        // A target port of zero means the port itself.
        if port.get("targetPort").and_then(Value::as_i64) == Some(0) {
            port.remove("targetPort");
        }
        set(port, "targetPort", number);
    });
    let kind = text(spec, "type").to_owned();
    let has_cluster_ip = matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer");
    let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP"
            && spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty()));
    if external {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if has_cluster_ip {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
        // Without a selector nobody but its owner knows what a headless Service leads to.
        let open = text(spec, "clusterIP") == "None"
            && spec.get("selector").and_then(Value::as_object).is_none_or(Fields::is_empty);
        let (policy, families) =
            if open { ("RequireDualStack", json!(["IPv4", "IPv6"])) } else { ("SingleStack", json!(["IPv4"])) };
        set(spec, "ipFamilyPolicy", json!(policy));
        set(spec, "ipFamilies", families);
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

pub(super) fn network_policy(spec: &mut Fields) {
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| each(rule, "ports", |port| set(port, "protocol", json!("TCP"))));
    }
    let has_egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}
