"""The requests, in groups. A group's requests are sent in order, first to the one server, then to the other."""

import random

from ownership_requests import ownership_in
from request import APPLY, JSON_PATCH, MERGE, STRATEGIC, send

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
#: A new one each time, so that a server can be compared again.
NAMESPACE = f"compared-{random.randrange(16**6):06x}"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


def get(path, accept="application/json"):
    return send("GET", path, accept=accept)


def named(kind, version, name, **fields):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def config_map(name, **data):
    return named("ConfigMap", "v1", name, data=data)


def template(**labels):
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]}}


def deployment(name, **spec):
    return named("Deployment", "apps/v1", name, spec={"selector": {"matchLabels": {"app": name}}, "template": template(app=name), **spec})


def namespace():
    yield "namespace", send("POST", "/api/v1/namespaces", named("Namespace", "v1", NAMESPACE))


def discovery():
    yield "root of core", get("/api")
    yield "groups", get("/apis")
    yield "aggregated core", get("/api", AGGREGATED)
    yield "aggregated groups", get("/apis", AGGREGATED)
    for group in ("apps", "batch", "apiextensions.k8s.io", "rbac.authorization.k8s.io", "nothing.example.com"):
        yield f"group {group}", get(f"/apis/{group}")
    for path in ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/autoscaling/v2", "apis/policy/v1", "apis/networking.k8s.io/v1",
                 "apis/rbac.authorization.k8s.io/v1", "apis/apiextensions.k8s.io/v1", "apis/coordination.k8s.io/v1", "apis/storage.k8s.io/v1",
                 "apis/authentication.k8s.io/v1", "apis/authorization.k8s.io/v1", "apis/discovery.k8s.io/v1", "apis/events.k8s.io/v1",
                 "apis/scheduling.k8s.io/v1", "apis/node.k8s.io/v1", "apis/admissionregistration.k8s.io/v1", "apis/certificates.k8s.io/v1",
                 "apis/flowcontrol.apiserver.k8s.io/v1", "apis/apps/v9"):
        yield path, get(f"/{path}")


def paths():
    yield "no such path", get("/nothing")
    yield "no such resource", get("/api/v1/thingies")
    yield "no such resource in a namespace", get(f"{CORE}/thingies")
    yield "no such group", get("/apis/nothing.example.com/v1/things")
    yield "no such object", get(f"{MAPS}/nobody")
    yield "no such object of a group", get(f"{DEPLOYMENTS}/nobody")
    yield "no such subresource", get(f"{MAPS}/nobody/status")
    yield "a namespaced object without namespace", send("POST", "/api/v1/configmaps", config_map("x"))
    yield "put to a collection", send("PUT", MAPS, config_map("x"))
    yield "post to an object", send("POST", f"{MAPS}/x", config_map("x"))
    yield "delete of all namespaces' objects", send("DELETE", "/api/v1/configmaps")
    yield "livez", get("/livez")
    yield "list of a missing namespace", get("/api/v1/namespaces/nobody/configmaps")
    yield "accept nothing served", get(MAPS, "text/html")
    yield "accept yaml", get(f"{MAPS}/nobody", "application/yaml")


