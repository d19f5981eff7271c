"""perfetto.py FILE: prints a trace of Perfetto's format as text, by protoc, with its compressed packets unpacked.

Fails for fields that perfetto.proto does not have."""
import os
import subprocess
import sys
import zlib


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a message that have bytes: their numbers and bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 == 2, f"wire type {tag & 7} at {at}"
        size, at = varint(data, at)
        yield tag >> 3, data[at:at + size]
        at += size


packets = b""
for number, packet in fields(open(sys.argv[1], "rb").read()):
    assert number == 1
    for inner, compressed in fields(packet):
        assert inner == 50
        packets += zlib.decompress(compressed)
here = os.path.dirname(os.path.abspath(__file__))
text = subprocess.run(["protoc", f"-I{here}", "--decode=Trace", f"{here}/perfetto.proto"], input=packets,
                      capture_output=True, check=True).stdout.decode()
unknown = [line for line in text.splitlines() if line.strip()[:1].isdigit()]
assert not unknown, unknown[:5]
print(text, end="")
