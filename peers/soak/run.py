#!/usr/bin/env python3
"""Informant's informers and client-go's, side by side on a real Kubernetes that is made to fail.

While Pods and ConfigMaps are written 200 times a second, the kube-apiserver is killed and started again ten times; objects
vanish while it's away, and in five of the ten the history does too. In between, the informers' permission is taken away and
given back, a CRD's schema is changed, and the CRD is deleted and comes again. Each side runs with lists that are streamed and
with lists that aren't.

At the end every informer must hold what a fresh list shows; every handler must have been told, of every object, versions that it
really had, in their order, up to the last one or the delete; and after each kill our informers must have been back no later
than client-go's and a second. What really happened is read from etcd. Ends with 3 if Go isn't there.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from checks import Checks
from embedded import ROOT
from http_client import Client
from informers import RESOURCES, Informers
from lines import Program
from oracle import Missing, control_plane, oracle
from truth import Etcd, Truth

NAMESPACE, GROUP, USER = "soak", "soak.example.com", "alice"
RATE = 200
OURS, THEIRS = "informant", "client-go"
LATER = 1.0
# Client-go's are waited for so long after a kill, and always this much longer than ours took. If they take longer still, they
# count as having taken that, which is in their favour.
PATIENCE, MORE_THAN_OURS = 4.0, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, help="how often the kube-apiserver is killed (10)")
    parser.add_argument("--log", metavar="DIR", help="where to write all that the informers say")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as directory:
            with control_plane("--nodes", "3", "--default-apis", directory=directory) as kubeconfig:
                ours, theirs = build_ours(), build_theirs()
                return Soak(directory, kubeconfig, ours, theirs, options.log).run(options.kills)
    except Missing as missing:
        print(f"skipped: {missing}", flush=True)
        return 3


def build_ours() -> str:
    """The path of our program: what SOAK names, or a build of this checkout."""
    if os.environ.get("SOAK"):
        return os.environ["SOAK"]
    print("building the example soak", flush=True)
    command = ["cargo", "build", "--locked", "--package", "informant", "--example", "soak", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, check=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return [message["executable"] for message in messages if message.get("executable")][-1]


def build_theirs() -> str:
    """The path of client-go's program: what SOAK_CLIENT_GO names, or a build of it."""
    if os.environ.get("SOAK_CLIENT_GO"):
        return os.environ["SOAK_CLIENT_GO"]
    program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "peers" / "client-go"
    print("building client-go's informers (minutes, the first time)", flush=True)
    command = ["go", "build", "-mod=readonly", "-o", str(program), "."]
    environment = {**os.environ, "GOWORK": "off"}
    subprocess.run(command, cwd=HERE.parent / "client-go", env=environment, check=True, stdin=subprocess.DEVNULL)
    return str(program)


