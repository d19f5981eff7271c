"""Growth: what a script costs as there are more probes, actions, statements, `if`s, keys, stacks, processes or CPUs."""

import os
import subprocess
import tempfile

from harness.process import Cell, Failure, Tracer, first_line, run_measured
from harness.report import Row
from harness.workload import make_library

TITLE = "Growth: median (least)"
READ = "tracepoint:syscalls:sys_enter_read"
EXIT = " interval:ms:1 { exit(); }"
FUNCTIONS = 10_000
MOST_OF_BPFTRACE = 100  # probes, actions: a thousand take it minutes
ENVIRONMENT = {**os.environ, "BPFTRACE_MAX_PROBES": "20000", "BPFTRACE_MAX_BPF_PROGS": "20000",
               "BPFTRACE_MAX_MAP_KEYS": "1100000", "BPFTRACE_MAP_KEYS_MAX": "1100000"}
POSSIBLE = "/sys/devices/system/cpu/possible"


def probes(library, count):
    return f"uprobe:{library}:g{0:0{5 - len(str(count)) + 1}}{'*' if count > 1 else ''} {{ @ = count(); }}" + EXIT


def actions(count):
    return " ".join(f"{READ} /pid == {5_000_000 + i}/ {{ @[{i}] = count(); }}" for i in range(count)) + EXIT


def statements(count):
    return "BEGIN { " + " ".join(f"@a[{i}] = {i};" for i in range(count)) + " clear(@a); exit(); }"


def branches(count):
    return "BEGIN { " + " ".join(f"if (pid == {5_000_000 + i}) {{ @a[{i}] = {i}; }}" for i in range(count)) + " exit(); }"


def maps(count):
    return "BEGIN { " + " ".join(f"@a{i} = {i};" for i in range(count)) + " exit(); }"


def run(tools, report, options):
    rows = report.group(TITLE)
    library = make_library(tools, "g", 5, FUNCTIONS)
    last = -1 if options.quick else None  # without the largest
    for count in (1, 10, 100, 1_000, 10_000)[:last]:
        start(tools, rows, options, "probes", count, probes(library, count))
    for name, script in (("actions", actions), ("statements", statements), ("branches", branches),
                         ("maps", maps)):
        for count in (10, 100, 1_000, 3_000)[:last]:
            start(tools, rows, options, name, count, script(count))
    for count in (100, 1_000, 10_000, 100_000, 1_000_000)[:last]:
        stop(tools, rows, options, "keys", count, "reads", "{ @n++; @[(@n * 7919) % 1000003] = count(); }")
    for count in (10, 100, 1_000, 10_000, 100_000)[:last]:
        stop(tools, rows, options, "stacks", count, "stacks", "{ @[ustack(40)] = count(); }", limit=1000)
    for count in (1, 10, 100, 1_000)[:last]:
        stop(tools, rows, options, "processes", count, "family", "{ @[pid, ustack] = count(); }")
    for count in (1, 8, 64, 512)[:last]:
        possible(tools, rows, options, count)
    report.print_group(TITLE)


def pair(rows, series, count, what, limit=None):
    """Rows of time in ms and of memory in MiB, which are points of two lines."""
    names = {"processes": "process", "possible CPUs": "possible CPU"}
    name = names.get(series, series[:-1]) if count == 1 else series
    out = [Row(f"{count:,} {name}: {what}", unit, series=series, size=count, limit=limit if unit == "ms" else None)
           for unit in ("ms", "MiB")]
    rows += out
    return out


def start(tools, rows, options, series, count, script):
    wall, memory = pair(rows, series, count, "from exec to exit")
    with tempfile.NamedTemporaryFile("w", suffix=".bt", dir=tools.directory) as file:
        file.write(script)
        file.flush()
        for tool, program in tools.scripted.items():
            if tool == "bpftrace" and count > MOST_OF_BPFTRACE:
                continue
            measure_start(tools, tool, [program, file.name], options.rounds if tool == "espy" else 1, wall, memory)


def measure_start(tools, tool, command, rounds, wall, memory):
    for _ in range(rounds):
        if tool in wall.failures:
            return
        with Cell(wall, tool):
            wall_ms, peak_mib, _ = run_measured(tools.helper("spawn"), command, ENVIRONMENT)
            wall.add(tool, wall_ms)
            memory.add(tool, peak_mib)


def stop(tools, rows, options, series, count, helper, action, limit=None):
    wall, memory = pair(rows, series, count, "from SIGINT to the end", limit if count == 100_000 else None)
    for tool in tools.scripted:
        if tool == "bpftrace" and (count > 100_000 or series == "stacks" and count > 10_000):
            continue
        for _ in range(options.rounds if tool == "espy" else 1):
            if tool in wall.failures:
                break
            with Cell(wall, tool):
                measure_stop(tools, tool, count, helper, action, wall, memory)


def measure_stop(tools, tool, count, helper, action, wall, memory):
    workload = subprocess.Popen([tools.helper(helper), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    comm = f'comm == "{helper}"'
    with tempfile.TemporaryFile(dir=tools.directory) as output:
        tracer = Tracer(tools.script(tool, f"{READ} /{comm}/ {action}"), stdout=output, environment=ENVIRONMENT)
        try:
            tracer.wait_until_tracing()
            workload.stdin.write(b"\n")
            workload.stdin.flush()
            if not workload.stdout.readline():
                raise Failure(f"{helper} failed")
            seconds = tracer.stop()
        finally:
            tracer.kill()
            workload.stdin.close()
            workload.wait()
            workload.stdout.close()
        if tracer.process.returncode != 0:
            raise Failure(first_line(tracer.errors))
        if output.tell() < 4 * count and os.fstat(output.fileno()).st_size < 4 * count:
            raise Failure("not all was printed")
    wall.add(tool, seconds * 1e3)
    memory.add(tool, tracer.usage.ru_maxrss / 1024)


def possible(tools, rows, options, count):
    """Has espy believe that the machine may have so many CPUs. What the kernel allocates for its maps is not included."""
    wall, memory = pair(rows, "possible CPUs", count, "from exec to exit")
    if "espy" not in tools.scripted:
        return
    script = f'{READ} {{ @[pid, comm] = count(); @h = hist(args->count); printf("%d\\n", pid); }}' + EXIT
    faked = tools.directory / "possible.txt"
    faked.write_text(f"0-{max(count, os.cpu_count()) - 1}\n")
    inside = f'mount --bind {faked} {POSSIBLE} && exec "$@"'
    # spawn(1) measures what it starts: it has to be the last in the chain.
    for _ in range(options.rounds):
        if "espy" in wall.failures:
            return
        with Cell(wall, "espy"):
            wall_ms, peak_mib, _ = run_measured("unshare", ["-m", "sh", "-c", inside, "sh", tools.helper("spawn"),
                                                            *tools.script("espy", script)], ENVIRONMENT)
            wall.add("espy", wall_ms)
            memory.add("espy", peak_mib)
