"""The workload: a process that waits to be told, then reads one byte many times."""

import os
import subprocess


class Reads:
    def __init__(self, tools, count, helper="reads", depth=0):
        self.process = subprocess.Popen([tools.helper(helper), str(count), str(depth)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.count = count
        os.sched_setaffinity(self.pid, {max(os.sched_getaffinity(0))})

    def run(self):
        """Reads; nanoseconds for each call."""
        output, _ = self.process.communicate(b"\n")
        return int(output) / self.count
