//! On the embedded server nothing runs Pods. Two small controllers play the deployment controller and the kubelet there.
//!
//! They skip what the demo doesn't show: ReplicaSets, rolling updates, scheduling. On a real cluster they don't run.

use std::sync::Arc;

use informant::cache::Scope;
use informant::controller::{ReconcileError, Request, controller_reference};
use informant::prelude::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::api::Namespaced;

/// Who the two are in `managedFields`.
const MANAGER: &str = "demo-kubelet";

struct Played {
    client: Client,
    deployments: Lister<Deployment>,
    pods: Lister<Pod>,
    pods_by_owner: informant::cache::Index<Pod, String>,
}

/// The two controllers, over the informers of `factory`.
pub fn controllers(client: Client, factory: &InformerFactory, scope: &Scope) -> [Controller; 2] {
    let deployments = factory.informer::<Deployment>().scope(scope.clone()).full();
    let pods = factory.informer::<Pod>().scope(scope.clone()).full();
    let played = Arc::new(Played {
        client,
        deployments: deployments.lister(),
        pods: pods.lister(),
        pods_by_owner: pods.index("owner", |pod: &Pod| {
            pod.owner_references().iter().map(|owner| owner.uid.clone()).collect::<Vec<_>>()
        }),
    });
    [
        Controller::of_informer("played-deployment-controller", &deployments)
            .owns_informer(&pods)
            .reconcile(Arc::clone(&played), reconcile_deployment),
        Controller::of_informer("played-kubelet", &pods).reconcile(played, reconcile_pod),
    ]
}

/// As many Pods as the Deployment asks for, and their number in its status.
async fn reconcile_deployment(played: Arc<Played>, request: Request) -> Result<Action, ReconcileError> {
    let Some(deployment) = played.deployments.get(&request.key) else { return Ok(Action::done()) };
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let (namespace, name) = (request.key.namespace().unwrap_or_default(), request.key.name());
    let wanted = deployment.spec.replicas.unwrap_or(1).max(0);
    for number in 0..wanted {
        let pod = format!("{name}-{number}");
        if !played.pods.contains(&ObjectKey::namespaced(namespace, &pod)) {
            played.apply::<Pod>(namespace, &pod, pod_of(&deployment, &pod)?, false).await?;
        }
    }
    let mine = played.pods_by_owner.get(&deployment.uid().unwrap_or_default());
    for pod in &mine {
        let number = pod.name_any().rsplit_once('-').and_then(|(_, number)| number.parse::<i32>().ok());
        if number.is_none_or(|number| number >= wanted) {
            played.delete_pod(namespace, &pod.name_any()).await?;
        }
    }
    let ready = i32::try_from(mine.iter().filter(|pod| is_ready(pod)).count()).unwrap_or(i32::MAX).min(wanted);
    played.apply::<Deployment>(namespace, name, deployment_status(&deployment, wanted, ready), true).await?;
    Ok(Action::done())
}

/// A Pod that isn't running yet starts running.
async fn reconcile_pod(played: Arc<Played>, request: Request) -> Result<Action, ReconcileError> {
    let Some(pod) = played.pods.get(&request.key) else { return Ok(Action::done()) };
    if is_ready(&pod) || pod.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let namespace = request.key.namespace().unwrap_or_default();
    played.apply::<Pod>(namespace, request.key.name(), pod_status(&pod), true).await?;
    Ok(Action::done())
}

impl Played {
    async fn apply<K: Namespaced>(
        &self,
        namespace: &str,
        name: &str,
        object: Value,
        status: bool,
    ) -> Result<(), kube::Error> {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        let (params, patch) = (PatchParams::apply(MANAGER).force(), Patch::Apply(object));
        let applied =
            if status { api.patch_status(name, &params, &patch).await } else { api.patch(name, &params, &patch).await };
        applied.map(drop)
    }

    async fn delete_pod(&self, namespace: &str, name: &str) -> Result<(), kube::Error> {
        match Api::<Pod>::namespaced(self.client.clone(), namespace).delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn pod_of(deployment: &Deployment, name: &str) -> Result<Value, ReconcileError> {
    let template = &deployment.spec.template;
    let labels = template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    Ok(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [controller_reference(deployment)?]},
        "spec": template.spec,
    }))
}

fn pod_status(pod: &Pod) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({"name": container.name, "image": container.image, "imageID": "", "ready": true, "started": true, "restartCount": 0,
                "state": {"running": {"startedAt": pod.metadata.creation_timestamp}}})
        })
        .collect();
    let condition =
        |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": pod.metadata.creation_timestamp});
    let conditions: Vec<Value> = ["Initialized", "PodScheduled", "ContainersReady", "Ready"].map(condition).into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "status": {"phase": "Running", "startTime": pod.metadata.creation_timestamp, "conditions": conditions, "containerStatuses": statuses},
    })
}

fn deployment_status(deployment: &Deployment, wanted: i32, ready: i32) -> Value {
    let is_available = if ready >= wanted { "True" } else { "False" };
    let available = json!({"type": "Available", "status": is_available, "reason": "PlayedByTheDemo",
        "message": format!("{ready} of {wanted} Pods are ready")});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "status": {"observedGeneration": deployment.metadata.generation, "replicas": wanted, "updatedReplicas": wanted,
            "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": wanted - ready, "conditions": [available]},
    })
}
