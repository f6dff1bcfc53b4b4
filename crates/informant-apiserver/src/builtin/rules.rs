//! The rules in which built-in kinds differ from each other, by hand: no document of a server states them.
//!
//! They were tried out on a real server. A kind that isn't named here has a plain life cycle and no generation.

use crate::resource::{GenerationRule, Rules};

/// The rules of one built-in resource.
pub(super) fn of(group: &str, plural: &str) -> Rules {
    Rules {
        generation: generation(group, plural),
        unconditional_update: !needs_resource_version(group, plural),
        create_on_update: creates_on_update(group, plural),
        returns_deleted_object: returns_deleted_object(group, plural),
        graceful: (group, plural) == ("", "pods"),
        virtual_only: is_virtual(group, plural),
        keeps_status_on_create: (group, plural) == ("", "nodes"),
    }
}

fn generation(group: &str, plural: &str) -> GenerationRule {
    match (group, plural) {
        ("apps", "deployments") => GenerationRule::SpecOrAnnotations,
        // PriorityClasses have no spec: their generation stays 1.
        ("", "pods" | "replicationcontrollers")
        | ("apps", "daemonsets" | "replicasets" | "statefulsets")
        | ("autoscaling", "horizontalpodautoscalers")
        | ("batch", "cronjobs" | "jobs")
        | ("networking.k8s.io", "ingressclasses" | "ingresses" | "networkpolicies")
        | ("policy", "poddisruptionbudgets")
        | ("scheduling.k8s.io", "priorityclasses")
        | ("resource.k8s.io", "deviceclasses" | "devicetaintrules" | "resourceslices")
        | ("flowcontrol.apiserver.k8s.io", "flowschemas" | "prioritylevelconfigurations")
        | ("apiextensions.k8s.io", "customresourcedefinitions")
        | (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicies"
            | "mutatingadmissionpolicybindings"
            | "validatingadmissionpolicies"
            | "validatingadmissionpolicybindings",
        ) => GenerationRule::Spec,
        ("", "podtemplates")
        | ("discovery.k8s.io", "endpointslices")
        | ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            GenerationRule::OutsideMetadata
        }
        _ => GenerationRule::None,
    }
}

fn needs_resource_version(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        (
            "admissionregistration.k8s.io"
                | "apiextensions.k8s.io"
                | "apiregistration.k8s.io"
                | "storagemigration.k8s.io",
            _
        ) | ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests")
            | ("coordination.k8s.io", "leases")
            | ("node.k8s.io", "runtimeclasses")
            | ("policy", "poddisruptionbudgets")
            | ("storage.k8s.io", "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments")
    )
}

fn creates_on_update(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("", "endpoints" | "events" | "limitranges" | "services")
            | ("events.k8s.io", "events")
            | ("coordination.k8s.io", "leases")
            | ("node.k8s.io", "runtimeclasses")
            | ("rbac.authorization.k8s.io", _)
    )
}

fn returns_deleted_object(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        (
            "",
            "namespaces"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "serviceaccounts"
                | "services"
        ) | ("resource.k8s.io", "deviceclasses" | "resourceclaims" | "resourceclaimtemplates" | "resourceslices")
            | (
                "storage.k8s.io",
                "csidrivers" | "csinodes" | "storageclasses" | "volumeattachments" | "volumeattributesclasses"
            )
    )
}

/// Reviews and bindings are answered, component statuses are made up: none of them is stored.
fn is_virtual(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("authentication.k8s.io" | "authorization.k8s.io", _) | ("", "bindings" | "componentstatuses")
    )
}
