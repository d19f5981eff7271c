"""Much data: maps of a million keys at the end, a map printed every second, and ten million lines."""

import os
import tempfile
import time

from harness.printf import wait_for_silence
from harness.process import Cell, Failure, Tracer, first_line
from harness.report import Row
from harness.workload import Reads

MANY, SOME = 1_000_000, 100_000
PRINTED = 10_000
PRINTING_S = 5
LINES = 10_000_000
READ = "tracepoint:syscalls:sys_enter_read"
KEY = "@n++; @[%s] = "
SCATTERED = "(@n * 7919) % 1000003"  # all different; bpftrace 0.17 has no for over ranges
FORMATS = [("text", []), ("JSON", ["-f", "json"])]
MAPS = [
    # value, keys, key, statement, targets in seconds and MiB
    ("numbers", MANY, SCATTERED, "@n", 1.5, 150),
    ("count()", MANY, SCATTERED, "count()", 1.5, 150),
    ("count() of tuples", MANY, f"{SCATTERED}, comm", "count()", 1.5, 150),
    ("hist()", SOME, SCATTERED, "hist(@n)", None, None),
    ("lhist()", SOME, SCATTERED, "lhist(@n, 0, 100000, 10000)", None, None),
    ("tseries()", SOME, SCATTERED, "tseries(@n, 1s, 4)", None, None),
]
ONLY_ESPY = ("tseries", "lhist", "hist")


def environment(keys):
    return {**os.environ, "BPFTRACE_MAX_MAP_KEYS": str(keys + keys // 10), "BPFTRACE_MAP_KEYS_MAX": str(keys + keys // 10)}


def run(tools, report, options):
    scale = 10 if options.quick else 1
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "output")
        run_maps(tools, report, options, path, scale)
        run_printing(tools, report, options, path)
        run_lines(tools, report, options, path, scale)


def run_maps(tools, report, options, path, scale):
    title = "Much data, maps: median (least) from SIGINT to the end, read, sorted and printed"
    rows = report.group(title)
    for name, keys, key, value, limit_s, limit_mib in MAPS:
        for kind, switches in FORMATS:
            title_of = f"{keys // scale:,} keys, {name}, {kind}"
            seconds = Row(title_of, "s", limit=limit_s)
            memory = Row(title_of, "MiB", limit=limit_mib)
            rows += [seconds, memory]
            takes_bpftrace = not any(value.startswith(only) for only in ONLY_ESPY)
            for tool in tools.scripted:
                for _ in range(options.rounds if tool == "espy" else 1 if takes_bpftrace else 0):
                    if tool in seconds.failures:
                        break
                    with Cell(seconds, tool):
                        used = measure_map(tools, tool, switches, KEY % key + value + ";", keys // scale, path)
                        seconds.add(tool, used[0])
                        memory.add(tool, used[1])
    report.print_group(title)


def command_of(tools, tool, switches, script):
    command = tools.script(tool, script)
    return [command[0], *switches, *command[1:]]


def measure_map(tools, tool, switches, statements, keys, path):
    """Seconds from SIGINT to the end, and MiB at most."""
    workload = Reads(tools, keys)
    script = f"{READ} /pid == {workload.pid}/ {{ {statements} }}"
    with open(path, "wb") as output:
        tracer = Tracer(command_of(tools, tool, switches, script), stdout=output, environment=environment(keys))
    try:
        tracer.wait_until_tracing()
        workload.run()
        seconds = tracer.stop()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    if tracer.process.returncode != 0 or b"lost" in tracer.errors.lower():
        raise Failure(first_line(tracer.errors))
    if os.path.getsize(path) < 4 * keys:
        raise Failure(f"only {os.path.getsize(path)} bytes were printed")
    return seconds, tracer.usage.ru_maxrss / 1024


def run_printing(tools, report, options, path):
    title = f"Much data, print(@) of {PRINTED:,} keys each second: median (least) part of a CPU"
    rows = report.group(title)
    for name, value in [("count()", "count()"), ("tuples", "count()"), ("lhist()", "lhist(@n, 0, 10000, 1000)"),
                        ("tseries()", "tseries(@n, 1s, 4)")]:
        key = f"{SCATTERED}, comm" if name == "tuples" else SCATTERED
        row = Row(name, "%", limit=1 if value == "count()" else None)
        rows.append(row)
        for tool in tools.scripted:
            for _ in range((options.rounds if tool == "espy" else 1) if tool == "espy" or value == "count()" else 0):
                if tool in row.failures:
                    break
                with Cell(row, tool):
                    row.add(tool, measure_printing(tools, tool, KEY % key + value + ";", path))
    report.print_group(title)


def measure_printing(tools, tool, statements, path):
    workload = Reads(tools, PRINTED)
    script = f"{READ} /pid == {workload.pid}/ {{ {statements} }} interval:s:1 {{ print(@); }}"
    with open(path, "wb") as output:
        tracer = Tracer(tools.script(tool, script), stdout=output, environment=environment(PRINTED))
    try:
        tracer.wait_until_tracing()
        workload.run()
        used_ns, start = tracer.cpu_ns(), time.monotonic()
        time.sleep(PRINTING_S)
        used_ns, elapsed_s = tracer.cpu_ns() - used_ns, time.monotonic() - start
        tracer.stop()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    return 100 * used_ns / 1e9 / elapsed_s


def run_lines(tools, report, options, path, scale):
    count = LINES // scale
    title = f"Much data, {count:,} lines of printf into a file: median (best)"
    rows = report.group(title)
    cpu = {}
    for kind, switches in FORMATS:
        rate = Row(f"{kind}: lines a second", "1/s", limit=3e6 if kind == "text" else None, at_least=True)
        cpu[kind] = Row(f"{kind}: CPU for a line", "us")
        delivered = Row(f"{kind}: lines delivered", "lines", at_least=True)
        rows += [rate, cpu[kind], delivered]
        for _ in range(options.rounds):
            if "espy" not in rate.failures:
                with Cell(rate, "espy"):
                    measure_lines(tools, switches, count, path, rate, cpu[kind], delivered)
    ratio = Row("CPU of JSON, in multiples of text", "", limit=1.5)
    values = [cpu[kind].value("espy") for kind, _ in FORMATS]
    if all(values):
        ratio.add("espy", values[1] / values[0])
    rows.append(ratio)
    report.print_group(title)


def measure_lines(tools, switches, count, path, rate, cpu, delivered):
    workload = Reads(tools, count)
    script = f'{READ} /pid == {workload.pid}/ {{ printf("%d %s %d\\n", pid, comm, args->count); }}'
    with open(path, "wb") as output:
        tracer = Tracer(command_of(tools, "espy", switches, script), stdout=output)
    try:
        tracer.wait_until_tracing()
        start, (user_s, system_s) = time.monotonic(), tracer.user_and_system_s()
        workload.run()
        end = wait_for_silence(tracer)
        tracer.stop()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    with open(path, "rb") as file:
        lines = sum(chunk.count(b" reads ") for chunk in iter(lambda: file.readlines(1 << 24), []) for chunk in chunk)
    rate.add("espy", lines / (end - start))
    used_s = tracer.usage.ru_utime + tracer.usage.ru_stime - user_s - system_s
    cpu.add("espy", used_s * 1e6 / max(lines, 1))
    delivered.add("espy", min(lines, count))
