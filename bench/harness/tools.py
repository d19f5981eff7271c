"""What is compared: espy, bpftrace, and programs written by hand in C; and the small helpers, built here."""

import pathlib
import platform
import shutil
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent


def compile_if_older(output, source, command):
    newest = max(path.stat().st_mtime for path in [source, *source.parent.glob("*.h")])
    if output.exists() and output.stat().st_mtime > newest:
        return
    subprocess.run([*command, str(source), "-o", str(output)], check=True)


class Tools:
    def __init__(self, build):
        self.directory = pathlib.Path(build) / "bench"
        self.directory.mkdir(parents=True, exist_ok=True)
        espy = pathlib.Path(build) / "espy"
        self.scripted = {}  # name -> path, of the tracers that take scripts
        if espy.exists():
            self.scripted["espy"] = str(espy.resolve())
        if shutil.which("bpftrace"):
            self.scripted["bpftrace"] = shutil.which("bpftrace")
        self.build()

    def build(self):
        for name in ["floor", "spawn", "stamp"]:
            compile_if_older(self.directory / name, BENCH / "c" / f"{name}.c", ["gcc", "-O2", "-Wall", "-static"])
        for name in ["reads", "seeks", "family", "calls"]:
            compile_if_older(self.directory / name, BENCH / "c" / f"{name}.c", ["gcc", "-O2", "-Wall"])
        compile_if_older(self.directory / "stacks", BENCH / "c" / "stacks.c",
                         ["gcc", "-O2", "-Wall", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"])
        compile_if_older(self.directory / "reads_framed", BENCH / "c" / "reads.c",
                         ["gcc", "-O2", "-Wall", "-fno-omit-frame-pointer"])
        if not shutil.which("clang"):
            print("clang is missing: no programs in C (scripts/install-deps bench)", file=sys.stderr)
            return
        loader = BENCH / "c" / "loader.c"
        linked = self.directory / "loader"
        if not linked.exists() or linked.stat().st_mtime < loader.stat().st_mtime:
            subprocess.run(["gcc", "-O2", "-Wall", str(loader), "-o", str(linked), "-lbpf"], check=True)
        include = f"/usr/include/{platform.machine()}-linux-gnu"
        for source in sorted((BENCH / "c").glob("*.bpf.c")):
            compile_if_older(self.directory / source.name.replace(".bpf.c", ".bpf.o"), source,
                             ["clang", "-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", f"-I{include}", "-c"])

    def helper(self, name):
        return str(self.directory / name)

    def script(self, tool, text):
        """The command that has a tracer run a script."""
        return [self.scripted[tool], "-e", text]

    def c_program(self, name):
        """The command that loads and attaches c/NAME.bpf.c, or None."""
        compiled = self.directory / f"{name}.bpf.o"
        return [self.helper("loader"), str(compiled)] if compiled.exists() else None
