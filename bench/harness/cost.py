"""What --cost says of a run, beside the kernel's statistics of all of it, and beside what the traced program lost."""

import json
import tempfile

from harness.events import COUNT, LATENCY, READ
from harness.process import Cell, Failure, Statistics, Tracer, first_line
from harness.report import MEASURED, Row
from harness.workload import Reads

WITHIN = 0.15
DEPTH = 5  # of the calls around a read, for stacks
FOREIGN_NOTICED = 1.05  # runs for each event; more than this are other processes' system calls
ATTEMPTS = 4
PROGRAMS = [
    # name, script, how many programs serve an event, workload
    ("false predicate", READ + " /pid == 1/ { @ = count(); }", 1, "reads"),
    ("@ = count()", READ + " { @ = count(); }", 1, "reads"),
    ("@[pid] = count()", READ + " { @[pid] = count(); }", 1, "reads"),
    ("@[comm] = count()", READ + " { @[comm] = count(); }", 1, "reads"),
    ("@[pid, comm] = hist(args.count)", READ + " { @[pid, comm] = hist(args->count); }", 1, "reads"),
    ("read latency", LATENCY, 2, "reads"),
    ("@[tid] = recent(32, args.count)", READ + " { @[tid] = recent(32, args.count); }", 1, "reads"),
    ("@[kstack] = count()", READ + " { @[kstack] = count(); }", 1, "reads"),
    ("@[ustack] = count(), unwound", READ + " { @[ustack] = count(); }", 1, "reads"),
    ("uprobe, @ = count()", "uprobe:%s:work { @ = count(); }", 1, "calls"),
]


def run(tools, report, options):
    runs_title = "What --cost says: median (least) ns of a run, beside the kernel's statistics of all runs"
    lost_title = "What --cost says: median (least) ns that an event takes, beside the CPU time that the program lost"
    with Statistics():
        fill(tools, report, options, runs_title, compare_runs)
    fill(tools, report, options, lost_title, compare_lost)


def fill(tools, report, options, title, compare):
    rows = report.group(title)
    for name, script, programs, helper in PROGRAMS:
        row = Row(name, "ns", within=WITHIN)
        rows.append(row)
        script = script.replace("%s", tools.helper(helper))
        for _ in range(options.rounds):
            if "espy" in row.failures:
                break
            with Cell(row, "espy"):
                for tool, value in compare(tools, report, name, script, programs, helper).items():
                    row.add(tool, value)
    report.print_group(title)


def compare_runs(tools, _report, _name, script, _programs, helper):
    shown, statistics, _ = run_with_cost(tools, script, helper)
    timing_ns = shown["measuring"]["ns_per_run"]
    runs = [(each["runs_per_second"], each["ns_per_run"]) for each in shown["programs"] if each["ns_per_run"]]
    if not runs:
        raise Failure("no run was timed")
    time_ns, count = map(sum, zip(*statistics.values()))
    mean_ns = sum(rate * ns for rate, ns in runs) / sum(rate for rate, _ in runs)
    return {"espy": mean_ns - timing_ns, MEASURED: time_ns / count - timing_ns}


def compare_lost(tools, report, name, script, programs, helper):
    """The runs for other processes are left out of what --cost says, as the workload does not wait for them."""
    for _ in range(ATTEMPTS):
        before_ns = Reads(tools, COUNT, helper, DEPTH).run_timed()[1]
        shown, _, traced_ns = run_with_cost(tools, script, helper)
        untraced_ns = (before_ns + Reads(tools, COUNT, helper, DEPTH).run_timed()[1]) / 2
        all_runs = sum(each["runs_per_second"] for each in shown["programs"]) * shown["seconds"]
        foreign = max(all_runs / COUNT / programs, 1)
        if foreign <= FOREIGN_NOTICED:
            break
    else:
        report.note(f"{name}: {foreign:.2f} runs for each event, the rest for other processes")
    return {"espy": shown["cpus"] * shown["seconds"] * 1e9 / COUNT / foreign, MEASURED: traced_ns - untraced_ns}


def run_with_cost(tools, script, helper):
    """The record of --cost, the statistics of the programs, and the workload's nanoseconds for an event on a CPU."""
    workload = Reads(tools, COUNT, helper, DEPTH)
    with tempfile.TemporaryFile() as output:
        tracer = Tracer([tools.scripted["espy"], "--cost", "-f", "json", "-e", script], stdout=output)
        try:
            tracer.wait_until_tracing()
            cpu_ns = workload.run_timed()[1]
            statistics = tracer.statistics()
            tracer.stop()
        finally:
            tracer.kill()
            workload.process.kill()
            workload.process.wait()
        output.seek(0)
        records = [json.loads(line) for line in output]
    costs = [record["data"] for record in records if record["type"] == "cost"]
    if not costs:
        raise Failure("showed no cost: " + first_line(tracer.errors))
    return costs[-1], statistics, cpu_ns
