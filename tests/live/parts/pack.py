#!/usr/bin/env python3
"""pack.py ARCHIVE LIBRARY FUNCTION: packs LIBRARY twice, as lib/stored.so and, compressed, as lib/packed.so, and says
at which offset of the archive the stored one has FUNCTION."""
import subprocess
import struct
import sys
import zipfile

HEADER = 30  # bytes of a local file header without the names
PAGE = 65536  # the largest of any CPU
PADDING = 0xD935  # the extra field of zipalign

archive, library, function = sys.argv[1:]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
    out.writestr("manifest.xml", "x" * 5000)
    # At the begin of a page, as packages of Android are made: the instructions of some CPUs have to be aligned.
    stored = zipfile.ZipInfo("lib/stored.so")
    padding = -(out.fp.tell() + HEADER + len(stored.filename) + 4) % PAGE
    stored.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
    with open(library, "rb") as file:
        out.writestr(stored, file.read(), zipfile.ZIP_STORED)
    out.write(library, "lib/packed.so")
header = zipfile.ZipFile(archive).getinfo("lib/stored.so").header_offset
with open(archive, "rb") as packed:
    packed.seek(header + 26)
    names = sum(struct.unpack("<HH", packed.read(4)))
symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" " + function))
print(header + 30 + names + int(address, 16))
