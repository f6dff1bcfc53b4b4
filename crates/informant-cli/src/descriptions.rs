//! Descriptions of the built-in kinds' fields, for `kubectl explain`.
//!
//! They come from k8s-openapi's `schemars` feature. The server crate itself knows the fields but not the prose, and must
//! not depend on k8s-openapi, whose version features would clash with its user's.

use std::collections::BTreeMap;

use informant::apiserver::{Description, Descriptions};
use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// Adds the listed kinds, and all that they refer to, to a generator.
macro_rules! describe {
    ($generator:ident, $($module:ident)::+ { $($kind:ident),+ $(,)? }) => {{
        use $($module)::+ as module;
        $( $generator.subschema_for::<module::$kind>(); )+
    }};
}

/// The texts of the built-in kinds, made a group version at a time when they are asked for: a few tens of milliseconds each.
pub fn of_built_in_kinds() -> Descriptions {
    Descriptions::by_group_version(|group_version| {
        schemas(group_version).into_iter().map(|(name, schema)| (name, description(&schema))).collect()
    })
}

/// The texts in a JSON schema of an object.
fn description(schema: &Value) -> Description {
    let text = |node: &Value| node.get("description").and_then(Value::as_str).map(str::to_owned);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields: BTreeMap<String, String> =
        properties.filter_map(|(field, node)| Some((field.clone(), text(node)?))).collect();
    Description { text: text(schema).unwrap_or_default(), fields }
}

/// JSON schemas by definition name for one group version (`apps/v1`, or `v1` for the core group), in which each node's
/// `description` is the text. Empty for a group version that isn't known here.
fn schemas(group_version: &str) -> Map<String, Value> {
    let mut generator = SchemaGenerator::default();
    let g = &mut generator;
    match group_version {
        "v1" => describe!(
            g,
            api::core::v1 {
                Binding,
                ComponentStatus,
                ConfigMap,
                Endpoints,
                Event,
                LimitRange,
                Namespace,
                Node,
                PersistentVolume,
                PersistentVolumeClaim,
                Pod,
                PodTemplate,
                ReplicationController,
                ResourceQuota,
                Secret,
                Service,
                ServiceAccount,
            }
        ),
        "admissionregistration.k8s.io/v1" => describe!(
            g,
            api::admissionregistration::v1 {
                MutatingAdmissionPolicy,
                MutatingAdmissionPolicyBinding,
                MutatingWebhookConfiguration,
                ValidatingAdmissionPolicy,
                ValidatingAdmissionPolicyBinding,
                ValidatingWebhookConfiguration,
            }
        ),
        "apiextensions.k8s.io/v1" => describe!(g, apiextensions::v1 { CustomResourceDefinition }),
        "apiregistration.k8s.io/v1" => describe!(g, apiregistration::v1 { APIService }),
        "apps/v1" => describe!(g, api::apps::v1 { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet }),
        "authentication.k8s.io/v1" => {
            describe!(g, api::authentication::v1 { SelfSubjectReview, TokenRequest, TokenReview });
        }
        "authorization.k8s.io/v1" => describe!(
            g,
            api::authorization::v1 {
                LocalSubjectAccessReview,
                SelfSubjectAccessReview,
                SelfSubjectRulesReview,
                SubjectAccessReview,
            }
        ),
        "autoscaling/v1" => describe!(g, api::autoscaling::v1 { HorizontalPodAutoscaler, Scale }),
        "autoscaling/v2" => describe!(g, api::autoscaling::v2 { HorizontalPodAutoscaler }),
        "batch/v1" => describe!(g, api::batch::v1 { CronJob, Job }),
        "certificates.k8s.io/v1" => {
            describe!(g, api::certificates::v1 { CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest })
        }
        "coordination.k8s.io/v1" => describe!(g, api::coordination::v1 { Lease }),
        "discovery.k8s.io/v1" => describe!(g, api::discovery::v1 { EndpointSlice }),
        "events.k8s.io/v1" => describe!(g, api::events::v1 { Event }),
        "flowcontrol.apiserver.k8s.io/v1" => {
            describe!(g, api::flowcontrol::v1 { FlowSchema, PriorityLevelConfiguration });
        }
        "networking.k8s.io/v1" => {
            describe!(g, api::networking::v1 { IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR })
        }
        "node.k8s.io/v1" => describe!(g, api::node::v1 { RuntimeClass }),
        "policy/v1" => describe!(g, api::policy::v1 { Eviction, PodDisruptionBudget }),
        "rbac.authorization.k8s.io/v1" => {
            describe!(g, api::rbac::v1 { ClusterRole, ClusterRoleBinding, Role, RoleBinding });
        }
        "resource.k8s.io/v1" => describe!(
            g,
            api::resource::v1 { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
        ),
        "scheduling.k8s.io/v1" => describe!(g, api::scheduling::v1 { PriorityClass }),
        "storage.k8s.io/v1" => describe!(
            g,
            api::storage::v1 {
                CSIDriver,
                CSINode,
                CSIStorageCapacity,
                StorageClass,
                VolumeAttachment,
                VolumeAttributesClass,
            }
        ),
        "storagemigration.k8s.io/v1" => describe!(g, api::storagemigration::v1 { StorageVersionMigration }),
        _ => {}
    }
    generator.take_definitions(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_deployment_has_its_text() {
        let spec = description(&schemas("apps/v1")["io.k8s.api.apps.v1.DeploymentSpec"]);
        assert!(spec.text.contains("desired behavior"), "{}", spec.text);
        assert!(spec.fields["replicas"].contains("desired pods"), "{}", spec.fields["replicas"]);
    }

    #[test]
    fn an_unknown_group_version_has_none() {
        assert!(schemas("shop.example.org/v1").is_empty());
    }
}
