"""One object's whole life under a kopf operator: create, finalizer, update, delete."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from checks import Checks
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

GROUP, PLURAL = "kopf.example.com", "gardens"


def main() -> int:
    config.load_kube_config()
    checks = Checks()
    core, custom = client.CoreV1Api(), client.CustomObjectsApi()
    namespace = f"kopf-{random.randrange(16**6):06x}"
    core.create_namespace({"metadata": {"name": namespace}})
    define(checks)
    with tempfile.TemporaryFile("w+") as log:
        words = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(HERE / "gardener.py")]
        operator = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            live(checks, core, custom, namespace)
        finally:
            operator.send_signal(signal.SIGINT)
            try:
                code = operator.wait(timeout=30)
            except subprocess.TimeoutExpired:
                operator.kill()
                code = operator.wait()
            log.seek(0)
            checks.record("the operator ends when it is told to", [] if code == 0 else [f"exit code {code}"], log.read() if checks.failures or code else "")
            client.ApiextensionsV1Api().delete_custom_resource_definition(f"{PLURAL}.{GROUP}")
            core.delete_namespace(namespace)
    return checks.verdict()


def define(checks):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"plants": {"type": "integer"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": PLURAL, "singular": "garden", "kind": "Garden"}
    api = client.ApiextensionsV1Api()
    api.create_custom_resource_definition({
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    })

    def established():
        conditions = api.read_custom_resource_definition(f"{PLURAL}.{GROUP}").status.conditions or []
        return any(one.type == "Established" and one.status == "True" for one in conditions)

    checks.true("the definition is established", within(20, established))


def live(checks, core, custom, namespace):
    place = {"group": GROUP, "version": "v1", "namespace": namespace, "plural": PLURAL}

    def garden():
        return custom.get_namespaced_custom_object(name="rose", **place)

    def create():
        return custom.create_namespaced_custom_object(
            body={"apiVersion": f"{GROUP}/v1", "kind": "Garden", "metadata": {"name": "rose"}, "spec": {"plants": 3}}, **place)

    checks.true("the object is created", within(20, create))
    checks.true("the operator puts its finalizer on it", within(40, lambda: "kopf.zalando.org/KopfFinalizerMarker" in garden()["metadata"].get("finalizers", [])))
    checks.true("its creation is handled", within(40, lambda: garden()["status"]["grow"]["planted"] == 3))
    checks.true("it makes a child with an owner", within(20, lambda: core.read_namespaced_config_map("rose", namespace).metadata.owner_references[0].name == "rose"))
    custom.patch_namespaced_custom_object(name="rose", body={"spec": {"plants": 5}}, **place)
    checks.true("an update is handled", within(40, lambda: core.read_namespaced_config_map("rose", namespace).data["plants"] == "5"))
    custom.delete_namespaced_custom_object(name="rose", **place)

    def gone():
        try:
            garden()
        except ApiException as refusal:
            return refusal.status == 404
        return False

    checks.true("its deletion is handled and it goes", within(40, gone))
    checks.equal("the deletion handler ran", core.read_namespaced_config_map("farewell", namespace).data["plants"], "5")


def within(seconds, ask):
    """Whether it becomes true; an object that isn't there yet counts as not yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ask():
                return True
        except (ApiException, KeyError, TypeError):
            pass
        time.sleep(0.2)
    return False


if __name__ == "__main__":
    sys.exit(main())
