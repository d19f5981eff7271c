#!/usr/bin/env python3
"""hostile_names.py NAMED: shows what espy makes of a process whose name has control characters. ESPY is the program."""
import json
import os
import pty
import subprocess
import sys
import xml.dom.minidom

ESPY = os.environ["ESPY"]
NAME = b"\x1b[31m\n> x\xff\xc3"
SHOWN = "\\x1b[31m\\x0a> x\\xff\\xc3"
ENTER = "tracepoint:syscalls:sys_enter_getppid /pid == cpid/"
EXIT = "tracepoint:syscalls:sys_exit_getppid /pid == cpid/"
SPANS = f'{ENTER} {{ span_enter("a %s", comm); }} {EXIT} {{ span_exit(); }}'


def output(*arguments):
    command = os.fsdecode(b"'%s' '%s'" % (os.fsencode(sys.argv[1]), NAME))
    return subprocess.run([ESPY, "-q", "-c", command, *arguments], capture_output=True, timeout=30, check=True).stdout


def is_harmless(text):
    lines = text.decode().strip("\n").split("\n")
    return SHOWN in text.decode() and all(line.isprintable() and not line.startswith("> x") for line in lines)


for layout in ("tree", "columns", "graph"):
    print(f"{layout}:", is_harmless(output("-e", f'config = {{ span_layout = "{layout}" }} {SPANS}')))
trace = subprocess.run([ESPY, "trace", "-q", "-c", os.fsdecode(b"'%s' '%s'" % (os.fsencode(sys.argv[1]), NAME)),
                        "tracepoint:syscalls:sys_enter_getppid"], capture_output=True, timeout=30, check=True).stdout
print("trace:", is_harmless(trace))
everything = (f'{ENTER} {{ printf("%s", comm); print(comm); print((comm, 1)); errorf("%s", comm); @m[comm] = 1; @v = comm; '
              f'print(@m); print((a = comm)); span_enter("%s", comm); }}')
lines = output("-f", "json", "-e", everything).decode().splitlines()
print("json:", sum(r"\\xff\\xc3" in line and bool(json.loads(line)) for line in lines))


def on_terminal(*arguments):
    """What espy writes to a terminal, to stdout and stderr."""
    command = os.fsdecode(b"'%s' '%s'" % (os.fsencode(sys.argv[1]), NAME))
    ours, its = pty.openpty()
    process = subprocess.Popen([ESPY, "-q", "-c", command, *arguments], stdin=subprocess.DEVNULL, stdout=its, stderr=its)
    os.close(its)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # at the end
        pass
    os.close(ours)
    return text.replace(b"\r\n", b"\n") if process.wait(timeout=30) == 0 else b"failed"


prints = (f'{ENTER} {{ $bold = "\\033[1m"; printf("%s%s\\n", $bold, comm); print(comm); errorf("%s", comm); '
          'print((comm, 1)); @m[comm] = 1; @v = comm; }')
shown = on_terminal("-e", prints)
print("terminal:", shown.count(SHOWN.encode()), is_harmless(shown.replace(b"\x1b[1m", b"")), shown.count(b"\x1b"))
print("pipe:", output("-e", prints).count(NAME))
flame = output("-f", "flame", "-e", f"{ENTER} {{ @[comm, kstack(1)] = count(); }}").decode()
print("flame:", bool(xml.dom.minidom.parseString(flame)))
