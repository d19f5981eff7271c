"""A process in an IPC namespace of its own, made by clone(2), and setns(2) of a descriptor that is not there."""
import ctypes
import os
import platform
import signal

libc = ctypes.CDLL(None, use_errno=True)
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
child = libc.syscall(CLONE, ctypes.c_long(0x08000000 | signal.SIGCHLD), 0, 0, 0, 0)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
libc.setns(4711, 0)
