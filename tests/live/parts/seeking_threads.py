#!/usr/bin/env python3
"""seeking_threads.py THREADS CALLS: each thread, named "seek", calls lseek(2) so often, with offsets of its own."""
import ctypes
import os
import sys
import tempfile
import threading

PR_SET_NAME = 15
threads, calls = map(int, sys.argv[1:])


def seek(number, file):
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"seek")
    for i in range(calls):
        os.lseek(file.fileno(), number * calls + i, os.SEEK_SET)


files = [tempfile.TemporaryFile() for _ in range(threads)]
running = [threading.Thread(target=seek, args=each) for each in enumerate(files)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
