#!/usr/bin/env python3
"""A recording whose events take long to replay: on a terminal a line tells how far it is, and goes at the end. ESPY is
the program; SCRATCH a directory."""

import os
import pathlib
import signal
import subprocess

from screen import Screen

ESPY, RECORDING = os.environ["ESPY"], str(pathlib.Path(os.environ["SCRATCH"]) / "recording")
WRITES = "dd if=/dev/zero of=/dev/null bs=1 count=3000"
subprocess.run([ESPY, "record", "-q", "-o", RECORDING, "-c", WRITES, "tracepoint:syscalls:sys_enter_write"], check=True,
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
SCRIPT = "tracepoint:syscalls:sys_enter_write { for $i : 0..200000 { @sum += $i; } }"

screen = Screen([ESPY, "-i", RECORDING, "-e", SCRIPT])
screen.shows("replaying: ")
screen.kill(signal.SIGINT)
print("status", screen.wait())
print("erased", not screen.row("replaying"), "shown", bool(screen.row("@sum: ")))
