"""Adds a key to the keyring of the process (-2), asks for one that is not there, and clears the keyring."""
import ctypes
import platform
import sys

libc = ctypes.CDLL(None, use_errno=True)
ADD, REQUEST, CONTROL = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
KEYRING = ctypes.c_long(-2)
added = libc.syscall(ADD, b"user", b"espy:one", b"secret", ctypes.c_size_t(6), KEYRING)
libc.syscall(REQUEST, b"user", b"espy:nobody", None, KEYRING)
libc.syscall(CONTROL, ctypes.c_long(7), KEYRING)
sys.exit(added < 0)
