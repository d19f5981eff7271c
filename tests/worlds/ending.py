#!/usr/bin/env python3
"""ending.py ESPY [CASE...]: stacks that end before their outermost caller say so. Status 77 where that cannot be
tried."""

import re
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check

CALL = "tracepoint:syscalls:sys_enter_getppid /pid == cpid/"
MARK = "[truncated]"


def prepare(world):
    build(world, "ending.c", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")


def trace(world, how, stack, *options):
    return world.run("-q", "-B", "none", "--strict", *options, "-c", f"./ending {how}", "-e",
                     f"{CALL} {{ @[{stack}] = count(); }}")


def deep(world):
    """A stack that reaches the limit has a mark in all formats, another one none."""
    done = trace(world, "deep", "ustack")
    text = f"{done.returncode} {done.stdout}{done.stderr}"
    check(done.stdout.count(MARK) == len(re.findall(r"^        \[truncated\]\n\]: 10$", done.stdout, re.M)) == 1, text)
    check(done.returncode == 1 and "10 user stacks may have more than 127 frames" in done.stderr, text)
    done = trace(world, "deep", "ustack", "-f", "folded")
    check(len(re.findall(r"^\[truncated\];nest;", done.stdout, re.M)) == 1, done.stdout)
    done = trace(world, "deep", "ustack", "-f", "json")
    check(done.stdout.count(MARK) == 1, done.stdout)
    done = trace(world, "deep", "ustack(perf)")
    check(len(re.findall(r"^\t0 \[truncated\]", done.stdout, re.M)) == 1, done.stdout)


def wished(world):
    """A lower limit is a wish for the innermost frames."""
    done = trace(world, "deep", "ustack(3)")
    check(done.returncode == 0 and MARK not in done.stdout, done.stdout + done.stderr)


def made(world):
    """Code that was made at run time, and does not tell its caller."""
    done = trace(world, "made", "ustack")
    check(done.returncode == 1 and re.search("stacks? truncated at JIT code", done.stderr) is not None, done.stdout + done.stderr)


CASES = [deep, wished, made]

if __name__ == "__main__":
    w.main(CASES, prepare)
