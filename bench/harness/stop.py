"""Stop: the time from SIGINT to the end of the tracer, maps printed."""

import os

from harness.process import Cell, Tracer
from harness.report import Row

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
SCRIPTS = [
    # name, script, C program that does the same, whether it takes bpftrace very long
    ("one tracepoint", "tracepoint:syscalls:sys_enter_read { @ = count(); }", "count", False),
    ("all syscalls counted", "tracepoint:syscalls:sys_enter_* { @[probe] = count(); }", None, True),
    ("uprobe:libc:pthread_*", f"uprobe:{LIBC}:pthread_* {{ @[probe] = count(); }}", None, True),
]
ENVIRONMENT = {**os.environ, "BPFTRACE_MAX_PROBES": "2048"}


def run(tools, report, options):
    title = "Stop: median (least) time from SIGINT to the end"
    rows = report.group(title)
    for name, script, c_name, is_slow in SCRIPTS:
        row = Row(name, "ms")
        rows.append(row)
        commands = {tool: tools.script(tool, script) for tool in tools.scripted}
        if c_name and tools.c_program(c_name):
            commands["C"] = tools.c_program(c_name)
        if is_slow and options.quick:
            commands.pop("bpftrace", None)
        for round_index in range(options.rounds):
            for tool, command in commands.items():
                if tool in row.failures or (is_slow and tool == "bpftrace" and round_index > 0):
                    continue
                with Cell(row, tool):
                    tracer = Tracer(command, environment=ENVIRONMENT)
                    tracer.wait_until_tracing()
                    row.add(tool, tracer.stop() * 1e3)
    report.print_group(title)
