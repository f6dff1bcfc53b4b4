//! The node agent of `examples/node_agent.rs` on the embedded server: what it does to the mesh, whatever happens to Pods and
//! namespaces. The facts are those of Istio's CNI agent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant::Embedded;
use informant::prelude::*;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[path = "../../../examples/node_agent/agent.rs"]
mod agent;

use agent::{AddError, MODE, Mesh, NodeAgent, REDIRECTION, UnknownNamespace};

/// Remembers what was asked of it, and fails as told.
#[derive(Clone, Default)]
struct Recorder {
    calls: Arc<Mutex<Vec<String>>>,
    /// For each of the next calls whether it fails, and for an add whether for good.
    failures: Arc<Mutex<VecDeque<Failure>>>,
}

#[derive(Clone, Copy)]
enum Failure {
    Later,
    Never,
}

impl Recorder {
    fn note(&self, call: String) -> Option<Failure> {
        self.calls.lock().unwrap().push(call);
        self.failures.lock().unwrap().pop_front()
    }
}

impl Mesh for Recorder {
    async fn add(&self, pod: &Pod, ips: &BTreeSet<String>) -> Result<(), AddError> {
        let ips: Vec<_> = ips.iter().map(String::as_str).collect();
        match self.note(format!("add {} {}", ObjectKey::of(pod), ips.join(","))) {
            None => Ok(()),
            Some(Failure::Later) => Err(AddError::Later("the dataplane isn't there".to_owned())),
            Some(Failure::Never) => Err(AddError::Never("the Pod has no network namespace".to_owned())),
        }
    }

    async fn remove(&self, pod: &Pod, ended: bool) -> Result<(), String> {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or("-");
        let how = if ended { "ended" } else { "alive" };
        self.note(format!("remove {} {ip} {how}", ObjectKey::of(pod))).map_or(Ok(()), |_| Err("it's busy".to_owned()))
    }

    async fn update_ips(&self, pod: &Pod, ips: &BTreeSet<String>) -> Result<(), String> {
        let ips: Vec<_> = ips.iter().map(String::as_str).collect();
        self.note(format!("ips {} {}", ObjectKey::of(pod), ips.join(",")))
            .map_or(Ok(()), |_| Err("it's busy".to_owned()))
    }
}

/// A cluster and, once it's started, the agent of `node-1`.
struct World {
    cluster: Embedded,
    mesh: Recorder,
    agent: Option<Arc<NodeAgent<Recorder>>>,
    tasks: JoinSet<()>,
}

impl World {
    /// With the namespaces `plain` and `kube-system`, and the labelled namespace `meshed`.
    async fn new() -> Self {
        let cluster = informant::embedded();
        let world = Self { cluster, mesh: Recorder::default(), agent: None, tasks: JoinSet::new() };
        world.namespace("plain", None).await;
        world.namespace("meshed", Some("on")).await;
        world
    }

    async fn start(&mut self) {
        let stop = CancellationToken::new();
        let factory = InformerFactory::new(&self.cluster);
        let mesh = self.mesh.clone();
        let agent = Arc::new(NodeAgent::new(&self.cluster, &factory, "node-1", ["kube-system"], mesh));
        factory.start(&stop).unwrap();
        factory.wait_for_cache_sync(&stop).await.unwrap();
        self.agent = Some(Arc::clone(&agent));
        self.tasks.spawn(async move {
            agent.run(&stop).await.unwrap();
            factory.shutdown().await;
        });
        settle().await;
    }

    async fn started() -> Self {
        let mut world = Self::new().await;
        world.start().await;
        world
    }

    fn fail_next(&self, failures: &[Failure]) {
        self.mesh.failures.lock().unwrap().extend(failures);
    }

    /// What was asked of the mesh since the last time, once all is quiet.
    async fn calls(&self) -> Vec<String> {
        settle().await;
        std::mem::take(&mut *self.mesh.calls.lock().unwrap())
    }

