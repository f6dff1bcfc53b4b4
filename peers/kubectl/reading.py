"""What is there: discovery, lists, watches, tables, descriptions."""

import json

import manifests


def discovery(s):
    s.ok("version", out=[r"^Client Version: v1\.37\.", r"^Server Version: v1\.37\."])
    s.ok("get --raw /readyz", same="ok")
    s.ok("get --raw /livez", same="ok")
    s.ok("get --raw /healthz", same="ok")
    s.ok("get --raw /version", out=r'"minor": ?"37"')
    s.ok("get --raw /no/such/path", code=1, err=r"^Error from server \(NotFound\): the server could not find the requested resource$")
    s.ok("cluster-info", out="Kubernetes control plane.* is running at")
    s.ok("api-versions", out=["^v1$", "^apps/v1$", r"^apiextensions.k8s.io/v1$", r"^batch/v1$"])
    s.ok("api-resources", out=[
        r"^NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND$",
        r"^pods +po +v1 +true +Pod$",
        r"^nodes +no +v1 +false +Node$",
        r"^deployments +deploy +apps/v1 +true +Deployment$",
        r"^customresourcedefinitions +crd,crds +apiextensions.k8s.io/v1 +false +CustomResourceDefinition$",
        r"^networkpolicies +netpol +networking.k8s.io/v1 +true +NetworkPolicy$",
    ])
    s.ok("api-resources --api-group=apps -o name --sort-by=name", same=(
        "controllerrevisions.apps\ndaemonsets.apps\ndeployments.apps\nreplicasets.apps\nstatefulsets.apps\n"))
    s.ok("api-resources --namespaced=false --verbs=list,watch -o wide", out=r"^namespaces .*\[?create,delete,get,list,patch,update,watch")
    s.ok("api-resources --categories=all -o name", out=["^pods$", "^deployments.apps$", "!^configmaps$"])


def get(s):
    for name, tier in (("one", "a"), ("two", "a"), ("three", "b")):
        s.ok("create -f -", stdin=manifests.configmap(f"get-{name}", f"{{tier: {tier}, set: get}}", key=name), out="created")
    s.ok("get configmaps -l set=get", out=[r"^NAME +DATA +AGE$", r"^get-one +1 +\d+s$", "^get-three ", "^get-two "])
    s.ok("get cm -l set=get,tier=a -o name", same="configmap/get-one\nconfigmap/get-two\n")
    s.ok("get cm -l 'set=get,tier!=a' -o name", same="configmap/get-three\n")
    s.ok("get cm -l 'set=get,tier in (a,b)' -o name --chunk-size=1", same="configmap/get-one\nconfigmap/get-three\nconfigmap/get-two\n")
    s.ok("get cm --field-selector metadata.name=get-two -o name", same="configmap/get-two\n")
    s.ok("get cm --field-selector spec.x=1", code=1, err=r'^Error from server \(BadRequest\): .*field label not supported: spec.x|not a known field selector')
    s.ok("get cm -A -l set=get", out=[r"^NAMESPACE +NAME +DATA +AGE$", rf"^{s.namespace} +get-one +1 +\d+s$"])
    s.ok("get cm -l set=get --show-labels", out=[r"^NAME +DATA +AGE +LABELS$", r"^get-one .* set=get,tier=a$"])
    s.ok("get cm -l set=get -L tier", out=[r"^NAME +DATA +AGE +TIER$", r"^get-three .* b$"])
    s.ok("get cm -l set=get --sort-by=.metadata.name -o custom-columns=N:.metadata.name,K:.data.key",
         same="N           K\nget-one     one\nget-three   three\nget-two     two\n")
    s.ok("get cm -l set=get --no-headers", out="!NAME")
    s.ok("get cm get-one get-two", out=["^get-one ", "^get-two "])
    s.ok("get cm/get-one -o jsonpath='{.data.key}'", same="one")
    s.ok("get cm get-one -o yaml", out=["^apiVersion: v1$", "^kind: ConfigMap$", "^  key: one$", "^  uid: [0-9a-f-]{36}$",
                                        '^  resourceVersion: "[0-9]+"$', r"^  creationTimestamp: \"\d{4}-\d\d-\d\dT", "!managedFields"])
    s.ok("get cm get-one -o yaml --show-managed-fields", out=["^  managedFields:$", "manager: kubectl-create", "f:key: {}"])
    text = s.ok("get cm -l set=get -o json", out='"kind": "List"')
    s.checks.equal("the JSON list has three items of the right kind", [item["kind"] for item in json.loads(text)["items"]], ["ConfigMap"] * 3)
    s.ok("get cm missing", code=1, err=r'^Error from server \(NotFound\): configmaps "missing" not found$')
    s.ok("get cm missing --ignore-not-found", same="")
    s.ok("get cm -l set=nothing", same="", err=f"^No resources found in {s.namespace} namespace.$")
    s.ok("get thingies", code=1, err="^error: the server doesn't have a resource type \"thingies\"$")
    s.ok("get namespaces", out=[r"^NAME +STATUS +AGE$", r"^default +Active ", r"^kube-system +Active ", r"^kube-public +Active ", r"^kube-node-lease +Active "])
    s.ok("get cm -l '!!'", code=1, err="unable to parse requirement|Bad Request|found '!'")
    s.ok("get --raw '/api/v1/configmaps?limit=1&continue=garbage'", code=1, err="continue key is not valid|BadRequest")


