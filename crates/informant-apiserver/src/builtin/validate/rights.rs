//! The rules of roles and bindings.

use serde_json::json;

use super::{At, not_supported};
use crate::status::Cause;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn check(plural: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    match plural {
        "roles" => at.each("rules", |_, one| rule(one, true, causes)),
        "clusterroles" => at.each("rules", |_, one| rule(one, false, causes)),
        "rolebindings" => binding(at, &["Role", "ClusterRole"], causes),
        "clusterrolebindings" => binding(at, &["ClusterRole"], causes),
        _ => {}
    }
}

fn rule(at: At<'_>, namespaced: bool, causes: &mut Vec<Cause>) {
    at.required("verbs", causes);
    if at.count("nonResourceURLs") > 0 {
        let about_resources = ["apiGroups", "resources", "resourceNames"].into_iter().any(|name| at.count(name) > 0);
        let why = if namespaced {
            "namespaced rules cannot apply to non-resource URLs"
        } else if about_resources {
            "rules cannot apply to both regular resources and non-resource URLs"
        } else {
            return;
        };
        causes.push(Cause::invalid(at.place("nonResourceURLs"), at.get("nonResourceURLs"), why));
        return;
    }
    if at.count("apiGroups") == 0 {
        causes.push(Cause::required(at.place("apiGroups"), "resource rules must supply at least one api group"));
    }
    if at.count("resources") == 0 {
        causes.push(Cause::required(at.place("resources"), "resource rules must supply at least one resource"));
    }
}

fn binding(at: At<'_>, kinds: &[&str], causes: &mut Vec<Cause>) {
    at.with("roleRef", |role| {
        // A role reference that isn't there at all has got no group either.
        if !matches!(role.text("apiGroup"), GROUP | "") {
            causes.push(not_supported(role.place("apiGroup"), role.text("apiGroup"), &[GROUP]));
        }
        if !kinds.contains(&role.text("kind")) {
            causes.push(not_supported(role.place("kind"), role.text("kind"), kinds));
        }
        role.required("name", causes);
    });
    let needs_namespace = kinds.len() == 1;
    at.each("subjects", |_, subject| {
        subject.required("name", causes);
        match subject.text("kind") {
            "ServiceAccount" => {
                if !subject.text("apiGroup").is_empty() {
                    causes.push(not_supported(subject.place("apiGroup"), subject.text("apiGroup"), &[""]));
                }
                if needs_namespace && subject.text("namespace").is_empty() {
                    causes.push(Cause::required(subject.place("namespace"), ""));
                }
            }
            "User" | "Group" => {
                if subject.text("apiGroup") != GROUP {
                    causes.push(not_supported(subject.place("apiGroup"), subject.text("apiGroup"), &[GROUP]));
                }
            }
            other => {
                let supported = ["ServiceAccount", "User", "Group"].map(|kind| json!(kind));
                causes.push(Cause::not_supported(subject.place("kind"), &json!(other), &supported));
            }
        }
    });
}
