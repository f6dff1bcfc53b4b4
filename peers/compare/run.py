#!/usr/bin/env python3
"""Sends the same requests to a real kube-apiserver and to the embedded one, and shows where their answers differ.

Without arguments it builds and starts both. What can't be the same (uids, versions, times, addresses) is left out of the
comparison; what differs on purpose is listed in `allowed.py` with its reason. Ends with 3 if Go isn't there.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

import requests_to_send
from allowed import ALLOWED
from answers import differences, readable
from checks import Checks
from embedded import Server
from http_client import Client
from oracle import Missing, control_plane


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real", help="kubeconfig of a real cluster, without controllers")
    parser.add_argument("--ours", help="kubeconfig of an embedded server")
    parser.add_argument("--show", action="store_true", help="show both answers, also where they are the same")
    parser.add_argument("groups", nargs="*", help=f"only these: {' '.join(requests_to_send.GROUPS)}")
    options = parser.parse_args()
    try:
        with contextlib.ExitStack() as stack:
            real = options.real or stack.enter_context(control_plane("--default-apis"))
            ours = options.ours or stack.enter_context(Server(stack.enter_context(tempfile.TemporaryDirectory()))).kubeconfig
            return compare(Client(real), Client(ours), options)
    except Missing as missing:
        print(f"skipped: {missing}", flush=True)
        return 3


def compare(real, ours, options) -> int:
    checks = Checks(options.show)
    for group in options.groups or requests_to_send.GROUPS:
        print(f"--- {group}", flush=True)
        for name, request in requests_to_send.GROUPS[group]():
            title = f"{group}: {name}"
            answers = real.request(**request), ours.request(**request)
            allowed = ALLOWED.get(title, {})
            found = [difference for difference in differences(*answers) if not any(difference.startswith(path) for path in allowed)]
            detail = f"{request['method']} {request['path']}\nreal: {readable(answers[0])}\nours: {readable(answers[1])}"
            checks.record(title, found, detail)
    return checks.verdict()


if __name__ == "__main__":
    sys.exit(main())
