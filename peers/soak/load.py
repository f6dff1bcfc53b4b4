#!/usr/bin/env python3
"""Writes Pods and ConfigMaps at a steady rate, and goes on when the server is away: load.py KUBECONFIG NAMESPACE RATE.

Prints a line of JSON per second: the second and how many writes were accepted in it. Ends when its standard input does.
"""

import http.client
import json
import pathlib
import random
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from http_client import Client

THREADS = 8
NAMES = 16
MERGE = "application/merge-patch+json"


class Writer:
    """One connection, one thread and some names of its own, so that it knows which of them are there."""

    def __init__(self, client: Client, namespace: str, number: int, wait: float, accepted):
        self.client, self.namespace, self.number, self.wait, self.accepted = client, namespace, number, wait, accepted
        self.dice = random.Random(number)
        self.connection = None
        self.there = {"pods": set(), "configmaps": set()}
        self.count = 0

    def run(self):
        due = time.monotonic()
        while True:
            due += self.wait
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if self.write():
                    self.accepted(time.time())
            except (OSError, http.client.HTTPException):
                self.connection = None
                time.sleep(0.05)
                # What couldn't be written while the server was away isn't made up for.
                due = time.monotonic()

    def write(self) -> bool:
        self.count += 1
        resource = "pods" if self.dice.random() < 0.3 else "configmaps"
        name = f"{resource}-{self.number}-{self.dice.randrange(NAMES)}"
        there, chance = self.there[resource], self.dice.random()
        if name not in there:
            status = self.send("POST", resource, "", self.new(resource, name), "application/json")
            if status in (201, 409):
                there.add(name)
        elif chance < 0.1:
            status = self.send("DELETE", resource, name, {"gracePeriodSeconds": 0}, "application/json")
            if status in (200, 404):
                there.discard(name)
        else:
            status = self.send("PATCH", resource, name, {"metadata": {"annotations": {"count": str(self.count)}}}, MERGE)
            if status == 404:
                there.discard(name)
        return status in (200, 201)

    def new(self, resource, name):
        if resource == "configmaps":
            return {"metadata": {"name": name}, "data": {"text": "x" * 200}}
        container = {"name": "c", "image": "registry.example/c:1"}
        return {"metadata": {"name": name}, "spec": {"nodeName": f"node-{self.number % 3}", "containers": [container]}}

    def send(self, method, resource, name, body, content) -> int:
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                self.client.url.hostname, self.client.url.port, context=self.client.context, timeout=10)
        path = f"/api/v1/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")
        self.connection.request(method, path, json.dumps(body), {**self.client.headers, "Content-Type": content})
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


def main():
    kubeconfig, namespace, rate = sys.argv[1:]
    client, lock, times = Client(kubeconfig), threading.Lock(), {}

    def accepted(now):
        with lock:
            times[int(now)] = times.get(int(now), 0) + 1

    for number in range(THREADS):
        writer = Writer(client, namespace, number, THREADS / float(rate), accepted)
        threading.Thread(target=writer.run, daemon=True).start()
    stopped = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopped.set()), daemon=True).start()
    while not stopped.wait(1.0):
        with lock:
            over = {second: times.pop(second) for second in sorted(times) if second < int(time.time())}
        for second, writes in over.items():
            print(json.dumps({"second": second, "writes": writes}), flush=True)


if __name__ == "__main__":
    main()
