#!/usr/bin/env python3
"""Runs Informant's programs on a real Kubernetes: one that `cargo xtask oracle` builds and starts, with three simulated nodes.

1. `informant demo --once --kubeconfig` completes, with nothing played by the demo, and leaves nothing behind.
2. `informant watch pods -A` follows a Deployment scaled to 50 and back while the kube-apiserver is killed and started again and
   its history is compacted; what it holds at the end is what `kubectl get` shows.
3. kubectl's own checks pass there too, so that what they expect of the embedded server is what Kubernetes does.

With --kubeconfig it uses a cluster that is there, and part 2 leaves its kube-apiserver alone. Ends with 3 if Go isn't there.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

import kubectl
from checks import Checks
from embedded import program
from lines import Program
from oracle import Missing, control_plane, oracle

PARTS = ("demo", "watch", "kubectl")
NAMESPACE = "scaled"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubeconfig", help="use this cluster instead of starting one")
    parser.add_argument("parts", nargs="*", help=f"only these: {' '.join(PARTS)}")
    options = parser.parse_args()
    if set(options.parts) - set(PARTS):
        parser.error(f"the parts are {' '.join(PARTS)}")
    parts = options.parts or PARTS
    if options.kubeconfig:
        return run(parts, os.path.abspath(options.kubeconfig), None)
    try:
        with tempfile.TemporaryDirectory() as directory:
            with control_plane("--nodes", "3", "--default-apis", directory=directory) as kubeconfig:
                return run(parts, kubeconfig, directory)
    except Missing as missing:
        print(f"skipped: {missing}", flush=True)
        return 3


def run(parts, kubeconfig, directory) -> int:
    checks = Checks()
    if "demo" in parts:
        demo(checks, kubeconfig)
    if "watch" in parts:
        watch(checks, kubeconfig, directory)
    if "kubectl" in parts:
        words = [sys.executable, str(HERE.parent / "kubectl" / "run.py"), "--kubeconfig", kubeconfig]
        checks.equal("kubectl's checks pass on a real Kubernetes", subprocess.run(words, stdin=subprocess.DEVNULL).returncode, 0)
    return checks.verdict()


def ask(kubeconfig, *words, check=True, stdin=""):
    command = [kubectl.program(), "--kubeconfig", kubeconfig, *words]
    return subprocess.run(command, input=stdin, check=check, capture_output=True, text=True)


def demo(checks, kubeconfig):
    words = [program(), "demo", "--once", "--kubeconfig", kubeconfig]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    checks.record("the demo completes on a real cluster", [] if done.returncode == 0 else [f"exit code {done.returncode}"], done.stdout + done.stderr)
    lines = done.stdout.strip().splitlines()
    try:
        summary = json.loads(lines[-1])
    except (IndexError, ValueError):
        summary = {}
    checks.true("its last line is a summary", {"objects", "events", "reconciles", "seconds"} <= set(summary), "\n".join(lines[-3:]))
    gone = within(60, lambda: ask(kubeconfig, "get", "namespace", "informant-demo", check=False).returncode == 1)
    checks.true("it leaves no namespace behind", gone)


def deployment(replicas):
    return json.dumps({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "many", "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "many"}}, "template": {
            "metadata": {"labels": {"app": "many"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "registry.example/c:1"}]}}},
    })


def watch(checks, kubeconfig, directory):
    ask(kubeconfig, "create", "namespace", NAMESPACE)
    ask(kubeconfig, "apply", "-f", "-", stdin=deployment(2))
    words = [program(), "watch", "pods", "-A", "-o", "json", "--kubeconfig", kubeconfig]
    with Program(words) as watcher:
        mirror = Mirror(watcher)
        checks.true("the watch shows the first Pods", within(60, lambda: mirror.settled(kubeconfig, 2)), mirror.tell())
        ask(kubeconfig, "scale", "deployment/many", "--replicas=50", "-n", NAMESPACE)
        if directory:
            within(30, lambda: mirror.update() and mirror.count() > 10)
            oracle("kill-apiserver", directory)
            oracle("start-apiserver", directory)
        checks.true("it holds all 50 after the server's crash", within(120, lambda: mirror.settled(kubeconfig, 50)), mirror.tell())
        if directory:
            # This time the server comes back without the history since: the informer can't resume, it lists again.
            oracle("kill-apiserver", directory)
            oracle("compact", directory)
            oracle("start-apiserver", directory)
        ask(kubeconfig, "scale", "deployment/many", "--replicas=3", "-n", NAMESPACE)
        checks.true("it holds the 3 that are left", within(120, lambda: mirror.settled(kubeconfig, 3)), mirror.tell())
        checks.equal("no object was deleted, updated or added out of turn", mirror.out_of_turn, [])
        checks.equal("the watch ends cleanly", watcher.interrupt(signal.SIGINT), 0)
    ask(kubeconfig, "delete", "namespace", NAMESPACE, "--wait=false")


class Mirror:
    """What the lines of `informant watch -o json` add up to: each Pod's key with the version that was last seen."""

    def __init__(self, watcher):
        self.watcher, self.versions, self.out_of_turn, self.events = watcher, {}, [], 0

    def update(self):
        while (line := self.watcher.next(0.05)) is not None:
            event = json.loads(line)
            kind, key = event["type"], event["key"]
            self.events += 1
            if (kind == "add") == (key in self.versions):
                self.out_of_turn.append(f"{kind} {key}")
            if kind == "delete":
                self.versions.pop(key, None)
            else:
                self.versions[key] = event["object"]["metadata"]["resourceVersion"]
        return True

    def count(self):
        return sum(key.startswith(f"{NAMESPACE}/") for key in self.versions)

    def settled(self, kubeconfig, wanted):
        """Whether it equals what kubectl gets, with so many running Pods."""
        self.update()
        listed = ask(kubeconfig, "get", "pods", "-A", "-o", "json", check=False)
        if listed.returncode:
            return False
        pods = json.loads(listed.stdout)["items"]
        theirs = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["metadata"]["resourceVersion"] for pod in pods}
        running = [pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE and pod["status"].get("phase") == "Running"]
        self.update()
        return theirs == self.versions and len(running) == len(theirs) == wanted

    def tell(self):
        return f"{self.events} events so far; it holds {sorted(self.versions.items())}"


def within(seconds, ask_again):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ask_again():
            return True
        time.sleep(0.3)
    return False


if __name__ == "__main__":
    sys.exit(main())
