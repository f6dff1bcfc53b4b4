"""Commands that read an object and write it back changed."""

import json
import os

import manifests


def editor(s, expression: str):
    """What makes `kubectl edit` run sed as its editor: by a script, so that no shell takes the expression apart."""
    path = s.file("editor", f"#!/bin/sh\nexec sed -i -e '{expression}' \"$1\"\n")
    os.chmod(path, 0o755)
    return {"KUBE_EDITOR": path}


def edit(s):
    s.ok("create -f -", stdin=manifests.configmap("edited", a="1"), out="created")
    s.ok("edit configmap edited", environment=editor(s, "s/^  a:.*/  a: changed/"), same="configmap/edited edited\n")
    s.value("configmap/edited", ".data.a", "changed")
    s.ok("edit configmap edited", environment={"KUBE_EDITOR": "true"}, err="^Edit cancelled, no changes made.$")
    s.ok("create -f -", stdin=manifests.deployment("edited"), out="created")
    s.ok("edit deployment edited", environment=editor(s, "s/replicas:.*/replicas: 3/"), same="deployment.apps/edited edited\n")
    s.value("deployment/edited", ".spec.replicas", "3")
    s.ok("edit deployment edited -o json", environment=editor(s, "s/web:1/web:2/"), out="registry.example/web:2")
    s.value("deployment/edited", ".spec.template.spec.containers[0].image", "registry.example/web:2")
    s.ok("delete deployment edited", out="deleted")


