#!/usr/bin/env python3
"""pack.py ARCHIVE LIBRARY FUNCTION: packs LIBRARY twice, as lib/stored.so and, compressed, as lib/packed.so, and says
at which offset of the archive the stored one has FUNCTION."""
import subprocess
import struct
import sys
import zipfile

archive, library, function = sys.argv[1:]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
    out.writestr("manifest.xml", "x" * 5000)
    out.write(library, "lib/stored.so", zipfile.ZIP_STORED)
    out.write(library, "lib/packed.so")
header = zipfile.ZipFile(archive).getinfo("lib/stored.so").header_offset
with open(archive, "rb") as packed:
    packed.seek(header + 26)
    names = sum(struct.unpack("<HH", packed.read(4)))
symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" " + function))
print(header + 30 + names + int(address, 16))
