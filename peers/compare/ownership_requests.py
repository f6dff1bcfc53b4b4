"""Requests about who owns which field: server-side apply in all its turns, and what other writers do to ownership."""

from request import APPLY, MERGE, STRATEGIC, send

GROUP = "owners.informant.example"


def manifest(version, kind, name, **fields):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def applies(path, steps):
    """Each step: title, manager (with `!` in front to force), body, and the subresource if any."""
    for title, manager, body, *subresource in steps:
        force = "&force=true" if manager.startswith("!") else ""
        tail = f"/{subresource[0]}" if subresource else ""
        yield title, send("PATCH", f"{path}{tail}?fieldManager={manager.lstrip('!')}{force}", body, content=APPLY)


def config_maps(namespace):
    maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def of(name, metadata=None, **data):
        return manifest("v1", "ConfigMap", name, metadata=metadata or {}, **({"data": data} if data else {}))

    yield from applies(f"{maps}/shared", [
        ("shared: create", "one", of("shared", {"labels": {"l": "1"}}, a="1", b="2")),
        ("shared: conflict of two fields", "three", of("shared", a="9", b="9")),
        ("shared: join", "two", of("shared", a="1")),
        ("shared: give up one of two owners", "one", of("shared", b="2")),
        ("shared: give up the last owner", "two", of("shared")),
        ("shared: force", "!three", of("shared", b="3")),
        ("shared: conflict with who forced", "one", of("shared", b="2")),
        ("shared: null", "three", of("shared", b=None)),
        ("shared: empty", "three", {**of("shared"), "data": {}}),
    ])
    yield "updated: create", send("POST", f"{maps}?fieldManager=creator", of("updated", a="1", b="1"))
    yield "updated: merge patch", send("PATCH", f"{maps}/updated?fieldManager=patcher", {"data": {"a": "2", "c": "1"}}, content=MERGE)
    yield "updated: remove", send("PATCH", f"{maps}/updated?fieldManager=remover", {"data": {"c": None}}, content=MERGE)
    yield from applies(f"{maps}/updated", [
        ("updated: conflict with an updater", "one", of("updated", a="3")),
        ("updated: share", "one", of("updated", b="1")),
        ("updated: give up what an updater owns", "one", of("updated")),
    ])
    yield "updated: reset", send("PATCH", f"{maps}/updated", {"metadata": {"managedFields": [{}]}}, content=MERGE)
    yield "updated: untracked", send("PATCH", f"{maps}/updated?fieldManager=late", {"data": {"z": "1"}}, content=MERGE)
    yield from applies(f"{maps}/updated", [("updated: before the first apply", "one", of("updated", q="1"))])
    for number in range(12):
        patch = {"data": {f"k{number:02}": "1"}}
        yield f"updated: many updaters {number}", send("PATCH", f"{maps}/updated?fieldManager=m{number:02}", patch, content=MERGE)

    yield from applies(f"{maps}/held", [
        ("held: finalizers", "one", of("held", {"finalizers": ["e.org/a", "e.org/b"]})),
        ("held: more", "two", of("held", {"finalizers": ["e.org/c", "e.org/a"]})),
        ("held: fewer", "one", of("held", {"finalizers": ["e.org/b"]})),
    ])
    yield "held: let go", send("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, content=MERGE)


def deployments(namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    def of(*containers, **spec):
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": list(containers)}}
        return manifest("apps/v1", "Deployment", "owned", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec})

    def container(name, image="i:1", **fields):
        return {"name": name, "image": image, **fields}

    scaled = manifest("apps/v1", "Deployment", "owned", spec={"replicas": 5})
    yield from applies(f"{path}/owned", [
        ("containers: create", "one", of(container("a", ports=[{"containerPort": 80}]), container("b"), replicas=3)),
        ("containers: another's", "two", of(container("y"), container("a"), container("w"))),
        ("containers: conflict", "two", of(container("a", "i:2"))),
        ("containers: order", "one", of(container("b"), container("n"), container("a"), replicas=3)),
        ("containers: the same twice", "one", of(container("a"), container("a"))),
        ("replicas: conflict", "scaler", scaled),
        ("replicas: force", "!scaler", scaled),
        ("replicas: given up", "one", of(container("a"))),
        ("status", "ctl", manifest("apps/v1", "Deployment", "owned", status={"replicas": 5}), "status"),
        ("status given up", "ctl", manifest("apps/v1", "Deployment", "owned"), "status"),
    ])
    patch = {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a", "image": "i:9"}]}}}}
    yield "image by strategic merge", send("PATCH", f"{path}/owned?fieldManager=set", patch, content=STRATEGIC)
    yield from applies(f"{path}/owned", [("image conflict", "one", of(container("a"))), ("image taken back", "!one", of(container("a")))])


def custom(namespace):
    text = {"type": "string"}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
        "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": {**text, "default": "TCP"}, "name": text}}}
    spec = {"type": "object", "properties": {
        "size": {"type": "integer"}, "color": {**text, "default": "red"}, "plain": {"type": "array", "items": text}, "ports": keyed,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "gran": {"type": "object", "additionalProperties": text},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    status = {"type": "object", "properties": {"phase": text, "conditions": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "properties": {"type": text, "status": text}}}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"owned.{GROUP}", spec={
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "owned", "kind": "Owned"}, "versions": [version]})
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    yield "definition", send("POST", definitions, definition)
    # It's established meanwhile.
    yield "a moment", send("GET", f"{definitions}?watch=true&timeoutSeconds=3&fieldSelector=metadata.name=nobody")

    def of(**fields):
        return manifest(f"{GROUP}/v1", "Owned", "x", **fields)

    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/owned"
    everything = {"size": 1, "tags": ["a", "b"], "plain": ["p"], "ports": [{"port": 80, "name": "x"}, {"port": 80, "protocol": "UDP"}],
                  "gran": {"a": "1"}, "atom": {"b": "2"}, "free": {"q": {"r": [1, {"s": 2}]}}}
    yield from applies(f"{path}/x", [
        ("custom: everything", "one", of(spec=everything)),
        ("custom: items of another", "two", of(spec={"tags": ["c", "a"], "ports": [{"port": 80, "name": "x"}], "gran": {"b": "2"}, "free": {"q": {"z": 1}}})),
        ("custom: atomic conflicts", "two", of(spec={"plain": ["q"], "atom": {"c": "3"}})),
        ("custom: the first gives all up", "one", of()),
        ("custom: unknown field", "one", of(spec={"unknown": 1})),
        ("custom: the same item twice", "one", of(spec={"tags": ["a", "a"]})),
        ("custom: another kind", "one", manifest(f"{GROUP}/v1", "Other", "x")),
        ("custom: status", "sa", of(status={"conditions": [{"type": "S", "status": "F"}]}), "status"),
    ])
    patch = {"status": {"phase": "up", "conditions": [{"type": "S", "status": "F"}, {"type": "R", "status": "T"}]}}
    yield "custom: status by patch", send("PATCH", f"{path}/x/status?fieldManager=ctl", patch, content=MERGE)
    yield from applies(f"{path}/x", [
        ("custom: status conflict", "sa", of(status={"phase": "down"}), "status"),
        ("custom: status forced", "!sa", of(status={"phase": "down"}), "status"),
        ("custom: status given up", "sa", of(), "status"),
        ("custom: status of nothing", "sa", manifest(f"{GROUP}/v1", "Owned", "none", status={}), "status"),
    ])
    yield "no definition", send("DELETE", f"{definitions}/owned.{GROUP}")


def ownership_in(namespace):
    yield from config_maps(namespace)
    yield from deployments(namespace)
    yield from custom(namespace)
