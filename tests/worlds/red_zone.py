#!/usr/bin/env python3
"""red_zone.py ESPY [CASE...]: probes on nops in functions that keep values below the stack pointer. Some kernels overwrite
these, and some never fire at long nops. The program stays right, and all calls are seen, or espy says that it does not
probe there. Status 77 where that cannot be tried."""

import platform
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check, count_of, has_feature, skip

CALLS = 1000
BREAKS = "would break the program"
LEFT_OUT = "{} matching place{} skipped, which cannot be probed"


def prepare(world):
    build(world, "red_zone.c", "-g", "-O1", "-fno-omit-frame-pointer", "-Wno-unused")


def trace(world, probe, *options, action="@n = count();"):
    return world.run(*options, "-c", "./red_zone", "-e", probe + " { " + action + " }")


def keeps_stack(world):
    return has_feature(world, "uprobe_keeps_stack")


def is_right(done, count=CALLS):
    return done.returncode == 0 and "wrong results: 0" in done.stdout and count_of(done) == count


def said(done):
    return done.stdout + done.stderr


def named(world):
    """At a place that is named: right, or an error with the way around it."""
    for probe in ("uprobe:./red_zone:leaf+5", "uprobe:./red_zone:leaf_label", "uprobe:./red_zone:split.cold"):
        for options in ((), ("--no-feature", "uprobe_multi")):
            done = trace(world, probe, "--strict", *options)
            refused = done.returncode == 1 and BREAKS in said(done) and "--unsafe" in said(done)
            check(refused != is_right(done) and refused != keeps_stack(world), f"{probe}: {said(done)}")


def unsafe(world):
    done = trace(world, "uprobe:./red_zone:leaf+5", "--unsafe")
    check(count_of(done) == CALLS, said(done))
    is_warned = "a probe at `leaf+5` can break the program" in said(done)
    check(is_warned != keeps_stack(world) and is_warned != is_right(done), said(done))


def harmless(world):
    """Entries of functions, and other instructions, are probed as ever."""
    for probe in ("uprobe:./red_zone:entry", "uprobe:./red_zone:leaf", "uprobe:./red_zone:leaf_short+5",
                  "uprobe:./red_zone:leaf+10", "uretprobe:./red_zone:entry"):
        done = trace(world, probe, "--strict")
        check(is_right(done) and "warning" not in said(done), f"{probe}: {said(done)}")


def many(world):
    """Of many places, those that would break the program are left out, and counted."""
    line = 1 + w.SOURCES.joinpath("red_zone.c").read_text().split("// MARKED")[0].count("\n")
    for probe, all_places, left_out in (("uprobe:./red_zone:leaf*", 4, 1), (f"uprobe:./red_zone@red_zone.c:{line}", 2, 1),
                                        ("usdt:./red_zone:red:zone", 2, 1), ("usdt:./red_zone:*", 2, 1),
                                        ("usdt:./red_*:zone", 2, 1)):
        done = trace(world, probe, "--strict")
        if keeps_stack(world):
            check(is_right(done, all_places * CALLS), f"{probe}: {said(done)}")
            continue
        check("wrong results: 0" in done.stdout and count_of(done) == (all_places - left_out) * CALLS and
              LEFT_OUT.format(left_out, "s" * (left_out != 1)) in said(done) and done.returncode == 1, f"{probe}: {said(done)}")


def ten_bytes(world):
    """Kernels that cannot probe a nop of ten bytes say so only if a process runs the file already."""
    for options in ((), ("--no-feature", "uprobe_multi")):
        done = trace(world, "uprobe:./red_zone:ten+5", "--strict", *options)
        refused = done.returncode == 1 and "cannot step over the instruction there" in said(done)
        check(refused != is_right(done), said(done))


CASES = [named, unsafe, harmless, many, ten_bytes]

if __name__ == "__main__":
    if platform.machine() != "x86_64":
        skip("only on x86-64 does the kernel replace instructions by calls")
    w.main(CASES, prepare)
