"""Manifests that more than one group uses."""


def deployment(name: str, image: str = "registry.example/web:1", replicas: int = 2, extra: str = "") -> str:
    """A Deployment whose Pods nobody needs to be able to run."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers:
      - name: web
        image: {image}
        ports:
        - containerPort: 80
{extra}"""


def configmap(name: str, labels: str = "", **data: str) -> str:
    """A ConfigMap."""
    lines = "".join(f'  {key}: "{value}"\n' for key, value in data.items())
    labels = f"  labels: {labels}\n" if labels else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{labels}data:\n{lines}"


def pod(name: str, labels: str = "{}") -> str:
    """A Pod."""
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {labels}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.example/main:1
"""
