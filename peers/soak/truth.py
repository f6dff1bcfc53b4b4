"""What really happened to the objects, from etcd itself; and whether what a handler was told is a faithful part of it."""

import base64
import http.client
import json
import threading


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Etcd:
    """An etcd on this machine, through its JSON gateway."""

    def __init__(self, port: int):
        self.port = port

    def ask(self, path: str, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def delete(self, key: str) -> bool:
        """Takes a key away behind the kube-apiserver's back."""
        return self.ask("/v3/kv/deleterange", {"key": encoded(key)}).get("deleted") == "1"


class Truth:
    """Follows the keys below a prefix from its making on, whatever the kube-apiserver does. Every version of an object is a
    revision of its key, and an object that's deleted and created again has another revision of creation."""

    def __init__(self, etcd: Etcd, prefix: str):
        self.prefix = prefix
        self.lock = threading.Lock()
        # For each key: pairs of a revision and the object's life that it belongs to, and whether the revision ended it.
        self.revisions: dict[str, dict[int, tuple[int, bool]]] = {}
        self.life: dict[str, int] = {}
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        self.connection = http.client.HTTPConnection("127.0.0.1", etcd.port)
        watch = {"create_request": {"key": encoded(prefix), "range_end": encoded(end)}}
        self.connection.request("POST", "/v3/watch", json.dumps(watch))
        self.answer = self.connection.getresponse()
        if not json.loads(self.answer.readline())["result"].get("created"):
            raise SystemExit(f"etcd doesn't watch {prefix}")
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        while line := self.answer.readline():
            # At its end etcd says why it ends, and has no result.
            for event in json.loads(line).get("result", {}).get("events", []):
                self._note(event)

    def _note(self, event):
        pair = event["kv"]
        key = base64.b64decode(pair["key"]).decode().removeprefix(self.prefix)
        revision, gone = int(pair["mod_revision"]), event.get("type") == "DELETE"
        with self.lock:
            if gone:
                life = self.life.pop(key)
            else:
                life = self.life[key] = int(pair["create_revision"])
            self.revisions.setdefault(key, {})[revision] = (life, gone)

    def present(self):
        """The keys of the objects that are there."""
        with self.lock:
            return sorted(self.life)

    def judge(self, told, over: bool = True, merged_lives: bool = False):
        """What's wrong with what one handler was told, in its order: for every object a subsequence of its versions without a
        repetition, adds, updates and deletes in turn, and, if it's `over`, the last version at the end or a delete. With
        `merged_lives` an update may go from one life of an object to the next, as client-go's does."""
        events = {}
        for event in told:
            events.setdefault(event["k"].rpartition("/")[2], []).append(event)
        with self.lock:
            for key in self.revisions.keys() | events.keys():
                yield from self._judge_one(key, events.get(key, []), over, merged_lives)

    def _judge_one(self, key, events, over, merged_lives):
        versions = self.revisions.get(key, {})
        held, last = None, 0
        for event in events:
            kind, version = event["e"], int(event["v"])
            life, gone = versions.get(version, (None, False))
            if life is None:
                yield f"{key}: {kind} in version {version}, which it never had"
                continue
            if (kind == "added") != (held is None):
                yield f"{key}: {kind} in version {version} while {'none was' if held is None else 'one was'} there"
            if kind == "deleted":
                if version < last or (held is not None and life != held):
                    yield f"{key}: deleted in version {version} after {last}, of another life or backwards"
                held = None
            else:
                if version <= last:
                    yield f"{key}: {kind} in version {version} after {last}"
                if kind == "updated" and life != held and not merged_lives:
                    yield f"{key}: updated in version {version} of another life"
                if gone:
                    yield f"{key}: {kind} in version {version}, which is its end"
                held = life
            last = version
        if not over:
            return
        if self.life.get(key) != held:
            yield f"{key}: {'a delete is missing' if held else 'an add is missing'} after version {last}"
        elif held is not None and last != max(versions):
            yield f"{key}: the last version told is {last}, and its last is {max(versions)}"