def bodies():
    yield "no body", send("POST", MAPS)
    yield "malformed JSON", send("POST", MAPS, '{"metadata": ')
    yield "not an object", send("POST", MAPS, "[1]")
    yield "no kind", send("POST", MAPS, {"metadata": {"name": "kindless"}})
    yield "another kind", send("POST", MAPS, named("Secret", "v1", "x"))
    yield "another version", send("POST", MAPS, named("ConfigMap", "v2", "x"))
    yield "another namespace", send("POST", MAPS, {**config_map("x"), "metadata": {"name": "x", "namespace": "other"}})
    yield "a missing namespace", send("POST", "/api/v1/namespaces/nobody/configmaps", config_map("x"))
    yield "no name", send("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap"})
    yield "a bad name", send("POST", MAPS, config_map("Bad_Name"))
    yield "a long name", send("POST", MAPS, config_map("x" * 254))
    yield "a service's bad name", send("POST", f"{CORE}/services", named("Service", "v1", "1a.b", spec={"ports": [{"port": 1}]}))
    yield "a bad label", send("POST", MAPS, {**config_map("x"), "metadata": {"name": "x", "labels": {"a/b/c": "-"}}})
    yield "a resourceVersion at create", send("POST", MAPS, {**config_map("x"), "metadata": {"name": "x", "resourceVersion": "5"}})
    yield "a wrong type", send("POST", MAPS, {**config_map("x"), "data": {"a": 1}})
    yield "a wrong type in a deployment", send("POST", DEPLOYMENTS, deployment("x", replicas="two"))
    yield "unknown media type", send("POST", MAPS, "a=b", content="application/x-www-form-urlencoded")
    yield "yaml", send("POST", MAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\ndata: {a: '1'}\n", content="application/yaml")
    yield "malformed yaml", send("POST", MAPS, "a: [", content="application/yaml")
    yield "not utf-8", send("POST", MAPS, b'{"metadata": {"name": "\xff"}}')
    yield "strict unknown field", send("POST", f"{MAPS}?fieldValidation=Strict", {**config_map("x"), "colour": 1, "metadata": {"name": "x", "foo": 1}})
    yield "strict duplicate field", send("POST", f"{MAPS}?fieldValidation=Strict", '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","name":"y"}}')
    yield "ignored unknown field", send("POST", f"{MAPS}?fieldValidation=Ignore", {**config_map("ignored"), "colour": 1})
    yield "bad fieldValidation", send("POST", f"{MAPS}?fieldValidation=Perhaps", config_map("x"))
    yield "bad dryRun", send("POST", f"{MAPS}?dryRun=Some", config_map("x"))
    yield "dry run", send("POST", f"{MAPS}?dryRun=All", config_map("dry"))
    yield "dry run left nothing", get(f"{MAPS}/dry")
    yield "generateName", send("POST", MAPS, {"metadata": {"generateName": "gen-"}})


def lists():
    for name, tier in (("l1", "a"), ("l2", "b"), ("l3", "a")):
        yield f"make {name}", send("POST", MAPS, {**config_map(name), "metadata": {"name": name, "labels": {"tier": tier, "set": "lists"}}})
    yield "all", get(f"{MAPS}?labelSelector=set=lists")
    yield "one page", get(f"{MAPS}?labelSelector=set=lists&limit=2")
    yield "by field", get(f"{MAPS}?fieldSelector=metadata.name=l2")
    yield "by field, not", get(f"{MAPS}?fieldSelector=metadata.name!=l2&labelSelector=set=lists")
    yield "set selector", get(f"{MAPS}?labelSelector=tier in (a),set")
    yield "not exists", get(f"{MAPS}?labelSelector=!tier,set")
    yield "bad label selector", get(f"{MAPS}?labelSelector=a in b")
    yield "bad field selector", get(f"{MAPS}?fieldSelector=a")
    yield "unknown field selector", get(f"{MAPS}?fieldSelector=spec.x=1")
    yield "unknown field selector of pods", get(f"{CORE}/pods?fieldSelector=spec.x=1")
    yield "known field selector of pods", get(f"{CORE}/pods?fieldSelector=spec.nodeName=n,status.phase=Running")
    yield "garbage continue", get(f"{MAPS}?limit=1&continue=garbage")
    yield "continue with a version", get(f"{MAPS}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAsInN0YXJ0IjoiYSJ9&resourceVersion=5")
    yield "bad limit", get(f"{MAPS}?limit=x")
    yield "bad version", get(f"{MAPS}?resourceVersion=x")
    yield "match without version", get(f"{MAPS}?resourceVersionMatch=Exact")
    yield "exact zero", get(f"{MAPS}?resourceVersion=0&resourceVersionMatch=Exact")
    yield "bad match", get(f"{MAPS}?resourceVersion=1&resourceVersionMatch=Some")
    yield "version with limit", get(f"{MAPS}?resourceVersion=0&limit=1&labelSelector=set=lists")
    yield "initial events on a list", get(f"{MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    yield "watch: match without initial events", get(f"{MAPS}?watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
    yield "watch: initial events without match", get(f"{MAPS}?watch=true&sendInitialEvents=true&timeoutSeconds=1")
    yield "watch: initial events with exact", get(f"{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1&timeoutSeconds=1")
    yield "watch: bad version", get(f"{MAPS}?watch=true&resourceVersion=x&timeoutSeconds=1")
    yield "watch: from nothing", get(f"{MAPS}?watch=true&timeoutSeconds=1&labelSelector=set=lists")
    yield "watch: from zero", get(f"{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=1&labelSelector=set=lists")
    yield "watch: initial events", get(f"{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1&labelSelector=set=lists")
    yield "watch: initial events of nothing", get(f"{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1&labelSelector=set=none")
    yield "watch: as table", get(f"{MAPS}?watch=true&timeoutSeconds=1&labelSelector=set=lists", TABLE)
    yield "watch: one object", get(f"{MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=l1")
    yield "as table", get(f"{MAPS}?labelSelector=set=lists", TABLE)
    yield "metadata only", get(f"{MAPS}?labelSelector=set=lists", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    yield "metadata of one", get(f"{MAPS}/l1", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    yield "table without objects", get(f"{MAPS}?labelSelector=set=lists&includeObject=None", TABLE)
    yield "table with objects", get(f"{MAPS}?labelSelector=set=lists&includeObject=Object", TABLE)
    yield "deletecollection", send("DELETE", f"{MAPS}?labelSelector=set=lists")


def writes():
    yield "create", send("POST", f"{MAPS}?fieldManager=tester", config_map("w", a="1"))
    yield "create again", send("POST", MAPS, config_map("w"))
    yield "get", get(f"{MAPS}/w")
    yield "update", send("PUT", f"{MAPS}/w?fieldManager=tester", config_map("w", a="2"))
    yield "no-op update", send("PUT", f"{MAPS}/w?fieldManager=tester", config_map("w", a="2"))
    yield "stale update", send("PUT", f"{MAPS}/w", {**config_map("w"), "metadata": {"name": "w", "resourceVersion": "1"}})
    yield "update by another uid", send("PUT", f"{MAPS}/w", {**config_map("w"), "metadata": {"name": "w", "uid": "11111111-2222-3333-4444-555555555555"}})
    yield "update with another name", send("PUT", f"{MAPS}/w", config_map("v"))
    yield "update of nothing", send("PUT", f"{MAPS}/nobody", config_map("nobody"))
    yield "merge patch", send("PATCH", f"{MAPS}/w?fieldManager=tester", {"data": {"b": "1"}}, content=MERGE)
    yield "strategic patch", send("PATCH", f"{MAPS}/w?fieldManager=tester", {"data": {"c": "1"}}, content=STRATEGIC)
    yield "json patch", send("PATCH", f"{MAPS}/w?fieldManager=tester", [{"op": "add", "path": "/data/d", "value": "1"}], content=JSON_PATCH)
    yield "json patch, failed test", send("PATCH", f"{MAPS}/w", [{"op": "test", "path": "/data/d", "value": "2"}], content=JSON_PATCH)
    yield "json patch, missing path", send("PATCH", f"{MAPS}/w", [{"op": "remove", "path": "/data/z"}], content=JSON_PATCH)
    yield "json patch, unknown op", send("PATCH", f"{MAPS}/w", [{"op": "fly", "path": "/data/z"}], content=JSON_PATCH)
    yield "json patch, not a list", send("PATCH", f"{MAPS}/w", {"data": {}}, content=JSON_PATCH)
    yield "merge patch, malformed", send("PATCH", f"{MAPS}/w", "{", content=MERGE)
    yield "patch of nothing", send("PATCH", f"{MAPS}/nobody", {}, content=MERGE)
    yield "patch with a stale version", send("PATCH", f"{MAPS}/w", {"metadata": {"resourceVersion": "1"}, "data": {"z": "1"}}, content=MERGE)
    yield "patch that renames", send("PATCH", f"{MAPS}/w", {"metadata": {"name": "v"}}, content=MERGE)
    yield "patch of an unknown type", send("PATCH", f"{MAPS}/w", {}, content="application/json")
    yield "apply", send("PATCH", f"{MAPS}/applied?fieldManager=one", config_map("applied", a="1"), content=APPLY)
    yield "apply, conflict", send("PATCH", f"{MAPS}/applied?fieldManager=two", config_map("applied", a="2"), content=APPLY)
    yield "apply, force", send("PATCH", f"{MAPS}/applied?fieldManager=two&force=true", config_map("applied", a="2"), content=APPLY)
    yield "apply, no manager", send("PATCH", f"{MAPS}/applied", config_map("applied"), content=APPLY)
    yield "apply, no kind", send("PATCH", f"{MAPS}/applied?fieldManager=one", {"metadata": {"name": "applied"}}, content=APPLY)
    yield "apply, with managedFields", send("PATCH", f"{MAPS}/applied?fieldManager=one", {**config_map("applied"), "metadata": {"managedFields": [{}]}}, content=APPLY)
    yield "apply, unknown field", send("PATCH", f"{MAPS}/applied?fieldManager=one", {**config_map("applied"), "colour": 1}, content=APPLY)
    yield "apply, another name", send("PATCH", f"{MAPS}/applied?fieldManager=one", config_map("other"), content=APPLY)
    yield "force without apply", send("PATCH", f"{MAPS}/applied?force=true", {}, content=MERGE)
    yield "delete, wrong uid", send("DELETE", f"{MAPS}/w", {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})
    yield "delete, wrong version", send("DELETE", f"{MAPS}/w", {"preconditions": {"resourceVersion": "1"}})
    yield "delete, bad propagation", send("DELETE", f"{MAPS}/w?propagationPolicy=Sideways")
    yield "delete, dry run", send("DELETE", f"{MAPS}/w?dryRun=All")
    yield "delete", send("DELETE", f"{MAPS}/w")
    yield "delete of nothing", send("DELETE", f"{MAPS}/w")
    yield "create with finalizer", send("POST", MAPS, {**config_map("f"), "metadata": {"name": "f", "finalizers": ["x.example/y"]}})
    yield "delete with finalizer", send("DELETE", f"{MAPS}/f")
    yield "delete with finalizer again", send("DELETE", f"{MAPS}/f")
    yield "another finalizer while it's deleted", send("PATCH", f"{MAPS}/f", {"metadata": {"finalizers": ["x.example/y", "x.example/z"]}}, content=MERGE)
    yield "finalizer removed", send("PATCH", f"{MAPS}/f", {"metadata": {"finalizers": None}}, content=MERGE)
    yield "it's gone", get(f"{MAPS}/f")
    yield "bad finalizer", send("POST", MAPS, {**config_map("g"), "metadata": {"name": "g", "finalizers": ["nopath"]}})


def subresources():
    yield "create", send("POST", f"{DEPLOYMENTS}?fieldManager=tester", deployment("s"))
    yield "get status", get(f"{DEPLOYMENTS}/s/status")
    yield "get scale", get(f"{DEPLOYMENTS}/s/scale")
    yield "scale by patch", send("PATCH", f"{DEPLOYMENTS}/s/scale?fieldManager=tester", {"spec": {"replicas": 3}}, content=MERGE)
    yield "scale by put", send("PUT", f"{DEPLOYMENTS}/s/scale?fieldManager=tester", named("Scale", "autoscaling/v1", "s", spec={"replicas": 2}))
    yield "scale below zero", send("PATCH", f"{DEPLOYMENTS}/s/scale", {"spec": {"replicas": -1}}, content=MERGE)
    yield "status ignores the spec", send("PATCH", f"{DEPLOYMENTS}/s/status?fieldManager=tester", {"spec": {"replicas": 9}, "status": {"observedGeneration": 2}}, content=MERGE)
    yield "the spec ignores the status", send("PATCH", f"{DEPLOYMENTS}/s?fieldManager=tester", {"status": {"observedGeneration": 7}, "spec": {"paused": True}}, content=MERGE)
    yield "immutable selector", send("PATCH", f"{DEPLOYMENTS}/s", {"spec": {"selector": {"matchLabels": {"app": "t"}}}}, content=MERGE)
    yield "label leaves the generation", send("PATCH", f"{DEPLOYMENTS}/s?fieldManager=tester", {"metadata": {"labels": {"a": "b"}}}, content=MERGE)
    yield "annotation raises the generation", send("PATCH", f"{DEPLOYMENTS}/s?fieldManager=tester", {"metadata": {"annotations": {"a": "b"}}}, content=MERGE)
    yield "table", get(DEPLOYMENTS, TABLE)
    yield "delete in the background", send("DELETE", f"{DEPLOYMENTS}/s?propagationPolicy=Background")
    yield "token", send("POST", f"{CORE}/serviceaccounts/nobody/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})


def defaults():
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    job = {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}}
    selected = {"selector": {"matchLabels": {"a": "b"}}, "template": template(a="b")}
    probe = {"httpGet": {"port": 80}}
    full = {"name": "c", "image": "i", "ports": [{"containerPort": 1}], "livenessProbe": probe, "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}}
    volumes = [{"name": "a", "configMap": {"name": "x"}}, {"name": "b", "secret": {"secretName": "x"}}, {"name": "c", "hostPath": {"path": "/x"}}, {"name": "d", "emptyDir": {}},
               {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, {"name": "f", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
    apps, batch, net = "apis/apps/v1", "apis/batch/v1", "apis/networking.k8s.io/v1"
    for resource, body in (
        ("api/v1:pods", named("Pod", "v1", "d1", spec=template()["spec"])),
        ("api/v1:pods", named("Pod", "v1", "d2", spec={"containers": [full], "volumes": volumes, "securityContext": {}, "serviceAccountName": "x"})),
        ("api/v1:services", named("Service", "v1", "d1", spec={"ports": [{"port": 80}]})),
        ("api/v1:services", named("Service", "v1", "d2", spec={"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "x"}]})),
        ("api/v1:services", named("Service", "v1", "d3", spec={"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"a": "b"}})),
        ("api/v1:services", named("Service", "v1", "d4", spec={"clusterIP": "None", "selector": {"a": "b"}})),
        ("api/v1:services", named("Service", "v1", "d5", spec={"type": "ExternalName", "externalName": "x.example"})),
        ("api/v1:secrets", named("Secret", "v1", "d1", stringData={"a": "b"})),
        ("api/v1:serviceaccounts", named("ServiceAccount", "v1", "d1")),
        ("api/v1:persistentvolumeclaims", named("PersistentVolumeClaim", "v1", "d1", spec=claim)),
        ("api/v1:persistentvolumes", named("PersistentVolume", "v1", "d1", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}})),
        ("api/v1:replicationcontrollers", named("ReplicationController", "v1", "d1", spec={"template": template(a="b")})),
        ("api/v1:resourcequotas", named("ResourceQuota", "v1", "d1", spec={"hard": {"configmaps": "100"}})),
        ("api/v1:limitranges", named("LimitRange", "v1", "d1", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}]})),
        ("api/v1:endpoints", named("Endpoints", "v1", "d1", subsets=[{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}])),
        ("api/v1:nodes", named("Node", "v1", "d1")),
        ("api/v1:namespaces", named("Namespace", "v1", "d1")),
        (f"{apps}:deployments", deployment("d1")),
        (f"{apps}:deployments", deployment("d2", strategy={"type": "Recreate"})),
        (f"{apps}:statefulsets", named("StatefulSet", "apps/v1", "d1", spec={**selected, "serviceName": "s", "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": claim}]})),
        (f"{apps}:daemonsets", named("DaemonSet", "apps/v1", "d1", spec=selected)),
        (f"{apps}:replicasets", named("ReplicaSet", "apps/v1", "d1", spec=selected)),
        (f"{apps}:controllerrevisions", named("ControllerRevision", "apps/v1", "d1", revision=1, data={"a": 1})),
        (f"{batch}:jobs", named("Job", "batch/v1", "d1", spec=job)),
        (f"{batch}:cronjobs", named("CronJob", "batch/v1", "d1", spec={"schedule": "* * * * *", "jobTemplate": {"spec": job}})),
        ("apis/autoscaling/v2:horizontalpodautoscalers", named("HorizontalPodAutoscaler", "autoscaling/v2", "d1", spec={"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d1", "apiVersion": "apps/v1"}})),
        ("apis/policy/v1:poddisruptionbudgets", named("PodDisruptionBudget", "policy/v1", "d1", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}})),
        (f"{net}:networkpolicies", named("NetworkPolicy", "networking.k8s.io/v1", "d1", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]})),
        (f"{net}:ingresses", named("Ingress", "networking.k8s.io/v1", "d1", spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}})),
        (f"{net}:ingressclasses", named("IngressClass", "networking.k8s.io/v1", "d1", spec={"controller": "x.example/y"})),
        ("apis/rbac.authorization.k8s.io/v1:roles", named("Role", "rbac.authorization.k8s.io/v1", "d1", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])),
        ("apis/rbac.authorization.k8s.io/v1:rolebindings", named("RoleBinding", "rbac.authorization.k8s.io/v1", "d1", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "d1"}, subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}])),
        ("apis/storage.k8s.io/v1:storageclasses", named("StorageClass", "storage.k8s.io/v1", "d1", provisioner="x.example/y")),
        ("apis/scheduling.k8s.io/v1:priorityclasses", named("PriorityClass", "scheduling.k8s.io/v1", "d1", value=7)),
        ("apis/coordination.k8s.io/v1:leases", named("Lease", "coordination.k8s.io/v1", "d1", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})),
        ("apis/discovery.k8s.io/v1:endpointslices", named("EndpointSlice", "discovery.k8s.io/v1", "d1", addressType="IPv4", endpoints=[{"addresses": ["10.9.9.9"]}], ports=[{"port": 80}])),
        ("apis/admissionregistration.k8s.io/v1:validatingwebhookconfigurations", named("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "d1", webhooks=[
            {"name": "a.b.example", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}])),
    ):
        group, plural = resource.split(":")
        cluster = plural in ("nodes", "namespaces", "persistentvolumes", "ingressclasses", "storageclasses", "priorityclasses", "validatingwebhookconfigurations")
        place = f"/{group}/{plural}" if cluster else f"/{group}/namespaces/{NAMESPACE}/{plural}"
        name = body["metadata"]["name"]
        yield f"{plural} {name}", send("POST", f"{place}?fieldManager=tester&fieldValidation=Strict", body)
        yield f"{plural} {name} as table", get(f"{place}/{name}", TABLE)
        yield f"{plural} {name} deleted", send("DELETE", f"{place}/{name}?gracePeriodSeconds=0")