    async fn namespace(&self, name: &str, mode: Option<&str>) {
        let labels = json!({MODE: mode});
        let namespaces = Api::<Namespace>::all(self.cluster.client());
        if namespaces.get_opt(name).await.unwrap().is_none() {
            let new = json!({"metadata": {"name": name}});
            namespaces.create(&PostParams::default(), &serde_json::from_value(new).unwrap()).await.unwrap();
        }
        let change = json!({"metadata": {"labels": labels}});
        namespaces.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.client(), namespace)
    }

    /// A Pod on `node-1`; `more` goes over its metadata and spec.
    async fn pod(&self, namespace: &str, name: &str, more: Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "registry.example/c:1"}]},
        });
        for part in ["metadata", "spec"] {
            for (field, value) in more[part].as_object().into_iter().flatten() {
                pod[part][field] = value.clone();
            }
        }
        self.pods(namespace).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    async fn status(&self, namespace: &str, name: &str, status: Value) {
        let change = Patch::Merge(json!({"status": status}));
        self.pods(namespace).patch_status(name, &PatchParams::default(), &change).await.unwrap();
    }

    /// A running Pod with an address.
    async fn running(&self, namespace: &str, name: &str) {
        self.pod(namespace, name, json!({})).await;
        self.status(namespace, name, running("10.0.0.7")).await;
    }

    /// A running Pod that an earlier agent brought in.
    async fn enrolled(&self, namespace: &str, name: &str) {
        self.pod(namespace, name, json!({"metadata": {"annotations": {REDIRECTION: "enabled"}}})).await;
        self.status(namespace, name, running("10.0.0.7")).await;
    }

    async fn delete(&self, namespace: &str, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.pods(namespace).delete(name, &now).await.unwrap();
    }

    async fn annotation(&self, namespace: &str, name: &str) -> Option<String> {
        self.pods(namespace).get(name).await.unwrap().metadata.annotations?.get(REDIRECTION).cloned()
    }
}

/// Longer than any delay between tries, in paused time.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

fn running(ip: &str) -> Value {
    json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]})
}

/// Istio fact 90. Not its count of handled events: here they are keys, and several events of a key are handled once.
#[tokio::test(start_paused = true)]
async fn a_pod_is_brought_in_once_when_its_namespace_is_labelled() {
    let world = World::started().await;
    world.running("plain", "web").await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.namespace("plain", Some("on")).await;
    assert_eq!(world.calls().await, ["add plain/web 10.0.0.7"]);
    assert_eq!(world.annotation("plain", "web").await.as_deref(), Some("enabled"));
}

/// Istio fact 91.
#[tokio::test(start_paused = true)]
async fn bringing_in_is_tried_until_it_works_and_pending_meanwhile() {
    let mut world = World::new().await;
    world.running("meshed", "web").await;
    world.fail_next(&[Failure::Later; 2]);
    world.start().await;
    assert_eq!(world.calls().await, ["add meshed/web 10.0.0.7"; 3]);
    assert_eq!(world.annotation("meshed", "web").await.as_deref(), Some("enabled"));
    // A dataplane that's long in coming: the Pod says so.
    world.fail_next(&[Failure::Later; 1000]);
    world.running("meshed", "late").await;
    settle().await;
    assert_eq!(world.annotation("meshed", "late").await.as_deref(), Some("pending"));
}

/// Istio fact 92.
#[tokio::test(start_paused = true)]
async fn what_cannot_work_is_tried_once_and_leaves_no_annotation() {
    let world = World::started().await;
    world.running("plain", "web").await;
    world.fail_next(&[Failure::Never]);
    world.namespace("plain", Some("on")).await;
    assert_eq!(world.calls().await, ["add plain/web 10.0.0.7"]);
    assert_eq!(world.annotation("plain", "web").await, None);
}

/// Istio fact 93.
#[tokio::test(start_paused = true)]
async fn a_pod_needs_an_address_in_either_field_and_a_network_of_its_own() {
    let world = World::started().await;
    world.pod("meshed", "many", json!({})).await;
    world
        .status("meshed", "many", json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]}))
        .await;
    world.pod("meshed", "none", json!({})).await;
    world.status("meshed", "none", json!({"phase": "Running"})).await;
    world.pod("meshed", "host", json!({"spec": {"hostNetwork": true}})).await;
    world.status("meshed", "host", running("192.0.2.1")).await;
    assert_eq!(world.calls().await, ["add meshed/many 10.0.0.7,fd00::7"]);
    world.status("meshed", "none", running("10.0.0.8")).await;
    assert_eq!(world.calls().await, ["add meshed/none 10.0.0.8"]);
}

