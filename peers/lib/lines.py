"""A program that goes on running, whose lines are read as they come."""

import queue
import subprocess
import threading
import time


class Program:
    """Runs while the `with` block lasts. What it writes to standard error goes where this script's does."""

    def __init__(self, words, **options):
        self.words, self.options = words, options

    def __enter__(self):
        options = {"stdin": subprocess.DEVNULL, **self.options}
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True, **options)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            self.read(line.rstrip("\n"))

    def read(self, line: str):
        """Takes a line, in a thread of its own."""
        self.lines.put(line)

    def next(self, seconds: float):
        """The next line, or nothing after so long."""
        try:
            return self.lines.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    def take(self, wanted, seconds: float = 30):
        """Reads lines until all of `wanted` have come, in any order. Returns those that didn't come in time."""
        missing, end = set(wanted), time.monotonic() + seconds
        while missing and time.monotonic() < end:
            missing.discard(self.next(end - time.monotonic()))
        return sorted(missing)

    def interrupt(self, signal, seconds: float = 15):
        """Sends a signal, and gives the exit code, or nothing if it doesn't end in time."""
        self.process.send_signal(signal)
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
