#!/usr/bin/env python3
"""filters.py ESPY [CASE...]: -p, --follow, --comm and --cgroup with events that happen in another task than the one they are
about, and with children that are there already. The numbers are those of the process, or espy says which are not.
Status 77 where that cannot be tried."""

import os
import pathlib
import re
import sys
import time

sys.dont_write_bytecode = True
import world as w
from world import Failure, Traced, build, check, count_of, end, said, start

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
SLEEPS, TICKS, FAMILY = 40, 100, 6
CHILDREN = 2
GROUPS = pathlib.Path("/sys/fs/cgroup")


def prepare(world):
    build(world, "sleeper.c", "-O1")
    build(world, "family.c", "-O1")
    build(world, "forking.c", "-O1")


class Sleeper(Traced):
    def __init__(self, world, children=0):
        super().__init__(world, "./sleeper", children)

    def sleep(self):
        """Returns the microseconds that it has slept."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def slept_us(done):
    """What offcputime.bt shows for the sleeps."""
    sums = re.findall(r"^@us\[\n(.*?), sleeper\]: (\d+)$", done.stdout, re.M | re.S)
    return sum(int(us) for frames, us in sums if "nanosleep" in frames)


def wakeups(done):
    return sum(int(count) for count in re.findall(r"^[\[(].*?[\])]\s+(\d+) \|", done.stdout, re.M))


def trace(world, sleeper, *arguments):
    espy = start(world, "--strict", *arguments)
    slept = sleeper.sleep()
    return end(world, espy), slept


def selections(world, sleeper):
    yield ("-p", sleeper.pid), 1
    yield ("-p", sleeper.pid, "--follow"), 1 + CHILDREN
    child = pathlib.Path(f"/proc/{sleeper.pid}/task/{sleeper.pid}/children").read_text().split()[0]
    yield ("-p", f"{sleeper.pid},{child}"), 2
    yield ("-p", sleeper.pid, "--comm", "other", "--comm", "sleeper"), 1
    if (GROUPS / "cgroup.controllers").exists():
        group = GROUPS / f"espy-worlds.{os.getpid()}"
        group.mkdir()
        try:
            pids = [sleeper.pid] + [int(pid) for pid in
                                    pathlib.Path(f"/proc/{sleeper.pid}/task/{sleeper.pid}/children").read_text().split()]
            for pid in pids:
                (group / "cgroup.procs").write_text(str(pid))
            yield ("--cgroup", group), 1 + CHILDREN
            for pid in pids:
                (GROUPS / "cgroup.procs").write_text(str(pid))
        finally:
            group.rmdir()


def tools(world):
    """The tools are right with any of them."""
    sleeper = Sleeper(world, CHILDREN)
    try:
        for options, processes in selections(world, sleeper):
            done, slept = trace(world, sleeper, *options, TOOLS / "offcputime.bt")
            wanted = slept * processes / (1 + CHILDREN)
            text = f"{options}: {slept_us(done)} of {wanted} us\n{done.stdout}{done.stderr}"
            check(done.returncode == 0 and abs(slept_us(done) - wanted) < wanted / 10, text)
            done, _ = trace(world, sleeper, *options, TOOLS / "runqlat.bt")
            wanted = SLEEPS * processes
            text = f"{options}: {wakeups(done)} of {wanted}\n{done.stdout}{done.stderr}"
            check(done.returncode == 0 and wanted <= wakeups(done) < 2 * wanted, text)
    finally:
        sleeper.end()


def said_of_others(world):
    """A script that does not ask which tasks are traced is told, once, and --strict fails."""
    events = ["tracepoint:sched:sched_switch", "tracepoint:sched:sched_wakeup", "tracepoint:signal:signal_generate",
              "tracepoint:block:block_rq_complete", "rawtracepoint:sched_switch"]
    sleeper = Sleeper(world)
    for event in events:
        done, _ = trace(world, sleeper, "-p", sleeper.pid, "-e", event + " { @n = count(); }")
        check(done.returncode == 1 and done.stderr.count("[in-other-tasks]") == 1 and event in done.stderr,
              f"{event}: {done.returncode} {done.stderr}")
        done, _ = trace(world, sleeper, "-e", event + " { @n = count(); }")
        check("in-other-tasks" not in done.stderr, done.stderr)
    done, _ = trace(world, sleeper, "-p", sleeper.pid, "-e", "tracepoint:sched:sched_switch /traced/ { @n = count(); }")
    check(done.returncode == 0 and "in-other-tasks" not in done.stderr and count_of(done) >= SLEEPS, done.stderr)
    sleeper.end()


def children(world):
    """Those that are there already are traced, unless --follow-new says otherwise."""
    for option, processes in (("--follow", FAMILY), ("--follow-new", 1)):
        family = Traced(world, "./family")
        time.sleep(0.1)  # the children of the children
        espy = start(world, "--strict", "-p", family.pid, option, "-e",
                     "uprobe:./family:tick { @n = count(); } software:page-faults:1 { @faults[pid] = count(); }")
        family.call()
        done = end(world, espy)
        family.end()
        check(count_of(done) == processes * TICKS and done.returncode == 0,
              f"{option}: {count_of(done)} {done.stdout}{done.stderr}")
        check(("5 processes" in done.stderr) == (option == "--follow"), done.stderr)


def ends_with_children(world):
    """The run ends when all of them have ended."""
    family = Traced(world, "./family")
    espy = start(world, "-p", family.pid, "--follow", "-e", "uprobe:./family:tick { @n = count(); }")
    family.call()
    family.end()
    check(espy.wait(timeout=w.LONGEST) == 0 and count_of(end(world, espy)) == FAMILY * TICKS, said(world))


def forks(world):
    """Processes that start while espy looks for those that are there."""
    for _ in range(5):
        forking = Traced(world, "./forking", "times")
        time.sleep(0.3)
        try:
            espy = start(world, "-p", forking.pid, "--follow", "-e", "uprobe:./forking:last { @seen[arg0] = count(); }")
        except Failure:
            check("too many start at a time" in said(world), said(world))
            forking.end()
            continue
        attached_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        time.sleep(0.4)
        forking.end()
        espy.wait(timeout=w.LONGEST)
        done = end(world, espy)
        seen = set(map(int, re.findall(r"^@seen\[(\d+)\]", done.stdout, re.M)))
        wanted = {int(line) for line in world.path("times").read_text().split() if int(line) > attached_us}
        check(len(wanted) > 20 and wanted <= seen, f"missing: {len(wanted - seen)} of {len(wanted)}\n{done.stderr}")


CASES = [tools, said_of_others, children, ends_with_children, forks]

if __name__ == "__main__":
    w.main(CASES, prepare)
