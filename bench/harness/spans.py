"""spans: a million reads, each a span from its system call's entry to its return, beside two printf with the same
values; in the kernel's statistics and in the tracer's own CPU."""

from harness.printf import wait_for_silence
from harness.process import Cell, Failure, Statistics, Tracer, first_line
from harness.report import Row
from harness.workload import Reads

COUNT = 1_000_000
ENTER, LEAVE = "tracepoint:syscalls:sys_enter_read", "tracepoint:syscalls:sys_exit_read"
VARIANTS = [
    # name, options, at the entry, at the return
    ("two printf", [], 'printf("%lld %d %d %d %s %d\\n", nsecs, pid, tid, cpu, comm, args.count);',
     'printf("%lld %d %d %d %s %d\\n", nsecs, pid, tid, cpu, comm, args.ret);'),
    ("span", [], 'span_enter("read(%d)", args.count);', 'span_exit("%d", args.ret);'),
    ("span, -f trace", ["-f", "trace"], 'span_enter("read(%d)", args.count);', 'span_exit("%d", args.ret);'),
]


def run(tools, report, options):
    count = COUNT // 10 if options.quick else COUNT
    title = f"spans: {count:,} reads, a record at the entry and one at the return, median (best)"
    rows = report.group(title)
    with Statistics():
        for name, switches, enter, leave in VARIANTS:
            kernel = Row(f"{name}: an event, by the kernel's statistics", "ns")
            user = Row(f"{name}: user CPU for an event", "us")
            rows += [kernel, user]
            for _ in range(options.rounds):
                if "espy" not in kernel.failures:
                    with Cell(kernel, "espy"):
                        measure(tools, count, switches, enter, leave, kernel, user)
    report.print_group(title)


def measure(tools, count, switches, enter, leave, kernel, user):
    workload = Reads(tools, count)
    script = (f"{ENTER} /pid == {workload.pid}/ {{ {enter} }} {LEAVE} /pid == {workload.pid}/ {{ {leave} }}")
    command = tools.script("espy", script)
    with open("/dev/null", "wb") as output:
        tracer = Tracer([command[0], *switches, *command[1:]], stdout=output)
    try:
        tracer.wait_until_tracing()
        before, (user_before_s, _) = tracer.statistics(), tracer.user_and_system_s()
        workload.run()
        after = tracer.statistics()
        wait_for_silence(tracer)
        tracer.interrupt()
        tracer.collect()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    runs = sum(after[id][1] - before[id][1] for id in after if id in before)
    time_ns = sum(after[id][0] - before[id][0] for id in after if id in before)
    if runs < 2 * count:
        raise Failure(f"{runs} runs for {2 * count} events: {first_line(tracer.errors)}")
    kernel.add("espy", time_ns / runs)
    user.add("espy", (tracer.usage.ru_utime - user_before_s) * 1e6 / (2 * count))
