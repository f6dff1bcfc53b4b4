"""A custom resource's whole life: definition and object in one file, printer columns, defaults, validation, subresources."""


def definition(group: str) -> str:
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [gadgets]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {{}}
      scale: {{specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {{name: Size, type: string, jsonPath: .spec.size}}
    - {{name: Count, type: integer, jsonPath: .spec.replicas}}
    - {{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}}
    - {{name: Parts, type: string, jsonPath: '.spec.parts[*].name', priority: 1}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {{type: string, enum: [small, large], description: How big it is.}}
              replicas: {{type: integer, minimum: 1, maximum: 9, default: 1}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {{name: {{type: string, maxLength: 8}}, weight: {{type: integer}}}}
          status:
            type: object
            properties:
              replicas: {{type: integer}}
              conditions:
                type: array
                items:
                  type: object
                  properties: {{type: {{type: string}}, status: {{type: string}}}}
"""


def widget(group: str, name: str, spec: str) -> str:
    return f"apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def resources(s):
    group = f"s{s.suffix}.example.com"
    try:
        life(s, group)
    finally:
        s.run(f"delete crd widgets.{group} --ignore-not-found --wait=false")


def life(s, group: str):
    crd = f"customresourcedefinition.apiextensions.k8s.io/widgets.{group}"
    s.ok("get widgets", code=1, err="the server doesn't have a resource type \"widgets\"")
    both = s.file("both.yaml", definition(group) + "---\n" + widget(group, "w1", "{size: small, parts: [{name: a}, {name: b}]}"))
    # kubectl looks up both kinds before it applies the first, so on any server it doesn't know the second one yet.
    s.ok(f"apply -f {both}", code=1, same=f"{crd} created\n", err="ensure CRDs are installed first")
    if s.embedded:
        # The one thing that differs: the embedded server serves a new kind at once, a real one answers 404 for a moment.
        s.ok("apply -f both.yaml", same=f"{crd} unchanged\nwidget.{group}/w1 created\n")
    else:
        s.eventually("apply -f both.yaml", rf"^widget.{group}/w1 (created|unchanged)$")
    s.ok(f"wait --for=condition=Established crd/widgets.{group} --timeout=10s", same=f"{crd} condition met\n")
    s.ok("apply -f both.yaml", same=f"{crd} unchanged\nwidget.{group}/w1 unchanged\n")
    s.ok("get widgets", out=[r"^NAME +SIZE +COUNT +READY$", r"^w1 +small +1 *$"])
    s.ok("get wd -o wide", out=[r"^NAME +SIZE +COUNT +READY +PARTS$", r"^w1 +small +1 +a$"])
    s.ok("get gadgets -o name", same=f"widget.{group}/w1\n")
    s.ok(f"get widgets.v1.{group} w1 -o yaml", out=["^  replicas: 1$", rf"^apiVersion: {group}/v1$", "^  generation: 1$"])
    s.ok(f"api-resources --api-group={group}", out=rf"^widgets +wd +{group}/v1 +true +Widget$")
    s.ok("explain widget.spec", out=["^KIND: +Widget$", r"^  size\s+<string> -required-$", r"^    How big it is\.$", r"enum: small, large"])
    s.ok("describe widget w1", out=[r"^Kind: +Widget$", r"^ +Size: +small$"])
    s.ok("create -f -", stdin=widget(group, "w2", "{size: huge, replicas: 10}"), code=1, err=[
        r'^The Widget "w2" is invalid:', r'spec\.size: Unsupported value: "huge": supported values: "small", "large"',
        r"spec\.replicas: Invalid value: 10: spec\.replicas in body should be less than or equal to 9"])
    s.ok("create -f -", stdin=widget(group, "w2", "{}"), code=1, err=r'^The Widget "w2" is invalid: spec\.size: Required value')
    s.ok("create -f -", stdin=widget(group, "w2", "{size: small, colour: red}"), code=1,
         err=r'strict decoding error: unknown field "spec\.colour"')
    s.ok("create -f - --validate=false", stdin=widget(group, "w2", "{size: small, colour: red}"), same=f"widget.{group}/w2 created\n")
    s.value("widget/w2", ".spec", '{"replicas":1,"size":"small"}')
    s.ok("apply -f -", stdin=widget(group, "w1", "{size: large, parts: [{name: a, weight: 3}]}"), same=f"widget.{group}/w1 configured\n")
    s.value("widget/w1", ".spec.parts", '[{"name":"a","weight":3}]')
    s.value("widget/w1", ".metadata.generation", "2")
    s.ok("patch widget w1 -p '{\"spec\":{\"size\":\"small\"}}'", code=1, err=r"UnsupportedMediaType|415|unknown format")
    s.ok("patch widget w1 --type=merge -p '{\"spec\":{\"size\":\"small\"}}'", same=f"widget.{group}/w1 patched\n")
    s.ok("patch widget w1 --type=merge -p '{\"spec\":{\"size\":\"odd\"}}'", code=1, err=r'Unsupported value: "odd"')
    applied = f"widget.{group}/w3 serverside-applied\n"
    s.ok("apply --server-side -f -", stdin=widget(group, "w3", "{size: small, parts: [{name: a, weight: 1}]}"), same=applied)
    s.ok("apply --server-side --field-manager=parts -f -", stdin=widget(group, "w3", "{size: small, parts: [{name: z}]}"), same=applied)
    s.value("widget/w3", ".spec.parts[*].name", "a z")
    s.ok("apply --server-side --field-manager=parts -f -", stdin=widget(group, "w3", "{parts: [{name: a, weight: 2}]}"), code=1,
         err=r'conflict with "kubectl": \.spec\.parts\[name="a"\]\.weight')
    s.ok("apply --server-side --field-manager=parts -f -", stdin=widget(group, "w3", "{size: small}"), same=applied)
    s.value("widget/w3", ".spec.parts[*].name", "a")
    s.ok("scale widget w1 --replicas=4", same=f"widget.{group}/w1 scaled\n")
    s.value("widget/w1", ".spec.replicas", "4")
    s.ok("scale widget w1 --replicas=40", code=1, err=r"should be less than or equal to 9")
    waiting = s.background("wait --for=condition=Ready widget/w1 --timeout=30s")
    s.ok("patch widget w1 --subresource=status --type=merge -p "
         "'{\"status\":{\"replicas\":4,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]},\"spec\":{\"size\":\"large\"}}'", out="patched")
    waiting.line(f"^widget.{group}/w1 condition met$")
    waiting.ends(0)
    s.value("widget/w1", ".spec.size", "small")
    s.ok("get widget w1", out=r"^w1 +small +4 +True *$")
    s.ok("get widget w1 --subresource=scale -o jsonpath='{.kind} {.spec.replicas} {.status.replicas}'", same="Scale 4 4")
    s.ok("patch widget w1 --type=merge -p '{\"status\":{\"replicas\":7}}'", out="patched \\(no change\\)")
    s.ok("wait --for=jsonpath='{.status.replicas}'=4 widget/w1 --timeout=10s", same=f"widget.{group}/w1 condition met\n")
    s.ok("label widget w1 shelf=top", same=f"widget.{group}/w1 labeled\n")
    s.ok("get widgets -l shelf=top -o name", same=f"widget.{group}/w1\n")
    s.ok("create -f -", stdin=definition(group).replace(f"name: widgets.{group}", "name: wrong"), code=1,
         err=r'metadata.name: Invalid value: "wrong": must be spec.names.plural\+"."\+spec.group')
    rows = s.background("get widgets -w")
    rows.line("^w2 +small")
    s.ok("delete widget w2", out='"w2" deleted')
    rows.stop()
    s.ok(f"delete crd widgets.{group}", out=f'"widgets.{group}" deleted')
    s.eventually(f"get --raw /apis/{group}/v1/namespaces/{s.namespace}/widgets", "", code=1)
    # create looks up each kind when it comes to it.
    if s.embedded:
        s.ok("create -f both.yaml", same=f"{crd} created\nwidget.{group}/w1 created\n")
    else:
        s.run("create -f both.yaml")
    s.ok(f"delete crd widgets.{group}", out=f'"widgets.{group}" deleted')
    s.eventually(f"get --raw /apis/{group}/v1/namespaces/{s.namespace}/widgets", "", code=1)
    s.ok(f"get widgets.v1.{group}", code=1, err="the server doesn't have a resource type|could not find the requested resource|no matches for kind|NotFound")
