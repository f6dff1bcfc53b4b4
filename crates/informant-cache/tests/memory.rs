//! What an informer says that it holds is what an allocator counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use informant_apiserver::scripted::Script;
use informant_cache::{InformerFactory, SharedInformer};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ApiResource;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PODS: usize = 3_000;

/// A Pod of about five kilobytes, of one of thirty applications.
fn pod(number: usize) -> Value {
    let app = format!("shop-{}", number % 30);
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut hex =
        |length: usize| (0..length).map(|_| char::from_digit(random.u32(..16), 16).unwrap()).collect::<String>();
    let uid = format!("{}-{}-{}-{}-{}", hex(8), hex(4), hex(4), hex(4), hex(12));
    let variables: Vec<Value> = (0..number % 30 % 12)
        .map(|at| json!({"name": format!("{app}_SETTING_{at}"), "value": format!("value {at}")}))
        .collect();
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-01T10:00:00Z"}));
    json!({
        "metadata": {
            "name": format!("{app}-{}-{}", hex(10), hex(5)), "namespace": format!("team-{}", number % 7), "uid": uid,
            "resourceVersion": (number + 1).to_string(), "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": {"app.kubernetes.io/name": app, "pod-template-hash": hex(10), "tier": "web"},
            "annotations": {"prometheus.io/scrape": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": uid, "controller": true}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T10:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}}}}],
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [{
                "name": app, "image": format!("registry.example.com/{app}:v1.2.{}", number % 30), "args": ["--verbose", "--port=8080"],
                "env": variables, "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m"}},
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
            }],
            "volumes": [{"name": "config", "configMap": {"name": app, "defaultMode": 420}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running", "podIP": format!("10.0.{}.{}", number / 250, number % 250),
            "conditions": conditions,
            "containerStatuses": [{"name": app, "ready": true, "restartCount": 0, "image": "x", "imageID": hex(64), "containerID": hex(64)}],
        },
    })
}

/// Syncs an informer on these Pods; returns what it says that it holds, and what was allocated for it.
async fn held<K, F>(make: F) -> (u64, u64)
where
    K: Send + Sync + 'static,
    F: Fn(&InformerFactory) -> SharedInformer<K>,
{
    let mut script = Script::of("v1", "Pod");
    let client = kube::Client::new(script.service(), "default");
    let mut pods: Vec<Value> = (0..PODS).map(pod).collect();
    pods.sort_by_key(|pod| format!("{}/{}", pod["metadata"]["namespace"], pod["metadata"]["name"]));
    let factory = InformerFactory::builder(client).watch_list(false).build();
    let cancel = CancellationToken::new();
    let informer = make(&factory);
    let before = ALLOCATOR.current_usage();
    factory.start(&cancel).unwrap();
    let hour = Duration::from_secs(3600);
    script.request_within(hour).await.unwrap().list("9999", &pods);
    let _watch = script.request_within(hour).await.unwrap().open();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    // What's in flight goes.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(informer.lister().len(), PODS);
    let counted = ALLOCATOR.current_usage() - before;
    let said = informer.memory().total();
    factory.shutdown().await;
    (said, counted as u64)
}

fn assert_honest(form: &str, (said, counted): (u64, u64)) {
    println!(
        "{form}: says {said}, {counted} are allocated: {} and {} a Pod",
        said / PODS as u64,
        counted / PODS as u64
    );
    let ratio = said as f64 / counted as f64;
    assert!((0.9..1.1).contains(&ratio), "{form}: says {said}, {counted} are allocated, {ratio:.2}");
}

/// One test, as others would allocate at the same time.
#[tokio::test(start_paused = true)]
async fn what_an_informer_says_that_it_holds_is_what_an_allocator_counts() {
    assert_honest("full", held(|factory| factory.informer::<Pod>().full()).await);
    assert_honest("packed", held(|factory| factory.informer::<Pod>().packed()).await);
    assert_honest("raw", held(|factory| factory.informer::<Pod>().raw()).await);
    let pods = || ApiResource::erase::<Pod>(&());
    assert_honest("full, dynamic", held(|factory| factory.dynamic(pods()).full()).await);
    assert_honest("packed, dynamic", held(|factory| factory.dynamic(pods()).packed()).await);
    assert_honest("metadata", held(|factory| factory.metadata::<Pod>().full()).await);
    let indexed = |factory: &InformerFactory| {
        let informer = factory.informer::<Pod>().packed();
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        std::mem::forget((informer.index("node", node), informer.index("ip", address)));
        // A handler that's never heard out.
        std::mem::forget(informer.subscribe());
        informer
    };
    assert_honest("packed, with indexes and a backlog", held(indexed).await);
}
