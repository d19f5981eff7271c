"""The workloads: processes that wait to be told, then do one thing many times."""

import os
import subprocess


class Reads:
    """Or another helper with the same arguments."""

    def __init__(self, tools, count, helper="reads", depth=0):
        self.process = subprocess.Popen([tools.helper(helper), str(count), str(depth)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.count = count
        os.sched_setaffinity(self.pid, {max(os.sched_getaffinity(0))})

    def run(self):
        """Reads; nanoseconds for each call."""
        return self.run_timed()[0]

    def run_timed(self):
        """Reads; nanoseconds for each call, and those of them on a CPU."""
        output, _ = self.process.communicate(b"\n")
        return [int(field) / self.count for field in output.split()[:2]]


def make_library(tools, letter, digits, count):
    """A shared library of functions, such as f0000, f0001, ..., which are not called."""
    library = tools.directory / f"functions-{letter}.so"
    if not library.exists():
        source = library.with_suffix(".c")
        source.write_text("".join(f"int {letter}{i:0{digits}}(int x) {{ return x + {i}; }}\n" for i in range(count)))
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library.resolve()
