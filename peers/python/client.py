"""The Python client's list, watch and patch, typed and dynamic, and its own shared informer."""

import logging
import pathlib
import queue
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from checks import Checks
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer


def main() -> int:
    config.load_kube_config()
    # Its informer reports its own end as an error, with a trace.
    logging.getLogger("kubernetes.informer").setLevel(logging.CRITICAL)
    checks = Checks()
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    namespace = f"python-{random.randrange(16**6):06x}"
    checks.true("the version answers", client.VersionApi().get_code().git_version.startswith("v1.37."))
    core.create_namespace({"metadata": {"name": namespace}})
    names = [item.metadata.name for item in core.list_namespace().items]
    checks.true("namespaces list", {"default", "kube-system", namespace} <= set(names), str(names))
    try:
        lists(checks, core, namespace)
        watches(checks, core, namespace)
        patches(checks, apps, namespace)
        refusals(checks, core, namespace)
        dynamically(checks, namespace)
        informs(checks, core, namespace)
    finally:
        core.delete_namespace(namespace)
    return checks.verdict()


def config_map(name: str, **data: str):
    return {"metadata": {"name": name, "labels": {"set": "python"}}, "data": data}


def lists(checks, core, namespace):
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"page-{number}", n=str(number)))
    seen, token, pages = [], None, 0
    while pages == 0 or token:
        page = core.list_namespaced_config_map(namespace, label_selector="set=python", limit=2, _continue=token)
        seen += [item.metadata.name for item in page.items]
        token, pages = page.metadata._continue, pages + 1
    checks.equal("a list in pages has each object once", seen, [f"page-{number}" for number in range(5)])
    checks.equal("three pages of two", pages, 3)
    one = core.list_namespaced_config_map(namespace, field_selector="metadata.name=page-3").items
    checks.equal("a field selector finds one", [item.data["n"] for item in one], ["3"])
    everywhere = core.list_config_map_for_all_namespaces(label_selector="set=python").items
    checks.equal("a list of all namespaces has them too", len([item for item in everywhere if item.metadata.namespace == namespace]), 5)
    core.delete_collection_namespaced_config_map(namespace, label_selector="set=python")
    checks.equal("deletecollection deletes what is selected", core.list_namespaced_config_map(namespace, label_selector="set=python").items, [])


def watches(checks, core, namespace):
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("watched", v="1"))
    core.patch_namespaced_config_map("watched", namespace, {"data": {"v": "2"}})
    core.delete_namespaced_config_map("watched", namespace)
    stream = watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=start, label_selector="set=python", timeout_seconds=2)
    events = [(event["type"], event["object"].data["v"]) for event in stream]
    checks.equal("a watch from a list's version replays what came since, and ends by its timeout", events, [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")])
    core.create_namespaced_config_map(namespace, config_map("present", v="1"))
    watcher, live = watch.Watch(), []
    for event in watcher.stream(core.list_namespaced_config_map, namespace, label_selector="set=python", timeout_seconds=20):
        live.append((event["type"], event["object"].metadata.name))
        if len(live) == 1:
            core.create_namespaced_config_map(namespace, config_map("arriving"))
        if len(live) == 2:
            watcher.stop()
    checks.equal("a watch without a version begins with what is there and follows", live, [("ADDED", "present"), ("ADDED", "arriving")])


def patches(checks, apps, namespace):
    container = {"name": "web", "image": "registry.example/web:1"}
    apps.create_namespaced_deployment(namespace, {
        "metadata": {"name": "patched"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "p"}},
                 "template": {"metadata": {"labels": {"app": "p"}}, "spec": {"containers": [container]}}},
    })
    side = {"name": "side", "image": "registry.example/side:1"}
    patched = apps.patch_namespaced_deployment("patched", namespace, {"spec": {"template": {"spec": {"containers": [side]}}}})
    checks.equal("the default patch is strategic: it merges containers by name", sorted(item.name for item in patched.spec.template.spec.containers), ["side", "web"])
    scaled = apps.patch_namespaced_deployment_scale("patched", namespace, {"spec": {"replicas": 3}})
    checks.equal("the scale subresource is patched", (scaled.spec.replicas, scaled.status.selector), (3, "app=p"))
    steps = [{"op": "test", "path": "/spec/replicas", "value": 3}, {"op": "replace", "path": "/spec/replicas", "value": 1}]
    checks.equal("a list is sent as a JSON patch", apps.patch_namespaced_deployment("patched", namespace, steps).spec.replicas, 1)
    status = {"status": {"collisionCount": 2}, "spec": {"replicas": 9}}
    patched = apps.patch_namespaced_deployment_status("patched", namespace, status)
    checks.equal("the status subresource changes the status alone", (patched.status.collision_count, patched.spec.replicas), (2, 1))
    owned = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "patched", "labels": {"by": "apply"}}}
    applied = apps.patch_namespaced_deployment("patched", namespace, owned, field_manager="python", force=True, _content_type="application/apply-patch+yaml")
    managers = {entry.manager: entry.operation for entry in applied.metadata.managed_fields}
    checks.equal("a server-side apply is tracked", (applied.metadata.labels["by"], managers.get("python")), ("apply", "Apply"))
    apps.delete_namespaced_deployment("patched", namespace, propagation_policy="Background")


