"""process_vm_readv(2) of this process, twice, and of one that is not there."""
import ctypes
import os

libc = ctypes.CDLL(None)
source, target = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


remote, local = Vector(ctypes.addressof(source), 8), Vector(ctypes.addressof(target), 8)
for pid in (os.getpid(), os.getpid(), 99999999):
    libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
