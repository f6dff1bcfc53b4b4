//! The kinds that there are objects of.

use serde_json::{Value, json};

use super::managed_fields::{entry, fields};
use super::pod;
use super::template::{mark, mix};

/// A kind of objects, and how its texts are made.
pub struct Kind {
    /// What it's called on the command line.
    pub name: &'static str,
    /// Where it's served.
    pub path: &'static str,
    /// `apiVersion` of its objects.
    pub api_version: &'static str,
    /// `kind` of its objects.
    pub kind: &'static str,
    /// Whether it's built in, so that it's also sent as protobuf and its items don't say their type.
    pub protobuf: bool,
    /// How many objects are made of one template.
    pub per_template: usize,
    /// The text of a template: by seed, the number of the template, whether nothing is to repeat.
    pub(super) text: fn(u64, u64, bool) -> String,
}

/// All of them; Pods are the first.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "pods",
        path: "/api/v1/pods",
        api_version: "v1",
        kind: "Pod",
        protobuf: true,
        per_template: 100,
        text: pod::text,
    },
    Kind {
        name: "nodes",
        path: "/api/v1/nodes",
        api_version: "v1",
        kind: "Node",
        protobuf: true,
        per_template: 5_000,
        text: node,
    },
    Kind {
        name: "endpointslices",
        path: "/apis/discovery.k8s.io/v1/endpointslices",
        api_version: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        protobuf: true,
        per_template: 2,
        text: endpoint_slice,
    },
    Kind {
        name: "events",
        path: "/apis/events.k8s.io/v1/events",
        api_version: "events.k8s.io/v1",
        kind: "Event",
        protobuf: true,
        per_template: 20,
        text: event,
    },
    Kind {
        name: "widgets",
        path: "/apis/bench.informant.test/v1/widgets",
        api_version: "bench.informant.test/v1",
        kind: "Widget",
        protobuf: false,
        per_template: 100,
        text: widget,
    },
];

