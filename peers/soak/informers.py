"""A program that runs informers and says what they see: ours (`crates/informant/examples/soak.rs`) or client-go's
(`peers/client-go`). Both say the same lines."""

import json
import subprocess
import threading

from lines import Program

RESOURCES = ("pods", "configmaps", "things")


class Informers(Program):
    """Runs while the `with` block lasts."""

    def __init__(self, name: str, words, log=None):
        super().__init__(words, stdin=subprocess.PIPE)
        self.name, self.log = name, log
        self.told: dict[tuple[str, str], list] = {}
        self.seen: dict[tuple[str, str], float] = {}
        self.states: list[dict] = []
        self.dumps: dict[str, dict] = {}
        self.lock = threading.Lock()

    def read(self, line: str):
        if self.log:
            self.log.write(line + "\n")
        with self.lock:
            self._note(json.loads(line))

    def _note(self, line):
        if "h" in line:
            self.told.setdefault((line["r"], line["h"]), []).append(line)
            if line["h"] == "early":
                self.seen.setdefault((line["r"], line["k"].rpartition("/")[2]), line["t"])
        elif "dump" in line:
            self.dumps[line["dump"]] = line
        else:
            self.states.append(line)

    def command(self, text: str):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def dump(self, within):
        """What each informer holds, and its numbers."""
        with self.lock:
            self.dumps = {}
        self.command("dump")
        within(10, lambda: len(self.dumps) == len(RESOURCES))
        return self.dumps

    def handlers(self):
        """What each handler was told so far: pairs of resource and handler, and the events."""
        with self.lock:
            return {which: list(events) for which, events in self.told.items()}

    def saw(self, resource: str, name: str):
        """When an object was first told of, or nothing."""
        with self.lock:
            return self.seen.get((resource, name))

    def shows(self, resource: str, word: str, since: float) -> bool:
        """Whether a state or an error of an informer has had this word since then."""
        with self.lock:
            return any(line.get("r") == resource and line["t"] >= since and word in json.dumps(line) for line in self.states)
