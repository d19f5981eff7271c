#!/usr/bin/env python3
"""Runs of espy that lack something end with a sentence and a status. Takes the path of espy, and of one whose calls fail."""

import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "campaigns"))
import starvation as s

SKIPPED = 77


def complete(espy):
    """Those that lack nothing that they need."""
    yield s.little_memory(espy, "hello", 32)
    yield s.little_memory(espy, "histogram", 64)
    yield s.few_descriptors(espy, "hello", 24)
    yield s.small_stack(espy, "stack", 64)
    yield s.no_locked_memory(espy, "count")
    yield s.unread_output(espy, "keys")
    yield s.closed_descriptors(espy, "system", (0,))
    yield s.closed_descriptors(espy, "count", (2,))
    yield s.environment(espy, "stack", "odd")
    for what in ("tracefs", "btf", "proc", "bpffs", "tmp", "passwd", "proc-sys"):
        yield s.hidden(espy, "hello", what)
    yield s.missing_capabilities(espy, "count", ["sys_admin", "sys_resource", "syslog"])


def refused(espy):
    """Those that cannot do what they should, and what they say."""
    yield s.little_memory(espy, "stack", 20), "out of memory|Cannot allocate memory"
    yield s.little_memory(espy, "histogram", 12), "out of memory|Cannot allocate memory"
    for count in (6, 8, 10):
        yield s.few_descriptors(espy, "count", count), "Too many open files"
    yield s.no_more_stack(espy, "stack", 256), "the stack is limited to 256 KB"
    yield s.no_processes(espy, "count"), "cannot start `dd"
    yield s.full_output(espy, "lines"), "cannot write: No space left on device"
    yield s.full_file(espy, "json"), "cannot write: No space left on device"
    yield s.full_disk(espy, "lines"), "cannot write: No space left on device"
    yield s.closed_descriptors(espy, "lines", (1,)), "cannot write: Bad file descriptor"
    yield s.hidden(espy, "hello", "cpus"), "cannot determine the number of possible CPUs"
    yield s.missing_capabilities(espy, "hello", ["sys_admin", "bpf"]), "tracing needs CAP_BPF, which this process lacks"


def limited(espy):
    """Descriptors that run out at each step of the start."""
    for count in range(12, 40):
        yield s.few_descriptors(espy, "stack", count)


def failing(starved_espy):
    """Allocations that fail, in turn and for good."""
    for script in ("hello", "histogram"):
        for first in (1, 3, 10, 30, 100, 300, 500, 1000, 2000, 5000):
            for count in (1, 3, 0):
                yield s.failing_calls(starved_espy, script, "malloc", first, count)
    for first in range(1, 8):
        yield s.failing_calls(starved_espy, "stack", "mmap", first, 1)


def main():
    espy, starved_espy = map(os.path.abspath, sys.argv[1:3])
    reason = s.can_run() if os.access(espy, os.X_OK) else "espy is not built"
    if not reason and s.subprocess.run([espy, "-q", "-e", "begin { exit(); }"], capture_output=True).returncode != 0:
        reason = "no right to trace"
    if reason:
        print(f"starved_runs.py:1: Skipped\n{reason}")
        return SKIPPED
    problems = []
    runs = 0

    def note(run, problem):
        nonlocal runs
        runs += 1
        if problem:
            problems.append(problem)
            print(f"{problem}\n{run.text()}\n")

    for run in complete(espy):
        note(run, run.problem() or ("" if run.status == 0 and run.is_complete() else "is not complete"))
    for run, sentence in refused(espy):
        said = s.re.search(sentence, run.errors)
        note(run, run.problem() or ("" if run.status == 1 and said else f"does not say: {sentence}"))
    for run in limited(espy):
        note(run, run.problem())
    if os.access(starved_espy, os.X_OK):
        for run in failing(starved_espy):
            note(run, run.problem())
    print(f"{runs} runs, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
