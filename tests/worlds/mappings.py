#!/usr/bin/env python3
"""mappings.py ESPY [CASE...]: processes that run other code where they had code of a library. The names of a stack are
those of the code that ran, and of a value without a stack, hexadecimal if that is not known. Status 77 where that cannot
be tried."""

import re
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check, count_of

FIRST, SECOND = 10, 20  # calls
CALL = "tracepoint:syscalls:sys_enter_getppid /pid == cpid/"
SAID = "had code from several files there"
HOW = ["turns", "fixed", "moved"]


def prepare(world):
    options = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    library = [*options, "-shared", "-fPIC", "-Wl,-z,separate-code"]
    build(world, "code.c", "-DNAME=alpha", *library, program="alpha.so")
    build(world, "code.c", "-DNAME=beta", "-DPAD", *library, program="beta.so")
    build(world, "mappings.c", *options, "-ldl")
    build(world, "in_memory.c", *options)
    fixed = [*options, "-no-pie", "-fno-pie"]
    build(world, "executed.c", "-DNAME=alpha", '-DNEXT="./second"', *fixed)
    build(world, "executed.c", "-DNAME=beta", "-DPAD", *fixed, program="second")
    build(world, "executed.c", "-DNAME=gamma", *options, program="payload")


def trace(world, command, script, *options):
    """Runs again if the machine was too busy for the tables of a program that was executed, which espy says."""
    for _ in range(5):
        done = world.run("-q", "-B", "none", *options, "-c", command, "-e", script)
        if "unwind tables were not loaded in time" not in done.stderr:
            break
    return done


def stacks_of(done):
    """The names of each stack, innermost first, and its count."""
    return [(re.findall(r"^\s+(\S+)", frames, re.M), int(count))
            for frames, count in re.findall(r"^@\[\n(.*?)^\]: (\d+)$", done.stdout, re.M | re.S)]


def check_stacks(done, counts):
    """Stacks of each library have its names alone, and are as many as there were calls; others have none."""
    found = dict.fromkeys(counts, 0)
    for frames, count in stacks_of(done):
        name = frames[0].partition("_leaf")[0]
        text = f"{frames}: {count}\n{done.stdout}{done.stderr}"
        check(name in counts, text)
        check(len(frames) > 2 and frames[1].startswith(f"{name}_loop") and frames[2].startswith("run"), text)
        found[name] += count
    check(found == counts, f"{found}: {done.stdout}{done.stderr}")


def stacks(world):
    for how in HOW:
        done = trace(world, f"./mappings {how}", CALL + " { @[ustack(4)] = count(); }")
        check_stacks(done, {"alpha": FIRST, "beta": SECOND})


def printed(world):
    for how in HOW:
        done = trace(world, f"./mappings {how}", CALL + ' { printf("%s\\n", ustack(1)); }')
        for name, calls in (("alpha", FIRST), ("beta", SECOND)):
            check(len(re.findall(rf"^\s+{name}_leaf", done.stdout, re.M)) == calls, f"{how}: {done.stdout}{done.stderr}")


def made(world):
    """Code that the process has written itself has no name, also where a library was."""
    done = trace(world, "./mappings made", CALL + " { @[ustack(1)] = count(); }")
    found = {frames[0].partition("+")[0]: count for frames, count in stacks_of(done)}
    check(found.pop("alpha_leaf", 0) == FIRST and list(found.values()) == [SECOND] and
          all(name.startswith("0x") for name in found), done.stdout + done.stderr)


def values(world):
    """An address alone does not tell what was there."""
    script = "uprobe:./mappings:at { @[usym(arg0)] = sum(arg1); }"
    for how in ("turns", "fixed"):
        done = trace(world, f"./mappings {how}", script)
        found = dict(re.findall(r"^@\[(\S+)\]: (\d+)$", done.stdout, re.M))
        # The two have other offsets in their libraries.
        names = {name for name in found if not name.startswith("0x")}
        check(not names and SAID in done.stderr, f"{how}: {done.stdout}{done.stderr}")
        check(sum(map(int, found.values())) == FIRST + SECOND, f"{how}: {done.stdout}{done.stderr}")


def executed(world):
    """Programs that are not relocated have their code at the same addresses."""
    done = trace(world, "./executed", CALL + " { @[ustack(4)] = count(); }")
    check_stacks(done, {"alpha": FIRST, "beta": SECOND})
    done = trace(world, "./executed", "uprobe:./executed:run,uprobe:./second:run { @[usym(reg(\"ip\"))] = sum(arg0); }")
    check("@[run]" not in done.stdout and SAID in done.stderr, done.stdout + done.stderr)


def only_second(world):
    """What a process executed before its first address was captured does not make its names uncertain."""
    done = trace(world, "./executed", "uprobe:./second:run { @[usym(reg(\"ip\"))] = sum(arg0); }")
    check(f"@[run]: {SECOND}" in done.stdout and SAID not in done.stderr, done.stdout + done.stderr)


def recorded(world):
    """A recording has the names that were there, too."""
    for how in HOW:
        done = world.run("record", "--ustack", "-q", "-o", "recording", "-c", f"./mappings {how}",
                         "tracepoint:syscalls:sys_enter_getppid")
        replayed = world.run("-i", "recording", "-q", "-e", CALL.split()[0] + " { @[ustack(4)] = count(); }")
        check_stacks(replayed, {"alpha": FIRST, "beta": SECOND})


def in_memory(world):
    """A program in a memory file has its names and its unwind table."""
    done = trace(world, "./in_memory payload", CALL + " { @[ustack(9)] = count(); }")
    check_stacks(done, {"gamma": SECOND})
    check(all("main" in frames[3] for frames, _ in stacks_of(done)), done.stdout + done.stderr)


CASES = [stacks, printed, made, values, executed, only_second, recorded, in_memory]

if __name__ == "__main__":
    w.main(CASES, prepare)
