#!/usr/bin/env python3
"""Runs client-go's informers (main.go) on a server and checks that they sync and follow.

Without arguments it builds and starts `informant apiserver`; with --kubeconfig it uses the server of that file. Ends with 3
if Go isn't there.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

import kubectl
from checks import Checks
from embedded import ROOT, Server
from lines import Program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubeconfig", help="use this server instead of starting the embedded one")
    options = parser.parse_args()
    if not new_enough():
        print("skipped: it needs Go 1.26 or newer on the PATH", flush=True)
        return 3
    informer = build()
    with tempfile.TemporaryDirectory() as scratch:
        if options.kubeconfig:
            return run(informer, options.kubeconfig)
        with Server(scratch) as server:
            return run(informer, server.kubeconfig)


def new_enough() -> bool:
    if not shutil.which("go"):
        return False
    version = subprocess.run(["go", "env", "GOVERSION"], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    numbers = re.match(r"go(\d+)\.(\d+)", version)
    return bool(numbers) and tuple(map(int, numbers.groups())) >= (1, 26)


def build() -> str:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    program = target / "peers" / "informer"
    print("building the informer program (minutes, the first time)", flush=True)
    command = ["go", "build", "-mod=readonly", "-o", str(program), "."]
    subprocess.run(command, cwd=HERE, env={**os.environ, "GOWORK": "off"}, check=True, stdin=subprocess.DEVNULL)
    return str(program)


def run(informer: str, kubeconfig: str) -> int:
    checks = Checks()
    base = [kubectl.program(), "--kubeconfig", kubeconfig]

    def ask(*words, stdin=""):
        return subprocess.run([*base, *words], input=stdin, check=True, capture_output=True, text=True).stdout

    namespace = f"go-{random.randrange(16**6):06x}"
    group = f"{namespace}.example.com"
    ask("create", "namespace", namespace)
    try:
        follow(checks, ask, informer, kubeconfig, namespace, "configmaps", config_map)
        ask("create", "-f", "-", stdin=json.dumps(definition(group)))
        ask("wait", "--for=condition=Established", f"crd/things.{group}", "--timeout=20s")
        follow(checks, ask, informer, kubeconfig, namespace, f"things.v1.{group}", lambda name, value: thing(group, name, value))
    finally:
        ask("delete", "crd", f"things.{group}", "--ignore-not-found", "--wait=false")
        ask("delete", "namespace", namespace, "--wait=false")
    return checks.verdict()


def follow(checks, ask, informer, kubeconfig, namespace, resource, make):
    """Some objects are there before; one comes, one changes, one goes."""
    def put(verb, name, value):
        ask(verb, "-n", namespace, "-f", "-", stdin=json.dumps(make(name, value)))

    put("create", "one", "1")
    put("create", "two", "1")
    present = len(ask("get", resource, "-n", namespace, "-o", "name").split())
    with Program([informer, kubeconfig, namespace, resource]) as program:
        key = f"{namespace}/"
        missing = program.take([f"add {key}one", f"add {key}two", f"synced {present}"])
        checks.equal(f"{resource}: it syncs with what is there", missing, [])
        put("create", "three", "1")
        put("replace", "one", "2")
        ask("delete", resource, "two", "-n", namespace)
        missing = program.take([f"add {key}three", f"update {key}one", f"delete {key}two"])
        checks.equal(f"{resource}: it follows what happens", missing, [])
        checks.equal(f"{resource}: it ends when told to", program.interrupt(signal.SIGTERM), 0)


def config_map(name, value):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}


def thing(group, name, value):
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"v": value}}


def definition(group):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"v": {"type": "string"}}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }


if __name__ == "__main__":
    sys.exit(main())