def within(seconds, ask_again, step=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ask_again():
            return True
        time.sleep(step)
    return bool(ask_again())


class Soak:
    def __init__(self, directory, kubeconfig, ours, theirs, log):
        self.directory, self.kubeconfig = directory, kubeconfig
        users = pathlib.Path(directory, "informers.kubeconfig")
        users.write_text(json.dumps({**json.loads(pathlib.Path(kubeconfig).read_text()), "current-context": USER}))
        self.users_kubeconfig = str(users)
        self.programs, self.log = {OURS: ours, THEIRS: theirs}, log
        self.admin = Client(kubeconfig)
        ports = json.loads(pathlib.Path(directory, "control-plane.json").read_text())["ports"]
        self.etcd = Etcd(ports["etcd"])
        self.prefixes = {
            "pods": f"/registry/pods/{NAMESPACE}/", "configmaps": f"/registry/configmaps/{NAMESPACE}/",
            "things": f"/registry/{GROUP}/things/{NAMESPACE}/",
        }
        self.truth = {resource: Truth(self.etcd, prefix) for resource, prefix in self.prefixes.items()}
        self.checks = Checks()
        self.recoveries = {OURS: [], THEIRS: []}
        self.markers = 0
        self.up = []

    def run(self, kills: int) -> int:
        self.began = time.monotonic()
        self.set_up()
        with contextlib.ExitStack() as stack:
            self.sides = {side: [stack.enter_context(self.informers(side, mode)) for mode in ("on", "off")] for side in self.programs}
            self.everybody = [*self.sides[OURS], *self.sides[THEIRS]]
            self.load = stack.enter_context(Load(self.kubeconfig))
            self.step("the informers run, and the load too")
            if not self.checks.true("all see what is written", self.mark_and_wait(30)[1]):
                return self.checks.verdict()
            for number in range(1, kills + 1):
                self.kill(number, compact=number % 2 == 0)
                if number == 2:
                    self.take_permission_away()
                if number == 3:
                    for informers in self.sides[OURS]:
                        informers.command("late")
                if number == 5:
                    self.delete_definition()
                if number == 7:
                    self.change_schema()
            time.sleep(2)
            self.load.stop()
            self.step("the load has ended")
            self.compare()
            self.judge()
            self.compare_recoveries()
            self.checks.true(f"about {RATE} writes a second were accepted while the server was up", *self.load.verdict(self.up))
        return self.checks.verdict()

    def step(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    # --- the cluster ---

    def ask(self, method, path, body=None, content="application/json", wanted=(200, 201, 409)):
        status, _, text = self.admin.request(method, path, body, content)
        if status not in wanted:
            raise SystemExit(f"{method} {path}: {status} {text[:300]!r}")
        return json.loads(text)

    def set_up(self):
        self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        within(30, lambda: self.admin.request("GET", account)[0] == 200)
        rbac, own = "/apis/rbac.authorization.k8s.io/v1", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
        read = {"verbs": ["get", "list", "watch"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
        self.ask("POST", f"{rbac}/clusterroles", {"metadata": {"name": "read-definitions"}, "rules": [read]})
        self.ask("POST", f"{rbac}/clusterrolebindings", binding("ClusterRole", "read-definitions"))
        self.ask("POST", f"{own}/rolebindings", binding("Role", "informers"))
        self.give_permission()
        within(30, lambda: self.established())
        for number in range(10):
            within(30, lambda: self.put("things", f"thing-{number}"))

    def give_permission(self):
        own = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"
        verbs = ["get", "list", "watch"]
        rules = [{"verbs": verbs, "apiGroups": ["", GROUP], "resources": list(RESOURCES)}]
        self.ask("POST", own, {"metadata": {"name": "informers"}, "rules": rules})

    def established(self):
        status, _, text = self.admin.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{GROUP}")
        conditions = json.loads(text).get("status", {}).get("conditions") or [] if status == 200 else []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def put(self, resource, name) -> bool:
        """Creates an object, or changes it if it's there. Whether that worked."""
        path = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/things" if resource == "things" else f"/api/v1/namespaces/{NAMESPACE}/{resource}"
        try:
            status = self.admin.once("POST", path, new(resource, name), "application/json", "application/json", 10)[0]
            if status == 409:
                change = {"metadata": {"annotations": {"time": str(time.time())}}}
                status = self.admin.once("PATCH", f"{path}/{name}", change, "application/merge-patch+json", "application/json", 10)[0]
        except OSError:
            return False
        return status in (200, 201)

    def informers(self, side, mode):
        log = open(pathlib.Path(self.log, f"{side}-{mode}.log"), "w") if self.log else None
        return Informers(f"{side}, streamed lists {mode}", [self.programs[side], self.users_kubeconfig, NAMESPACE, GROUP, mode], log)

    # --- what happens to it ---

    def restart(self, compact: bool) -> float:
        """Kills the kube-apiserver, lets objects vanish, and starts it again. Returns when it was ready."""
        killed = time.time()
        oracle("kill-apiserver", self.directory)
        for resource, prefix in self.prefixes.items():
            for name in self.truth[resource].present()[:2]:
                self.etcd.delete(prefix + name)
        if compact:
            oracle("compact", self.directory)
        starter = threading.Thread(target=oracle, args=("start-apiserver", self.directory))
        starter.start()
        within(90, self.ready, 0.03)
        ready = time.time()
        self.up.append((killed, ready))
        # It's there already; what's waited for is the command.
        starter.join()
        return ready

    def ready(self) -> bool:
        try:
            return self.admin.once("GET", "/readyz", None, "", "application/json", 5)[0] == 200
        except OSError:
            return False

    def mark_and_wait(self, patience, among=None, resources=RESOURCES):
        """Writes an object of each resource and waits until all have seen it. Returns its name and whether they have."""
        self.markers += 1
        name = f"marker-{self.markers}"
        for resource in resources:
            within(60, lambda: self.put(resource, name))
        return name, within(patience, lambda: all(one.saw(resource, name) for one in among or self.everybody for resource in resources))

    def took(self, side, name, since, resources=RESOURCES):
        """After how long all informers of a side had seen a marker; if they haven't, how long that has been."""
        seen = [one.saw(resource, name) for one in self.sides[side] for resource in resources]
        return (time.time() - since, False) if None in seen else (max(seen) - since, True)

    def words(self, name, since, resources=RESOURCES):
        took = {side: self.took(side, name, since, resources) for side in self.sides}
        return "; ".join(f"{side} {'' if back else 'not '}back after {seconds:.2f} s" for side, (seconds, back) in took.items())

    def kill(self, number, compact):
        time.sleep(2.5)
        before = self.expired()
        ready = self.restart(compact)
        name, _ = self.mark_and_wait(60, self.sides[OURS])
        until = max(PATIENCE, self.took(OURS, name, ready)[0] + MORE_THAN_OURS)
        within(ready + until - time.time(), lambda: self.took(THEIRS, name, ready)[1])
        for side in self.sides:
            self.recoveries[side].append(self.took(side, name, ready)[0])
        for thing in range(5):
            self.put("things", f"thing-{thing}")
        what = f"kill {number}{', its history gone' if compact else ''}"
        self.step(f"{what}: {self.words(name, ready)}")
        if compact:
            after = self.expired()
            self.checks.true(f"{what}: informers met 410 ({after - before} times)", after > before)

    def expired(self):
        return sum(
            dump["status"]["counters"]["relists"].get("expired", 0) for one in self.sides[OURS] for dump in one.dump(within).values())

    def take_permission_away(self):
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/informers"
        self.ask("DELETE", path)
        since = self.restart(False)
        told = lambda: all(one.shows(resource, "forbidden", since - 5) for one in self.sides[OURS] for resource in RESOURCES)
        self.checks.true("without permission our informers say that it's forbidden", within(30, told))
        time.sleep(1)
        self.give_permission()
        since = time.time()
        name, _ = self.mark_and_wait(60, self.sides[OURS])
        self.tell("permission given back", name, since)

    def delete_definition(self):
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        since = time.time()
        self.ask("DELETE", f"{path}/things.{GROUP}")
        within(30, lambda: self.admin.request("GET", f"{path}/things.{GROUP}")[0] == 404)
        told = lambda: all(one.shows("things", "missing", since) for one in self.sides[OURS])
        self.checks.true("without its CRD our informers say that the kind is missing", within(30, told))
        for one in self.sides[OURS]:
            complaints = lambda: list(self.truth["things"].judge(one.handlers()[("things", "early")]))
            within(10, lambda: not complaints())
            self.checks.record(f"{one.name}: the objects of a deleted CRD are told as deleted", complaints())
        self.ask("POST", path, definition())
        within(30, self.established)
        since = time.time()
        name, _ = self.mark_and_wait(60, self.sides[OURS], ["things"])
        self.tell("CRD created again", name, since, ["things"])

    def change_schema(self):
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{GROUP}"
        change = {"spec": {"versions": definition({"more": {"type": "integer"}})["spec"]["versions"]}}
        self.ask("PATCH", path, change, "application/merge-patch+json")
        since = time.time()
        name, _ = self.mark_and_wait(60, self.sides[OURS], ["things"])
        self.tell("CRD's schema changed", name, since, ["things"])

    def tell(self, what, name, since, resources=RESOURCES):
        self.step(f"{what}: {self.words(name, since, resources)} (client-go isn't waited for)")
        self.checks.true(f"{what}: our informers follow again", all(one.saw(r, name) for one in self.sides[OURS] for r in resources))

    # --- what must hold afterwards ---

    def fresh(self, resource):
        path = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/things" if resource == "things" else f"/api/v1/namespaces/{NAMESPACE}/{resource}"
        items = self.ask("GET", path)["items"]
        return {f"{NAMESPACE}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in items}

    def compare(self):
        for informers in self.everybody:
            held = lambda: {resource: informers.dump(within).get(resource, {}).get("held") for resource in RESOURCES}
            equal = lambda: held() == {resource: self.fresh(resource) for resource in RESOURCES}
            # client-go's delays go up to a minute.
            same = within(90, equal, 1.0)
            counts = {resource: len(objects or {}) for resource, objects in held().items()}
            self.checks.true(f"{informers.name}: it holds what a fresh list shows ({counts})", same)

    def judge(self):
        for informers in self.sides[OURS]:
            handlers = lambda: informers.handlers()
            for resource, handler in sorted(handlers()):
                complaints = lambda: list(self.truth[resource].judge(handlers()[(resource, handler)]))
                within(10, lambda: not complaints(), 1.0)
                events = handlers()[(resource, handler)]
                counts = {kind: sum(event["e"] == kind for event in events) for kind in ("added", "updated", "deleted")}
                found = complaints()
                more = [f"and {len(found) - 10} more"] if len(found) > 10 else []
                self.checks.record(f"{informers.name}: {resource}, handler {handler}, {counts}", found[:10] + more)
            statuses = [dump["status"] for dump in informers.dump(within).values()]
            self.checks.equal(f"{informers.name}: no task failed", [status["counters"]["restarts"] for status in statuses], [0, 0, 0])
            merged = sum(status["counters"]["conflated"] for status in statuses)
            self.checks.true(f"{informers.name}: the slow handlers' backlogs were merged ({merged} events)", merged > 0)
            for status in statuses:
                print(f"      {status['informer']}: {json.dumps(status['counters'])}")
        for informers in self.sides[THEIRS]:
            found = {r: len(list(self.truth[r].judge(events, merged_lives=True))) for (r, _), events in informers.handlers().items()}
            print(f"      {informers.name}: complaints, if it were ours: {found}", flush=True)

    def compare_recoveries(self):
        for what, of in (("in the median", statistics.median), ("at worst", max)):
            ours, theirs = of(self.recoveries[OURS]), of(self.recoveries[THEIRS])
            self.checks.true(f"{what} ours are back after {ours:.2f} s, client-go's after {theirs:.2f} s", ours <= theirs + LATER)


class Load(Program):
    """Writes to the cluster while the `with` block lasts."""

    def __init__(self, kubeconfig):
        words = [sys.executable, str(HERE / "load.py"), kubeconfig, NAMESPACE, str(RATE)]
        super().__init__(words, stdin=subprocess.PIPE)
        self.writes = {}

    def read(self, line: str):
        line = json.loads(line)
        self.writes[line["second"]] = line["writes"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.reader.join()

    def verdict(self, downtimes):
        """Whether three quarters of the rate were reached (a busy machine doesn't reach all of it), in the median of the
        seconds in which the server was there throughout."""
        away = {second for killed, ready in downtimes for second in range(int(killed), int(ready) + 2)}
        up = [writes for second, writes in sorted(self.writes.items())[1:-1] if second not in away]
        rate = statistics.median(up)
        text = f"{sum(self.writes.values())} writes, in the median {rate} in each of {len(up)} s"
        print(f"      {text}", flush=True)
        return rate >= 0.75 * RATE, text


def definition(more=None):
    spec = {"type": "object", "properties": {"v": {"type": "string"}, **(more or {})}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }


def binding(kind, name):
    return {
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }


def new(resource, name):
    if resource == "things":
        return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"v": "1"}}
    if resource == "configmaps":
        return {"metadata": {"name": name}}
    return {"metadata": {"name": name}, "spec": {"nodeName": "node-0", "containers": [{"name": "c", "image": "registry.example/c:1"}]}}


if __name__ == "__main__":
    sys.exit(main())
