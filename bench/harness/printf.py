"""printf: two million reads, each a line with pid, comm and a number, into /dev/null and into a file."""

import os
import tempfile
import time

from harness.process import Cell, Failure, Statistics, Tracer, first_line
from harness.events import EMPTY, measure as measure_event
from harness.report import Row
from harness.workload import Reads

COUNT = 2_000_000
QUIET_S = 0.5  # nothing written for so long: all is delivered


def run(tools, report, options):
    count = COUNT // 10 if options.quick else COUNT
    title = f"printf: {count:,} lines `pid comm number`, median (best)"
    rows = report.group(title)
    empty = Row("empty program (the bookkeeping)", "ns")
    rows.append(empty)
    with Statistics(), tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds if tools.c_program(EMPTY) else 0):
            measure_event(tools, report, tools.c_program(EMPTY), "C", 1, empty, Row("", "ns"))
        for name, path in [("to /dev/null", "/dev/null"), ("to a file", os.path.join(directory, "lines"))]:
            figures = {
                "event": Row(f"{name}: an event, by the kernel's statistics", "ns", limit=60),
                "delivered": Row(f"{name}: lines delivered", "lines", at_least=True),
                "events": Row(f"{name}: events a second", "1/s", at_least=True),
                "rate": Row(f"{name}: lines a second", "1/s", limit=2e6, at_least=True),
                "user": Row(f"{name}: user CPU for a line", "us", limit=0.4),
                "system": Row(f"{name}: system CPU for a line", "us"),
            }
            rows += figures.values()
            for round_index in range(options.rounds):
                for tool in tools.scripted:
                    if tool == "bpftrace" and round_index > 0:  # 20 s each, and always the same
                        continue
                    if tool in figures["event"].failures:
                        continue
                    with Cell(figures["event"], tool):
                        measure(tools, report, tool, path, count, figures)
    report.print_group(title)


def measure(tools, report, tool, path, count, figures):
    workload = Reads(tools, count)
    line = f"{workload.pid} reads 1\n"
    script = (f"tracepoint:syscalls:sys_enter_read /pid == {workload.pid}/ "
              '{ printf("%d %s %d\\n", pid, comm, args->count); }')
    with open(path, "wb") as output:
        tracer = Tracer(tools.script(tool, script), stdout=output)
    try:
        tracer.wait_until_tracing()
        before, start = tracer.statistics(), time.monotonic()
        (user_before_s, system_before_s), written_before = tracer.user_and_system_s(), tracer.written_bytes()
        read_ns = workload.run()
        after = tracer.statistics()
        end = wait_for_silence(tracer)
        tracer.interrupt()
        written = tracer.written_bytes() - written_before
        tracer.collect()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    lines = written // len(line) if path == "/dev/null" else count_lines(path, line.encode())
    runs, time_ns = max((after[id][1] - before[id][1], after[id][0] - before[id][0]) for id in after if id in before)
    if lines == 0 or runs < count:
        raise Failure(f"{lines} lines for {runs} runs: {first_line(tracer.errors)}")
    loss = [text for text in tracer.errors.decode(errors="replace").splitlines() if "lost" in text.lower()]
    if lines < count:
        said = loss[-1] if loss else "nothing"
        report.note(f"{tool} {path}: {count - lines:,} of {count:,} lines missing; it says: {said}")
    figures["event"].add(tool, time_ns / runs)
    figures["delivered"].add(tool, min(lines, count))
    figures["events"].add(tool, 1e9 / read_ns)
    figures["rate"].add(tool, lines / (end - start))
    figures["user"].add(tool, (tracer.usage.ru_utime - user_before_s) * 1e6 / lines)
    figures["system"].add(tool, (tracer.usage.ru_stime - system_before_s) * 1e6 / lines)


def wait_for_silence(tracer):
    """The time at which the tracer wrote last."""
    written, last = tracer.written_bytes(), time.monotonic()
    while time.monotonic() - last < QUIET_S:
        time.sleep(0.005)
        now_written = tracer.written_bytes()
        if now_written != written:
            written, last = now_written, time.monotonic()
    return last


def count_lines(path, line):
    with open(path, "rb") as file:
        return sum(1 for text in file if text == line)
