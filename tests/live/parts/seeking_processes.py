#!/usr/bin/env python3
"""seeking_processes.py PROCESSES CALLS: each process, named "seeks", calls lseek(2) so often, with the offsets 0, 1, ..."""
import ctypes
import os
import subprocess
import sys

if len(sys.argv) == 3:
    processes, calls = sys.argv[1:]
    running = [subprocess.Popen([sys.executable, __file__, calls]) for _ in range(int(processes))]
    sys.exit(max(process.wait() for process in running))

PR_SET_NAME = 15
file = os.open("/dev/zero", os.O_RDONLY)
ctypes.CDLL(None).prctl(PR_SET_NAME, b"seeks")
for offset in range(int(sys.argv[1])):
    os.lseek(file, offset, os.SEEK_SET)
