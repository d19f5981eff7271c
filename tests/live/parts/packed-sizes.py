#!/usr/bin/env python3
"""packed-sizes.py FROM TO SIZE: a copy of a 64-bit ELF file, each compressed section of which claims to unpack to SIZE bytes."""

import os
import struct
import sys

SHF_COMPRESSED = 0x800


def main():
    source, target, size = sys.argv[1:]
    elf = bytearray(open(source, "rb").read())
    headers, = struct.unpack_from("<Q", elf, 40)
    count, = struct.unpack_from("<H", elf, 60)
    for header in range(headers, headers + 64 * count, 64):
        flags, = struct.unpack_from("<Q", elf, header + 8)
        offset, = struct.unpack_from("<Q", elf, header + 24)
        if flags & SHF_COMPRESSED:
            struct.pack_into("<Q", elf, offset + 8, int(size))
    with open(target, "wb") as out:
        out.write(elf)
    os.chmod(target, 0o755)


main()
