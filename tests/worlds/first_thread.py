#!/usr/bin/env python3
"""first_thread.py ESPY [CASE...]: processes of -p whose first thread is not there to the end. Whatever the type of
probe, all calls are seen, or espy says that some are missing. Status 77 where that cannot be tried."""

import sys

sys.dont_write_bytecode = True
import world as w
from world import Traced, build, check, count_of, end, start

CALLS = 100
PROBES = ["uprobe:./first_thread:tick", "uretprobe:./first_thread:tick"]
OTHERS = ["tracepoint:raw_syscalls:sys_enter", "profile:hz:999", "software:cpu-clock:100000", "watchpoint:0x1000:8:w"]
SAID = "the first thread of the -p process ended"


def prepare(world):
    build(world, "first_thread.c", "-O1", "-pthread")


def trace(world, case, script, *options):
    traced = Traced(world, "./first_thread", case)
    espy = start(world, "--strict", *options, "-p", traced.pid, "-e", script)
    traced.call()
    done = end(world, espy)
    traced.end()
    return done


def user_probes(world, case, is_exact):
    for options in ((), ("--no-feature", "uprobe_multi"), ("--follow",)):
        for probe in PROBES:
            done = trace(world, case, probe + " { @n = count(); }", *options)
            said = f"{probe} {' '.join(options)}: {done.stdout}{done.stderr}"
            is_told = SAID in said and done.returncode == 1
            check(is_told or (count_of(done) == CALLS and SAID not in said), said)
            check(not is_told or not is_exact, said)


def before(world):
    user_probes(world, "before", True)


def during(world):
    user_probes(world, "during", False)


def executed(world):
    user_probes(world, "exec", False)


def executed_by_first(world):
    user_probes(world, "first", True)


def ended_together(world):
    user_probes(world, "exit", True)


def others(world):
    """Probes that are not of programs attach, whether the first thread is there or not."""
    for case in ("before", "exit"):
        for probe in OTHERS:
            done = trace(world, case, probe + " { @n = count(); }")
            check("No such process" not in done.stderr and (count_of(done) > 0 or not probe.startswith("tracepoint")),
                  f"{case} {probe}: {done.stdout}{done.stderr}")


CASES = [before, during, executed, executed_by_first, ended_together, others]

if __name__ == "__main__":
    w.main(CASES, prepare)
