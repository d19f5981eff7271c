"""What a system call takes that nobody asked for, while actions on others are attached: nanoseconds of a read(2)."""

from harness.events import COUNT
from harness.process import Cell, Tracer
from harness.report import Row
from harness.workload import Reads

PATHS = {"mkdir": "pathname", "rmdir": "pathname", "unlink": "pathname", "rename": "oldname", "link": "oldname",
         "symlink": "oldname", "chmod": "filename", "chown": "filename", "truncate": "path", "mknod": "filename"}


def script(count):
    return " ".join(f"tracepoint:syscalls:sys_enter_{call} {{ @{call}[str(args->{path})] = count(); }}"
                    for call, path in list(PATHS.items())[:count])


def run(tools, report, options):
    title = "Bystanders: median (least) ns of a read(2) while other system calls are traced"
    rows = report.group(title)
    for count in (1, 10):
        row = Row(f"{count} action{'s' if count > 1 else ''} on other calls", "ns")
        rows.append(row)
        commands = {tool: tools.script(tool, script(count)) for tool in tools.scripted}
        floor = tools.c_program("empty")
        if count == 1 and floor:
            commands["C"] = floor
        for _ in range(options.rounds):
            for tool, command in commands.items():
                if tool in row.failures:
                    continue
                with Cell(row, tool):
                    row.add(tool, read_ns(tools, command))
    alone = min(Reads(tools, COUNT).run() for _ in range(options.rounds))
    report.note(f"a read(2) without any tracer: {alone:.0f} ns")
    report.print_group(title)


def read_ns(tools, command):
    workload = Reads(tools, COUNT)
    tracer = Tracer(command)
    try:
        tracer.wait_until_tracing()
        elapsed_ns = workload.run()
        tracer.stop()
    finally:
        tracer.kill()
        workload.process.kill()
        workload.process.wait()
    return elapsed_ns
