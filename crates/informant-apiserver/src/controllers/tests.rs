use serde_json::json;

use super::*;
use crate::clock::Clock;
use crate::object;
use crate::registry::deletion::{DeleteOptions, Propagation};
use crate::registry::{PatchKind, Write};
use crate::service::body::Document;
use crate::store::{Store, StoreOptions};

/// A server without a transport. Its controllers run while [`World::run`] runs.
struct World {
    registry: Registry,
}

// === impl World ===

impl World {
    fn new() -> Self {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        Self { registry: Registry::new(Store::new(StoreOptions::default()), clock, 7, 1 << 20) }
    }

    fn target(&self, resource: &str, namespace: &str, name: &str) -> Target {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let served = self.registry.catalog().find(group, "v1", plural).cloned().unwrap();
        Target { served, namespace: namespace.to_owned(), name: name.to_owned(), subresource: String::new() }
    }

    fn create(&self, resource: &str, namespace: &str, object: Value) -> Value {
        let target = self.target(resource, namespace, "");
        let document = Document { value: object, duplicates: Vec::new() };
        self.registry.create(&target, document, &mut Write::internal("test")).unwrap().object
    }

    /// A ConfigMap with owners, each `(object, blocks)`.
    fn config_map(&self, namespace: &str, name: &str, owners: &[(&Value, bool)]) -> Value {
        let owners: Vec<Value> = owners.iter().map(|(owner, blocks)| reference(owner, *blocks)).collect();
        self.create("configmaps", namespace, json!({"metadata": {"name": name, "ownerReferences": owners}}))
    }

    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        self.registry.get(&self.target(resource, namespace, name)).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.get("configmaps", "default", name).is_some()
    }

    fn delete(&self, resource: &str, namespace: &str, name: &str, propagation: Option<Propagation>) {
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.registry.delete(&self.target(resource, namespace, name), &options).unwrap();
    }

    fn patch(&self, resource: &str, namespace: &str, name: &str, patch: Value) {
        let document = Document { value: patch, duplicates: Vec::new() };
        let target = self.target(resource, namespace, name);
        self.registry.patch(&target, PatchKind::Merge, document, &mut Write::internal("test")).unwrap();
    }

    /// Runs the controllers beside `work`.
    async fn beside(&self, work: impl Future<Output = ()>) {
        let options = ControllerOptions::default();
        tokio::select! {
            biased;
            () = run(&self.registry, &options) => {}
            () = work => {}
        }
    }

    /// Lets the controllers work for a while of paused time.
    async fn run(&self, time: Duration) {
        self.beside(tokio::time::sleep(time)).await;
    }

    async fn settle(&self) {
        self.run(Duration::from_millis(1)).await;
    }
}

fn reference(owner: &Value, blocks: bool) -> Value {
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks})
}

#[tokio::test(start_paused = true)]
async fn dependents_and_theirs_go_after_their_owner() {
    let world = World::new();
    let owner = world.config_map("default", "owner", &[]);
    let child = world.config_map("default", "child", &[(&owner, false)]);
    world.config_map("default", "grandchild", &[(&child, false)]);
    world.settle().await;
    assert!(world.has("grandchild"));
    world.delete("configmaps", "default", "owner", None);
    assert!(world.has("child"));
    world.settle().await;
    assert!(!world.has("child") && !world.has("grandchild"));
}

