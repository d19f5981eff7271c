"""Cost of an event: what the kernel's statistics say of the programs that serve it, in nanoseconds."""

from harness.process import Cell, Failure, Statistics, Tracer
from harness.report import Row
from harness.workload import Reads

READ = "tracepoint:syscalls:sys_enter_read"
LATENCY = (READ + " { @start[tid] = nsecs; } "
           "tracepoint:syscalls:sys_exit_read /@start[tid]/ { @ = hist(nsecs - @start[tid]); delete(@start[tid]); }")
EMPTY = "empty"
PROGRAMS = [
    # name, script, C program, how many programs of a tracer serve an event
    ("empty program (the bookkeeping)", None, EMPTY, 1),
    ("false predicate", READ + " /pid == 1/ { @ = count(); }", "false_predicate", 1),
    ("@ = count()", READ + " { @ = count(); }", "count", 1),
    ("@[pid] = count()", READ + " { @[pid] = count(); }", "count_pid", 1),
    ("@[comm] = count()", READ + " { @[comm] = count(); }", "count_comm", 1),
    ("@[pid, comm] = hist(args.count)", READ + " { @[pid, comm] = hist(args->count); }", "hist_pid_comm", 1),
    ("read latency, C with a hash", LATENCY, "latency_hash", 2),
    ("read latency, cleared at the end; C with task storage", LATENCY + " END { clear(@start); }", "latency_task", 2),
    ("@[tid] = args.count", READ + " { @[tid] = args->count; }", None, 1),
    ("@[tid] = recent(32, args.count), which bpftrace lacks", READ + " { @[tid] = recent(32, args.count); }", None, 1),
    ("@[kstack] = count()", READ + " { @[kstack] = count(); }", "count_kstack", 1),
]
COUNT = 1_000_000
FOREIGN_NOTICED = 1.05  # runs per read; more than this are other processes' system calls
ATTEMPTS = 4


def run(tools, report, options):
    title = "Cost of an event: median (least) ns by the kernel's statistics"
    rows = report.group(title)
    slower_title = "The same runs: median (least) ns that one read(2) took, statistics included"
    slower_rows = report.group(slower_title)
    with Statistics():
        for name, script, c_name, programs in PROGRAMS:
            is_comparison = script is not None and c_name and tools.c_program(c_name) is not None
            targets = {"bpftrace": 1.0, "C": 1.1} if is_comparison else {}
            row = Row(name, "ns", at_most_ratio=targets)
            slower = Row(name, "ns")
            rows.append(row)
            slower_rows.append(slower)
            commands = {tool: tools.script(tool, script) for tool in tools.scripted} if script else {}
            if c_name and tools.c_program(c_name):
                commands["C"] = tools.c_program(c_name)
            for _ in range(options.rounds):
                for tool, command in commands.items():
                    if tool in row.failures:
                        continue
                    with Cell(row, tool):
                        measure(tools, report, command, tool, programs, row, slower)
    report.print_group(title)
    report.print_group(slower_title)


def measure(tools, report, command, tool, programs, row, slower):
    """Adds a sample. The programs dismiss other processes' system calls quickly, so with many of these the mean would
    say too little, and the round is measured again."""
    for _ in range(ATTEMPTS):
        runs, time_ns, read_ns = run_reads(tools, command, programs)
        if runs < programs * COUNT:
            raise Failure(f"ran {runs:,} times for {programs * COUNT:,} events")
        share = runs / COUNT / programs
        if share <= FOREIGN_NOTICED:
            break
    else:
        report.note(f"{tool}, {row.name}: {share:.2f} runs for each read, the rest for other processes")
    row.add(tool, time_ns / runs)
    slower.add(tool, read_ns)


def run_reads(tools, command, programs, helper="reads", depth=0):
    """How often the programs ran while COUNT bytes were read, nanoseconds in them, and nanoseconds that a read took."""
    workload = Reads(tools, COUNT, helper, depth)
    tracer = Tracer(command)
    try:
        tracer.wait_until_tracing()
        before = tracer.statistics()
        read_ns = workload.run()
        after = tracer.statistics()
        tracer.stop()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    deltas = [(after[id][1] - before[id][1], after[id][0] - before[id][0]) for id in after if id in before]
    served = sorted(deltas, reverse=True)[:programs]
    return sum(delta[0] for delta in served), sum(delta[1] for delta in served), read_ns
