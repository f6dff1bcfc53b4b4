#!/usr/bin/env python3
"""Runs the Python `kubernetes` client and a kopf operator on a server.

Without arguments it builds and starts `informant apiserver`; with --kubeconfig it uses the server of that file. The two
packages are installed into an environment of their own below the target directory.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from embedded import ROOT, Server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubeconfig", help="use this server instead of starting the embedded one")
    options = parser.parse_args()
    python = environment()
    if options.kubeconfig:
        return run(python, os.path.abspath(options.kubeconfig))
    with tempfile.TemporaryDirectory() as scratch, Server(scratch) as server:
        return run(python, server.kubeconfig)


def environment() -> str:
    """The Python of an environment that has what requirements.txt names."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    directory = target / "peers" / "python"
    python = str(directory / "bin" / "python")
    wanted = (HERE / "requirements.txt").read_text()
    installed = directory / "installed"
    if not installed.exists() or installed.read_text() != wanted:
        print(f"installing {', '.join(wanted.split())} into {directory}", flush=True)
        venv.create(directory, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]
        subprocess.run(install, check=True, stdin=subprocess.DEVNULL)
        installed.write_text(wanted)
    return python


def run(python: str, kubeconfig: str) -> int:
    """Each part prints its own verdict; all must be good."""
    codes = []
    for part in ("client.py", "operator_life.py"):
        print(f"--- {part}", flush=True)
        words = [python, str(HERE / part)]
        codes.append(subprocess.run(words, env={**os.environ, "KUBECONFIG": kubeconfig}, stdin=subprocess.DEVNULL, timeout=600).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