#[tokio::test(start_paused = true)]
async fn the_controllers_hear_of_changes_while_they_run() {
    let world = World::new();
    let owner = world.config_map("default", "owner", &[]);
    world.config_map("default", "child", &[(&owner, false)]);
    let work = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.delete("configmaps", "default", "owner", None);
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    world.beside(work).await;
    assert!(!world.has("child"));
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_owner_stays_and_loses_the_reference() {
    let world = World::new();
    let (gone, kept) = (world.config_map("default", "gone", &[]), world.config_map("default", "kept", &[]));
    world.config_map("default", "child", &[(&gone, false), (&kept, true)]);
    world.delete("configmaps", "default", "gone", None);
    world.settle().await;
    let child = world.get("configmaps", "default", "child").unwrap();
    assert_eq!(child["metadata"]["ownerReferences"], json!([reference(&kept, true)]));
}

#[tokio::test(start_paused = true)]
async fn an_owner_counts_by_its_uid_and_in_the_same_namespace_only() {
    let world = World::new();
    let owner = world.config_map("default", "owner", &[]);
    world.config_map("default", "child", &[(&owner, false)]);
    world.config_map("kube-public", "stranger", &[(&owner, false)]);
    world.settle().await;
    assert!(world.has("child"));
    assert!(world.get("configmaps", "kube-public", "stranger").is_none());
    world.delete("configmaps", "default", "owner", None);
    world.config_map("default", "owner", &[]);
    world.settle().await;
    assert!(world.has("owner") && !world.has("child"));
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_a_kind_that_nobody_knows_keeps_its_dependents() {
    let world = World::new();
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "o", "uid": "u"}});
    world.config_map("default", "child", &[(&owner, false)]);
    world.settle().await;
    assert!(world.has("child"));
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_an_owner_waits_for_the_dependents_that_block_it() {
    let world = World::new();
    let owner = world.config_map("default", "owner", &[]);
    world.config_map("default", "free", &[(&owner, false)]);
    world.create(
        "configmaps",
        "default",
        json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"], "ownerReferences": [reference(&owner, true)]}}),
    );
    world.delete("configmaps", "default", "owner", Some(Propagation::Foreground));
    world.settle().await;
    assert!(world.has("owner") && world.has("held") && !world.has("free"));
    world.patch("configmaps", "default", "held", json!({"metadata": {"finalizers": null}}));
    world.settle().await;
    assert!(!world.has("owner") && !world.has("held"));
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_whole_tree_goes_from_its_leaves_also_when_it_is_a_circle() {
    let world = World::new();
    let root = world.config_map("default", "root", &[]);
    let child = world.config_map("default", "child", &[(&root, true)]);
    world.config_map("default", "leaf", &[(&child, true)]);
    world.patch(
        "configmaps",
        "default",
        "root",
        json!({"metadata": {"ownerReferences": [reference(&world.get("configmaps", "default", "leaf").unwrap(), true)]}}),
    );
    world.delete("configmaps", "default", "root", Some(Propagation::Foreground));
    world.settle().await;
    assert!(!world.has("root") && !world.has("child") && !world.has("leaf"));
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_reference() {
    let world = World::new();
    let owner = world.config_map("default", "owner", &[]);
    world.config_map("default", "child", &[(&owner, true)]);
    world.delete("configmaps", "default", "owner", Some(Propagation::Orphan));
    assert!(world.has("owner"));
    world.settle().await;
    assert!(!world.has("owner"));
    let child = world.get("configmaps", "default", "child").unwrap();
    assert_eq!(object::at_path(&child, "metadata.ownerReferences"), None);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_everything_in_it() {
    let world = World::new();
    world.create("namespaces", "", json!({"metadata": {"name": "shop"}}));
    for index in 0..700 {
        world.config_map("shop", &format!("c{index}"), &[]);
    }
    world.delete("namespaces", "", "shop", None);
    let namespace = world.get("namespaces", "", "shop").unwrap();
    assert_eq!(object::at_path(&namespace, "status.phase"), Some(&json!("Terminating")));
    world.settle().await;
    assert!(world.get("namespaces", "", "shop").is_none());
    assert!(world.get("configmaps", "shop", "c0").is_none());
    assert!(world.get("namespaces", "", "default").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_in_a_namespace_holds_it_and_its_conditions_say_so() {
    let world = World::new();
    world.create("namespaces", "", json!({"metadata": {"name": "shop"}}));
    world.create("secrets", "shop", json!({"metadata": {"name": "s", "finalizers": ["example.com/hold"]}}));
    world.delete("namespaces", "", "shop", None);
    world.settle().await;
    let namespace = world.get("namespaces", "", "shop").unwrap();
    let conditions = object::at_path(&namespace, "status.conditions").and_then(Value::as_array).unwrap();
    let find = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    let remaining = find("NamespaceContentRemaining");
    assert_eq!((&remaining["status"], &remaining["message"]), (&json!("True"), &json!("objects are left, secrets: 1")));
    assert_eq!(find("NamespaceFinalizersRemaining")["status"], json!("True"));
    let version = world.registry.store().current_rv();
    world.run(Duration::from_secs(600)).await;
    assert_eq!(world.registry.store().current_rv(), version, "waiting writes nothing");

    world.patch("secrets", "shop", "s", json!({"metadata": {"finalizers": null}}));
    world.settle().await;
    assert!(world.get("namespaces", "", "shop").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_goes_when_its_grace_period_is_over() {
    let world = World::new();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 20,
        "containers": [{"name": "c", "image": "i"}]}});
    world.create("pods", "default", pod);
    world.delete("pods", "default", "web", None);
    world.run(Duration::from_secs(19)).await;
    assert!(world.get("pods", "default", "web").is_some());
    world.run(Duration::from_secs(2)).await;
    assert!(world.get("pods", "default", "web").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_an_hour_after_it_was_last_written() {
    let world = World::new();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Seen", "type": "Normal"});
    world.create("events", "default", event);
    let again = async {
        tokio::time::sleep(Duration::from_secs(1800)).await;
        world.patch("events", "default", "e", json!({"count": 2}));
        tokio::time::sleep(Duration::from_secs(3500)).await;
        assert!(world.get("events", "default", "e").is_some());
        tokio::time::sleep(Duration::from_secs(200)).await;
    };
    world.beside(again).await;
    assert!(world.get("events", "default", "e").is_none());
}
