"""Size: the stripped binary and the shared libraries that it cannot start without."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness.report import Row


def run(tools, report, _options):
    title = "Size"
    binary = Row("binary, stripped", "KiB")
    libraries = Row("shared libraries it needs", "KiB")
    total = Row("together", "KiB", limit=7_000_000 / 1024)
    report.group(title).extend([binary, libraries, total])
    for tool, path in tools.scripted.items():
        own, needed = stripped_bytes(path), sum(os.stat(library).st_size for library in shared_libraries(path))
        binary.add(tool, own / 1024)
        libraries.add(tool, needed / 1024)
        total.add(tool, (own + needed) / 1024)
    report.print_group(title)


def stripped_bytes(path):
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "binary"
        shutil.copyfile(path, copy)
        subprocess.run(["strip", str(copy)], check=True)
        return copy.stat().st_size


def shared_libraries(path):
    output = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return {os.path.realpath(library) for library in re.findall(r"(/\S+) \(0x", output.stdout)}
