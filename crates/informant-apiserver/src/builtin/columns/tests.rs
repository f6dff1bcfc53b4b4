//! Rows of the kinds whose cells take thought, as kubectl shows them on a real cluster.

use serde_json::{Value, json};

use super::*;
use crate::table::age;

fn cells(group: &str, plural: &str, object: &Value) -> Vec<Value> {
    let row = Row::new(object, age::seconds("2026-12-01T01:00:00Z").unwrap());
    of(group, plural).iter().map(|column| column.cell(&row)).collect()
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "creationTimestamp": "2026-12-01T00:50:00Z"})
}

#[test]
fn a_new_pod_is_pending_and_a_running_one_counts_its_ready_containers() {
    let mut pod = json!({
        "metadata": metadata("web"), "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Pending"},
    });
    let shown = cells("", "pods", &pod);
    assert_eq!(shown, ["web", "0/2", "Pending", "0", "10m", "<none>", "<none>", "<none>", "<none>"].map(|t| json!(t)));

    pod["spec"]["nodeName"] = json!("node-1");
    pod["status"] = json!({
        "phase": "Running", "podIPs": [{"ip": "10.0.0.7"}],
        "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-12-01T00:58:00Z"}}},
            {"name": "b", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}},
        ],
    });
    let shown = cells("", "pods", &pod);
    assert_eq!(shown[1..7], ["1/2", "ImagePullBackOff", "2 (2m ago)", "10m", "10.0.0.7", "node-1"].map(|t| json!(t)));
}

#[test]
fn the_status_of_a_pod_names_what_holds_it_up() {
    let status = |status: Value, deleted: bool| {
        let mut pod = json!({
            "metadata": metadata("p"), "status": status,
            "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]},
        });
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:59:00Z");
        }
        cells("", "pods", &pod)[1..3].iter().map(|cell| cell.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let terminated = |reason: &str, code: i64| json!({"terminated": {"reason": reason, "exitCode": code}});
    let init = |state: Value| json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": state}]});
    let main = |phase: &str, state: Value| {
        json!({"phase": phase, "initContainerStatuses": [{"name": "i", "state": terminated("Completed", 0)}],
               "containerStatuses": [{"name": "a", "state": state}]})
    };
    assert_eq!(status(init(json!({"running": {}})), false), ["0/2", "Init:0/2"]);
    assert_eq!(
        status(init(json!({"waiting": {"reason": "CrashLoopBackOff"}})), false),
        ["0/2", "Init:CrashLoopBackOff"]
    );
    assert_eq!(status(init(terminated("", 7)), false), ["0/2", "Init:ExitCode:7"]);
    assert_eq!(status(main("Succeeded", terminated("Completed", 0)), false), ["0/2", "Completed"]);
    assert_eq!(status(main("Failed", terminated("Error", 1)), false), ["0/2", "Error"]);
    assert_eq!(status(main("Running", json!({"running": {}})), true), ["0/2", "Terminating"]);
    let gated = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]});
    assert_eq!(status(gated, false), ["0/2", "SchedulingGated"]);
}

#[test]
fn a_deployment_shows_its_replicas_containers_and_selector() {
    let deployment = json!({
        "metadata": metadata("web"),
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]}, {"key": "old", "operator": "DoesNotExist"}]},
            "template": {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}},
        },
        "status": {"readyReplicas": 1, "updatedReplicas": 3, "availableReplicas": 1},
    });
    let expected = json!(["web", "1/3", 3, 1, "10m", "a,b", "x:1,y:2", "app=web,!old,tier in (a,b)"]);
    assert_eq!(json!(cells("apps", "deployments", &deployment)), expected);
}