/// Istio fact 94.
#[tokio::test(start_paused = true)]
async fn a_pod_is_taken_out_once_when_its_namespace_loses_the_label() {
    let world = World::started().await;
    world.running("meshed", "web").await;
    assert_eq!(world.calls().await, ["add meshed/web 10.0.0.7"]);
    world.namespace("meshed", None).await;
    assert_eq!(world.calls().await, ["remove meshed/web 10.0.0.7 alive"]);
    assert_eq!(world.annotation("meshed", "web").await, None);
}

/// Istio fact 94, second half.
#[tokio::test(start_paused = true)]
async fn taking_out_is_tried_until_it_works() {
    let mut world = World::new().await;
    world.enrolled("meshed", "web").await;
    world.start().await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.fail_next(&[Failure::Later; 3]);
    world.namespace("meshed", None).await;
    assert_eq!(world.calls().await, ["remove meshed/web 10.0.0.7 alive"; 4]);
    assert_eq!(world.annotation("meshed", "web").await, None);
}

/// Istio fact 95: the end comes with a status that has lost the address.
#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_is_cleaned_up_once_with_its_last_address_and_brought_in_again_if_it_runs_again() {
    let world = World::started().await;
    world.running("meshed", "job").await;
    assert_eq!(world.calls().await, ["add meshed/job 10.0.0.7"]);
    world.fail_next(&[Failure::Later; 2]);
    world.status("meshed", "job", json!({"phase": "Succeeded", "podIP": null, "podIPs": null})).await;
    assert_eq!(world.calls().await, ["remove meshed/job 10.0.0.7 ended"; 3]);
    world.status("meshed", "job", json!({"reason": "Completed"})).await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.status("meshed", "job", running("10.0.0.9")).await;
    assert_eq!(world.calls().await, ["add meshed/job 10.0.0.9"]);
}

/// Istio fact 96.
#[tokio::test(start_paused = true)]
async fn the_snapshot_has_the_pods_that_are_in_and_not_those_that_only_want_to_be() {
    let mut world = World::new().await;
    world.running("meshed", "labelled").await;
    world.enrolled("meshed", "in").await;
    world.enrolled("meshed", "failed").await;
    world.status("meshed", "failed", json!({"phase": "Failed"})).await;
    world.fail_next(&[Failure::Never; 10]);
    world.start().await;
    let names: Vec<_> = world.agent.as_ref().unwrap().snapshot().iter().map(|pod| ObjectKey::of(&**pod)).collect();
    assert_eq!(names, [ObjectKey::namespaced("meshed", "in")]);
}

/// Istio fact 97.
#[tokio::test(start_paused = true)]
async fn a_pod_is_given_only_if_it_is_wanted_and_an_unknown_namespace_is_an_error() {
    let world = World::started().await;
    world.running("meshed", "web").await;
    world.pod("meshed", "host", json!({"spec": {"hostNetwork": true}})).await;
    world.pod("meshed", "off", json!({"metadata": {"labels": {MODE: "off"}}})).await;
    world.running("plain", "web").await;
    settle().await;
    let agent = world.agent.as_ref().unwrap();
    let wanted = |namespace: &str, name: &str| {
        let found = agent.pod_if_wanted(&ObjectKey::namespaced(namespace, name))?;
        Ok::<_, UnknownNamespace>(found.map(|pod| ObjectKey::of(&*pod).to_string()))
    };
    assert_eq!(wanted("meshed", "web"), Ok(Some("meshed/web".to_owned())));
    for (namespace, name) in [("meshed", "host"), ("meshed", "off"), ("meshed", "absent"), ("plain", "web")] {
        assert_eq!(wanted(namespace, name), Ok(None), "{namespace}/{name}");
    }
    let unknown = UnknownNamespace(ObjectKey::namespaced("nowhere", "web"));
    assert_eq!(wanted("nowhere", "web"), Err(unknown));
}

