"""Runs espy next to work of known size: its output, and its memory over time."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time


def rss_kb(pid):
    """The memory that a process has for itself, in KB; None once it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^RssAnon:\s+(\d+)", text, re.M)
    return int(found.group(1)) if found else None


class Espy:
    """A run in the background. Its output goes to files, or to /dev/null."""

    def __init__(self, command, keeps_output=True, timeout=30):
        self.command = command
        self.output = tempfile.TemporaryFile() if keeps_output else open(os.devnull, "wb")
        self.errors = tempfile.TemporaryFile()
        self.samples = []  # (seconds since the start, KB)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors,
                                        start_new_session=True)
        self.began = time.monotonic()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        deadline = time.monotonic() + timeout
        while "Attached" not in self.stderr() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def _sample(self):
        while self.process.poll() is None:
            kilobytes = rss_kb(self.process.pid)
            if kilobytes:
                self.samples.append((time.monotonic() - self.began, kilobytes))
            time.sleep(0.05)

    def _read(self, file):
        if not file.readable():
            return ""
        return os.pread(file.fileno(), 1 << 26, 0).decode(errors="replace")

    def stdout(self):
        return self._read(self.output)

    def stderr(self):
        return self._read(self.errors)

    def end(self, number=signal.SIGINT, timeout=60):
        """Ends the run by a signal, or waits for its end (None). Its status; None if it had to be killed."""
        if number and self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            status = None
        self._sampler.join()
        return status

    def growth(self, working_seconds):
        """Memory in the beginning of the work and at its end, in KB: the largest of the first fifth and of the last
        tenth, but the end of the run itself, where maps are printed."""
        until = [kilobytes for at, kilobytes in self.samples if at <= working_seconds]
        tenth = max(1, len(until) // 10)
        return max(until[: 2 * tenth], default=0), max(until[-tenth:], default=0)

    def report(self, what):
        return (f"{what}\n{' '.join(map(repr, self.command))}\nstatus {self.process.returncode}\n"
                f"memory (s, KB): {self.samples[:: max(1, len(self.samples) // 50)]}\n"
                f"--- stdout\n{self.stdout()[-4000:]}\n--- stderr\n{self.stderr()[-4000:]}\n")
