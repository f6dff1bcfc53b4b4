//! The MyApp kind: `myapp.example.com/v1`.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, Resource};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a MyApp asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "myapp.example.com",
    version = "v1",
    kind = "MyApp",
    namespaced,
    status = "MyAppStatus",
    shortname = "ma"
)]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.availableReplicas"))]
#[kube(printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image"}"#)]
#[kube(printcolumn = r#"{"name":"Available","type":"integer","jsonPath":".status.availableReplicas"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
pub struct MyAppSpec {
    /// The container image to run.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many copies of it.
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// The port that it listens on, and that its Service offers.
    #[serde(default = "default_port")]
    #[schemars(range(min = 80, max = 65535))]
    pub port: i32,
}

/// What is there of it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MyAppStatus {
    /// Copies that take requests.
    #[serde(default)]
    pub available_replicas: i32,
    /// `Ready` is true when all copies are available.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

fn default_port() -> i32 {
    80
}

/// What `kube::Api::namespaced` asks of a kind, under one name.
pub trait Namespaced:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned
{
}

impl<K> Namespaced for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned
{
}
