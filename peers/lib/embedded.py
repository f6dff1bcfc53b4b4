"""The program `informant` and the embedded server as a process of its own."""

import json
import os
import pathlib
import queue
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program() -> str:
    """The path of `informant`: what INFORMANT names, or a release build of this checkout."""
    if os.environ.get("INFORMANT"):
        return os.environ["INFORMANT"]
    print("building informant", flush=True)
    command = ["cargo", "build", "--release", "--locked", "--bin", "informant", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, check=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    executables = [message["executable"] for message in messages if message.get("executable")]
    return executables[-1]


class Server:
    """`informant apiserver` while the `with` block lasts; at its end it must go at once, with exit code 0."""

    def __init__(self, directory: str, *arguments: str):
        self.kubeconfig = os.path.join(directory, "kubeconfig")
        self.command = [program(), "apiserver", "--kubeconfig-out", self.kubeconfig, *arguments]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in self.process.stdout], daemon=True).start()
        try:
            print(lines.get(timeout=20).strip(), flush=True)
        except queue.Empty:
            self.process.kill()
            raise SystemExit("informant apiserver printed no line within 20 s") from None
        return self

    def __exit__(self, *_):
        if self.process.poll() is not None:
            raise SystemExit(f"informant apiserver ended by itself with exit code {self.process.returncode}")
        self.process.terminate()
        code = self.process.wait(timeout=10)
        if code != 0:
            raise SystemExit(f"informant apiserver ended with exit code {code} on SIGTERM")
