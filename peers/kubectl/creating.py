"""Objects that kubectl makes itself (nearly all sent as protobuf) or from files (sent as JSON)."""

import base64
import re

import manifests


def generators(s):
    s.ok("create configmap plain --from-literal=a=1 --from-literal=b=two", same="configmap/plain created\n")
    s.value("configmap/plain", ".data", '{"a":"1","b":"two"}')
    s.file("text.conf", "line one\nline two\n")
    (s.scratch / "raw.bin").write_bytes(bytes([0, 159, 146, 150]))
    s.ok("create configmap files --from-file=text.conf --from-file=raw.bin", same="configmap/files created\n")
    s.value("configmap/files", ".data.text\\.conf", "line one\nline two\n")
    s.value("configmap/files", ".binaryData.raw\\.bin", base64.b64encode(bytes([0, 159, 146, 150])).decode())
    s.ok("create configmap plain", code=1, err=r'^error: failed to create configmap: configmaps "plain" already exists$')
    s.ok("create configmap dry --from-literal=a=1 --dry-run=server", same="configmap/dry created (server dry run)\n")
    s.ok("get configmap dry", code=1, err=r'^Error from server \(NotFound\): configmaps "dry" not found$')
    s.ok("create configmap Wrong_Name", code=1, err=r'The ConfigMap "Wrong_Name" is invalid|Invalid value: "Wrong_Name"')
    s.ok("create secret generic login --from-literal=user=me --from-literal=password=x", same="secret/login created\n")
    s.value("secret/login", ".data.user", base64.b64encode(b"me").decode())
    s.value("secret/login", ".type", "Opaque")
    s.ok("create secret docker-registry pull --docker-username=u --docker-password=p", same="secret/pull created\n")
    s.value("secret/pull", ".type", "kubernetes.io/dockerconfigjson")
    s.ok("create serviceaccount robot", same="serviceaccount/robot created\n")
    token = s.ok("create token robot", out=r"^[\w-]+\.[\w-]+\.[\w-]+$")
    claims = token.split(".")[1] if token.count(".") == 2 else ""
    text = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode(errors="replace")
    s.checks.true("the token names its ServiceAccount", f"system:serviceaccount:{s.namespace}:robot" in text, text)
    s.ok("create token nobody", code=1, err=r'serviceaccounts "nobody" not found')
    s.ok("create quota limits --hard=configmaps=500,services=100", same="resourcequota/limits created\n")
    s.value("resourcequota/limits", ".spec.hard.configmaps", "500")
    s.ok("create pdb budget --selector=app=a --min-available=50%", same="poddisruptionbudget.policy/budget created\n")
    s.value("pdb/budget", ".spec.minAvailable", "50%")
    s.ok("create pdb count --selector=app=b --max-unavailable=1", same="poddisruptionbudget.policy/count created\n")
    s.value("pdb/count", ".spec.maxUnavailable", "1")
    s.ok("create ingress front --rule=a.example/path*=svc:8080,tls=cert --class=none",
         same="ingress.networking.k8s.io/front created\n")
    s.value("ingress/front", ".spec.rules[0].http.paths[0].backend.service", '{"name":"svc","port":{"number":8080}}')
    s.ok(f"create priorityclass high-{s.suffix} --value=1000 --description=d",
         same=f"priorityclass.scheduling.k8s.io/high-{s.suffix} created\n")
    s.value(f"priorityclass/high-{s.suffix}", ".value", "1000")
    s.ok(f"delete priorityclass high-{s.suffix}", out="deleted")


def workloads(s):
    s.ok("create deployment web --image=registry.example/web:1 --replicas=2 --port=80",
         same="deployment.apps/web created\n")
    s.value("deployment/web", ".spec.replicas", "2")
    s.value("deployment/web", ".spec.template.spec.containers[0].ports[0].containerPort", "80")
    s.value("deployment/web", ".spec.strategy.rollingUpdate.maxSurge", "25%")
    s.value("deployment/web", ".spec.template.spec.restartPolicy", "Always")
    s.value("deployment/web", ".metadata.generation", "1")
    s.ok("create deployment web --image=x", code=1, err=r'^error: failed to create deployment: deployments.apps "web" already exists$')
    s.ok("expose deployment web --port=8080 --target-port=80", same="service/web exposed\n")
    s.value("service/web", ".spec.ports[0]", '{"port":8080,"protocol":"TCP","targetPort":80}')
    s.value("service/web", ".spec.selector", '{"app":"web"}')
    s.ok("create service clusterip inner --tcp=80:8080", same="service/inner created\n")
    s.value("service/inner", ".spec.ports[0].targetPort", "8080")
    s.value("service/inner", ".spec.type", "ClusterIP")
    s.ok("get service inner -o jsonpath='{.spec.clusterIP}'", out=r"^\d+\.\d+\.\d+\.\d+$")
    s.ok("create service clusterip headless --clusterip=None", same="service/headless created\n")
    s.value("service/headless", ".spec.clusterIP", "None")
    s.ok("create service nodeport outer --tcp=80", same="service/outer created\n")
    s.ok("get service outer -o jsonpath='{.spec.ports[0].nodePort}'", out=r"^3[0-2]\d\d\d$")
    s.ok("create service loadbalancer wide --tcp=80", same="service/wide created\n")
    s.ok("create service externalname far --external-name=far.example", same="service/far created\n")
    s.value("service/far", ".spec.externalName", "far.example")
    s.ok("create job once --image=registry.example/job:1 -- /bin/do it", same="job.batch/once created\n")
    s.value("job/once", ".spec.template.spec.containers[0].command", '["/bin/do","it"]')
    s.value("job/once", ".spec.backoffLimit", "6")
    s.ok("create cronjob nightly --image=registry.example/job:1 --schedule='0 3 * * *'",
         same="cronjob.batch/nightly created\n")
    s.value("cronjob/nightly", ".spec.schedule", "0 3 * * *")
    s.value("cronjob/nightly", ".spec.concurrencyPolicy", "Allow")
    s.ok("create job now --from=cronjob/nightly", same="job.batch/now created\n")
    s.value("job/now", ".metadata.ownerReferences[0].name", "nightly")
    s.ok("run single --image=registry.example/one:1 --labels=run=single --env=A=b --port=81", same="pod/single created\n")
    s.value("pod/single", ".spec.containers[0].env[0].value", "b")
    s.value("pod/single", ".spec.terminationGracePeriodSeconds", "30")
    s.value("pod/single", ".spec.dnsPolicy", "ClusterFirst")
    s.ok("run single --image=registry.example/one:1", code=1, err=r'^Error from server \(AlreadyExists\): pods "single" already exists$')
    s.ok("expose pod single --port=81 --name=single-svc", same="service/single-svc exposed\n")
    s.value("service/single-svc", ".spec.selector", '{"run":"single"}')
    s.ok("autoscale deployment web --min=1 --max=5 --cpu=80%", same="horizontalpodautoscaler.autoscaling/web autoscaled\n")
    s.value("hpa/web", ".spec.maxReplicas", "5")
    s.ok("delete hpa/web cronjob/nightly job/once", out=['"web" deleted', '"nightly" deleted', '"once" deleted'])


