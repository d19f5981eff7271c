#!/usr/bin/env python3
"""same_as_gdb.py ESPY SCRIPT PROGRAM: whether the stacks that SCRIPT prints (perf mode, a blank line before each) at the
function `leaf` are those that gdb finds there, in number, order, depth, place and name."""

import os
import re
import subprocess
import sys

from gdb_stacks import stacks_at_leaf

FRAME = """frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) and (
    "%x" % frame.pc(), "OTHER" if gdb.solib_name(frame.pc()) else "PROGRAM", frame.name() or "?")"""


def by_gdb(program):
    def frame(shown):
        address, module, name = shown.split(" ", 2)
        return int(address, 16) & 0xfff, name if module == "PROGRAM" else ""

    return [[frame(shown) for shown in stack] for stack in stacks_at_leaf(program, FRAME)]


def by_espy(espy, script, program):
    text = subprocess.run([espy, "-q", "-c", program, script, program], capture_output=True, text=True,
                          timeout=60).stdout
    stacks = []
    for line in text.splitlines():
        if not line:
            stacks.append([])
        found = re.match(r"\t([0-9a-f]+) (.*) \((.*)\)$", line)
        if found:
            name = re.sub(r"\+\d+$", "", found[2]) if found[3] in (program, os.path.realpath(program), "[vdso]") else ""  # gdb has no library for the vdso
            stacks[-1].append((int(found[1], 16) & 0xfff, name))
    return [stack for stack in stacks if stack]


def plain(name):
    """Names as both print them: gdb shows no parameters of functions that it knows by the linker's name only, and
    what the compiler has split off (main.cold) in its own way."""
    return re.split(r"[(.\[ ]", name.replace("(anonymous namespace)", "anonymous"))[0]


def main():
    espy, script, program = sys.argv[1:]
    ours, theirs = by_espy(espy, script, program), by_gdb(program)
    if not theirs:
        sys.exit("gdb found no stacks")
    if len(ours) != len(theirs):
        sys.exit(f"{len(ours)} stacks, gdb has {len(theirs)}")
    for number, (mine, wanted) in enumerate(zip(ours, theirs)):
        for frame in range(max(len(mine), len(wanted))):
            a = mine[frame] if frame < len(mine) else None
            b = wanted[frame] if frame < len(wanted) else None
            if not a or not b or a[0] != b[0] or plain(a[1]) != plain(b[1]):
                sys.exit(f"stack {number}, frame {frame}: {a}, gdb has {b}\nours {mine}\ngdb  {wanted}")
    depths = sorted({len(stack) for stack in theirs})
    print(f"{len(theirs)} stacks agree, of depths {depths}")


main()
