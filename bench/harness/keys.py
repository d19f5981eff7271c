"""Cost of keys: what a traced lseek(2) takes more than an untraced one, in nanoseconds, while keys are inserted."""

import os
import subprocess

from harness.process import Cell, Tracer
from harness.report import Row

SEEK = "tracepoint:syscalls:sys_enter_lseek /pid == {pid}/ {{ {statements} }} END {{ clear(@); }}"
ROWS = [
    # name, statements, calls, different keys, room for keys
    ("@[x] = count(), 4,000 new keys", "@[args->offset] = count();", 4_000, 4_000, 4_096),
    ("@[x] = hist(x), 4,000 new keys", "@[args->offset] = hist(args->offset);", 4_000, 4_000, 4_096),
    ("@[x] = count(), 100,000 new keys", "@[args->offset] = count();", 100_000, 100_000, 100_000),
    ("@[x] = count(), 1,000,000 new keys", "@[args->offset] = count();", 1_000_000, 1_000_000, 1_000_000),
    ("inserted and deleted, 100,000 times", "@[args->offset] = count(); delete(@[args->offset]);", 100_000, 100_000,
     4_096),
    ("@[x] = count(), 100 keys that exist", "@[args->offset] = count();", 400_000, 100, 4_096),
]


def run(tools, report, options):
    title = "Cost of keys: median (least) ns that they add to a system call"
    rows = report.group(title)
    for name, statements, calls, distinct, room in ROWS:
        if options.quick and room >= 1_000_000:
            continue  # bpftrace prepares such a map for seconds
        row = Row(name, "ns", at_most_ratio={"bpftrace": 1.0})
        rows.append(row)
        for _ in range(options.rounds):
            untraced = seek_ns(tools, None, calls, distinct)
            for tool in tools.scripted:
                if tool in row.failures:
                    continue
                with Cell(row, tool):
                    row.add(tool, seek_ns(tools, (tool, statements, room), calls, distinct) - untraced)
    report.print_group(title)


def seek_ns(tools, traced, calls, distinct):
    workload = subprocess.Popen([tools.helper("seeks"), str(calls), str(distinct)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)
    os.sched_setaffinity(workload.pid, {max(os.sched_getaffinity(0))})
    tracer = None
    try:
        if traced:
            tool, statements, room = traced
            limits = {"BPFTRACE_MAP_KEYS_MAX": str(room), "BPFTRACE_MAX_MAP_KEYS": str(room)}  # the name has changed
            command = tools.script(tool, SEEK.format(pid=workload.pid, statements=statements))
            tracer = Tracer(command, environment={**os.environ, **limits})
            tracer.wait_until_tracing()
        output, _ = workload.communicate(b"\n")
        if tracer:
            tracer.stop()
        return float(output)
    finally:
        if tracer:
            tracer.kill()
        workload.kill()
        workload.wait()
