"""Runs espy with a NOTIFY_SOCKET whose queue is full."""
import os
import socket
import subprocess

name = f"espy-unread-{os.getpid()}"
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\0" + name)
others = []  # what one socket may send has a limit of its own
try:
    while True:
        others.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        others[-1].setblocking(False)
        others[-1].sendto(b"x", "\0" + name)
except BlockingIOError:
    pass
environment = dict(os.environ, NOTIFY_SOCKET="@" + name)
print("status", subprocess.run([os.environ["ESPY"], "-q", os.environ["FILE"]], env=environment, timeout=20).returncode)
