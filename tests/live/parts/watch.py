#!/usr/bin/env python3
"""watch.py CASE: runs of espy with --watch in a terminal, and what it shows. ESPY is the program; SCRATCH a directory.
The scripts trace the writes of this process to descriptor 77. Prints a line for each thing that holds."""

import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from screen import Screen

ESPY, SCRATCH = os.environ["ESPY"], pathlib.Path(os.environ["SCRATCH"])
PROBE = f"tracepoint:syscalls:sys_enter_write /pid == {os.getpid()} && args.fd == 77/ "
COUNTS = PROBE + '{ @calls = count(); @by_size[args.count] = count(); @sizes[args.count % 2] = hist(args.count); }'
os.dup2(os.open("/dev/null", os.O_WRONLY), 77)


def write(*sizes):
    for size in sizes:
        os.write(77, b"x" * size)


def rename(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)


def watch(script, *options, interval="100ms", **screen):
    """A run, once its screen is shown: its probes are attached then."""
    screen = Screen([ESPY, "--watch", interval, *options, "-e", script], **screen)
    screen.shows("| by value |")
    return screen


def value(screen, key):
    """The number of the row with this key."""
    found = re.search(rf"^[ *]\s*(\d+)\s.*(?<=\s){key}$", screen.text(), re.M)
    return int(found[1]) if found else None


def keys_case():
    screen = watch(COUNTS)
    print("alternate", screen.is_alternate, "keys", screen.has_keys_of_its_own(), "cursor", screen.has_cursor)
    write(100, 100, 100, 7)
    screen.until(lambda: value(screen, "@calls") == 4 and value(screen, "100") == 3, "counts")
    rows = screen.text().split("\n")
    order = [next(i for i, row in enumerate(rows) if re.search(rf"(?<=\s){key}$", row)) for key in ("100", "7")]
    print("largest first", order == sorted(order))
    print("side by side", bool(re.search(r"@sizes\[.\].*@sizes\[.\]", screen.text())))
    screen.until(lambda: re.search(r"^\*\s+4.*@calls", screen.text(), re.M) or write(7) or False
                 or re.search(r"^\*\s+\d+\s+[\d.]+\s+@calls", screen.text(), re.M), "a mark and a rate")
    print("marked, with its rate")
    screen.type("s")
    screen.shows("| by key |")
    rows = screen.text().split("\n")
    order = [next(i for i, row in enumerate(rows) if re.search(rf"(?<=\s){key}$", row)) for key in ("7", "100")]
    print("by key", order == sorted(order))
    screen.type("/CALLS")
    screen.shows("/CALLS_")
    screen.until(lambda: "@by_size" not in screen.text() and value(screen, "@calls"), "the filter")
    screen.type("x\x7f\r")
    screen.shows("| /CALLS |")
    screen.type("/\x1b")
    screen.until(lambda: "/CALLS" not in screen.text() and "@by_size" in screen.text(), "all rows")
    print("filter")
    screen.type(" ")
    screen.shows("| paused |")
    before = value(screen, "@calls")
    write(7)
    screen.type("s")
    screen.shows("| by change |")
    print("paused", value(screen, "@calls") == before)
    screen.type(" ")
    screen.until(lambda: value(screen, "@calls") == before + 1, "going on")
    screen.type("q")
    print("status", screen.wait(), "restored", screen.is_restored())
    print("final maps", f"@calls: {before + 1}" in screen.text())


def scroll_case():
    script = PROBE + "{ " + "".join(f"@m{i:02}[args.count] = count(); " for i in range(24)) + \
        "@calls = count(); @ns = hist(args.count); @start[tid] = nsecs; delete(@start, tid); @start[1] = 1; }"
    for columns, rows in ((80, 24), (40, 10)):
        screen = watch(script, columns=columns, rows=rows)
        write(*(1 << power for power in range(20)))
        screen.until(lambda: value(screen, "@calls") == 20, "counts")
        print(f"{columns}x{rows} below", bool(screen.shows("more maps (n, PgDn)")))
        for i in range(24):
            screen.type("n")
            screen.shows(f"@m{i:02}  (20 keys")
            if value(screen, "@calls") != 20:
                print("no scalar")
        screen.type("\x1b[F")
        screen.shows("[512K, 1M)")
        screen.type("\x1b[5~")
        screen.until(lambda: "[512K, 1M)" not in screen.text(), "a page up")
        print("every map")
        screen.type("\x1b[H")
        screen.shows("more maps (n, PgDn)")
        screen.type("?")
        print("keys", bool(screen.shows("quit, as Ctrl-C does")))
        screen.type("x/@ns\r")
        screen.shows("@ns")
        screen.until(lambda: "[512K, 1M)" in screen.text(), "the highest bucket, or what is left out")
        print("nothing is cut without a mark", rows == 24 or bool(screen.shows("more rows, to [512K, 1M)")))
        screen.type("q")
        print("status", screen.wait())
    screen = watch(PROBE + "{ @start[tid] = nsecs; @n[comm] = count(); } interval:s:100 { delete(@start, 1); }")
    write(1)
    screen.shows("folded (f): @start (1 key)")
    screen.type("f")
    screen.shows("@start  (1 key)")
    print("folded")
    screen.type("q")
    screen.wait()