def table(s):
    s.ok("create -f -", stdin=manifests.deployment("tabled"), out="created")
    s.ok("get deployments tabled", out=[r"^NAME +READY +UP-TO-DATE +AVAILABLE +AGE$", r"^tabled +\d/2 +\d +\d +\d+s$"])
    s.ok("get deploy tabled -o wide", out=[r"AGE +CONTAINERS +IMAGES +SELECTOR$", r" web +registry.example/web:1 +app=tabled$"])
    s.ok("create -f -", stdin=manifests.pod("tabled", "{app: tabled-pod}"), out="created")
    s.ok("get pod tabled", out=[r"^NAME +READY +STATUS +RESTARTS +AGE$", r"^tabled +[01]/1 +\w+ +0 +\d+s$"])
    s.ok("get pod tabled -o wide", out=r"AGE +IP +NODE +NOMINATED NODE +READINESS GATES$")
    s.ok("create service clusterip tabled --tcp=80:8080", out="created")
    s.ok("get svc tabled", out=[r"^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE$", r"^tabled +ClusterIP +[\d.]+ +<none> +80/TCP +\d+s$"])
    s.ok("create secret generic tabled --from-literal=a=b", out="created")
    s.ok("get secrets tabled", out=[r"^NAME +TYPE +DATA +AGE$", r"^tabled +Opaque +1 +\d+s$"])
    s.ok("create role tabled --verb=get --resource=pods", out="created")
    s.ok("get role tabled", out=[r"^NAME +CREATED AT$", r"^tabled +\d{4}-\d\d-\d\dT"])
    s.ok("create job tabled --image=registry.example/j:1", out="created")
    s.ok("get job tabled", out=[r"^NAME +STATUS +COMPLETIONS +DURATION +AGE$"])
    s.ok("create cronjob tabled --image=registry.example/j:1 --schedule='0 3 * * *'", out="created")
    s.ok("get cronjob tabled", out=[r"^NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE$", r"^tabled +0 3 \* \* \* +<none> +False +0 +<none> "])
    s.ok("create ingress tabled --rule=a.example/*=svc:80", out="created")
    s.ok("get ingress tabled", out=[r"^NAME +CLASS +HOSTS +ADDRESS +PORTS +AGE$", r"^tabled +<none> +a.example +80 "])
    s.ok("get all", out=[r"^NAME +READY +STATUS", r"^pod/tabled ", r"^service/tabled ", r"^deployment.apps/tabled ", r"^job.batch/tabled ", r"^cronjob.batch/tabled "])
    s.ok("get sa", out=r"^NAME +AGE$|^NAME +SECRETS +AGE$")
    s.ok("get events", out="(?s).*")
    s.ok("delete deployment/tabled pod/tabled service/tabled job/tabled cronjob/tabled", out="deleted")


def watch(s):
    s.ok("create -f -", stdin=manifests.configmap("seen", "{set: watch}", key="v"), out="created")
    rows = s.background("get configmaps -l set=watch --watch")
    names = s.background("get configmaps -l set=watch --watch-only -o name")
    events = s.background("get configmaps -l set=watch --watch --output-watch-events")
    objects = s.background("get configmap seen --watch -o jsonpath='{.data.key}{\"\\n\"}'")
    rows.line(r"^NAME +DATA +AGE$")
    rows.line(r"^seen +1 +\d+s$")
    events.line(r"^EVENT +NAME +DATA +AGE$")
    events.line(r"^ADDED +seen +1 ")
    objects.line("^v$")
    s.run("get --raw /readyz")  # a moment for --watch-only, which prints nothing yet
    s.ok("create -f -", stdin=manifests.configmap("later", "{set: watch}", a="1", b="2"), out="created")
    rows.line(r"^later +2 +\d+s$")
    events.line(r"^ADDED +later +2 ")
    s.ok("patch configmap seen -p '{\"data\":{\"key\":\"w\",\"more\":\"x\"}}'", out="patched")
    rows.line(r"^seen +2 ")
    names.line("^configmap/seen$")
    events.line(r"^MODIFIED +seen +2 ")
    objects.line("^w$")
    s.ok("label configmap seen set=elsewhere --overwrite", out="labeled")
    events.line(r"^DELETED +seen ")
    s.ok("delete configmap later", out="deleted")
    events.line(r"^DELETED +later +2 ")
    for command in (rows, names, events, objects):
        command.stop()
    s.ok("create -f -", stdin=manifests.pod("watched", "{set: watch}"), out="created")
    pods = s.background("get pods -l set=watch -w")
    pods.line(r"^NAME +READY +STATUS +RESTARTS +AGE$")
    pods.line(r"^watched +[01]/1 ")
    s.ok("delete pod watched", out="deleted")
    pods.stop()


