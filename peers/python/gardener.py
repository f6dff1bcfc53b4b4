"""The kopf operator that `operator_life.py` watches at work."""

import kopf
from kubernetes import client, config


@kopf.on.startup()
def settle(settings: kopf.OperatorSettings, **_):
    config.load_kube_config()
    settings.posting.enabled = True


@kopf.on.create("kopf.example.com", "v1", "gardens")
def grow(name, namespace, spec, body, **_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"plants": str(spec["plants"])}}
    kopf.adopt(child, owner=body)
    client.CoreV1Api().create_namespaced_config_map(namespace, child)
    kopf.info(body, reason="Planted", message=f"{spec['plants']} plants")
    return {"planted": spec["plants"]}


@kopf.on.update("kopf.example.com", "v1", "gardens", field="spec.plants")
def tend(name, namespace, new, **_):
    client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"plants": str(new)}})


@kopf.on.delete("kopf.example.com", "v1", "gardens")
def wither(namespace, spec, **_):
    farewell = {"metadata": {"name": "farewell"}, "data": {"plants": str(spec["plants"])}}
    client.CoreV1Api().create_namespaced_config_map(namespace, farewell)
