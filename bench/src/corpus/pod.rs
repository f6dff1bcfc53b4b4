//! Pods of Deployments, as a cluster shows them some time after they became ready.

use serde_json::{Value, json};

use super::managed_fields::{entry, fields};
use super::template::{mark, mix};

const WORDS: [&str; 20] = [
    "checkout",
    "catalog",
    "payments",
    "search",
    "session",
    "billing",
    "ledger",
    "gateway",
    "inventory",
    "shipping",
    "reviews",
    "pricing",
    "accounts",
    "notifier",
    "reports",
    "media",
    "audit",
    "profile",
    "cart",
    "orders",
];
const TIERS: [&str; 6] = ["frontend", "backend", "worker", "cache", "api", "batch"];

/// A template of the Pods of one ReplicaSet.
pub(super) fn text(seed: u64, number: u64, worst: bool) -> String {
    let random = mix(seed ^ mix(number));
    let pick = |salt: u64, among: u64| mix(random ^ salt) % among;
    let word = WORDS[pick(1, WORDS.len() as u64) as usize];
    let tier = TIERS[pick(2, TIERS.len() as u64) as usize];
    let app = format!("{word}-{number:06}");
    let namespace = format!("team-{:02}", number % 50);
    let hash: String = (0..10).map(|digit| char::from(b"bcdfghjklm"[pick(100 + digit, 10) as usize])).collect();
    let (replica_set, generate) = (format!("{app}-{hash}"), format!("{app}-{hash}-"));
    let owner_uid = uid(mix(random ^ 3));
    let containers = match pick(4, 20) {
        0 => 3,
        1..=3 => 2,
        _ => 1,
    };
    let probes = pick(5, 2) == 0;
    let containers: Vec<String> =
        (0..containers).map(|index| container(random, index, &app, tier, word, probes)).collect();
    let containers = containers.join(",");
    let spec = format!(
        r#"{{"volumes":[{{"name":"config","configMap":{{"name":"{app}-config","defaultMode":420}}}},{{"name":"scratch","emptyDir":{{}}}},{{"name":"kube-api-access-{token}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],"containers":[{containers}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{word}","serviceAccount":"{word}","nodeName":"node-{node}","securityContext":{{"runAsNonRoot":true,"fsGroup":2000}},"affinity":{{"podAntiAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":100,"podAffinityTerm":{{"labelSelector":{{"matchLabels":{{"app.kubernetes.io/name":"{app}"}}}},"topologyKey":"kubernetes.io/hostname"}}}}]}}}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priorityClassName":"standard","priority":1000,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}}"#,
        token = mark::TOKEN,
        node = mark::NODE,
    );
    let status = status(&spec);
    let noise = if worst { noise() } else { String::new() };
    let annotations = format!(
        r#"{{"checksum/config":"{checksum}","kubectl.kubernetes.io/restartedAt":"2026-11-29T08:15:00Z"{noise},"prometheus.io/path":"/metrics","prometheus.io/port":"8080","prometheus.io/scrape":"true"}}"#,
        checksum = long_hex(mix(random ^ 6)),
    );
    let labels = format!(
        r#"{{"app.kubernetes.io/component":"{tier}","app.kubernetes.io/instance":"{app}","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"{app}","app.kubernetes.io/version":"{}.{}.{}","pod-template-hash":"{hash}","team":"{namespace}"}}"#,
        1 + pick(7, 4),
        pick(8, 30),
        pick(9, 10),
    );
    let owners = format!(
        r#"[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{replica_set}","uid":"{owner_uid}","controller":true,"blockOwnerDeletion":true}}]"#
    );
    let managed = managed_fields(&generate, &labels, &annotations, &owners, &spec, &status);
    format!(
        r#"{{"metadata":{{"name":"{generate}{name}","generateName":"{generate}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{created}","labels":{labels},"annotations":{annotations},"ownerReferences":{owners},"managedFields":{managed}}},"spec":{spec},"status":{status}}}"#,
        name = mark::NAME,
        uid = mark::UID,
        version = mark::VERSION,
        created = mark::CREATED,
    )
}