fn metadata(namespace: &str, prefix: &str, labels: &str, worst: bool, more: &str) -> String {
    let namespace = if namespace.is_empty() { String::new() } else { format!(r#""namespace":"{namespace}","#) };
    let noise = if worst { pod::noise() } else { String::new() };
    format!(
        r#"{{"name":"{prefix}{}",{namespace}"uid":"{}","resourceVersion":"{}","generation":1,"creationTimestamp":"{}","labels":{labels},"annotations":{{"note":"made for measuring"{noise}}}{more}}}"#,
        mark::NAME,
        mark::UID,
        mark::VERSION,
        mark::CREATED,
    )
}

fn managed(manager: &str, time: &str, of: &Value) -> String {
    format!(r#","managedFields":[{}]"#, entry(manager, "Update", time, "", &fields(of)))
}

fn node(_seed: u64, number: u64, worst: bool) -> String {
    let labels = format!(
        r#"{{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"node-{number:03}-{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m5.4xlarge","topology.kubernetes.io/region":"eu-1","topology.kubernetes.io/zone":"eu-1{zone}"}}"#,
        name = mark::NAME,
        zone = char::from(b'a' + (number % 3) as u8),
    );
    let condition = |name: &str, status: &str, reason: &str| {
        format!(
            r#"{{"type":"{name}","status":"{status}","lastHeartbeatTime":"{}","lastTransitionTime":"{}","reason":"{reason}","message":"kubelet says so: {reason}"}}"#,
            mark::CHANGED,
            mark::CREATED
        )
    };
    // The kubelet tells fifty images, by digest and by tag.
    let images: Vec<String> = (0..50)
        .map(|image| {
            format!(
                r#"{{"names":["registry.example.org/platform/service-{image:02}@sha256:{}","registry.example.org/platform/service-{image:02}:v1.{image}.0"],"sizeBytes":{}}}"#,
                pod::long_hex(image),
                10_000_000 + mix(image) % 500_000_000,
            )
        })
        .collect();
    let status = format!(
        r#"{{"capacity":{{"cpu":"16","ephemeral-storage":"203056560Ki","hugepages-2Mi":"0","memory":"65024264Ki","pods":"110"}},"allocatable":{{"cpu":"15890m","ephemeral-storage":"186061183551","hugepages-2Mi":"0","memory":"62058760Ki","pods":"110"}},"conditions":[{},{},{},{}],"addresses":[{{"type":"InternalIP","address":"{ip}"}},{{"type":"Hostname","address":"node-{number:03}-{name}"}}],"daemonEndpoints":{{"kubeletEndpoint":{{"Port":10250}}}},"nodeInfo":{{"machineID":"{machine}","systemUUID":"{uid}","bootID":"{uid}","kernelVersion":"6.12.41","osImage":"Linux 12","containerRuntimeVersion":"containerd://2.1.4","kubeletVersion":"v1.37.2","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}},"images":[{}]}}"#,
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        condition("Ready", "True", "KubeletReady"),
        images.join(","),
        ip = mark::IP,
        name = mark::NAME,
        uid = mark::UID,
        machine = mark::DIGEST,
    );
    let of = json!({"status": serde_json::from_str::<Value>(&status).unwrap_or_default()});
    let managed = managed("kubelet", mark::CHANGED, &of);
    format!(
        r#"{{"metadata":{},"spec":{{"podCIDR":"10.128.0.0/24","podCIDRs":["10.128.0.0/24"],"providerID":"cloud://eu-1/{}"}},"status":{status}}}"#,
        metadata("", &format!("node-{number:03}-"), &labels, worst, &managed),
        mark::UID,
    )
}

fn endpoint_slice(seed: u64, number: u64, worst: bool) -> String {
    let namespace = format!("team-{:02}", number % 50);
    let service = format!("service-{number:06}");
    let labels = format!(
        r#"{{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"{service}"}}"#
    );
    let endpoints: Vec<String> = (0..1 + mix(seed ^ number) % 60)
        .map(|endpoint| {
            let random = mix(number << 8 ^ endpoint);
            format!(
                r#"{{"addresses":["10.1{:02}.1{:02}.1{:02}"],"conditions":{{"ready":true,"serving":true,"terminating":false}},"targetRef":{{"kind":"Pod","namespace":"{namespace}","name":"{service}-{random:016x}","uid":"{}"}},"nodeName":"node-{:05}","zone":"eu-1a"}}"#,
                random % 100,
                random / 100 % 100,
                random / 10_000 % 100,
                pod::uid(random),
                random % 5_000,
            )
        })
        .collect();
    let owner = format!(
        r#","ownerReferences":[{{"apiVersion":"v1","kind":"Service","name":"{service}","uid":"{}","controller":true,"blockOwnerDeletion":true}}]"#,
        pod::uid(number)
    );
    let of = json!({"addressType": "", "endpoints": 0, "ports": 0, "metadata": {"labels": {"kubernetes.io/service-name": ""}}});
    let managed = managed("kube-controller-manager", mark::CHANGED, &of);
    format!(
        r#"{{"metadata":{},"addressType":"IPv4","endpoints":[{}],"ports":[{{"name":"http","protocol":"TCP","port":8080}}]}}"#,
        metadata(&namespace, &format!("{service}-"), &labels, worst, &format!("{owner}{managed}")),
        endpoints.join(","),
    )
}

fn event(_seed: u64, number: u64, worst: bool) -> String {
    let namespace = format!("team-{:02}", number % 50);
    let of =
        json!({"action": "", "deprecatedCount": 0, "note": "", "reason": "", "regarding": {"name": ""}, "type": ""});
    let managed = managed("kubelet", mark::CHANGED, &of);
    format!(
        r#"{{"metadata":{},"eventTime":null,"reason":"Unhealthy","regarding":{{"kind":"Pod","namespace":"{namespace}","name":"worker-{number:06}-{name}","uid":"{uid}","apiVersion":"v1","resourceVersion":"{version}","fieldPath":"spec.containers{{worker}}"}},"note":"Readiness probe failed: Get \"http://{ip}:8080/readyz\": context deadline exceeded","type":"Warning","deprecatedSource":{{"component":"kubelet","host":"node-{node}"}},"deprecatedFirstTimestamp":"{created}","deprecatedLastTimestamp":"{changed}","deprecatedCount":17}}"#,
        metadata(&namespace, &format!("worker-{number:06}-"), "{}", worst, &managed),
        name = mark::NAME,
        uid = mark::UID,
        version = mark::VERSION,
        ip = mark::IP,
        node = mark::NODE,
        created = mark::CREATED,
        changed = mark::CHANGED,
    )
}

/// About 2 KB of a custom resource. Its fields are in the order of their names: that's how Go writes what it has no type of.
fn widget(seed: u64, number: u64, worst: bool) -> String {
    let namespace = format!("team-{:02}", number % 50);
    let noise = if worst { pod::noise() } else { String::new() };
    let random = mix(seed ^ number);
    let spec = format!(
        r#"{{"color":"blue","engine":{{"image":"registry.example.org/widgets/engine:v{}","replicas":{}}},"paused":false,"schedule":"*/5 * * * *","selector":{{"matchLabels":{{"app":"widget-{number:06}"}}}},"storage":{{"class":"fast","size":"{}Gi"}}}}"#,
        random % 40,
        1 + random % 5,
        10 * (1 + random % 20),
    );
    let status = format!(
        r#"{{"conditions":[{{"lastTransitionTime":"{changed}","message":"all parts run","observedGeneration":1,"reason":"Running","status":"True","type":"Ready"}},{{"lastTransitionTime":"{created}","message":"","observedGeneration":1,"reason":"Progressed","status":"False","type":"Progressing"}}],"digest":"{digest}","endpoint":"{ip}:9000","observedGeneration":1,"phase":"Ready"}}"#,
        changed = mark::CHANGED,
        created = mark::CREATED,
        digest = mark::DIGEST,
        ip = mark::IP,
    );
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let managed = format!(
        "[{},{}]",
        entry("widget-operator", "Update", mark::CREATED, "", &fields(&json!({"spec": parse(&spec)}))),
        entry("widget-operator", "Update", mark::CHANGED, "status", &fields(&json!({"status": parse(&status)}))),
    );
    format!(
        r#"{{"apiVersion":"bench.informant.test/v1","kind":"Widget","metadata":{{"annotations":{{"note":"made for measuring"{noise}}},"creationTimestamp":"{created}","generation":1,"labels":{{"app":"widget-{number:06}"}},"managedFields":{managed},"name":"widget-{number:06}-{name}","namespace":"{namespace}","resourceVersion":"{version}","uid":"{uid}"}},"spec":{spec},"status":{status}}}"#,
        created = mark::CREATED,
        name = mark::NAME,
        version = mark::VERSION,
        uid = mark::UID,
    )
}