/// Istio fact 98: late news of a Pod that's in, news of one that came and went, and the end of one that was in.
#[tokio::test(start_paused = true)]
async fn late_news_change_nothing_and_a_vanished_pod_is_cleaned_up_once() {
    let mut world = World::new().await;
    world.enrolled("meshed", "web").await;
    world.start().await;
    let change = Patch::Merge(json!({"metadata": {"labels": {"more": "news"}}}));
    world.pods("meshed").patch("web", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.pod("plain", "brief", json!({})).await;
    world.pods("plain").patch("brief", &PatchParams::default(), &change).await.unwrap();
    world.delete("plain", "brief").await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.delete("meshed", "web").await;
    assert_eq!(world.calls().await, ["remove meshed/web 10.0.0.7 ended"]);
}

/// A Pod that's deleted and created again under its name: the old one is cleaned up first, though the queue has one key.
#[tokio::test(start_paused = true)]
async fn a_pod_that_takes_the_name_of_another_does_not_hide_its_end() {
    let world = World::started().await;
    world.running("meshed", "web").await;
    assert_eq!(world.calls().await, ["add meshed/web 10.0.0.7"]);
    world.fail_next(&[Failure::Later; 2]);
    world.delete("meshed", "web").await;
    world.pod("meshed", "web", json!({})).await;
    world.status("meshed", "web", running("10.0.0.8")).await;
    let calls = world.calls().await;
    assert_eq!(calls[..3], ["remove meshed/web 10.0.0.7 ended"; 3]);
    assert_eq!(calls[3..], ["add meshed/web 10.0.0.8"]);
}

/// Istio fact 99.
#[tokio::test(start_paused = true)]
async fn an_address_that_comes_again_is_told_once_and_one_that_stays_is_not() {
    let world = World::started().await;
    world.running("meshed", "web").await;
    assert_eq!(world.calls().await, ["add meshed/web 10.0.0.7"]);
    world.status("meshed", "web", json!({"podIP": null, "podIPs": null})).await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    world.status("meshed", "web", running("10.0.0.8")).await;
    assert_eq!(world.calls().await, ["ips meshed/web 10.0.0.8"]);
    world.status("meshed", "web", json!({"message": "as before"})).await;
    assert_eq!(world.calls().await, Vec::<String>::new());
}

/// Istio fact 100.
#[tokio::test(start_paused = true)]
async fn an_excluded_namespace_is_never_brought_in_and_what_was_in_it_is_taken_out() {
    let mut world = World::new().await;
    world.namespace("kube-system", Some("on")).await;
    world.running("kube-system", "never").await;
    world.enrolled("kube-system", "before").await;
    world.running("meshed", "web").await;
    world.start().await;
    let mut calls = world.calls().await;
    calls.sort();
    assert_eq!(calls, ["add meshed/web 10.0.0.7", "remove kube-system/before 10.0.0.7 alive"]);
    world.delete("kube-system", "never").await;
    assert_eq!(world.calls().await, Vec::<String>::new());
    // Taking it out keeps failing until it goes.
    world.fail_next(&[Failure::Later; 2]);
    world.enrolled("kube-system", "goes").await;
    world.delete("kube-system", "goes").await;
    let calls = world.calls().await;
    assert_eq!(calls.last().map(String::as_str), Some("remove kube-system/goes 10.0.0.7 ended"), "{calls:?}");
}

/// Where Istio's agent drops the event: the namespace is gone before its Pod's end is handled.
#[tokio::test(start_paused = true)]
async fn a_pod_is_cleaned_up_also_when_its_namespace_is_gone() {
    let world = World::started().await;
    world.running("meshed", "web").await;
    assert_eq!(world.calls().await, ["add meshed/web 10.0.0.7"]);
    world.fail_next(&[Failure::Later; 5]);
    Api::<Namespace>::all(world.cluster.client()).delete("meshed", &DeleteParams::default()).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..4 {
        // The delays between six tries add up to more than one such time.
        calls.extend(world.calls().await);
    }
    assert_eq!(calls, ["remove meshed/web 10.0.0.7 ended"; 6]);
}
