//! Where the demo plays: an embedded server of its own, or a namespace on a cluster of yours.

use std::time::Duration;

use informant::apiserver::{ListenOptions, Listening};
use informant::cache::Scope;
use informant::prelude::*;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use super::api::MyApp;
use super::narrator::tell;
use crate::args::DemoArgs;
use crate::commands::apiserver::{KubeconfigFile, server, write_kubeconfig};
use crate::connect;
use crate::output::{Error, chain};

/// The demo's namespace on a real cluster.
const NAMESPACE: &str = "informant-demo";
/// Who the demo is in `managedFields`.
const MANAGER: &str = "informant-demo";
/// The samples, as they stand in the examples.
const SAMPLES: &str = include_str!("../../../../../examples/myapp/samples.yaml");
/// How long a CRD may take to be established, and how often it's looked at.
const ESTABLISH: (Duration, Duration) = (Duration::from_secs(30), Duration::from_millis(50));
/// How long the removal of the namespace is waited for.
const REMOVAL: Duration = Duration::from_secs(60);

/// A place to play at.
pub struct Stage {
    cluster: Cluster,
    namespace: String,
    kind: Kind,
}

enum Kind {
    /// The server is ours; the kubeconfig file is there for as long as it runs.
    Embedded { listening: Listening, _kubeconfig: KubeconfigFile },
    /// The cluster is the user's: what we made is removed at the end, unless it's kept.
    Cluster { keep: bool, made_namespace: bool, made_crd: bool },
}

impl Stage {
    /// Starts the embedded server, or prepares the namespace on the cluster, and applies the CRD.
    pub async fn open(args: &DemoArgs) -> Result<Self, Error> {
        let mut stage = match &args.kubeconfig {
            None => Self::embedded().await?,
            Some(file) => Self::cluster_of(file, args.keep).await?,
        };
        stage.apply_crd().await?;
        Ok(stage)
    }

    async fn embedded() -> Result<Self, Error> {
        let listening = server().listen(ListenOptions::default()).await?;
        let kubeconfig = write_kubeconfig(None, &listening.kubeconfig())?;
        tell(&format!("embedded API server at {}", listening.url()));
        tell(&format!("look into it: kubectl --kubeconfig {} get all", kubeconfig.path.display()));
        tell("nothing runs Pods here: the demo plays the deployment controller and the kubelet");
        let cluster = Cluster::from_kubeconfig_file(&kubeconfig.path).await?;
        Ok(Self {
            cluster,
            namespace: "default".to_owned(),
            kind: Kind::Embedded { listening, _kubeconfig: kubeconfig },
        })
    }

    async fn cluster_of(file: &std::path::Path, keep: bool) -> Result<Self, Error> {
        let cluster = connect::cluster(Some(file), None).await?;
        let namespaces = Api::<Namespace>::all(cluster.client());
        let there = namespaces
            .get_opt(NAMESPACE)
            .await
            .map_err(|error| format!("the cluster of {} can't be reached: {}", file.display(), chain(&error)))?;
        if there.as_ref().is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
            return Err(format!("namespace {NAMESPACE} is still being removed: try again when it has gone").into());
        }
        let made_namespace = there.is_none();
        let stage = Self {
            cluster,
            namespace: NAMESPACE.to_owned(),
            kind: Kind::Cluster { keep, made_namespace, made_crd: false },
        };
        if made_namespace {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            namespaces.patch(NAMESPACE, &PatchParams::apply(MANAGER), &Patch::Apply(namespace)).await?;
            tell(&format!("namespace {NAMESPACE} made"));
        }
        Ok(stage)
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// What the operator watches: the demo's namespace on a cluster of yours, everything on the embedded server.
    pub fn scope(&self) -> Scope {
        match self.kind {
            Kind::Embedded { .. } => Scope::all(),
            Kind::Cluster { .. } => Scope::namespaced(&self.namespace),
        }
    }

    /// Whether nobody else runs Pods here.
    pub fn plays_kubelet(&self) -> bool {
        matches!(self.kind, Kind::Embedded { .. })
    }

