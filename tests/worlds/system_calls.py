#!/usr/bin/env python3
"""system_calls.py ESPY [CASE...]: system calls that a program makes by other ways than its C library. They count as what
the kernel does, whatever their numbers mean elsewhere. Status 77 where that cannot be tried."""

import platform
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check, skip

SKIPPED = "skipped by the kernel"  # as Linux 7.2 does where a program is preempted
ENTRY, EXIT = "tracepoint:syscalls:sys_enter_", "tracepoint:syscalls:sys_exit_"


def prepare(world):
    build(world, "foreign_calls.c", "-O1")
    if subprocess.run(["./foreign_calls"], cwd=world.directory, capture_output=True).returncode != 0:
        skip("the kernel has no system calls of i386")


def counts(world, program, calls, *options):
    """The calls that the program makes behind its first write, by the name of the probe."""
    probes = ",".join(side + call for call in calls for side in (ENTRY, EXIT))
    done = world.run("--strict", "-q", *options, "-c", program, "-e",
                     ENTRY + "write /pid == cpid/ { @begun = 1; } " + probes +
                     " /pid == cpid && @begun/ { @[probe] = count(); } end { clear(@begun); }")
    is_exact = done.returncode == 0
    check(is_exact or SKIPPED in done.stderr, done.stderr)
    seen = re.findall(r"@\[tracepoint:syscalls:(\w+)\]: (\d+)", done.stdout)
    return {name: int(n) for name, n in seen}, is_exact


def forged(world):
    """By int $0x80, a program of 64 bits can give any number of another call."""
    calls = ["getpid", "newfstat", "execve", "openat", "kill"]
    for options in ((), ("-v",), ("--no-feature", "get_current_task_btf"), ("--no-feature", "rdonly_cast_void")):
        for some in (calls, ["getpid"], ["execve"]):
            seen, is_exact = counts(world, "./foreign_calls", some, *options)
            truth = {"sys_enter_getpid": 12, "sys_exit_getpid": 12} if "getpid" in some else {}
            is_within = all(n <= truth.get(name, 0) for name, n in seen.items())
            check(seen == truth or (is_within and not is_exact), f"{options} {some}: {seen}")


def of_32_bits(world):
    """Calls of a program of 32 bits are those of the raw tracepoint only."""
    command = ["cc", "-m32", "-nostdlib", "-static", "-o", "calls_of_i386", w.SOURCES / "calls_of_i386.s"]
    if subprocess.run(command, cwd=world.directory, capture_output=True).returncode != 0:
        return "no compiler for 32 bits"
    done = world.run("--strict", "-q", "-c", "./calls_of_i386", "-e",
                     f"{ENTRY}writev,{EXIT}writev,{ENTRY}write,{EXIT}write /pid == cpid/ {{ @calls[probe] = count(); }} "
                     "tracepoint:raw_syscalls:sys_enter /pid == cpid && args.id == 20/ { @raw = count(); } "
                     "rawtracepoint:sys_enter /pid == cpid && args.id == 20/ { @raw2 = count(); }")
    check(done.returncode == 0 and done.stdout.split() == ["@raw:", "10", "@raw2:", "10"], done.stdout + done.stderr)
    return None


CASES = [forged, of_32_bits]

if __name__ == "__main__":
    if platform.machine() != "x86_64":
        skip("only x86-64 has several tables of system calls")
    w.main(CASES, prepare)