def invalid():
    yield "pod without containers", send("POST", f"{CORE}/pods", named("Pod", "v1", "i", spec={}))
    yield "pod without image", send("POST", f"{CORE}/pods", named("Pod", "v1", "i", spec={"containers": [{"name": "c"}]}))
    yield "pod with a bad container", send("POST", f"{CORE}/pods", named("Pod", "v1", "i", spec={"containers": [{"name": "C_", "image": "i"}, {"name": "d", "image": "i", "ports": [{"containerPort": 0}]}]}))
    yield "deployment without selector", send("POST", DEPLOYMENTS, named("Deployment", "apps/v1", "i", spec={"template": template(a="b")}))
    yield "deployment whose selector misses", send("POST", DEPLOYMENTS, deployment("i", selector={"matchLabels": {"x": "y"}}))
    yield "deployment with negative replicas", send("POST", DEPLOYMENTS, deployment("i", replicas=-1))
    yield "service without ports", send("POST", f"{CORE}/services", named("Service", "v1", "i", spec={}))
    yield "job without restart policy", send("POST", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", named("Job", "batch/v1", "i", spec={"template": template()}))
    yield "cronjob with a bad schedule", send("POST", f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs", named("CronJob", "batch/v1", "i", spec={"schedule": "now", "jobTemplate": {"spec": {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}}}}))
    yield "secret with bad base64", send("POST", f"{CORE}/secrets", named("Secret", "v1", "i", data={"a": "%"}))
    yield "configmap with a bad key", send("POST", MAPS, config_map("i", **{"a/b": "1"}))


def definition(group, **version):
    return named("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"things.{group}", spec={
        "group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
        "versions": [{"name": "v1", "served": True, "storage": True, **version, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9}, "mode": {"type": "string", "default": "slow", "enum": ["slow", "fast"]},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "^[a-z]+$"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "port": {"x-kubernetes-int-or-string": True}}},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}}}}]})


