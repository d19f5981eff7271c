"""Writes two ELF files of a few hundred KB and lists their functions. The names of one share a string; those of the other
are short and stand for long ones. Usage: hostile_names_of_functions.py ESPY DIRECTORY"""

import os
import platform
import random
import struct
import subprocess
import sys

MACHINES = {"x86_64": 62, "aarch64": 183}


def write_elf(path, name_offsets, strings):
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", at, 0x12, 0, 1, 0x100 + i, 1) for i, at in enumerate(name_offsets)
    )
    names = b"\0.symtab\0.strtab\0.shstrtab\0"
    at, headers = 0x1000, bytes(64)
    for name, kind, content, entry in ((1, 2, symbols, 24), (9, 3, strings, 0), (17, 3, names, 0)):
        headers += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, len(content), 2, 0, 1, entry)
        at += len(content)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, MACHINES[platform.machine()], 1, 0, 64, at, 0, 64, 56, 1, 64, 4, 3)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000)
    with open(path, "wb") as file:
        file.write((header + segment).ljust(0x1000, b"\0") + symbols + strings + names + headers)


def show(espy, title, pattern):
    done = subprocess.run([espy, "-l", pattern], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    few = "few" if len(done.stdout) < 4 << 20 else "%d" % len(done.stdout)
    print("%s: %s bytes, %d lines, %s" % (title, few, done.stdout.count(b"\n"), done.stderr.decode().strip()))


def main():
    espy, directory = sys.argv[1], sys.argv[2]
    os.chdir(directory)
    count = 3000
    text = bytes(random.Random(1).choices(b"abcd", k=count + 16000))
    write_elf("shared", range(1, count + 1), b"\0" + text + b"\0")
    show(espy, "shared", "uprobe:./shared:*")
    # f(A<int, int>, A<A<int, int>, A<int, int>>, ...)
    types = b"1AIiiE" + b"".join(b"S_IS%d_S%d_E" % (i, i) for i in range(10))
    names = [b"_Z5f%04d" % i + types + b"\0" for i in range(400)]
    offsets = [1 + sum(map(len, names[:i])) for i in range(len(names))]
    write_elf("expanded", offsets, b"\0" + b"".join(names))
    show(espy, "expanded", "uprobe:./expanded:cpp:f*")


main()
