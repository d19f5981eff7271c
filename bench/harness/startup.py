"""Start-up: wall time and peak memory from exec to exit. The column C is a static program that does the least."""

import os
import time

from harness.process import Cell, run_measured
from harness.report import Row

# What compiling takes should grow with the script, not with its square.
STATEMENTS = " ".join(f"@a[{i}] = {i}; if (@a[{i}] > 5) {{ @b[{i}] = 1; }}" for i in range(100))
SCRIPTS = [
    # name, script, what floor(1) does instead, targets in ms and MiB
    ("begin only", "BEGIN { exit(); }", "nothing", 5, 8),
    ("one tracepoint, 1 ms",
     'tracepoint:syscalls:sys_enter_openat { printf("%s %s\\n", comm, str(args->filename)); } '
     "interval:ms:1 { exit(); }",
     "tracepoint", 10, 12),
    ("all syscalls counted, 50 ms",
     "tracepoint:syscalls:sys_enter_* { @[probe] = count(); } interval:ms:50 { exit(); }", None, 150, 16),
    ("300 statements", f"BEGIN {{ {STATEMENTS} clear(@a); clear(@b); exit(); }}", "nothing", None, None),
]
MIN_RUNS = 15
PAUSE_S = 0.1  # to attach right after another process detached waits for the kernel to finish with that
ENVIRONMENT = {**os.environ, "BPFTRACE_MAX_PROBES": "2048"}


def run(tools, report, options):
    title = "Start-up: median (least) of runs from exec to exit"
    rows = report.group(title)
    for name, script, floor, limit_ms, limit_mib in SCRIPTS:
        wall = Row(name, "ms", limit=limit_ms)
        memory = Row(name, "MiB", limit=limit_mib)
        rows += [wall, memory]
        commands = {tool: tools.script(tool, script) for tool in tools.scripted}
        if floor:
            commands["C"] = [tools.helper("floor"), floor]
        is_slow = floor is None  # in bpftrace it takes half a minute
        if is_slow and options.quick:
            commands.pop("bpftrace", None)
        for round_index in range(max(MIN_RUNS, options.rounds)):
            for tool, command in commands.items():
                if tool in wall.failures or (is_slow and tool == "bpftrace" and round_index > 0):
                    continue
                time.sleep(PAUSE_S)
                with Cell(wall, tool):
                    wall_ms, peak_mib, _ = run_measured(tools.helper("spawn"), command, ENVIRONMENT)
                    wall.add(tool, wall_ms)
                    memory.add(tool, peak_mib)
    report.print_group(title)