def describe(s):
    s.ok("create -f -", stdin=manifests.deployment("told"), out="created")
    s.ok("describe deployment told", out=[rf"^Name: +told$", rf"^Namespace: +{s.namespace}$", r"^Selector: +app=told$", r"^Replicas: +2 desired", r"^ +Image: +registry.example/web:1$"])
    s.ok("create -f -", stdin=manifests.pod("told"), out="created")
    s.ok("describe pod told", out=[r"^Name: +told$", r"^Containers:$", r"^ +Image: +registry.example/main:1$", r"^Events:"])
    s.ok("create service clusterip told --tcp=80:8080", out="created")
    s.ok("describe service told", out=[r"^Type: +ClusterIP$", r"^Port: +80-8080 +80/TCP$", r"^TargetPort: +8080/TCP$"])
    s.ok("create -f -", stdin=manifests.configmap("told", key="value"), out="created")
    s.ok("describe configmap told", out=[r"^Data$", r"^key:$", r"^value$"])
    s.ok("create secret generic told --from-literal=a=bcd", out="created")
    s.ok("describe secret told", out=[r"^Type: +Opaque$", r"^a: +3 bytes$"])
    uid = s.ok("get configmap told -o jsonpath='{.metadata.uid}'")
    s.ok("create -f -", stdin=f"""\
apiVersion: v1
kind: Event
metadata: {{name: told.1}}
involvedObject: {{apiVersion: v1, kind: ConfigMap, name: told, namespace: {s.namespace}, uid: {uid}}}
type: Warning
reason: Checked
message: it was looked at
source: {{component: check}}
count: 1
firstTimestamp: "2026-01-02T03:04:05Z"
lastTimestamp: "2026-01-02T03:04:05Z"
""", out="created")
    s.ok("describe configmap told", out=r"Warning +Checked +.* +check +it was looked at")
    s.ok("get events --field-selector involvedObject.name=told,reason=Checked", out=r"Warning +Checked +configmap/told +it was looked at")
    s.ok("events --for configmap/told", out=r"Warning +Checked +ConfigMap/told +it was looked at")
    s.ok(f"describe namespace {s.namespace}", out=[rf"^Name: +{s.namespace}$", r"^Status: +Active$"])
    s.ok("describe pod nobody", code=1, err=r'pods "nobody" not found')
    s.ok("delete deployment/told pod/told service/told", out="deleted")


def explain(s):
    s.ok("explain pod", out=["^KIND: +Pod$", "^VERSION: +v1$", r"^  spec\s+<PodSpec>$"])
    s.ok("explain pod.spec.containers", out=[r"^FIELD: containers <\[\]Container>$", r"^  image\s+<string>$", r"^  name\s+<string> -required-$"])
    s.ok("explain deployment.spec.replicas", out=["^GROUP: +apps$", "^KIND: +Deployment$", "^VERSION: +v1$", "^FIELD: replicas <integer>$", "^DESCRIPTION:$"])
    s.ok("explain deployment.spec.strategy --recursive", out=[r"^  rollingUpdate\s+<RollingUpdateDeployment>$", r"^    maxSurge\s+<IntOrString>$"])
    s.ok("explain crd.spec.versions", out=["^GROUP: +apiextensions.k8s.io$", r"^  served\s+<boolean> -required-$"])
    s.ok("explain pod.spec.nothing", code=1, err='field "nothing" does not exist')
    s.ok("explain thingies", code=1, err="the server doesn't have a resource type \"thingies\"")
    # Prose is the program's own business, but there must be some.
    s.ok("explain service.spec.clusterIP", out=r"^DESCRIPTION:\n    \S+ \S+ \S+")
