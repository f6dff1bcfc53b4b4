"""Deletion, and waiting for it and for other things."""

import manifests


def delete(s):
    def make(*names, labels="{set: gone}"):
        for name in names:
            s.ok("create -f -", stdin=manifests.configmap(name, labels), out="created")

    make("d1", "d2", "d3", "d4")
    s.ok("delete configmap d1", same=f'configmap "d1" deleted from {s.namespace} namespace\n')
    s.ok("delete configmap d1", code=1, err=r'^Error from server \(NotFound\): configmaps "d1" not found$')
    s.ok("delete configmap d1 --ignore-not-found", same="")
    s.ok("delete configmap d2 --dry-run=server", out="deleted .*\\(server dry run\\)")
    s.ok("get configmap d2 -o name", same="configmap/d2\n")
    s.ok("delete configmap -l set=gone", out=['"d2" deleted', '"d3" deleted', '"d4" deleted'])
    s.ok(f"apply -f {s.file('gone.yaml', manifests.configmap('d5', '{set: gone}'))}", out="created")
    s.ok("delete -f gone.yaml", out='configmap "d5" deleted')
    s.ok("create role r1 --verb=get --resource=pods", out="created")
    s.ok("create role r2 --verb=get --resource=pods", out="created")
    s.ok("delete roles --all", out=['"r1" deleted', '"r2" deleted'])
    s.ok("get roles", err="No resources found")
    s.ok(f"delete --raw /api/v1/namespaces/{s.namespace}/configmaps/d1", code=1, err="not found")
    s.ok("create -f -", stdin=manifests.pod("p1", "{set: gone}"), out="created")
    s.ok("delete pod p1 --now", out='pod "p1" deleted')
    s.ok("create -f -", stdin=manifests.pod("p2", "{set: gone}"), out="created")
    s.ok("delete pod p2 --grace-period=0 --force", out='pod "p2" force deleted', err="Warning: Immediate deletion")
    # A finalizer keeps it, until it is taken away.
    held = manifests.configmap("held").replace("metadata:\n", "metadata:\n  finalizers: [x.example/hold]\n")
    s.ok("create -f -", stdin=held, out="created")
    s.ok("delete configmap held --wait=false", out="deleted")
    s.ok("get configmap held -o jsonpath='{.metadata.deletionTimestamp}'", out=r"^\d{4}-\d\d-\d\dT")
    s.ok("delete configmap held --timeout=1s", code=1, err="timed out waiting for the condition")
    s.ok("patch configmap held --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'", out="patched")
    s.ok("get configmap held", code=1, err="NotFound")


def wait(s):
    s.ok("create -f -", stdin=manifests.configmap("awaited", a="1"), out="created")
    going = s.background("wait --for=delete configmap/awaited --timeout=30s")
    valued = s.background("wait --for=jsonpath='{.data.a}'=2 configmap/awaited --timeout=30s")
    s.ok("patch configmap awaited -p '{\"data\":{\"a\":\"2\"}}'", out="patched")
    valued.line("^configmap/awaited condition met$")
    valued.ends(0)
    s.ok("delete configmap awaited", out="deleted")
    going.ends(0)
    s.ok("wait --for=delete configmap/awaited --timeout=5s", code=0)
    s.ok("wait --for=condition=Ready configmap/nobody --timeout=1s", code=1, err="not found")
    s.ok("create -f -", stdin=manifests.configmap("awaited", a="1"), out="created")
    s.ok("wait --for=jsonpath='{.data.a}'=9 configmap/awaited --timeout=1s", code=1, err="timed out waiting for the condition on configmaps/awaited")
    s.ok("wait --for=delete configmap/awaited --timeout=1s", code=1, err="timed out waiting for the condition on configmaps/awaited")
    appearing = s.background("wait --for=create configmap/soon --timeout=30s")
    s.ok("create configmap soon", out="created")
    appearing.line("^configmap/soon condition met$")
    appearing.ends(0)


def owners(s):
    s.ok("create -f -", stdin=manifests.configmap("owner"), out="created")
    uid = s.ok("get configmap owner -o jsonpath='{.metadata.uid}'", out="^[0-9a-f-]{36}$")
    owner = f"  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]\n"
    for name in ("owned", "orphan"):
        s.ok("create -f -", stdin=manifests.configmap(name).replace("metadata:\n", "metadata:\n" + owner), out="created")
    s.ok("patch configmap orphan --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/ownerReferences\"}]'", out="patched")
    s.ok("delete configmap owner", out="deleted")
    s.ok("wait --for=delete configmap/owned --timeout=30s", code=0)
    s.ok("get configmap orphan -o name", same="configmap/orphan\n")
    s.ok("create -f -", stdin=manifests.configmap("owner"), out="created")
    uid = s.ok("get configmap owner -o jsonpath='{.metadata.uid}'")
    owner = f"  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]\n"
    s.ok("create -f -", stdin=manifests.configmap("kept").replace("metadata:\n", "metadata:\n" + owner), out="created")
    s.ok("delete configmap owner --cascade=orphan", out="deleted")
    s.value("configmap/kept", ".metadata.ownerReferences", "")
    name = f"short-{s.suffix}"
    s.ok(f"create namespace {name}", out="created")
    s.ok(f"create configmap inside --namespace {name}", out="created")
    s.ok(f"delete namespace {name}", out=f'namespace "{name}" deleted')
    s.ok(f"get configmap inside --namespace {name}", code=1, err="NotFound")
    s.ok(f"create configmap after --namespace {name}", code=1, err=f'namespaces "{name}" not found')