    async fn apply_crd(&mut self) -> Result<(), Error> {
        let crds = Api::<CustomResourceDefinition>::all(self.cluster.client());
        let crd = MyApp::crd();
        let name = crd.name_any();
        if let Kind::Cluster { made_crd, .. } = &mut self.kind {
            *made_crd = crds.get_opt(&name).await?.is_none();
        }
        crds.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(crd)).await?;
        let (limit, interval) = ESTABLISH;
        let established = async {
            while !crds.get(&name).await?.status.is_some_and(|status| {
                status
                    .conditions
                    .iter()
                    .flatten()
                    .any(|condition| condition.type_ == "Established" && condition.status == "True")
            }) {
                tokio::time::sleep(interval).await;
            }
            Ok::<(), kube::Error>(())
        };
        match tokio::time::timeout(limit, established).await {
            Ok(established) => established?,
            Err(_) => {
                return Err(
                    format!("CRD {name} isn't established after {} s: see its conditions", limit.as_secs()).into()
                );
            }
        }
        tell(&format!("CRD {name} is established"));
        Ok(())
    }

    /// Applies the samples and gives their keys.
    pub async fn apply_samples(&self) -> Result<Vec<ObjectKey>, Error> {
        let apps = Api::<MyApp>::namespaced(self.cluster.client(), &self.namespace);
        let mut keys = Vec::new();
        for sample in serde_saphyr::from_multiple::<MyApp>(SAMPLES)? {
            let name = sample.name_any();
            apps.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(sample)).await?;
            keys.push(ObjectKey::namespaced(&self.namespace, &name));
        }
        Ok(keys)
    }

    /// Ends the server, or removes from the cluster what the demo made there.
    pub async fn close(self) -> Result<(), Error> {
        let (keep, made_namespace, made_crd) = match self.kind {
            Kind::Embedded { listening, .. } => {
                listening.shutdown().await;
                return Ok(());
            }
            Kind::Cluster { keep, made_namespace, made_crd } => (keep, made_namespace, made_crd),
        };
        if keep {
            tell(&format!("namespace {NAMESPACE} and the CRD are kept"));
            return Ok(());
        }
        let client = self.cluster.client();
        release_samples(&client, &self.namespace).await?;
        if made_crd {
            let crds = Api::<CustomResourceDefinition>::all(client.clone());
            crds.delete(&MyApp::crd().name_any(), &DeleteParams::background()).await?;
        }
        if made_namespace {
            remove_namespace(&client).await?;
        }
        Ok(())
    }
}

/// Deletes the MyApps; nobody runs the operator now, so its finalizer is taken away here.
async fn release_samples(client: &kube::Client, namespace: &str) -> Result<(), Error> {
    let apps = Api::<MyApp>::namespaced(client.clone(), namespace);
    let no_finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for app in apps.list(&Default::default()).await? {
        let name = app.name_any();
        apps.delete(&name, &DeleteParams::background()).await?;
        match apps.patch(&name, &PatchParams::default(), &no_finalizers).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

async fn remove_namespace(client: &kube::Client) -> Result<(), Error> {
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::background()).await?;
    let gone = async {
        while namespaces.get_opt(NAMESPACE).await?.is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok::<(), kube::Error>(())
    };
    match tokio::time::timeout(REMOVAL, gone).await {
        Ok(gone) => gone?,
        Err(_) => return Err(format!("namespace {NAMESPACE} isn't gone after {} s", REMOVAL.as_secs()).into()),
    }
    tell(&format!("namespace {NAMESPACE} removed"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crd_file_of_the_example_is_the_crd_of_the_type() {
        let file: serde_json::Value =
            serde_saphyr::from_str(include_str!("../../../../../examples/myapp/crd.yaml")).unwrap();
        let wanted = serde_json::to_value(MyApp::crd()).unwrap();
        assert_eq!(file, wanted, "examples/myapp/crd.yaml should say: {wanted}");
    }

    #[test]
    fn the_samples_are_what_the_crd_asks_for() {
        let samples = serde_saphyr::from_multiple::<MyApp>(SAMPLES).unwrap();
        assert_eq!(samples.len(), 3);
        assert!(samples.iter().all(|sample| sample.spec.replicas >= 1 && (80..=65535).contains(&sample.spec.port)));
    }
}
