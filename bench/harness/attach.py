"""Attach and detach: the time from exec until all probes are attached, and from the wish to stop to the prompt."""

import os
import pathlib
import subprocess
import time

from harness.process import Cell, Failure, first_line
from harness.report import Row
from harness.workload import make_library

FUNCTIONS = 5000
SLOW_MS = 2000  # what took bpftrace so long is not repeated
PAUSE_S = 0.3  # to attach right after another process detached waits for the kernel to finish with that
ENVIRONMENT = {**os.environ, "BPFTRACE_MAX_PROBES": "20000", "BPFTRACE_MAX_BPF_PROGS": "20000"}
KPROBES = pathlib.Path("/sys/bus/event_source/devices/kprobe/type")


def points(library):
    """(name, attach point or two of calls, bpftrace takes minutes, target of attaching in ms)."""
    out = [
        ("1 tracepoint", "tracepoint:sched:sched_switch", False, 15),
        ("361 syscalls", "tracepoint:syscalls:sys_enter_*", True, 20),
        ("1 uprobe", f"uprobe:{library}:f0000", False, 30),
        ("100 uprobes", f"uprobe:{library}:f00*", False, 30),
        ("1,000 uprobes", f"uprobe:{library}:f0*", True, 80),
        ("5,000 uprobes", f"uprobe:{library}:f*", None, 400),
        ("1,000 uprobes and uretprobes", f"uprobe:{library}:f0* uretprobe:{library}:f0*", None, None),
        ("all tracepoints of the scheduler", "tracepoint:sched:*", False, None),
        ("profile", "profile:hz:99", False, None),
    ]
    if KPROBES.exists():
        out += [
            ("1 kprobe", "kprobe:vfs_read", False, None),
            ("some 80 kprobes", "kprobe:vfs_*", False, None),
            ("some 80 kprobes and kretprobes", "kprobe:vfs_* kretprobe:vfs_*", False, None),
            ("some 5,000 kprobes", "kprobe:s*", None, None),
            ("1 fentry", "fentry:vfs_read", False, None),
            ("some 80 fentry", "fentry:vfs_*", False, None),
        ]
    return out


def run(tools, report, options):
    library = make_library(tools, "f", 4, FUNCTIONS)
    attach_title = "Attach: median (least) from exec until all is attached"
    detach_title = "Detach: median (least) from the end of the traced command to the prompt"
    attach_rows, detach_rows = report.group(attach_title), report.group(detach_title)
    for name, point, is_slow, limit_ms in points(library):
        attach = Row(name, "ms", limit=limit_ms)
        detach = Row(name, "ms", limit=None if limit_ms is None else 100)
        attach_rows.append(attach)
        detach_rows.append(detach)
        commands = {tool: tools.script(tool, actions(point)) for tool in tools.scripted}
        if is_slow is None or (is_slow and options.quick):
            commands.pop("bpftrace", None)
        for _ in range(options.rounds):
            for tool, command in commands.items():
                if tool in attach.failures or (attach.value(tool) or 0) + (detach.value(tool) or 0) > SLOW_MS:
                    continue
                with Cell(attach, tool):
                    measure(tools, command, tool, attach, detach)
    report.print_group(attach_title)
    report.print_group(detach_title)


def actions(points):
    return " ".join(f"{point} {{ @{index} = count(); }}" for index, point in zip("ab", points.split()))


def measure(tools, command, tool, attach, detach):
    time.sleep(PAUSE_S)
    stamp = tools.directory / "stamp.txt"
    stamp.unlink(missing_ok=True)
    begin_ns = time.monotonic_ns()
    process = subprocess.Popen([*command, "-c", f"{tools.helper('stamp')} {stamp}"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    try:
        status = process.wait()
        end_ns = time.monotonic_ns()
        if status != 0 or not stamp.exists():
            os.set_blocking(process.stderr.fileno(), False)
            raise Failure("failed: " + first_line(process.stderr.read() or b""))
        attached_ns = int(stamp.read_text())
        attach.add(tool, (attached_ns - begin_ns) / 1e6)
        detach.add(tool, (end_ns - attached_ns) / 1e6)
    finally:
        process.kill()
        process.stderr.close()