fn container(random: u64, index: u64, app: &str, tier: &str, word: &str, probes: bool) -> String {
    let pick = |salt: u64, among: u64| mix(random ^ (salt + 1000 * (index + 1))) % among;
    let name = if index == 0 { word.to_owned() } else { format!("sidecar-{index}") };
    let probe = |path: &str| {
        format!(
            r#"{{"httpGet":{{"path":"/{path}","port":"http","scheme":"HTTP"}},"initialDelaySeconds":5,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}}"#
        )
    };
    let probes = if probes {
        format!(r#","livenessProbe":{},"readinessProbe":{}"#, probe("healthz"), probe("readyz"))
    } else {
        String::new()
    };
    let more: Vec<String> = (0..2 + pick(1, 8))
        .map(|number| {
            format!(
                r#"{{"name":"{}_SETTING_{number}","value":"{}-{}"}}"#,
                tier.to_uppercase(),
                app,
                pick(number + 50, 1000)
            )
        })
        .collect();
    format!(
        r#"{{"name":"{name}","image":"registry.example.org/{tier}/{name}:v{}.{}.{}","args":["--config=/etc/{word}/config.yaml","--log-level=info"],"ports":[{{"name":"http","containerPort":{port},"protocol":"TCP"}}],"env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"POD_NAMESPACE","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}}},{{"name":"DATABASE_PASSWORD","valueFrom":{{"secretKeyRef":{{"name":"{app}-db","key":"password"}}}}}},{}],"resources":{{"limits":{{"cpu":"{cpu}m","memory":"{memory}Mi"}},"requests":{{"cpu":"{half}m","memory":"{memory}Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/{word}"}},{{"name":"scratch","mountPath":"/tmp"}},{{"name":"kube-api-access-{token}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]{probes},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{{"capabilities":{{"drop":["ALL"]}},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}}"#,
        1 + pick(2, 5),
        pick(3, 40),
        pick(4, 12),
        more.join(","),
        port = 8080 + index,
        cpu = 200 * (1 + pick(5, 8)),
        half = 100 * (1 + pick(5, 8)),
        memory = 128 * (1 + pick(6, 8)),
        token = mark::TOKEN,
    )
}

fn status(spec: &str) -> String {
    let spec: Value = serde_json::from_str(spec).unwrap_or_default();
    let containers: Vec<String> = spec["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            let text = |field: &str| container[field].as_str().unwrap_or("").to_owned();
            let (name, image) = (text("name"), text("image"));
            let repository = image.split(':').next().unwrap_or("");
            let digest = image.bytes().fold(7, |sum, byte| mix(sum ^ u64::from(byte)));
            format!(
                r#"{{"name":"{name}","state":{{"running":{{"startedAt":"{started}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"{image}","imageID":"{repository}@sha256:{}","containerID":"containerd://{id}","started":true}}"#,
                long_hex(digest),
                started = mark::STARTED,
                id = &mark::DIGEST,
            )
        })
        .collect();
    let condition = |name: &str, time: &str| {
        format!(
            r#"{{"type":"{name}","observedGeneration":1,"status":"True","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
        )
    };
    format!(
        r#"{{"observedGeneration":1,"phase":"Running","conditions":[{},{},{},{},{}],"hostIP":"{host}","hostIPs":[{{"ip":"{host}"}}],"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"{created}","containerStatuses":[{}],"qosClass":"Burstable"}}"#,
        condition("PodReadyToStartContainers", mark::STARTED),
        condition("Initialized", mark::CREATED),
        condition("Ready", mark::CHANGED),
        condition("ContainersReady", mark::CHANGED),
        condition("PodScheduled", mark::CREATED),
        containers.join(","),
        host = mark::HOST_IP,
        ip = mark::IP,
        created = mark::CREATED,
    )
}

fn managed_fields(generate: &str, labels: &str, annotations: &str, owners: &str, spec: &str, status: &str) -> String {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut spec = parse(spec);
    // What the scheduler, admission and the defaults wrote isn't the controller's.
    for others in ["nodeName", "tolerations", "priority", "preemptionPolicy", "serviceAccount"] {
        if let Some(object) = spec.as_object_mut() {
            object.remove(others);
        }
    }
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.pop();
    }
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        if let Some(mounts) = container["volumeMounts"].as_array_mut() {
            mounts.pop();
        }
    }
    let created = json!({
        "metadata": {"generateName": generate, "labels": parse(labels), "annotations": parse(annotations),
            "ownerReferences": parse(owners)},
        "spec": spec,
    });
    let status = json!({"status": parse(status)});
    format!(
        "[{},{}]",
        entry("kube-controller-manager", "Update", mark::CREATED, "", &fields(&created)),
        entry("kubelet", "Update", mark::CHANGED, "status", &fields(&status)),
    )
}

/// 4 KB of annotations in which nothing repeats.
pub(super) fn noise() -> String {
    (0..60).map(|number| format!(r#","noise/{number:02}":"{}""#, mark::DIGEST)).collect()
}

pub(super) fn uid(random: u64) -> String {
    let hex = format!("{:016x}{:016x}", mix(random), mix(random ^ 1));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
}

pub(super) fn long_hex(random: u64) -> String {
    (0..4).map(|part| format!("{:016x}", mix(random ^ part))).collect()
}
