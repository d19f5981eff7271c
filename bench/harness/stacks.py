"""Cost of a user stack: unwound by tables, and by frame pointers."""

from harness.events import COUNT, READ, run_reads
from harness.process import Cell, Failure, Statistics
from harness.report import Row

OUTSIDE = 5  # frames that are not the program's recursion: read, main, two of the C library's start, _start
FRAMED = "reads_framed"
ROWS = [
    # name, espy's workload, espy's options
    ("unwound (bpftrace: by frame pointers)", "reads", []),
    ("by frame pointers", FRAMED, ["--no-feature", "bpf_loop"]),
]


def run(tools, report, options):
    title = "Cost of a user stack: median (least) ns by the kernel's statistics"
    rows = report.group(title)
    with Statistics():
        for frames in [10, 30]:
            for name, helper, extra in ROWS:
                row = Row(f"{frames} frames, {name}", "ns")
                rows.append(row)
                for _ in range(options.rounds):
                    for tool in tools.scripted:
                        if tool in row.failures:
                            continue
                        is_espy = tool == "espy"
                        measure(tools, tool, row, frames - OUTSIDE, helper if is_espy else FRAMED,
                                extra if is_espy else [])
    report.print_group(title)


def measure(tools, tool, row, depth, helper, options):
    tracer, *rest = tools.script(tool, READ + " { @[ustack] = count(); }")
    with Cell(row, tool):
        runs, time_ns, _ = run_reads(tools, [tracer, *options, *rest], 1, helper, depth)
        if runs < COUNT:
            raise Failure(f"ran {runs:,} times for {COUNT:,} events")
        row.add(tool, time_ns / runs)
