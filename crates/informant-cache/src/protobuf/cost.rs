//! What reading a Pod of protobuf costs: `cargo test --release -p informant-cache --lib protobuf::cost -- --ignored --nocapture`.

use http_body_util::BodyExt;
use informant_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use super::*;

fn pod(number: usize) -> Value {
    let name = format!("frontend-7d9c{number:06}");
    let probe = json!({"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3});
    let env = |place: usize| json!({"name": format!("SETTING_{place}"), "value": format!("https://service-{place}.example.org:8443/{number}")});
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "lastProbeTime": null});
    let volume = json!({"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "generateName": "frontend-7d9c", "namespace": "default",
            "labels": {"app.kubernetes.io/name": "frontend", "app.kubernetes.io/instance": "web", "pod-template-hash": "7d9c", "tier": "front"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": "0123456789abcdef0123456789abcdef0123456789abcdef"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "frontend-7d9c", "uid": "11111111-2222-3333-4444-555555555555", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "nodeName": "node-17", "serviceAccountName": "frontend", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "containers": [{
                "name": "main", "image": "registry.example.org/web/frontend:1.2.3", "args": ["--listen=:8080", "--log=info"],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
                "env": (0..16).map(env).collect::<Vec<_>>(),
                "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
                "volumeMounts": [{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "livenessProbe": probe, "readinessProbe": probe,
                "securityContext": {"runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
            "volumes": [volume],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
        "status": {
            "phase": "Running", "hostIP": "10.0.0.17", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "startTime": "2026-01-02T03:04:05Z", "qosClass": "Burstable",
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "ready": true, "started": true, "restartCount": 1, "image": "registry.example.org/web/frontend:1.2.3",
                "imageID": "registry.example.org/web/frontend@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "containerID": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "lastState": {}}],
        },
    })
}

async fn bodies(accept: &str, server: &ApiServer, count: usize) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for number in 0..count {
        let name = pod(number)["metadata"]["name"].as_str().expect("a name").to_owned();
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let request = http::Request::get(path).header("accept", accept).body(String::new()).expect("a request");
        let answer = server.service().oneshot(request).await.expect("an answer");
        bodies.push(answer.into_body().collect().await.expect("a body").to_bytes().to_vec());
    }
    bodies
}

fn report<T>(what: &str, pods: &[Vec<u8>], mut work: impl FnMut(&[u8]) -> T) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        for _ in 0..20 {
            for pod in pods {
                std::hint::black_box(work(std::hint::black_box(pod)));
            }
        }
        best = best.min(begun.elapsed().as_secs_f64() / (20 * pods.len()) as f64);
    }
    let bytes = pods.iter().map(Vec::len).sum::<usize>() as f64 / pods.len() as f64;
    println!("{what:40} {:8.2} us {:8.0} MB/s of {bytes:.0} bytes", best * 1e6, bytes / best / 1e6);
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn what_a_pod_costs() {
    let server = ApiServer::builder().seed(1).build();
    for number in 0..200 {
        let request = http::Request::post("/api/v1/namespaces/default/pods?fieldManager=kube-controller-manager");
        let request = request.header("content-type", "application/json").body(pod(number).to_string());
        let answer = server.service().oneshot(request.expect("a request")).await.expect("an answer");
        assert_eq!(answer.status(), 201);
        let path = format!(
            "/api/v1/namespaces/default/pods/{}/status?fieldManager=kubelet",
            pod(number)["metadata"]["name"].as_str().expect("a name")
        );
        let request = http::Request::put(path).header("content-type", "application/json").body(pod(number).to_string());
        server.service().oneshot(request.expect("a request")).await.expect("an answer");
    }
    let message = table().kind("v1", "Pod").expect("a kind");
    let envelopes = bodies(MEDIA_TYPE, &server, 200).await;
    let pods: Vec<_> = envelopes.iter().map(|body| Envelope::open(body).expect("an envelope").raw.to_vec()).collect();
    report("head", &pods, |pod| Metadata::read(pod).expect("a head").name.len());
    report("check", &pods, |pod| check(message, pod).is_ok());
    let mut out = Vec::new();
    report("managedFields cut", &pods, |pod| {
        out.clear();
        without_managed_fields(pod, &mut out).is_ok()
    });
    report("decode, managedFields skipped", &pods, |pod| {
        Object::new(message, pod).without_managed_fields().decode::<Pod>().expect("a Pod")
    });
    let cut: Vec<_> = pods
        .iter()
        .map(|pod| {
            let mut cut = Vec::new();
            without_managed_fields(pod, &mut cut).expect("a Pod");
            cut
        })
        .collect();
    report("check without managedFields", &cut, |pod| check(message, pod).is_ok());
    report("decode without managedFields", &cut, |pod| Object::new(message, pod).decode::<Pod>().expect("a Pod"));
    report("decode whole", &pods, |pod| Object::new(message, pod).decode::<Pod>().expect("a Pod"));
    report("to JSON", &cut, |pod| to_json(Object::new(message, pod)).expect("JSON"));
    let texts: Vec<_> = cut.iter().map(|pod| to_json(Object::new(message, pod)).expect("JSON")).collect();
    report("JSON of the same, by serde_json", &texts, |text| serde_json::from_slice::<Pod>(text).expect("a Pod"));
}
