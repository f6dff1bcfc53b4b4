//! The rules of Services and of the network kinds.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{At, label_map, label_selector};
use crate::name_rules::{dns1123_label, dns1123_subdomain};
use crate::status::Cause;

const NOT_AN_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn check(plural: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    match plural {
        "ingresses" => at.with("spec", |spec| ingress(spec, causes)),
        "ingressclasses" => at.with("spec", |spec| {
            spec.required("controller", causes);
        }),
        "networkpolicies" => at.with("spec", |spec| {
            label_selector(spec, "podSelector", causes);
            spec.each("policyTypes", |_, one| {
                if !matches!(one.value.as_str(), Some("Ingress" | "Egress")) {
                    let supported = [json!("Ingress"), json!("Egress")];
                    causes.push(Cause::not_supported(one.here(), one.value, &supported));
                }
            });
        }),
        "endpointslices" => {
            if at.required("addressType", causes) {
                at.one_of("addressType", &["FQDN", "IPv4", "IPv6"], causes);
            }
            at.each("endpoints", |_, one| {
                one.required("addresses", causes);
            });
        }
        _ => {}
    }
}

pub(super) fn service(spec: At<'_>, causes: &mut Vec<Cause>) {
    let kind = spec.text("type");
    let headless = spec.text("clusterIP") == "None";
    if kind == "ExternalName" {
        if spec.required("externalName", causes) {
            spec.named("externalName", dns1123_subdomain, causes);
        }
    } else if !headless {
        spec.required("ports", causes);
    }
    service_ports(spec, kind, causes);
    label_map(spec, "selector", causes);
    spec.one_of("sessionAffinity", &["ClientIP", "None"], causes);
    spec.one_of("type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], causes);
    let ip = spec.text("clusterIP");
    if !matches!(ip, "" | "None") && ip.parse::<IpAddr>().is_err() {
        causes.push(Cause::invalid(format!("{}[0]", spec.place("clusterIPs")), &json!(ip), NOT_AN_IP));
    }
    let external = matches!(kind, "NodePort" | "LoadBalancer") || spec.count("externalIPs") > 0;
    if !external && !spec.text("externalTrafficPolicy").is_empty() {
        let why = "may only be set for externally-accessible services";
        causes.push(Cause::invalid(spec.place("externalTrafficPolicy"), spec.get("externalTrafficPolicy"), why));
    } else {
        spec.one_of("externalTrafficPolicy", &["Cluster", "Local"], causes);
    }
    spec.one_of("internalTrafficPolicy", &["Cluster", "Local"], causes);
}

fn service_ports(spec: At<'_>, kind: &str, causes: &mut Vec<Cause>) {
    let many = spec.count("ports") > 1;
    let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
    spec.each("ports", |_, at| {
        let name = at.text("name");
        if name.is_empty() {
            if many {
                causes.push(Cause::required(at.place("name"), ""));
            }
        } else {
            match dns1123_label(name) {
                Some(why) => causes.push(Cause::invalid(at.place("name"), &json!(name), why)),
                None if !names.insert(name.to_owned()) => {
                    causes.push(Cause::duplicate(at.place("name"), &json!(name)));
                }
                None => {}
            }
        }
        at.port("port", causes);
        at.port("targetPort", causes);
        at.one_of("protocol", PROTOCOLS, causes);
        let node_port = at.integer("nodePort").unwrap_or(0);
        if node_port != 0 && kind == "ClusterIP" {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(at.place("nodePort"), why));
        }
        if !numbers.insert((at.integer("port"), at.text("protocol").to_owned())) && names.len() + 1 > numbers.len() {
            causes.push(Cause::duplicate(at.here(), at.value));
        }
    });
}

pub(super) fn endpoints(at: At<'_>, causes: &mut Vec<Cause>) {
    at.each("subsets", |_, subset| {
        for list in ["addresses", "notReadyAddresses"] {
            subset.each(list, |_, address| {
                if address.text("ip").parse::<IpAddr>().is_err() {
                    for why in [NOT_AN_IP, "must be a valid IP address"] {
                        causes.push(Cause::invalid(address.place("ip"), address.get("ip"), why));
                    }
                }
            });
        }
        subset.each("ports", |_, port| port.port("port", causes));
    });
}

fn ingress(spec: At<'_>, causes: &mut Vec<Cause>) {
    if spec.count("rules") == 0 && spec.get("defaultBackend").is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid(spec.here(), &Value::Null, why));
    }
    spec.if_there("defaultBackend", |at| backend(at, causes));
    spec.each("rules", |_, rule| {
        rule.if_there("http", |http| {
            http.required("paths", causes);
            http.each("paths", |_, path| {
                let kind = path.text("pathType");
                if kind.is_empty() {
                    causes.push(Cause::required(path.place("pathType"), "pathType must be specified"));
                    return;
                }
                path.one_of("pathType", &["Exact", "ImplementationSpecific", "Prefix"], causes);
                let text = path.text("path");
                if matches!(kind, "Exact" | "Prefix") && !text.starts_with('/') {
                    causes.push(Cause::invalid(path.place("path"), &json!(text), "must be an absolute path"));
                }
                path.with("backend", |at| backend(at, causes));
            });
        });
    });
}

fn backend(at: At<'_>, causes: &mut Vec<Cause>) {
    let (service, resource) = (at.get("service"), at.get("resource"));
    match (service.is_null(), resource.is_null()) {
        (true, true) => {
            causes.push(Cause::invalid(at.here(), &json!(""), "resource or service backend is required"));
        }
        (false, false) => {
            causes.push(Cause::invalid(at.here(), &json!(""), "cannot set both resource and service backends"));
        }
        (false, true) => at.with("service", |service| {
            service.required("name", causes);
            service.with("port", |port| {
                if port.text("name").is_empty() && port.integer("number").unwrap_or(0) == 0 {
                    causes.push(Cause::required(port.here(), "port name or number is required"));
                }
            });
        }),
        (true, false) => {}
    }
}
