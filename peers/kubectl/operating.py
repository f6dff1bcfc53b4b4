"""Rollouts, access, nodes."""

import json

import manifests


def rollout(s):
    s.ok("create -f -", stdin=manifests.deployment("rolled", replicas=0), out="created")
    s.ok("rollout restart deployment/rolled", same="deployment.apps/rolled restarted\n")
    s.ok("get deployment rolled -o jsonpath='{.spec.template.metadata.annotations}'", out=r'"kubectl.kubernetes.io/restartedAt":"\d{4}-')
    s.ok("rollout pause deployment/rolled", same="deployment.apps/rolled paused\n")
    s.value("deployment/rolled", ".spec.paused", "true")
    s.ok("rollout pause deployment/rolled", code=1, err="is already paused")
    s.ok("rollout restart deployment/rolled", code=1, err="can't restart paused deployment")
    s.ok("rollout resume deployment/rolled", same="deployment.apps/rolled resumed\n")
    if s.embedded:
        # Nobody plays deployment controller there, so the check does.
        generation = s.run("get deployment rolled -o jsonpath='{.metadata.generation}'").stdout
        status = {"status": {"observedGeneration": int(generation or 0)}}
        s.ok(f"patch deployment rolled --subresource=status --type=merge -p '{json.dumps(status)}'", out="patched")
    s.ok("rollout status deployment/rolled --timeout=30s", out='deployment "rolled" successfully rolled out')
    s.ok("delete deployment rolled", out="deleted")


def auth(s):
    s.ok("auth can-i create pods", same="yes\n")
    s.ok("auth can-i '*' '*'", same="yes\n")
    s.ok("auth can-i get /readyz", same="yes\n")
    s.ok("auth can-i --list", out=[r"^Resources +Non-Resource URLs +Resource Names +Verbs$", r"^\*\.\* +\[\] +\[\] +\[\*\]$"])
    s.ok("auth can-i fly thingies", same="yes\n", err="Warning: the server doesn't have a resource type 'thingies'")
    s.ok("auth whoami", out=[r"^ATTRIBUTE +VALUE$", r"^Username +\S+$", r"^Groups +\[.*system:masters"])
    s.ok("auth whoami -o jsonpath='{.status.userInfo.username}'", out=r"^\S+$")


def nodes(s):
    name = f"node-{s.suffix}"
    s.ok("create -f -", stdin=f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{set: {name}}}}}\n", same=f"node/{name} created\n")
    s.ok(f"get nodes {name}", out=[r"^NAME +STATUS +ROLES +AGE +VERSION$", rf"^{name} +\w+"])
    s.ok(f"cordon {name}", same=f"node/{name} cordoned\n")
    s.value(f"node/{name}", ".spec.unschedulable", "true")
    s.ok(f"get node {name}", out="SchedulingDisabled")
    s.ok(f"cordon {name}", same=f"node/{name} already cordoned\n")
    s.ok(f"uncordon {name}", same=f"node/{name} uncordoned\n")
    s.ok(f"taint nodes {name} team=red:NoSchedule", same=f"node/{name} tainted\n")
    s.value(f"node/{name}", '.spec.taints[?(@.key=="team")].value', "red")
    s.ok(f"taint nodes {name} team=blue:NoSchedule", code=1, err="already has team taint.* and --overwrite is false")
    s.ok(f"taint nodes {name} team=blue:NoSchedule --overwrite", same=f"node/{name} modified\n")
    s.ok(f"taint nodes {name} team-", same=f"node/{name} untainted\n")
    s.ok(f"label node {name} disk=fast", same=f"node/{name} labeled\n")
    s.ok(f"describe node {name}", out=[rf"^Name: +{name}$", r"^Unschedulable: +false$", "disk=fast"])
    s.ok(f"drain {name}", out=[f"node/{name} cordoned", f"node/{name} drained"])
    s.ok(f"delete node {name}", out=f'node "{name}" deleted')