def patch(s):
    s.ok("create -f -", stdin=manifests.deployment("patched"), out="created")

    def change(body, kind="strategic", **expected):
        s.ok(f"patch deployment patched --type={kind} -p '{json.dumps(body)}'", **expected)

    def containers(*items, **more):
        return {"spec": {"template": {"spec": {"containers": list(items), **more}}}}

    done = "deployment.apps/patched patched\n"
    change(containers({"name": "side", "image": "registry.example/side:1"}), same=done)
    s.value("deployment/patched", ".spec.template.spec.containers[*].name", "side web")
    change(containers({"name": "web", "image": "registry.example/web:2"}), same=done)
    s.value("deployment/patched", ".spec.template.spec.containers[*].image", "registry.example/side:1 registry.example/web:2")
    # On a real cluster a controller may write the object between kubectl's read and its patch.
    again = json.dumps(containers({"name": "web", "image": "registry.example/web:2"}))
    s.eventually(f"patch deployment patched --type=strategic -p '{again}'", out=r"^deployment.apps/patched patched \(no change\)$")
    change(containers({"name": "side", "$patch": "delete"}), same=done)
    s.value("deployment/patched", ".spec.template.spec.containers[*].name", "web")
    order = [{"name": "web"}, {"name": "last"}]
    change(containers({"name": "last", "image": "registry.example/last:1"}, **{"$setElementOrder/containers": order}), same=done)
    s.value("deployment/patched", ".spec.template.spec.containers[*].name", "web last")
    change({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, same=done)
    s.value("deployment/patched", ".spec.strategy", '{"type":"Recreate"}')
    change({"metadata": {"finalizers": ["x.example/one", "x.example/two"]}}, same=done)
    change({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.example/one"]}}, same=done)
    s.value("deployment/patched", ".metadata.finalizers", '["x.example/two"]')
    change({"metadata": {"finalizers": None, "labels": {"new": "label"}}}, kind="merge", same=done)
    s.value("deployment/patched", ".metadata.labels.new", "label")
    s.value("deployment/patched", ".metadata.finalizers", "")
    change([{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "replace", "path": "/spec/replicas", "value": 4}], kind="json", same=done)
    s.value("deployment/patched", ".spec.replicas", "4")
    change([{"op": "test", "path": "/spec/replicas", "value": 2}], kind="json", code=1, err="the server rejected our request due to an error in our request")
    change([{"op": "remove", "path": "/spec/nothing"}], kind="json", code=1, err="the server rejected our request|nonexistent|Unable to remove")
    change({"spec": {"replicas": -1}}, code=1, err=r"spec\.replicas: Invalid value: -1: must be greater than or equal to 0")
    change({"metadata": {"name": "else"}}, code=1, err=r"the name of the object \(else\) does not match the name on the URL|metadata.name: Invalid value|field is immutable")
    change({"metadata": {"resourceVersion": "1"}}, code=1, err="the object has been modified")
    unknown = "patch deployment patched -p '{\"spec\":{\"unknownField\":1}}'"
    s.ok(unknown, err='Warning: unknown field "spec.unknownField"')
    s.eventually(unknown, out="no change")
    s.ok("patch deployment patched --subresource=status --type=merge -p '{\"status\":{\"collisionCount\":3},\"spec\":{\"replicas\":9}}'", out="patched")
    s.value("deployment/patched", ".spec.replicas", "4")
    s.ok("patch deployment nobody -p '{}'", code=1, err='deployments.apps "nobody" not found')
    s.ok("patch deployment patched -p 'not json'", code=1, err="(?i)error")
    s.ok("patch deployment patched -p '{\"spec\":{\"replicas\":1}}' --dry-run=server -o jsonpath='{.spec.replicas}'", same="1")
    s.value("deployment/patched", ".spec.replicas", "4")
    s.ok("delete deployment patched", out="deleted")


def metadata(s):
    for name in ("m1", "m2"):
        s.ok("create -f -", stdin=manifests.configmap(name, "{set: meta}"), out="created")
    s.ok("label configmap m1 a=1 b=2", same="configmap/m1 labeled\n")
    s.value("configmap/m1", ".metadata.labels", '{"a":"1","b":"2","set":"meta"}')
    s.ok("label configmap m1 a=2", code=1, err="'a' already has a value \\(1\\), and --overwrite is false")
    s.ok("label configmap m1 a=2 --overwrite", same="configmap/m1 labeled\n")
    s.ok("label configmap m1 a=2 --overwrite", same="configmap/m1 not labeled\n")
    s.ok("label configmap m1 a-", same="configmap/m1 unlabeled\n")
    s.ok("label configmap m1 bad=-x-", code=1, err="Invalid value: \"-x-\"|invalid label value")
    s.ok("label configmap -l set=meta all=yes", same="configmap/m1 labeled\nconfigmap/m2 labeled\n")
    s.ok("annotate configmap m1 note='some text'", same="configmap/m1 annotated\n")
    s.value("configmap/m1", ".metadata.annotations.note", "some text")
    s.ok("annotate configmap m1 note-", same="configmap/m1 annotated\n")
    s.value("configmap/m1", ".metadata.annotations", "")
    s.ok("annotate configmap m1 --list", same="")
    s.ok("label configmap m1 --list", out="^b=2$")
    s.ok("label configmap nobody a=b", code=1, err='configmaps "nobody" not found')


def scale(s):
    s.ok("create -f -", stdin=manifests.deployment("scaled"), out="created")
    s.ok("scale deployment scaled --replicas=3", same="deployment.apps/scaled scaled\n")
    s.value("deployment/scaled", ".spec.replicas", "3")
    s.value("deployment/scaled", ".metadata.generation", "2")
    s.ok("scale deployment scaled --replicas=1 --current-replicas=9", code=1, err="Expected replicas to be 9, was 3")
    s.ok("scale deployment scaled --replicas=1 --current-replicas=3", same="deployment.apps/scaled scaled\n")
    s.ok("scale deployment scaled --replicas=2 --dry-run=server", out="scaled \\(server dry run\\)")
    s.value("deployment/scaled", ".spec.replicas", "1")
    s.ok("scale deployment nobody --replicas=1", code=1, err="not found")
    s.ok("get deployment scaled --subresource=scale", out=[r"^NAME +DESIRED +AVAILABLE +AGE$", r"^scaled +1 +\d +\d+s$"])
    s.ok("get deployment scaled --subresource=scale -o jsonpath='{.apiVersion} {.status.selector}'", same="autoscaling/v1 app=scaled")
    s.ok("delete deployment scaled", out="deleted")


def set_fields(s):
    s.ok("create -f -", stdin=manifests.deployment("fields"), out="created")
    s.ok("set image deployment/fields web=registry.example/web:7", same="deployment.apps/fields image updated\n")
    s.value("deployment/fields", ".spec.template.spec.containers[0].image", "registry.example/web:7")
    s.ok("set image deployment/fields nobody=x", code=1, err='unable to find container named "nobody"')
    s.ok("set env deployment/fields A=1 B=2", same="deployment.apps/fields env updated\n")
    s.value("deployment/fields", ".spec.template.spec.containers[0].env[*].name", "A B")
    s.ok("set env deployment/fields A-", same="deployment.apps/fields env updated\n")
    s.value("deployment/fields", ".spec.template.spec.containers[0].env[*].name", "B")
    s.ok("set env deployment/fields --list", out="^B=2$")
    s.ok("create configmap values --from-literal=KEY=v", out="created")
    s.ok("set env deployment/fields --from=configmap/values", same="deployment.apps/fields env updated\n")
    s.value("deployment/fields", ".spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef.name", "values")
    s.ok("set resources deployment/fields --limits=cpu=200m,memory=64Mi", same="deployment.apps/fields resource requirements updated\n")
    s.value("deployment/fields", ".spec.template.spec.containers[0].resources.limits", '{"cpu":"200m","memory":"64Mi"}')
    s.ok("set serviceaccount deployment/fields robot", same="deployment.apps/fields serviceaccount updated\n")
    s.value("deployment/fields", ".spec.template.spec.serviceAccountName", "robot")
    s.ok("create service clusterip fields --tcp=80", out="created")
    s.ok("set selector service fields app=other", same="service/fields selector updated\n")
    s.value("service/fields", ".spec.selector", '{"app":"other"}')
    s.ok("create rolebinding fields --clusterrole=view --user=a", out="created")
    s.ok("set subject rolebinding fields --user=b", same="rolebinding.rbac.authorization.k8s.io/fields subjects updated\n")
    s.value("rolebinding/fields", ".subjects[*].name", "a b")
    s.ok("delete deployment/fields service/fields", out="deleted")


def replace(s):
    s.ok(f"create -f {s.file('replaced.yaml', manifests.configmap('replaced', a='1'))}", out="created")
    s.file("replaced.yaml", manifests.configmap("replaced", b="2"))
    s.ok("replace -f replaced.yaml", same="configmap/replaced replaced\n")
    s.value("configmap/replaced", ".data", '{"b":"2"}')
    stale = manifests.configmap("replaced", c="3").replace("metadata:\n", 'metadata:\n  resourceVersion: "1"\n')
    s.ok(f"replace -f {s.file('stale.yaml', stale)}", code=1, err=(
        r'^Error from server \(Conflict\): error when replacing ".*stale.yaml": Operation cannot be fulfilled on configmaps '
        r'"replaced": the object has been modified; please apply your changes to the latest version and try again$'))
    s.ok("replace -f -", stdin=manifests.configmap("nobody"), code=1, err='configmaps "nobody" not found')
    before = s.ok("get configmap replaced -o jsonpath='{.metadata.uid}'")
    s.ok("replace --force -f replaced.yaml", out=['configmap "replaced" deleted', "configmap/replaced replaced"])
    after = s.ok("get configmap replaced -o jsonpath='{.metadata.uid}'")
    s.checks.true("replace --force makes a new object", before and after and before != after)
    live = s.ok("get configmap replaced -o json")
    s.ok("replace -f -", stdin=live.replace('"b": "2"', '"b": "3"'), same="configmap/replaced replaced\n")