#[test]
fn a_service_shows_its_addresses_and_ports() {
    let service = |spec: Value, status: Value| {
        json!(cells("", "services", &json!({"metadata": metadata("s"), "spec": spec, "status": status}))[1..])
    };
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]);
    assert_eq!(
        service(
            json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b"}}),
            json!({})
        ),
        json!(["ClusterIP", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "10m", "a=b"])
    );
    assert_eq!(
        service(
            json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}),
            json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})
        ),
        json!(["LoadBalancer", "10.0.0.1", "1.2.3.4", "<none>", "10m", "<none>"])
    );
    assert_eq!(
        service(json!({"type": "ExternalName", "externalName": "example.org"}), json!({})),
        json!(["ExternalName", "<none>", "example.org", "<none>", "10m", "<none>"])
    );
}

#[test]
fn jobs_tell_their_state_and_how_long_they_took() {
    let job = json!({
        "metadata": metadata("j"), "spec": {"completions": 2},
        "status": {"succeeded": 2, "startTime": "2026-12-01T00:50:00Z", "completionTime": "2026-12-01T00:52:05Z",
                   "conditions": [{"type": "Complete", "status": "True"}]},
    });
    assert_eq!(json!(cells("batch", "jobs", &job)[..5]), json!(["j", "Complete", "2/2", "2m5s", "10m"]));
    let running = json!({"metadata": metadata("j"), "spec": {"parallelism": 3}, "status": {}});
    assert_eq!(json!(cells("batch", "jobs", &running)[..4]), json!(["j", "Running", "0/1 of 3", ""]));
}

#[test]
fn both_groups_of_events_show_the_same() {
    let core = json!({
        "metadata": metadata("e"), "type": "Normal", "reason": "Started", "message": "it started\n", "count": 3,
        "involvedObject": {"kind": "Pod", "name": "web"}, "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-12-01T00:00:00Z", "lastTimestamp": "2026-12-01T00:58:00Z",
    });
    let new = json!({
        "metadata": metadata("e"), "type": "Normal", "reason": "Started", "note": "it started\n", "deprecatedCount": 3,
        "regarding": {"kind": "Pod", "name": "web"}, "deprecatedSource": {"component": "kubelet", "host": "n1"},
        "deprecatedFirstTimestamp": "2026-12-01T00:00:00Z", "deprecatedLastTimestamp": "2026-12-01T00:58:00Z",
    });
    let expected = json!(["2m", "Normal", "Started", "pod/web", "", "kubelet, n1", "it started", "60m", 3, "e"]);
    assert_eq!(json!(cells("", "events", &core)), expected);
    assert_eq!(json!(cells("events.k8s.io", "events", &new)), expected);
}

#[test]
fn autoscalers_show_current_and_target_of_both_versions() {
    let new = json!({
        "metadata": metadata("h"),
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]},
        "status": {"currentReplicas": 2, "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 12}}}]},
    });
    let expected = json!(["h", "Deployment/web", "cpu: 12%/80%", "1", 9, 2, "10m"]);
    assert_eq!(json!(cells("autoscaling", "horizontalpodautoscalers", &new)), expected);
    let old = json!({
        "metadata": metadata("h"),
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9, "targetCPUUtilizationPercentage": 80},
    });
    assert_eq!(
        json!(cells("autoscaling", "horizontalpodautoscalers", &old)[2..4]),
        json!(["cpu: <unknown>/80%", "<unset>"])
    );
}

#[test]
fn nodes_and_endpoint_slices_shorten_what_is_long() {
    let node = json!({
        "metadata": {"name": "n", "creationTimestamp": "2026-11-20T00:00:00Z", "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.37.2"},
                   "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}]},
    });
    assert_eq!(
        json!(cells("", "nodes", &node)[..7]),
        json!(["n", "Ready,SchedulingDisabled", "worker", "11d", "v1.37.2", "10.1.0.1", "<none>"])
    );
    let slice = json!({
        "metadata": metadata("s"), "addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}],
        "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2", "10.0.0.3", "10.0.0.4"]}],
    });
    assert_eq!(
        json!(cells("discovery.k8s.io", "endpointslices", &slice)),
        json!(["s", "IPv4", "80,x", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "10m"])
    );
}
