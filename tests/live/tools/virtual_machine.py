"""A virtual machine of 30 instructions, made by /dev/kvm: it writes 25 times to an I/O port, then halts. `try` only tells
whether there is one."""
import ctypes
import fcntl
import mmap
import os
import struct
import sys

CREATE_VM, CREATE_VCPU, SET_MEMORY, RUN, VCPU_SIZE = 0xAE01, 0xAE41, 0x4020AE46, 0xAE80, 0xAE04
GET_SREGS, SET_SREGS, SET_REGS = 0x8138AE83, 0x4138AE84, 0x4090AE82
kvm = os.open("/dev/kvm", os.O_RDWR)
machine = fcntl.ioctl(kvm, CREATE_VM, 0)
if sys.argv[1:] == ["try"]:
    sys.exit()
memory = mmap.mmap(-1, 4096)
memory.write(bytes([0xBA, 0xF8, 0x03]) + b"\xee" * 25 + b"\xf4")  # mov dx, 0x3f8; out dx, al; hlt
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(machine, SET_MEMORY, struct.pack("IIQQQ", 0, 0, 0x1000, 4096, address))
cpu = fcntl.ioctl(machine, CREATE_VCPU, 0)
state = mmap.mmap(cpu, fcntl.ioctl(kvm, VCPU_SIZE, 0))
special = bytearray(312)
fcntl.ioctl(cpu, GET_SREGS, special)
special[0:8] = struct.pack("Q", 0)  # the base and the selector of the code segment
special[12:14] = struct.pack("H", 0)
fcntl.ioctl(cpu, SET_SREGS, special)
fcntl.ioctl(cpu, SET_REGS, struct.pack("18Q", *[0] * 16, 0x1000, 2))
while True:
    fcntl.ioctl(cpu, RUN, 0)
    reason, = struct.unpack_from("I", state, 8)
    if reason == 5:  # halted
        break
    if reason != 2:  # not I/O
        sys.exit(f"exit {reason}")
