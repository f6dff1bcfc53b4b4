"""One run of kubectl's commands: a namespace of its own, a cache and a home of its own, and the checks of each command."""

import os
import pathlib
import queue
import random
import shlex
import subprocess
import threading
import time
import traceback

from checks import mismatches

#: No command takes longer, but those that wait for something on purpose, and they say how long.
TIMEOUT = 90


class Session:
    """Runs commands in a namespace that it makes at the start and deletes at the end."""

    def __init__(self, program: str, kubeconfig: str, embedded: bool, checks, scratch: str):
        self.embedded = embedded
        self.checks = checks
        self.suffix = f"{random.randrange(16**6):06x}"
        self.namespace = f"kubectl-{self.suffix}"
        self.scratch = pathlib.Path(scratch)
        self.base = [program, "--kubeconfig", os.path.abspath(kubeconfig), "--cache-dir", str(self.scratch / "cache")]
        self.environment = {"PATH": os.environ.get("PATH", ""), "HOME": scratch, "TMPDIR": scratch, "TERM": "dumb"}

    def __enter__(self):
        self.ok(f"create namespace {self.namespace}", out=f"^namespace/{self.namespace} created$")
        # A real cluster's controllers make it; Pods aren't admitted before.
        self.eventually("get serviceaccount default -o name", "^serviceaccount/default$", checked=not self.embedded)
        return self

    def __exit__(self, *_):
        self.ok(f"delete namespace {self.namespace} --timeout=60s", out=f'namespace "{self.namespace}" deleted')
        self.ok(f"get namespace {self.namespace}", code=1, err="NotFound")

    def group(self, name: str, function):
        """Runs one group of checks; whatever goes wrong in it, the others run."""
        try:
            function(self)
        except Exception:  # a defect of the script, or an answer that it can't read
            self.checks.record(f"{name} ran to its end", ["it raised"], traceback.format_exc())

    def run(self, command: str, stdin: str = "", environment=None, timeout: int = TIMEOUT):
        """Runs one command. Its words are split as a shell does."""
        words = [*self.base, "--namespace", self.namespace, *shlex.split(command)]
        environment = {**self.environment, **(environment or {})}
        try:
            return subprocess.run(words, input=stdin, env=environment, cwd=self.scratch, capture_output=True, text=True,
                                  timeout=timeout)
        except subprocess.TimeoutExpired as expired:
            out, err = (text.decode() if isinstance(text, bytes) else text or "" for text in (expired.stdout, expired.stderr))
            return subprocess.CompletedProcess(words, 124, out, f"{err}\n(ended after {timeout} s)")

    def ok(self, command: str, out=None, err=None, code: int = 0, same=None, stdin: str = "", environment=None) -> str:
        """Checks a command's exit code, its output and its messages. Returns its output."""
        done = self.run(command, stdin, environment)
        complaints = [f"exit code {done.returncode}, not {code}"] if done.returncode != code else []
        complaints += [*mismatches("output", done.stdout, out), *mismatches("messages", done.stderr, err)]
        if same is not None and done.stdout != same:
            complaints.append(f"output isn't exactly {same!r}")
        self.checks.record(f"kubectl {command}", complaints, done.stdout + done.stderr)
        return done.stdout

    def eventually(self, command: str, out: str, code: int = 0, seconds: int = 30, checked: bool = True, stdin: str = ""):
        """Repeats a command until its output is as wanted: what a controller does takes a moment."""
        for _ in range(seconds * 5):
            done = self.run(command, stdin)
            if done.returncode == code and not list(mismatches("output", done.stdout, out)):
                break
            if not checked:
                return
            time.sleep(0.2)
        complaints = [f"exit code {done.returncode}, not {code}"] if done.returncode != code else []
        complaints += mismatches("output", done.stdout, out)
        self.checks.record(f"kubectl {command} (in the end)", complaints, done.stdout + done.stderr)

    def value(self, resource: str, path: str, expected: str):
        """Checks one field of an object as the server has it."""
        done = self.run(f"get {resource} -o jsonpath='{{{path}}}'")
        complaints = [] if done.returncode == 0 and done.stdout == expected else [f"it is {done.stdout!r}, not {expected!r}"]
        self.checks.record(f"{resource} has {path} = {expected}", complaints, done.stderr)

    def file(self, name: str, text: str) -> str:
        """Writes a manifest, and gives its path."""
        path = self.scratch / name
        path.write_text(text)
        return str(path)

    def background(self, command: str):
        """Starts a command that goes on while others run."""
        return Background([*self.base, "--namespace", self.namespace, *shlex.split(command)], self, command)


class Background:
    """A command whose lines are read as they come."""

    def __init__(self, words, session: Session, command: str):
        self.session, self.command = session, command
        self.process = subprocess.Popen(words, env=session.environment, cwd=session.scratch, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, pattern: str, seconds: int = 20):
        """Checks that a line like this comes; others before it are passed over."""
        end = time.monotonic() + seconds
        found = False
        while not found:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if line is None:
                break
            self.seen.append(line)
            found = not list(mismatches("line", line, pattern))
        complaints = [] if found else [f"no line has /{pattern}/ within {seconds} s"]
        self.session.checks.record(f"kubectl {self.command}: prints /{pattern}/", complaints, "".join(self.seen))

    def ends(self, code: int, seconds: int = 30):
        """Checks that it ends by itself."""
        try:
            ended = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            ended = None
            self.stop()
        complaints = [] if ended == code else [f"exit code {ended}, not {code}"]
        self.session.checks.record(f"kubectl {self.command}: ends with {code}", complaints, "".join(self.seen))

    def stop(self):
        """Ends it."""
        self.process.kill()
        self.process.wait()
