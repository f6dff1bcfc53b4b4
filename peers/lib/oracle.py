"""A real Kubernetes, as `cargo xtask oracle` builds and starts it."""

import contextlib
import subprocess
import tempfile

from embedded import ROOT


class Missing(Exception):
    """What it's built with isn't installed."""


def oracle(*words, check=True):
    """Runs one of its commands."""
    command = ["cargo", "xtask", "oracle", *words]
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT, check=check, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def build():
    """Builds it if that hasn't been done."""
    code = oracle("build", check=False).returncode
    if code == 3:
        raise Missing("a real Kubernetes is built with Go 1.26, which isn't here")
    if code:
        raise SystemExit(code)


@contextlib.contextmanager
def control_plane(*options, directory=None):
    """One that runs while the block lasts; gives its kubeconfig's path."""
    build()
    with tempfile.TemporaryDirectory() as scratch:
        place = directory or scratch
        kubeconfig = oracle("start", *options, place).stdout.strip()
        try:
            yield kubeconfig
        finally:
            oracle("stop", place)