def custom():
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    group = f"{NAMESPACE}.example.com"
    things = f"/apis/{group}/v1/namespaces/{NAMESPACE}/things"

    def thing(name, **spec):
        return named("Thing", f"{group}/v1", name, spec=spec)

    yield "before", get(things)
    yield "no schema", send("POST", definitions, named("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"things.{group}", spec={"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": True, "storage": True}]}))
    wrong = definition(group)
    wrong["metadata"]["name"] = "wrong"
    yield "wrong name", send("POST", definitions, wrong)
    untyped = definition(group)
    del untyped["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"]
    yield "untyped schema", send("POST", definitions, untyped)
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    yield "create", send("POST", f"{definitions}?fieldManager=tester", definition(group, additionalPrinterColumns=columns, subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}}))
    # It's established meanwhile.
    yield "a moment", get(f"{definitions}?watch=true&timeoutSeconds=3&fieldSelector=metadata.name=nobody")
    yield "established", get(f"{definitions}/things.{group}")
    yield "in discovery", get(f"/apis/{group}/v1")
    yield "group in discovery", get(f"/apis/{group}")
    yield "definitions as table", get(f"{definitions}/things.{group}", TABLE)
    yield "list of none", get(things)
    yield "object", send("POST", f"{things}?fieldManager=tester", thing("a", size=1, free={"x": [1]}, port="http", gone=1))
    yield "object as table", get(f"{things}/a", TABLE)
    yield "invalid object", send("POST", things, thing("b", size=10, mode="odd", tags=["A", "b", "c"]))
    yield "missing field", send("POST", things, thing("b"))
    yield "wrong type", send("POST", things, thing("b", size="x", port=True))
    yield "no spec at all", send("POST", f"{things}?fieldManager=tester", named("Thing", f"{group}/v1", "nospec"))
    yield "strict unknown field", send("POST", f"{things}?fieldValidation=Strict", thing("b", size=1, gone=1))
    yield "wrong kind", send("POST", things, named("Other", f"{group}/v1", "b"))
    yield "bad name", send("POST", things, thing("B", size=1))
    yield "strategic patch", send("PATCH", f"{things}/a", {"spec": {"size": 2}}, content=STRATEGIC)
    yield "merge patch", send("PATCH", f"{things}/a?fieldManager=tester", {"spec": {"size": 2}}, content=MERGE)
    yield "no-op patch", send("PATCH", f"{things}/a?fieldManager=tester", {"spec": {"size": 2}}, content=MERGE)
    yield "invalid patch", send("PATCH", f"{things}/a", {"spec": {"size": 0}}, content=MERGE)
    yield "status", send("PATCH", f"{things}/a/status?fieldManager=tester", {"status": {"ready": True}, "spec": {"size": 5}}, content=MERGE)
    yield "status by the main resource", send("PATCH", f"{things}/a?fieldManager=tester", {"status": {"ready": False}}, content=MERGE)
    yield "scale", get(f"{things}/a/scale")
    yield "scale by patch", send("PATCH", f"{things}/a/scale?fieldManager=tester", {"spec": {"replicas": 3}}, content=MERGE)
    yield "apply", send("PATCH", f"{things}/c?fieldManager=one", thing("c", size=1, tags=["a"]), content=APPLY)
    yield "apply conflict", send("PATCH", f"{things}/c?fieldManager=two", thing("c", size=2), content=APPLY)
    yield "put without version", send("PUT", f"{things}/a", thing("a", size=3))
    yield "stale put", send("PUT", f"{things}/a", {**thing("a", size=3), "metadata": {"name": "a", "resourceVersion": "1"}})
    yield "unknown field selector", get(f"{things}?fieldSelector=spec.size=1")
    yield "list", get(things)
    yield "watch", get(f"{things}?watch=true&timeoutSeconds=1&resourceVersion=0")
    yield "delete", send("DELETE", f"{things}/a")
    yield "deletecollection", send("DELETE", things)
    yield "delete the definition", send("DELETE", f"{definitions}/things.{group}")


def reviews():
    access = "/apis/authorization.k8s.io/v1"
    yield "self access", send("POST", f"{access}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    yield "self access to a path", send("POST", f"{access}/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/livez"}}})
    yield "self access to neither", send("POST", f"{access}/selfsubjectaccessreviews", {"spec": {}})
    yield "access of nobody", send("POST", f"{access}/subjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    yield "get of a review", get(f"{access}/selfsubjectaccessreviews")
    yield "token review", send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "nonsense"}})


def ownership():
    yield from ownership_in(NAMESPACE)


GROUPS = {function.__name__: function for function in (
    namespace, discovery, paths, bodies, lists, writes, subresources, defaults, invalid, custom, ownership, reviews)}