def access(s):
    s.ok("create role reader --verb=get,list --resource=pods,services", same="role.rbac.authorization.k8s.io/reader created\n")
    s.value("role/reader", ".rules[0].resources", '["pods","services"]')
    s.ok("create rolebinding readers --role=reader --user=jane --serviceaccount=default:robot",
         same="rolebinding.rbac.authorization.k8s.io/readers created\n")
    s.value("rolebinding/readers", ".roleRef.name", "reader")
    s.value("rolebinding/readers", ".subjects[1]", '{"kind":"ServiceAccount","name":"robot","namespace":"default"}')
    name = f"nodes-{s.suffix}"
    s.ok(f"create clusterrole {name} --verb=watch --resource=nodes",
         same=f"clusterrole.rbac.authorization.k8s.io/{name} created\n")
    s.ok(f"create clusterrolebinding {name} --clusterrole={name} --group=watchers",
         same=f"clusterrolebinding.rbac.authorization.k8s.io/{name} created\n")
    s.value(f"clusterrolebinding/{name}", ".subjects[0].kind", "Group")
    s.ok(f"delete clusterrole/{name} clusterrolebinding/{name}", out="deleted")


def files(s):
    two = manifests.configmap("first", x="1") + "---\n" + manifests.configmap("second", x="2")
    s.ok(f"create -f {s.file('two.yaml', two)}", same="configmap/first created\nconfigmap/second created\n")
    s.ok("create -f two.yaml", code=1, err=[
        r'^Error from server \(AlreadyExists\): error when creating "two.yaml": configmaps "first" already exists$',
        'configmaps "second" already exists',
    ])
    s.ok("create -f -", stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"gen-"}}',
         out="^configmap/gen-[a-z0-9]{5} created$")
    items = '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"listed"}}]}'
    s.ok("create -f -", stdin=items, same="configmap/listed created\n")
    wrong = manifests.deployment("wrong").replace("  replicas:", "  replicaCount: 4\n  replicas:")
    s.ok(f"create -f {s.file('wrong.yaml', wrong)}", code=1, err=(
        r'^Error from server \(BadRequest\): error when creating ".*wrong.yaml": Deployment in version "v1" cannot be '
        r'handled as a Deployment: strict decoding error: unknown field "spec.replicaCount"$'))
    s.ok("create -f wrong.yaml --validate=warn", err='Warning: unknown field "spec.replicaCount"', same="deployment.apps/wrong created\n")
    s.ok("get deployment wrong -o yaml", out=["^  replicas: 2$", "!replicaCount"])
    untyped = manifests.deployment("untyped").replace("replicas: 2", 'replicas: "two"')
    s.ok("create -f -", stdin=untyped, code=1, err="cannot be handled as a Deployment|json: cannot unmarshal string")
    empty = re.sub(r"      containers:(.|\n)*", "      containers: []\n", manifests.deployment("empty"))
    s.ok("create -f -", stdin=empty, code=1,
         err=r'^The Deployment "empty" is invalid: spec.template.spec.containers: Required value')
    s.ok("create -f -", stdin="apiVersion: v1\nkind: Nothing\nmetadata: {name: nothing}\n", code=1,
         err='no matches for kind "Nothing" in version "v1"')
    lost = manifests.configmap("lost").replace("metadata:\n", "metadata:\n  namespace: no-such-namespace\n")
    s.ok(f"create -f {s.file('lost.yaml', lost)} --namespace no-such-namespace", code=1,
         err=r'namespaces "no-such-namespace" not found')
    s.ok("create -f lost.yaml", code=1, err="the namespace from the provided object .* does not match the namespace")
