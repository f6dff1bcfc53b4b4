#!/usr/bin/env python3
"""Records what a real server makes of objects of built-in kinds: its defaults, and why it refuses them.

    record_builtin.py KUBECONFIG        writes crates/informant-apiserver/src/builtin/recorded_cases.json

The server must be one without the ServiceAccount admission (`cargo xtask oracle start DIR`): what it adds to Pods isn't a default.
"""

import json
import pathlib
import re
import ssl
import sys
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "crates/informant-apiserver/src/builtin/recorded_cases.json"


def pod_spec(**more):
    return {"containers": [{"name": "a", "image": "nginx"}], **more}


def workload(kind, name="w", labels=None, spec=None, **more):
    labels = labels or {"app": "w"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": {"app": "w"}}, "spec": pod_spec(**(spec or {}))}, **more}}


def core(kind, name="x", **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def of(api_version, kind, name="x", **more):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def pod(**more):
    return core("Pod", spec=pod_spec(**more))


def containers(*items):
    return core("Pod", spec={"containers": list(items)})


def service(**spec):
    return core("Service", spec=spec)


PORT = {"port": 80}
JOB_SPEC = {"template": {"spec": pod_spec(restartPolicy="Never")}}
RBAC = "rbac.authorization.k8s.io/v1"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
REF = {"kind": "Deployment", "name": "w", "apiVersion": "apps/v1"}
VALID = [
    pod(),
    pod(hostNetwork=True, serviceAccountName="robot", restartPolicy="Never", nodeSelector={"a": "b"},
        tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]),
    containers({"name": "a", "image": "nginx:1.2", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"tcpSocket": {"port": "x"}, "periodSeconds": 3},
                "startupProbe": {"grpc": {"port": 9}},
                "lifecycle": {"preStop": {"httpGet": {"port": 1}}, "postStart": {"exec": {"command": ["a"]}}},
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
    containers({"name": "a", "image": "registry.example:5000/x/y", "resources": {"requests": {"cpu": "100m"}}},
               {"name": "b", "image": "x@sha256:" + "0" * 64}, {"name": "c", "image": "x:latest"}),
    pod(initContainers=[{"name": "i", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}], hostNetwork=False,
        ephemeralContainers=[]),
    pod(serviceAccountName="robot", volumes=[{"name": "e"}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "c", "configMap": {"name": "c"}},
                 {"name": "d", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                 {"name": "h", "hostPath": {"path": "/x"}}, {"name": "em", "emptyDir": {}},
                 {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c"}}]}},
                 {"name": "pvc", "persistentVolumeClaim": {"claimName": "x"}}]),
    pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}], overhead=None,
        securityContext={"runAsUser": 5}, priority=None),
    {**workload("Deployment")},
    {**workload("Deployment", replicas=0, strategy={"type": "Recreate"}, paused=True)},
    {**workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 3}})},
    workload("ReplicaSet"), workload("DaemonSet"), workload("StatefulSet"),
    workload("StatefulSet", serviceName="s", updateStrategy={"type": "OnDelete"},
             volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": CLAIM}]),
    workload("DaemonSet", updateStrategy={"type": "OnDelete"}),
    of("apps/v1", "ControllerRevision", revision=1, data={"a": 1}),
    of("batch/v1", "Job", spec=JOB_SPEC),
    of("batch/v1", "Job", spec={**JOB_SPEC, "parallelism": 3, "backoffLimit": 1, "ttlSecondsAfterFinished": 5}),
    of("batch/v1", "Job", spec={**JOB_SPEC, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
    of("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": JOB_SPEC}}),
    core("ReplicationController", spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec()}}),
    core("PodTemplate", template={"spec": pod_spec()}),
    service(ports=[PORT], selector={"a": "b"}),
    service(ports=[{"port": 80, "name": "a", "targetPort": "web"}, {"port": 53, "name": "b", "protocol": "UDP"}], type="NodePort"),
    service(ports=[PORT], type="LoadBalancer", sessionAffinity="ClientIP"),
    service(type="ExternalName", externalName="example.org"),
    service(ports=[PORT], clusterIP="None"),
    core("Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]),
    core("ConfigMap", data={"a": "b"}), core("ConfigMap"),
    core("Secret", stringData={"a": "b", "b": "c"}, data={"a": "eA=="}), core("Secret", type="kubernetes.io/basic-auth", stringData={"username": "x"}),
    core("ServiceAccount"), core("Namespace"),
    core("Namespace", metadata={"name": "y", "labels": {"a": "b"}}),
    core("PersistentVolumeClaim", spec=CLAIM),
    core("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}),
    core("ResourceQuota", spec={"hard": {"pods": "10", "cpu": "2"}}),
    core("LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}]}),
    core("Node", status={"capacity": {"cpu": "4", "pods": "10"}}), core("Node"),
    core("Event", metadata={"name": "x", "namespace": "default"}, involvedObject={"kind": "Pod", "name": "p", "namespace": "default"}, reason="R", message="m", type="Normal"),
    of("events.k8s.io/v1", "Event", metadata={"name": "x", "namespace": "default"}, regarding={"kind": "Pod", "name": "p", "namespace": "default"}, reason="R",
       note="m", type="Normal", action="A", eventTime="2026-01-01T00:00:00.000000Z", reportingController="a/b", reportingInstance="i"),
    of("networking.k8s.io/v1", "Ingress", spec={"rules": [{"host": "a.example", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}),
    of("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}),
    of("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "egress": [{}]}),
    of("networking.k8s.io/v1", "IngressClass", spec={"controller": "a.example/b", "parameters": {"kind": "K", "name": "n"}}),
    of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
    of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": REF, "maxReplicas": 3}),
    of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": REF, "maxReplicas": 3, "behavior": {"scaleDown": {"selectPolicy": "Min"}}}),
    of("autoscaling/v1", "HorizontalPodAutoscaler", spec={"scaleTargetRef": REF, "maxReplicas": 3}),
    of(RBAC, "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]), of(RBAC, "Role"),
    of(RBAC, "ClusterRole", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
    of(RBAC, "ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    of(RBAC, "RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "default"}]),
    of(RBAC, "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=[{"kind": "Group", "name": "u"}]),
    of("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "h"}), of("coordination.k8s.io/v1", "Lease"),
    of("storage.k8s.io/v1", "StorageClass", provisioner="a.example/b"),
    of("storage.k8s.io/v1", "CSIDriver", metadata={"name": "a.example"}, spec={}),
    of("scheduling.k8s.io/v1", "PriorityClass", value=5),
    of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["1.2.3.4"]}], ports=[{"port": 80}]),
    of("node.k8s.io/v1", "RuntimeClass", handler="runc"),
    of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=[{"name": "a.b.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
       "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]),
    of("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", webhooks=[{"name": "a.b.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
       "clientConfig": {"url": "https://a.example"}}]),
    of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", spec={"validations": [{"expression": "true"}],
       "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}}),
]

INVALID = [
    core("Pod", spec={}), core("Pod"), containers(), containers({"name": "a"}), containers({"image": "x"}),
    containers({"name": "A_b", "image": "x"}), containers({"name": "a", "image": "x"}, {"name": "a", "image": "y"}),
    containers({"name": "a", "image": " x"}),
    containers({"name": "a", "image": "x", "imagePullPolicy": "Sometimes"}),
    containers({"name": "a", "image": "x", "ports": [{"containerPort": 0}]}),
    containers({"name": "a", "image": "x", "ports": [{"containerPort": 70000, "protocol": "ABC"}]}),
    containers({"name": "a", "image": "x", "ports": [{"containerPort": 80, "name": "Bad_Name"}]}),
    containers({"name": "a", "image": "x", "ports": [{"containerPort": 80, "name": "p"}, {"containerPort": 81, "name": "p"}]}),
    containers({"name": "a", "image": "x", "env": [{"name": ""}]}),
    containers({"name": "a", "image": "x", "env": [{"name": "A=B"}]}),
    containers({"name": "a", "image": "x", "volumeMounts": [{"name": "nope", "mountPath": "/x"}]}),
    containers({"name": "a", "image": "x", "volumeMounts": [{"name": "", "mountPath": ""}]}),
    containers({"name": "a", "image": "x", "livenessProbe": {}}),
    containers({"name": "a", "image": "x", "livenessProbe": {"httpGet": {"port": 0}}}),
    containers({"name": "a", "image": "x", "livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": -1}}),
    containers({"name": "a", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
    containers({"name": "a", "image": "x", "resources": {"requests": {"cpu": "-2"}}}),
    containers({"name": "a", "image": "x", "resources": {"requests": {"foo": "2"}}}),
    pod(restartPolicy="Maybe"), pod(dnsPolicy="Nope"), pod(terminationGracePeriodSeconds=-3), pod(activeDeadlineSeconds=0),
    pod(volumes=[{"name": "v"}, {"name": "v"}]), pod(volumes=[{"emptyDir": {}}]), pod(volumes=[{"name": "s", "secret": {}}]),
    pod(volumes=[{"name": "s", "secret": {"secretName": "x"}, "emptyDir": {}}]),
    pod(nodeName="A b"), pod(serviceAccountName="A b"), pod(hostname="A.b"), pod(nodeSelector={"a b": "c"}),
    pod(initContainers=[{"name": "a", "image": "x"}]),
    pod(tolerations=[{"operator": "Bad"}]),
    workload("Deployment", labels={"app": "other"}), workload("Deployment", replicas=-1),
    workload("Deployment", spec={"restartPolicy": "Never"}), workload("Deployment", strategy={"type": "Bad"}),
    workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": {}}),
    workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    workload("Deployment", strategy={"rollingUpdate": {"maxSurge": "x%"}}), workload("Deployment", minReadySeconds=-1, revisionHistoryLimit=-1),
    workload("Deployment", progressDeadlineSeconds=0),
    of("apps/v1", "Deployment", spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec()}}),
    of("apps/v1", "Deployment", spec={"selector": {}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec()}}),
    of("apps/v1", "Deployment"), of("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}),
    of("apps/v1", "Deployment", spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec()}}),
    workload("ReplicaSet", labels={"app": "other"}), workload("ReplicaSet", replicas=-1), workload("ReplicaSet", spec={"restartPolicy": "OnFailure"}),
    workload("DaemonSet", labels={"app": "other"}), workload("DaemonSet", updateStrategy={"type": "Bad"}),
    workload("StatefulSet", labels={"app": "other"}), workload("StatefulSet", replicas=-1), workload("StatefulSet", podManagementPolicy="Bad", updateStrategy={"type": "Bad"}),
    of("batch/v1", "Job", spec={"template": {"spec": pod_spec()}}), of("batch/v1", "Job", spec={**JOB_SPEC, "parallelism": -1, "completions": -1, "backoffLimit": -1}),
    of("batch/v1", "Job"), of("batch/v1", "Job", spec={**JOB_SPEC, "completionMode": "Bad"}), of("batch/v1", "Job", spec={**JOB_SPEC, "completionMode": "Indexed"}),
    of("batch/v1", "Job", spec={**JOB_SPEC, "selector": {"matchLabels": {"a": "b"}}}), of("batch/v1", "Job", spec={**JOB_SPEC, "activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -1}),
    of("batch/v1", "CronJob", spec={"schedule": "bad", "jobTemplate": {"spec": JOB_SPEC}}), of("batch/v1", "CronJob", spec={"jobTemplate": {"spec": JOB_SPEC}}),
    of("batch/v1", "CronJob", spec={"schedule": "* * * * *", "concurrencyPolicy": "Bad", "jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}}),
    service(), service(ports=[]), service(ports=[{"port": 0}]), service(ports=[{"port": 70000}]), service(ports=[{"port": 80, "protocol": "X"}]),
    service(ports=[{"port": 80}, {"port": 81}]), service(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]), service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]),
    service(ports=[{"port": 80, "name": "Bad_"}]), service(ports=[PORT], type="Bad"), service(type="ExternalName"), service(ports=[PORT], clusterIP="x"),
    service(ports=[PORT], sessionAffinity="Bad"), service(ports=[{"port": 80, "targetPort": 0}]), service(ports=[{"port": 80, "targetPort": 70000}]),
    service(ports=[{"port": 80, "nodePort": 30000}]), service(ports=[PORT], selector={"a b": "c"}), service(ports=[PORT], externalTrafficPolicy="Local"),
    service(ports=[PORT], type="LoadBalancer", internalTrafficPolicy="Bad", externalTrafficPolicy="Bad"),
    core("ConfigMap", data={"a b": "c"}), core("ConfigMap", data={"a": "c"}, binaryData={"a": "eA=="}), core("Secret", data={"a b": "eA=="}),
    core("Secret", type="kubernetes.io/tls"), core("Secret", type="kubernetes.io/dockerconfigjson", stringData={"a": "b"}), core("Secret", type="kubernetes.io/basic-auth"),
    core("Secret", type="kubernetes.io/service-account-token"), core("Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"}),
    core("Secret", type="kubernetes.io/ssh-auth"),
    core("PersistentVolumeClaim", spec={}), core("PersistentVolumeClaim", spec={**CLAIM, "accessModes": ["Bad"]}), core("PersistentVolumeClaim", spec={**CLAIM, "resources": {}}),
    core("PersistentVolumeClaim", spec={**CLAIM, "resources": {"requests": {"storage": "0"}}}), core("PersistentVolumeClaim"),
    core("PersistentVolume", spec={}), core("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}),
    core("ResourceQuota", spec={"hard": {"bad thing": "1"}}), core("ResourceQuota", spec={"hard": {"pods": "-1"}}),
    core("LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}),
    of("networking.k8s.io/v1", "Ingress", spec={}), of("networking.k8s.io/v1", "Ingress", spec={"rules": [{"http": {"paths": [{"path": "x", "backend": {"service": {"name": "s"}}}]}}]}),
    of("networking.k8s.io/v1", "Ingress", spec={"rules": [{"http": {"paths": [{"path": "/", "pathType": "Bad", "backend": {}}]}}]}),
    of("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["Bad"]}), of("networking.k8s.io/v1", "IngressClass", spec={}),
    of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1, "selector": {}}), of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "x"}),
    of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": -1}),
    of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": REF, "maxReplicas": 0}), of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": {}, "maxReplicas": 1, "minReplicas": 2}),
    of(RBAC, "Role", rules=[{"apiGroups": [""], "resources": ["pods"]}]), of(RBAC, "Role", rules=[{"verbs": ["get"]}]), of(RBAC, "Role", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
    of(RBAC, "ClusterRole", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["a"], "apiGroups": [""]}]),
    of(RBAC, "RoleBinding", roleRef={"kind": "Bad", "name": "r"}), of(RBAC, "RoleBinding", roleRef={"kind": "Role"}), of(RBAC, "RoleBinding"),
    of(RBAC, "RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "Bad", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}, {"kind": "User"}]),
    of(RBAC, "ClusterRoleBinding", roleRef={"kind": "Role", "name": "r"}), of(RBAC, "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "r", "apiGroup": "x"}),
    of("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
    of("storage.k8s.io/v1", "StorageClass"), of("storage.k8s.io/v1", "StorageClass", provisioner="a.example/b", reclaimPolicy="Bad", volumeBindingMode="Bad"),
    of("scheduling.k8s.io/v1", "PriorityClass", value=2000000000), of("scheduling.k8s.io/v1", "PriorityClass", value=5, preemptionPolicy="Bad"),
    of("discovery.k8s.io/v1", "EndpointSlice", addressType="Bad"), of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[{"addresses": []}]),
    core("Event", metadata={"name": "x", "namespace": "default"}, involvedObject={"kind": "Pod", "namespace": "other"}),
    core("ReplicationController", spec={"replicas": -1}), core("Endpoints", subsets=[{"addresses": [{"ip": "x"}]}]),
    core("Node", spec={"taints": [{"key": "a", "effect": "Bad"}]}),
    core("ServiceAccount", metadata={"name": "x"}, secrets=[{"name": ""}]),
]


def changed(old, *edits):
    new = json.loads(json.dumps(old))
    for path, value in edits:
        *parents, last = path.split(".")
        place = new
        for step in parents:
            place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
        if value is None:
            place.pop(last, None)
        else:
            place[int(last) if last.isdigit() else last] = value
    return old, new


UPDATES = [
    changed(workload("Deployment"), ("spec.selector.matchLabels", {"app": "w", "x": "y"}), ("spec.template.metadata.labels", {"app": "w", "x": "y"})),
    changed(workload("ReplicaSet"), ("spec.selector.matchLabels", {"app": "w", "x": "y"}), ("spec.template.metadata.labels", {"app": "w", "x": "y"})),
    changed(workload("DaemonSet"), ("spec.selector.matchLabels", {"app": "w", "x": "y"}), ("spec.template.metadata.labels", {"app": "w", "x": "y"})),
    changed(workload("StatefulSet"), ("spec.podManagementPolicy", "Parallel")),
    changed(workload("StatefulSet"), ("spec.replicas", 3), ("spec.template.spec.containers.0.image", "other")),
    changed(of("batch/v1", "Job", spec=JOB_SPEC), ("spec.template.spec.containers.0.image", "other")),
    changed(of("batch/v1", "Job", spec=JOB_SPEC), ("spec.completions", 3)),
    changed(of("batch/v1", "Job", spec=JOB_SPEC), ("spec.parallelism", 3)),
    changed(core("Secret", stringData={"a": "b"}), ("type", "other")),
    changed(core("Secret", stringData={"a": "b"}, immutable=True), ("stringData", {"a": "c"})),
    changed(core("Secret", stringData={"a": "b"}, immutable=True), ("immutable", False)),
    changed(core("ConfigMap", data={"a": "b"}, immutable=True), ("data", {"a": "c"})),
    changed(of(RBAC, "RoleBinding", roleRef={"kind": "Role", "name": "r"}), ("roleRef.name", "other")),
    changed(of(RBAC, "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "r"}), ("roleRef.name", "other")),
    changed(core("PersistentVolumeClaim", spec=CLAIM), ("spec.accessModes", ["ReadWriteMany"])),
    changed(core("PersistentVolumeClaim", spec=CLAIM), ("spec.resources.requests.storage", "2Gi")),
    changed(core("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}), ("spec.hostPath.path", "/y")),
    changed(pod(), ("spec.containers.0.image", "other")),
    changed(pod(), ("spec.containers.0.name", "other")),
    changed(pod(), ("spec.restartPolicy", "Never")),
    changed(pod(), ("spec.tolerations", [{"key": "a", "operator": "Exists"}])),
    changed(service(ports=[PORT]), ("spec.clusterIP", "10.0.0.99")),
    changed(of("storage.k8s.io/v1", "StorageClass", provisioner="a.example/b"), ("provisioner", "c.example/d")),
    changed(of("storage.k8s.io/v1", "StorageClass", provisioner="a.example/b"), ("parameters", {"a": "b"})),
    changed(of("scheduling.k8s.io/v1", "PriorityClass", value=5), ("value", 6)),
    changed(of("networking.k8s.io/v1", "IngressClass", spec={"controller": "a.example/b"}), ("spec.controller", "c.example/d")),
    changed(of("node.k8s.io/v1", "RuntimeClass", handler="runc"), ("handler", "other")),
    changed(of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4"), ("addressType", "IPv6")),
    changed(of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}), ("spec.selector.matchLabels", {"c": "d"})),
    changed(of("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": JOB_SPEC}}), ("spec.schedule", "bad")),
]


class Server:
    def __init__(self, kubeconfig):
        text = pathlib.Path(kubeconfig).read_text()
        self.base = re.search(r"(https://127\.0\.0\.1:\d+)", text)[1]
        self.context = ssl._create_unverified_context()
        self.plurals = {}
        for line in (ROOT / "crates/informant-apiserver/data/resources.tsv").read_text().splitlines():
            columns = line.split("\t")
            if len(columns) == 8:
                self.plurals[columns[0], columns[2]] = (columns[1], columns[6] == "namespaced")

    def path(self, item):
        plural, namespaced = self.plurals[item["apiVersion"], item["kind"]]
        group = "apis" if "/" in item["apiVersion"] else "api"
        return f"/{group}/{item['apiVersion']}/{'namespaces/default/' if namespaced else ''}{plural}"

    def call(self, method, path, body=None):
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)


def case(before, item, answer):
    found = {"input": item} if before is None else {"before": before, "input": item}
    if answer["kind"] == "Status" and answer.get("status") == "Failure":
        found["code"] = answer["code"]
        found["message"] = answer["message"]
        found["causes"] = answer.get("details", {}).get("causes", [])
        return found
    found["uid"] = answer["metadata"].get("uid", "")
    for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion", "generation"]:
        answer["metadata"].pop(field, None)
    found["output"] = answer
    return found


def main():
    server = Server(sys.argv[1])
    cases = []
    for item in VALID + INVALID:
        cases.append(case(None, item, server.call("POST", server.path(item) + "?dryRun=All", item)))
    for old, new in UPDATES:
        created = server.call("POST", server.path(old), old)
        item = server.path(old) + "/" + old["metadata"]["name"]
        if created.get("status") == "Failure":
            sys.exit(f"{item}: {created['message']}")
        # What the server has added stays in the update.
        merged = merge(created, new, old)
        cases.append(case(created, merged, server.call("PUT", item + "?dryRun=All", merged)))
        server.call("DELETE", item, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        gone = server.call("GET", item)
        if gone.get("metadata", {}).get("finalizers"):
            gone["metadata"]["finalizers"] = []
            server.call("PUT", item, gone)
    lines = ",\n".join(json.dumps(entry, sort_keys=True) for entry in cases)
    TARGET.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases")


def merge(created, new, old):
    """The created object with what `new` has other than `old`."""
    if isinstance(created, dict) and isinstance(new, dict):
        old = old if isinstance(old, dict) else {}
        merged = dict(created)
        for key, value in new.items():
            if key not in old or old[key] != value:
                merged[key] = merge(created.get(key), value, old.get(key))
        return merged
    if isinstance(created, list) and isinstance(new, list) and isinstance(old, list) and len(created) == len(new) == len(old):
        return [merge(a, b, c) if b != c else a for a, b, c in zip(created, new, old)]
    return new


main()
