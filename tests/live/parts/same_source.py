#!/usr/bin/env python3
"""same_source.py ESPY SCRIPT PROGRAM.C: whether the stacks that SCRIPT prints (a blank line before each) at the function
`leaf` have in that program's code the frames that gdb shows, inlined ones included, each with its name and line. The
program is compiled in several ways."""

import os
import re
import subprocess
import sys
import tempfile

from gdb_stacks import stacks_at_leaf

FRAME = """(place := frame.find_sal()).symtab and (
    frame.type() == gdb.INLINE_FRAME, frame.name(), place.line, place.symtab.fullname())"""


def by_gdb(program):
    def frame(shown):  # what is inlined is named in its own frame, and marked in ours
        inlined, name, number, file = shown.split(" ", 3)
        return inlined == "True", name, os.path.realpath(file), int(number)

    stacks = [[frame(shown) for shown in stack] for stack in stacks_at_leaf(program, FRAME)]
    return [[frame for frame in stack if frame[2].endswith("nested.c")] for stack in stacks]


def by_espy(espy, script, program, options):
    ran = subprocess.run([espy, "-q", *options, "-c", program, script, program], capture_output=True, text=True,
                         timeout=60)
    stacks = []
    for line in ran.stdout.splitlines():
        if not line:
            stacks.append([])
        found = re.match(r"        (\[inlined\] )?([^ +@]+)(?:\+\d+)?@(.*):(\d+)$", line)
        if found and found[3].endswith("nested.c"):
            stacks[-1].append((bool(found[1]), found[2], os.path.realpath(found[3]), int(found[4])))
    stacks = [stack for stack in stacks if stack]
    if not stacks:
        sys.exit(f"espy shows no lines:\n{ran.stdout}{ran.stderr}")
    return stacks


def run(command):
    subprocess.run(command, check=True)


def main():
    espy, script, source = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        program = os.path.join(directory, "program")
        ways = [["gcc", "-O2"], ["gcc", "-O2", "-no-pie", "-fno-pie"], ["gcc", "-O2", "-gdwarf-4"], ["gcc", "-O0"],
                ["gcc", "-O2", "-gsplit-dwarf"], ["clang", "-O2"], ["gcc", "-O2", "separate"]]
        for way in ways:
            if subprocess.run(["which", way[0]], capture_output=True).returncode != 0:
                continue
            is_separate = way[-1] == "separate"
            flags = way[1:-1] if is_separate else way[1:]
            run([way[0], "-g", *flags, "-w", "-o", program, source])
            theirs = by_gdb(program)
            if is_separate:
                debug = os.path.join(directory, "debug")
                os.mkdir(debug)
                run(["objcopy", "--only-keep-debug", program, os.path.join(debug, "program.debug")])
                run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}/program.debug", program])
            options = ["--debuginfo", os.path.join(directory, "debug")] if is_separate else []
            ours = by_espy(espy, script, program, options)
            if ours != theirs:
                different = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
                sys.exit(f"{' '.join(way)}: {len(ours)} stacks, gdb has {len(theirs)}; different: {different[:2]}")
            frames = [frame for stack in ours for frame in stack]
            print(f"{' '.join(way)}: {len(ours)} stacks agree, {sum(f[0] for f in frames)} of {len(frames)} frames inlined")


main()