def refusals(checks, core, namespace):
    def refused(name, code, reason, call):
        try:
            call()
            checks.record(name, ["it was accepted"])
        except ApiException as refusal:
            body = refusal.body or ""
            checks.record(name, [] if refusal.status == code and f'"reason":"{reason}"' in body.replace(" ", "") else [f"{refusal.status} {body}"])

    core.create_namespaced_config_map(namespace, config_map("there"))
    refused("a second create is refused", 409, "AlreadyExists", lambda: core.create_namespaced_config_map(namespace, config_map("there")))
    refused("a missing object is not found", 404, "NotFound", lambda: core.read_namespaced_config_map("missing", namespace))
    stale = {"metadata": {"name": "there", "resourceVersion": "1"}}
    refused("a stale version conflicts", 409, "Conflict", lambda: core.replace_namespaced_config_map("there", namespace, stale))
    refused("a garbage continue token is refused", 400, "BadRequest", lambda: core.list_namespaced_config_map(namespace, limit=1, _continue="x"))
    refused("a bad selector is refused", 400, "BadRequest", lambda: core.list_namespaced_config_map(namespace, label_selector="a in b"))


def dynamically(checks, namespace):
    group = f"{namespace}.example.com"
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced",
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }
    api = dynamic.DynamicClient(client.ApiClient())
    definitions = api.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definitions.create(body=definition)
    try:
        for event in definitions.watch(field_selector=f"metadata.name=things.{group}", timeout=20):
            conditions = (event["raw_object"].get("status") or {}).get("conditions") or []
            if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
                break
        api.resources.invalidate_cache()
        things = api.resources.get(api_version=f"{group}/v1", kind="Thing")
        thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"size": 1}}
        retried(lambda: things.create(body=thing, namespace=namespace))
        things.patch(name="one", namespace=namespace, body={"spec": {"size": 2}}, content_type="application/merge-patch+json")
        checks.equal("a custom object is created and patched dynamically", things.get(name="one", namespace=namespace).spec.size, 2)
        checks.equal("and listed", [item.metadata.name for item in things.get(namespace=namespace).items], ["one"])
    finally:
        definitions.delete(name=f"things.{group}")


def retried(call):
    """A real server answers 404 for a moment after a definition is established."""
    for _ in range(50):
        try:
            return call()
        except ApiException as refusal:
            if refusal.status != 404:
                raise
            threading.Event().wait(0.1)
    return call()


def informs(checks, core, namespace):
    core.create_namespaced_config_map(namespace, config_map("informed", v="1"))
    news = queue.Queue()
    informer = SharedInformer(list_func=core.list_namespaced_config_map, namespace=namespace, label_selector="set=python")
    informer.add_event_handler("ADDED", lambda item: news.put(("added", item.metadata.name)))
    informer.add_event_handler("MODIFIED", lambda item: news.put(("modified", item.metadata.name)))
    informer.add_event_handler("DELETED", lambda item: news.put(("deleted", item.metadata.name)))
    informer.start()
    try:
        def until(expected):
            for _ in range(50):
                if news.get(timeout=20) == expected:
                    return True
            return False

        checks.true("the shared informer adds what is there", until(("added", "informed")))
        core.patch_namespaced_config_map("informed", namespace, {"data": {"v": "2"}})
        checks.true("it follows a change", until(("modified", "informed")))
        core.delete_namespaced_config_map("informed", namespace)
        checks.true("it follows a deletion", until(("deleted", "informed")))
    finally:
        informer.stop()


if __name__ == "__main__":
    sys.exit(main())
