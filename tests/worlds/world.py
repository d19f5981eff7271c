"""What the tests of this directory have in common: each case is a function of a World, which raises Failure unless
the numbers are right, or espy says why not, and returns why it cannot be tried, if so."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
LONGEST = 60  # seconds, of a run


def skip(reason):
    print(f"{pathlib.Path(sys.argv[0]).name}:1: Skipped\n{reason}")
    sys.exit(77)


class Failure(Exception):
    pass


def check(is_right, text):
    if not is_right:
        raise Failure(text)


def build(world, source, *arguments, program=None):
    """Compiles programs/SOURCE."""
    program = program or source.partition(".")[0]
    subprocess.run(["cc", *arguments, SOURCES / source, "-o", program], check=True, cwd=world.directory)


def has_header(name):
    return subprocess.run(["cc", "-E", "-x", "c", "-"], input=f"#include <{name}>\n", text=True,
                          capture_output=True).returncode == 0


def has_feature(world, name):
    """Whether espy --info says that the kernel has it."""
    return any(line.split()[:2] == [name, "yes"] for line in world.run("--info").stdout.splitlines())


class World:
    def __init__(self, espy, directory):
        self.espy, self.directory = espy, directory
        self.target = directory / "target"

    def path(self, name):
        return self.directory / name

    def put(self, name):
        """Puts a new file at the path of the target, as package managers do."""
        new = self.path("new")
        shutil.copy(self.path(name), new)
        os.rename(new, self.target)

    def write(self, name):
        """Gives the file other content, with the time of modification that it had."""
        was = os.stat(self.target)
        with open(self.target, "r+b") as file:
            file.write(self.path(name).read_bytes().ljust(was.st_size, b"\0"))
        os.utime(self.target, ns=(was.st_atime_ns, was.st_mtime_ns))

    def run(self, *arguments, **more):
        return subprocess.run([self.espy, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              errors="replace", timeout=LONGEST, **more)


def count_of(done, name="@n"):
    found = re.search(rf"^{re.escape(name)}: (\d+)$", done.stdout, re.M)
    return int(found[1]) if found else 0


class Traced:
    """A process that says that it is there, and does something whenever it is asked."""

    def __init__(self, world, *command):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=world.directory)
        self.pid = self.process.pid
        self.is_there = self.process.stdout.readline() != ""

    def call(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def start(world, *arguments):
    """Starts espy; returns when its probes are attached."""
    with open(world.path("output"), "w") as output, open(world.path("errors"), "w") as errors:
        espy = subprocess.Popen([world.espy, "-B", "none", *map(str, arguments)], cwd=world.directory, stdout=output,
                                stderr=errors)
    until = time.time() + LONGEST
    while not re.search(r"^Attached|attached_probes", said(world), re.M):
        check(espy.poll() is None and time.time() < until, "not attached: " + said(world))
        time.sleep(0.02)
    return espy


def said(world):
    return world.path("output").read_text(errors="replace") + world.path("errors").read_text(errors="replace")


def end(world, espy):
    espy.send_signal(2)
    espy.wait(timeout=LONGEST)
    return subprocess.CompletedProcess([], espy.returncode, world.path("output").read_text(errors="replace"),
                                       world.path("errors").read_text(errors="replace"))


def main(cases, prepare):
    """SCRIPT ESPY [CASE...]"""
    espy = sys.argv[1]
    if os.geteuid() != 0 or subprocess.run([espy, "-q", "-e", "begin { exit(); }"], capture_output=True).returncode != 0:
        skip("no right to trace")
    failed = 0
    for case in cases:
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory(prefix="espy-worlds.") as directory:
            world = World(os.path.abspath(espy), pathlib.Path(directory))
            prepare(world)
            try:
                reason = case(world)
                print(f"{case.__name__}: " + (f"skipped, {reason}" if reason else "right"), flush=True)
            except Failure as failure:
                failed += 1
                print(f"{case.__name__}: FAILED: {failure}", flush=True)
    sys.exit(1 if failed else 0)