def resize_case():
    screen = watch(COUNTS, columns=120, rows=40)
    write(*range(1, 100))
    screen.until(lambda: value(screen, "@calls") == 99, "counts")
    print("fills", sum(bool(row) for row in screen.text().split("\n")) >= 30)
    screen.resize(40, 10)
    screen.until(lambda: screen.row("@calls") and "by_size" in screen.text() and screen.text().count("\n") == 9
                 and len(screen.text().split("\n")[0]) <= 40 and "|" not in screen.text().split("\n")[9], "the new size")
    screen.resize(120, 40)
    screen.until(lambda: screen.row("space pause") and screen.row("@sizes[1]"), "the old size")
    print("follows the size")
    screen.type("q")
    print("status", screen.wait(), "restored", screen.is_restored())


def ends_case():
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        screen = watch(COUNTS)
        screen.kill(getattr(signal, name))
        print(name, screen.wait(), screen.is_restored())
    screen = watch(COUNTS)
    screen.kill(signal.SIGKILL)
    print("SIGKILL", screen.wait(), bool(screen.until(screen.is_restored, "the terminal")))
    screen = watch(PROBE + "{ exit(3); }")
    write(1)
    print("exit", screen.wait(), screen.is_restored())
    screen = Screen([ESPY, "--watch", "1s", "-e", "begin { exit(); }"])
    print("in begin", screen.wait(), screen.is_restored(), b"1049" not in screen.raw)
    screen = watch(COUNTS)
    screen.type("\x03")
    print("Ctrl-C", screen.wait(), screen.is_restored())


def stop_case():
    # A shell in between, so that the process group is not an orphan, which the terminal does not stop.
    script = SCRATCH / "script.bt"
    script.write_text(COUNTS)
    screen = Screen(["sh", "-mc", f"{ESPY} --watch 100ms {script}; echo stopped; read line; fg; echo ended $?"])
    screen.shows("| by value |")
    screen.type("\x1a")
    screen.until(lambda: not screen.is_alternate and "stopped" in screen.text(), "the shell")
    print("stopped", not screen.has_keys_of_its_own(), screen.has_cursor)
    screen.type("\n")
    screen.until(lambda: screen.is_alternate and screen.row("| by value |"), "the screen")
    write(5)
    screen.until(lambda: value(screen, "@calls") == 1, "counts")
    screen.type("q")
    print("ended", screen.wait(), screen.is_restored(), bool(screen.row("ended 0")))


def hostile_case():
    name = b"\x1b[2J\x9bA\xffn"
    rename(name)
    screen = watch(PROBE + '{ @[comm] = count(); printf("from %s\\n", comm); @wide["\xe6\xbc\xa2\xe5\xad\x97"] = 1; }'
                   .encode("latin-1").decode())
    write(1)
    row = screen.shows("x1b[2J")
    screen.shows("OUTPUT")
    print("escaped", row.split()[-1] == r"\x1b[2J\x9bA\xffn")
    print("wide", "漢字" in screen.text())
    screen.type("/\x1b[A\x1bOP漢")
    screen.shows("/漢_")
    screen.type("\x1b")
    screen.until(lambda: "/漢" not in screen.text(), "no filter")
    drawn = screen.raw
    screen.type("q")
    screen.wait()
    print("no escapes of it", b"\x1b[2J\x9b" not in drawn and b"\x9bA" not in drawn)


def output_case():
    screen = watch(PROBE + '{ @ = count(); printf("wrote %d bytes\\n", args.count); warnf("odd"); }')
    write(11)
    screen.shows("wrote 11 bytes")
    print("log", screen.is_alternate, bool(screen.shows("OUTPUT")))
    screen.type("q")
    print("status", screen.wait())
    print("kept", bool(screen.row("wrote 11 bytes")), bool(screen.row("WARNING: odd")), bool(screen.row("@: 1")))
    screen = watch(PROBE + '{ @ = count(); printf("wrote %d bytes\\n", args.count); print(@); }', "-o",
                   str(SCRATCH / "written"))
    write(12)
    screen.shows("wrote 12 bytes")
    screen.type("q")
    screen.wait()
    print("in the file", (SCRATCH / "written").read_text() == "wrote 12 bytes\n@: 1\n\n\n@: 1\n")


def colours_case():
    for environment in ({}, {"NO_COLOR": "1"}):
        screen = watch(COUNTS, environment=environment)
        write(3)
        screen.until(lambda: value(screen, "@calls"), "counts")
        screen.until(lambda: write(3) or re.search(r"^\*\s+\d+.*@calls", screen.text(), re.M), "a mark")
        screen.type("q")
        screen.wait()
        print("colours", any(re.search(r"(^|;)3\d", style) for style in screen.styles))


def printing_case():
    def run(environment=None, **files):
        process = subprocess.Popen([ESPY, "--watch", "100ms", "-q", "-e", COUNTS], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "TERM": "xterm", **(environment or {})}, **files)
        text = ""
        while text.count("@calls: ") < 2:
            write(64)
            text += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        text += process.communicate()[0]
        return text, process.returncode

    text, status = run(stdin=subprocess.DEVNULL)
    print("clock", bool(re.search(r"^\d\d:\d\d:\d\d\n(@|\d\d:)", text, re.M)), "status", status)
    print("maps", bool(re.search(r"^@by_size\[64\]: \d+\n@calls: \d+\n@sizes\[0\]:\n\[64, 128\)", text, re.M)))
    print("no sequences", "\x1b" not in text)
    screen = Screen([ESPY, "--watch", "100ms", "-e", COUNTS], environment={"TERM": "dumb"})
    screen.until(lambda: re.search(r"\d\d:\d\d:\d\d", screen.text()), "the clock")
    screen.kill(signal.SIGINT)
    print("dumb", screen.wait(), b"\x1b" not in screen.raw)


globals()[sys.argv[1] + "_case"]()
