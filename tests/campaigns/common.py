"""What campaigns share (scripts/campaign --help): their arguments, sums and finds."""

import argparse
import json
import os
import pathlib
import signal
import tempfile
import time


def read_sums(state, name):
    """The sums of a campaign so far, {} at first."""
    try:
        return json.loads((pathlib.Path(state) / f"{name}.json").read_text())
    except FileNotFoundError:
        return {}


def write_sums(state, name, sums):
    """Replaces the file at once: who reads it meanwhile sees the old or the new."""
    with tempfile.NamedTemporaryFile("w", dir=state, prefix=f".{name}.", delete=False) as file:
        json.dump(sums, file, indent=1)
        file.write("\n")
    os.chmod(file.name, 0o644)
    os.rename(file.name, pathlib.Path(state) / f"{name}.json")


def add_sums(state, name, counts, **others):
    """Adds `counts` to the numbers in the state; sets `others`, such as next_seed."""
    sums = read_sums(state, name)
    for key, count in counts.items():
        sums[key] = sums.get(key, 0) + count
    sums.update(others)
    write_sums(state, name, sums)


def save_find(state, name, label, text):
    """Saves what reproduces a failure; the path of it."""
    folder = pathlib.Path(state) / f"{name}-finds"
    folder.mkdir(exist_ok=True)
    path = folder / f"{label}.txt"
    path.write_text(text, errors="replace")
    return path


class Round:
    """One call of a campaign: its arguments, and whether it is over, be it by time or by SIGTERM."""

    def __init__(self, name, description):
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--state", required=True, help="directory of the sums and finds")
        parser.add_argument("--seconds", type=float, default=60)
        parser.add_argument("--seed", type=int, default=1)
        arguments = parser.parse_args()
        self.name, self.state, self.seed = name, pathlib.Path(arguments.state), arguments.seed
        self.seconds = arguments.seconds
        self.end = time.monotonic() + arguments.seconds
        self.build = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
        self.espy = os.environ.get("ESPY", str(self.build / "espy"))
        self.finds = 0
        self.state.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_):
        self.end = 0

    def is_over(self):
        return time.monotonic() >= self.end

    def add(self, counts, **others):
        add_sums(self.state, self.name, counts, **others)

    def find(self, label, text):
        self.finds += 1
        path = save_find(self.state, self.name, label, text)
        print(f"find: {path}", flush=True)
        return path

    def status(self):
        """The exit status."""
        return 1 if self.finds else 0
