"""kubectl apply, on the client's and on the server's side, and diff."""

import manifests


def client_side(s):
    path = s.file("applied.yaml", manifests.deployment("applied", extra="      - name: side\n        image: registry.example/side:1\n"))
    s.ok(f"apply -f {path}", same="deployment.apps/applied created\n")
    s.ok("apply -f applied.yaml", same="deployment.apps/applied unchanged\n")
    s.ok("apply -f applied.yaml --dry-run=server", same="deployment.apps/applied unchanged (server dry run)\n")
    s.value("deployment/applied", ".metadata.generation", "1")
    s.ok("set env deployment/applied -c web KEEP=me", out="env updated")
    # One container goes, the other's image changes, and what somebody else added stays.
    s.file("applied.yaml", manifests.deployment("applied", image="registry.example/web:2"))
    s.ok("apply -f applied.yaml --dry-run=server", same="deployment.apps/applied configured (server dry run)\n")
    s.ok("apply -f applied.yaml", same="deployment.apps/applied configured\n")
    s.value("deployment/applied", ".spec.template.spec.containers[*].name", "web")
    s.value("deployment/applied", ".spec.template.spec.containers[0].image", "registry.example/web:2")
    s.value("deployment/applied", ".spec.template.spec.containers[0].env[0].name", "KEEP")
    s.ok("apply view-last-applied deployment/applied", out="image: registry.example/web:2")
    s.ok("apply set-last-applied -f applied.yaml", out="deployment.apps/applied")
    strategy = manifests.deployment("applied", image="registry.example/web:2").replace("  replicas:", "  strategy: {type: Recreate}\n  replicas:")
    s.file("applied.yaml", strategy)
    s.ok("apply -f applied.yaml", same="deployment.apps/applied configured\n")
    s.value("deployment/applied", ".spec.strategy", '{"type":"Recreate"}')
    mapped = manifests.configmap("mapped", a="1", b="2")
    s.ok("apply -f -", stdin=mapped, same="configmap/mapped created\n")
    s.ok("apply -f -", stdin=manifests.configmap("mapped", a="1"), same="configmap/mapped configured\n")
    s.value("configmap/mapped", ".data", '{"a":"1"}')
    s.ok("create configmap made", out="created")
    s.ok("apply -f -", stdin=manifests.configmap("made", a="1"), same="configmap/made configured\n",
         err="Warning: resource configmaps/made is missing the kubectl.kubernetes.io/last-applied-configuration annotation")
    s.ok("apply -f -", stdin=manifests.deployment("Bad_Name"), code=1, err='The Deployment "Bad_Name" is invalid:')
    wrong = manifests.deployment("applied").replace("app: applied}", "app: other}", 2)
    s.ok("apply -f -", stdin=wrong, code=1, err=['^The Deployment "applied" is invalid:', "spec.selector: Invalid value: .*: field is immutable"])
    s.ok("delete -f applied.yaml", same=f'deployment.apps "applied" deleted from {s.namespace} namespace\n')


def diff(s):
    path = s.file("diffed.yaml", manifests.configmap("diffed", a="1"))
    s.ok(f"diff -f {path}", code=1, out=r"^\+  a: \"1\"$")
    s.ok("apply -f diffed.yaml", out="created")
    s.ok("diff -f diffed.yaml", same="")
    s.file("diffed.yaml", manifests.configmap("diffed", a="2"))
    s.ok("diff -f diffed.yaml", code=1, out=[r"^-  a: \"1\"$", r"^\+  a: \"2\"$"])
    s.value("configmap/diffed", ".data.a", "1")
    s.ok("diff -f diffed.yaml --server-side --force-conflicts", code=1, out=r"^\+  a: \"2\"$")
    s.file("diffed.yaml", manifests.deployment("diffed"))
    s.ok("apply -f diffed.yaml", out="created")
    s.file("diffed.yaml", manifests.deployment("diffed", image="registry.example/web:2"))
    s.ok("diff -f diffed.yaml", code=1, out=[r"^-      - image: registry.example/web:1$", r"^\+      - image: registry.example/web:2$"])
    s.ok("delete deployment diffed", out="deleted")


def server_side(s):
    path = s.file("ssa.yaml", manifests.deployment("ssa"))
    s.ok(f"apply --server-side -f {path}", same="deployment.apps/ssa serverside-applied\n")
    s.ok("apply --server-side -f ssa.yaml", same="deployment.apps/ssa serverside-applied\n")
    s.value("deployment/ssa", ".metadata.managedFields[?(@.manager==\"kubectl\")].operation", "Apply")
    s.value("deployment/ssa", ".metadata.generation", "1")
    s.ok("scale deployment ssa --replicas=5", out="scaled")
    s.ok("apply --server-side -f ssa.yaml", code=1, err=[
        r'^error: Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: \.spec\.replicas$',
        "--force-conflicts"])
    s.value("deployment/ssa", ".spec.replicas", "5")
    s.ok("apply --server-side -f ssa.yaml --force-conflicts", same="deployment.apps/ssa serverside-applied\n")
    s.value("deployment/ssa", ".spec.replicas", "2")
    image = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ssa}\nspec: {template: {spec: {containers: [{name: web, image: registry.example/web:9}]}}}\n'
    s.ok("apply --server-side --field-manager=other -f -", stdin=image, code=1, err=[
        r'conflict with "kubectl": \.spec\.template\.spec\.containers\[name="web"\]\.image$'])
    s.ok("apply --server-side --field-manager=other --dry-run=server --force-conflicts -f -", stdin=image,
         same="deployment.apps/ssa serverside-applied (server dry run)\n")
    s.value("deployment/ssa", ".spec.template.spec.containers[0].image", "registry.example/web:1")
    # A second manager adds a container and gives it up again.
    both = image.replace("{name: web, image: registry.example/web:9}", "{name: extra, image: registry.example/extra:1}")
    s.ok("apply --server-side --field-manager=other -f -", stdin=both, same="deployment.apps/ssa serverside-applied\n")
    s.value("deployment/ssa", ".spec.template.spec.containers[*].name", "web extra")
    none = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ssa, labels: {by: other}}\n'
    s.ok("apply --server-side --field-manager=other -f -", stdin=none, same="deployment.apps/ssa serverside-applied\n")
    s.value("deployment/ssa", ".spec.template.spec.containers[*].name", "web")
    s.value("deployment/ssa", ".metadata.labels.by", "other")
    # Two managers who want the same share it; the field goes when both have given it up.
    s.ok("apply --server-side --field-manager=m1 -f -", stdin=manifests.configmap("shared", a="1", b="1"), out="serverside-applied")
    s.ok("apply --server-side --field-manager=m2 -f -", stdin=manifests.configmap("shared", a="1"), out="serverside-applied")
    s.ok("apply --server-side --field-manager=m1 -f -", stdin=manifests.configmap("shared", b="1"), out="serverside-applied")
    s.value("configmap/shared", ".data", '{"a":"1","b":"1"}')
    s.ok("apply --server-side --field-manager=m2 -f -", stdin=manifests.configmap("shared", c="1"), out="serverside-applied")
    s.value("configmap/shared", ".data", '{"b":"1","c":"1"}')
    # From the client's side to the server's.
    s.ok("apply -f -", stdin=manifests.configmap("moved", a="1"), out="created")
    s.ok("apply --server-side -f -", stdin=manifests.configmap("moved", a="2"), out="serverside-applied")
    s.value("configmap/moved", ".data.a", "2")
    s.ok("delete deployment ssa", out="deleted")
