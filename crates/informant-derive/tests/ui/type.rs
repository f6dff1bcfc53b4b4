use std::collections::BTreeMap;
use std::sync::Arc;

use informant_derive::Projection;

#[derive(Projection)]
#[projection(api_version = "apps/v1", kind = "Deployment")]
struct Types {
    #[projection(path = "spec.replicas")]
    replicas: String,
    #[projection(path = "spec.paused")]
    paused: Option<i32>,
    #[projection(path = "metadata.labels")]
    labels: Vec<Arc<str>>,
    #[projection(path = "metadata.annotations")]
    annotations: BTreeMap<String, u8>,
    #[projection(path = "spec.template.spec.containers[*].image")]
    image: Option<Arc<str>>,
    #[projection(path = "spec.template.spec.containers[*].ports[*].containerPort")]
    ports: Vec<String>,
    #[projection(path = "spec.strategy.rollingUpdate.maxSurge")]
    surge: Option<u32>,
    #[projection(path = "metadata.creationTimestamp")]
    created: u64,
    #[projection(path = "spec.selector")]
    selector: BTreeMap<String, String>,
    #[projection(path = "spec.replicas")]
    right: Option<i32>,
}

fn main() {}
