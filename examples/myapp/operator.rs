//! The MyApp operator: a Deployment and a Service for each MyApp, and a status that says whether it's ready.

use std::sync::Arc;

use informant::controller::{ReconcileError, Request, condition, controller_reference, now, set_condition};
use informant::prelude::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::api::{MyApp, MyAppSpec, Namespaced};

/// Keeps a MyApp until its children are deleted.
const FINALIZER: &str = "myapp.example.com/cleanup";
/// Who the operator is in `managedFields`.
const MANAGER: &str = "myapp-operator";

/// What a reconcile needs: a client to write with, and caches to read from.
struct Operator {
    client: Client,
    apps: Lister<MyApp>,
    deployments: Lister<Deployment>,
}

/// The operator's controller over the informers of `factory`, in the namespaces of `scope`.
pub fn controller(client: Client, factory: &InformerFactory, scope: &Scope) -> Controller {
    let apps = factory.informer::<MyApp>().scope(scope.clone()).full();
    let deployments = factory.informer::<Deployment>().scope(scope.clone()).full();
    let services = factory.informer::<Service>().scope(scope.clone()).full();
    let operator = Operator { client, apps: apps.lister(), deployments: deployments.lister() };
    Controller::of_informer("myapp", &apps)
        .owns_informer(&deployments)
        .owns_informer(&services)
        .workers(2)
        .reconcile(Arc::new(operator), reconcile)
}

async fn reconcile(operator: Arc<Operator>, request: Request) -> Result<Action, ReconcileError> {
    // From the cache, no request. Gone means that its finalizer has done its work.
    let Some(app) = operator.apps.get(&request.key) else { return Ok(Action::done()) };
    let (namespace, name) = (request.key.namespace().unwrap_or_default(), request.key.name());
    if app.metadata.deletion_timestamp.is_some() {
        operator.delete::<Service>(namespace, name).await?;
        operator.delete::<Deployment>(namespace, name).await?;
        operator.apply::<MyApp>(namespace, name, finalizers(&app, &[])).await?;
        return Ok(Action::done());
    }
    operator.apply::<MyApp>(namespace, name, finalizers(&app, &[FINALIZER])).await?;
    let owner = json!([controller_reference(&*app)?]);
    operator.apply::<Deployment>(namespace, name, deployment(&app.spec, name, &owner)).await?;
    operator.apply::<Service>(namespace, name, service(&app.spec, name, &owner)).await?;
    operator.write_status(&app, namespace, &request.key).await?;
    Ok(Action::done())
}

impl Operator {
    /// Server-side apply: a write that changes nothing is no event, so this may run as often as it likes.
    async fn apply<K: Namespaced>(&self, namespace: &str, name: &str, object: Value) -> Result<(), kube::Error> {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await.map(drop)
    }

    async fn write_status(&self, app: &MyApp, namespace: &str, key: &ObjectKey) -> Result<(), kube::Error> {
        let observed = self.deployments.get(key).and_then(|deployment| deployment.status.clone()).unwrap_or_default();
        let available = observed.available_replicas.unwrap_or(0);
        let (is_ready, reason) =
            if available >= app.spec.replicas { ("True", "Available") } else { ("False", "Progressing") };
        let message = format!("{available} of {} replicas are available", app.spec.replicas);
        let mut status = app.status.clone().unwrap_or_default();
        status.available_replicas = available;
        set_condition(
            &mut status.conditions,
            condition("Ready", is_ready, reason, message, app.metadata.generation),
            now(),
        );
        let body = json!({"apiVersion": MyApp::api_version(&()), "kind": MyApp::kind(&()), "status": status});
        let api = Api::<MyApp>::namespaced(self.client.clone(), namespace);
        api.patch_status(key.name(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(body)).await.map(drop)
    }

    /// What somebody else has deleted already is as it should be.
    async fn delete<K: Namespaced>(&self, namespace: &str, name: &str) -> Result<(), kube::Error> {
        match Api::<K>::namespaced(self.client.clone(), namespace).delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }
}

/// The operator's own finalizers: those that it lists no more are removed, those of others stay.
fn finalizers(app: &MyApp, names: &[&str]) -> Value {
    let metadata = json!({"uid": app.metadata.uid, "finalizers": names});
    json!({"apiVersion": MyApp::api_version(&()), "kind": MyApp::kind(&()), "metadata": metadata})
}

fn deployment(spec: &MyAppSpec, name: &str, owner: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": MANAGER});
    let container =
        json!({"name": "app", "image": spec.image, "ports": [{"name": "http", "containerPort": spec.port}]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}

fn service(spec: &MyAppSpec, name: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "ownerReferences": owner},
        "spec": {
            "selector": {"app.kubernetes.io/name": name},
            "ports": [{"name": "http", "port": spec.port, "targetPort": "http"}],
        },
    })
}
