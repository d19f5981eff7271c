#!/usr/bin/env python3
"""Makes kernel stacks that differ: kernel_stacks.py OUTER INNER [ROUNDS].

A BPF program calls a function of its own from OUTER places, and this reads unmapped memory at INNER places. Each read
is a page fault, exceptions:page_fault_kernel. So OUTER * INNER kernel stacks differ in two return addresses. Each is
made ROUNDS times.
"""

import ctypes
import os
import platform
import struct
import sys

BPF_PROG_LOAD, BPF_PROG_TEST_RUN = 5, 10
BPF_PROG_TYPE_RAW_TRACEPOINT = 17
BPF_PSEUDO_CALL = 1
PROBE_READ_USER = 112
UNMAPPED = 8

SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = LIBC.syscall(SYSCALL, command, buffer, len(attributes))
    if result < 0:
        sys.exit(f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result


def instruction(code, target=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


LEAVE = [instruction(0xB7), instruction(0x95)]  # r0 = 0; exit
READ = [
    instruction(0xBF, 1, 10),  # r1 = r10
    instruction(0x07, 1, value=-8),  # r1 += -8
    instruction(0xB7, 2, value=8),  # r2 = 8
    instruction(0xB7, 3, value=UNMAPPED),  # r3 = UNMAPPED
    instruction(0x85, value=PROBE_READ_USER),
]


def load(outer, inner):
    calls = [instruction(0x85, source=BPF_PSEUDO_CALL, value=outer + len(LEAVE) - i - 1) for i in range(outer)]
    code = b"".join(calls + LEAVE + READ * inner + LEAVE)
    text = ctypes.create_string_buffer(code, len(code))
    license_name = ctypes.create_string_buffer(b"GPL")
    head = struct.pack("<IIQQ", BPF_PROG_TYPE_RAW_TRACEPOINT, len(code) // 8, ctypes.addressof(text),
                       ctypes.addressof(license_name))
    return bpf(BPF_PROG_LOAD, head + bytes(48))


def main():
    outer, inner = int(sys.argv[1]), int(sys.argv[2])
    program = load(outer, inner)
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        bpf(BPF_PROG_TEST_RUN, struct.pack("<I", program) + bytes(76))


main()
