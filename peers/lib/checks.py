"""Counts what was checked, and says what differs."""

import re


class Checks:
    """Prints one line per check. `verdict` prints the totals and gives the process's exit code."""

    def __init__(self, verbose: bool = False):
        self.verbose = verbose
        self.passed = 0
        self.failures = []

    def record(self, name: str, complaints, detail: str = "") -> bool:
        """A check passes if there are no complaints."""
        complaints = list(complaints)
        if complaints:
            self.failures.append(name)
            print(f"FAIL  {name}", flush=True)
            for complaint in complaints:
                print(f"      {complaint}", flush=True)
        else:
            self.passed += 1
            print(f"ok    {name}", flush=True)
        if detail and (complaints or self.verbose):
            print("".join(f"      | {line}\n" for line in detail.splitlines()), end="", flush=True)
        return not complaints

    def equal(self, name: str, seen, expected) -> bool:
        """A check that two values are the same."""
        return self.record(name, [] if seen == expected else [f"expected {expected!r}", f"saw      {seen!r}"])

    def true(self, name: str, condition, detail: str = "") -> bool:
        """A check that something holds."""
        return self.record(name, [] if condition else ["it doesn't hold"], detail)

    def verdict(self) -> int:
        """The totals, and 0 if nothing failed and something was checked at all."""
        for name in self.failures:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 0 if self.passed and not self.failures else 1


def mismatches(what: str, text: str, patterns):
    """Those of the regular expressions that the text doesn't have; one that begins with '!' must not be there."""
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        absent = pattern.startswith("!")
        found = re.search(pattern.removeprefix("!"), text, re.MULTILINE)
        if bool(found) == absent:
            yield f"{what} {'has' if absent else 'lacks'} /{pattern.removeprefix('!')}/"
