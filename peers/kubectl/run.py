#!/usr/bin/env python3
"""Runs kubectl's commands on a server and checks what each prints and how it ends.

Without arguments it builds and starts `informant apiserver`. With --kubeconfig it uses the server of that file: a real
Kubernetes must pass too (one with its controllers, as `cargo xtask oracle start --controllers` gives), and that is where the
expectations come from. The one difference allowed is marked `embedded`.
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import commands
from checks import Checks
from embedded import Server
from kubectl import program
from session import Session


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubeconfig", help="use this server instead of starting the embedded one")
    parser.add_argument("--embedded", action="store_true", help="the server of --kubeconfig is an embedded one")
    parser.add_argument("--verbose", action="store_true", help="print what every command printed")
    parser.add_argument("groups", nargs="*", help=f"only these: {' '.join(commands.GROUPS)}")
    options = parser.parse_args()
    for group in options.groups:
        if group not in commands.GROUPS:
            parser.error(f"there is no group {group}: {' '.join(commands.GROUPS)}")
    with tempfile.TemporaryDirectory() as scratch:
        if options.kubeconfig:
            return run(options, options.kubeconfig, options.embedded, scratch)
        with Server(scratch) as server:
            return run(options, server.kubeconfig, True, scratch)


def run(options, kubeconfig: str, embedded: bool, scratch: str) -> int:
    checks = Checks(options.verbose)
    with Session(program(), kubeconfig, embedded, checks, scratch) as session:
        for name in options.groups or commands.GROUPS:
            print(f"--- {name}", flush=True)
            session.group(name, commands.GROUPS[name])
    return checks.verdict()


if __name__ == "__main__":
    sys.exit(main())
