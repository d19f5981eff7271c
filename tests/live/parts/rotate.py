#!/usr/bin/env python3
"""rotate.py CASE: runs of espy whose file of -o logrotate(8) rotates. ESPY is the program; SCRATCH a directory. Prints a
line for each thing that holds."""
import re
import shutil
import signal
import subprocess
import sys

from listen import ESPY, LIMIT, SCRATCH, until

COUNTING = 'interval:ms:5 { printf("%d\\n", @n); @n++; } end { printf("end\\n"); }'
LOG = SCRATCH / "espy.log"


def start(*options, script=COUNTING, **streams):
    return subprocess.Popen([ESPY, "-o", LOG, *options, "-e", script], stdin=subprocess.DEVNULL, **streams)


def lines_of(path):
    return path.read_text().split("\n")[:-1] if path.exists() else []


def has_lines(path, count=3):
    return lambda: len(lines_of(path)) >= count


def rotate(process, *directives):
    """Rotates now. The program gets SIGHUP afterwards, unless it is not to notice."""
    rules = SCRATCH / "rules"
    hangup = [] if "copytruncate" in directives else ["postrotate", f"kill -HUP {process.pid}", "endscript"]
    rules.write_text("\n".join([f"{LOG} {{", "rotate 9", *directives, *hangup, "}\n"]))
    rules.chmod(0o644)
    subprocess.run([shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin"), "--force", "--state",
                    SCRATCH / "state", rules], check=True)


def rotated(number):
    return LOG.with_name(f"{LOG.name}.{number}")


def reopen_case():
    for creation in ("nocreate", "create 0640"):
        process = start("--reopen")
        before = len(lines_of(LOG))
        until(has_lines(LOG, before + 3))
        for _ in range(3):
            rotate(process, creation)
            until(has_lines(LOG))
        process.send_signal(signal.SIGINT)
        status = process.wait(LIMIT)
        lines = [line for number in (3, 2, 1) for line in lines_of(rotated(number))][before:] + lines_of(LOG)
        numbers = [int(line) for line in lines if line.isdigit()]
        print(creation, "status", status, "none is lost", numbers == list(range(len(numbers))),
              "each has some", all(has_lines(rotated(number), 1)() for number in (1, 2, 3)),
              "the end is in the last one", lines_of(LOG)[-1] == f"@n: {len(numbers)}" and "end" in lines_of(LOG))


def copytruncate_case():
    process = start()
    until(has_lines(LOG, 100))
    rotate(process, "copytruncate")
    until(has_lines(LOG))
    process.send_signal(signal.SIGINT)
    print("status", process.wait(LIMIT), "copied", has_lines(rotated(1), 100)(), "no hole", b"\0" not in LOG.read_bytes())


def append_case():
    script = 'begin { printf("%s\\n", str($1)); exit(); }'
    for options, text in (([], "first"), (["--append"], "second"), (["--reopen"], "third"), (["-f", "json", "--append"], "4")):
        subprocess.run([ESPY, "-q", "-o", LOG, *options, "-e", script, text], check=True)
    print(re.sub(r"\s+", " ", LOG.read_text().strip()))
    subprocess.run([ESPY, "-q", "-o", LOG, "-e", script, "fifth"], check=True)
    print("emptied", LOG.read_text().split() == ["fifth"])


def refused_case():
    for options in (["-f", "flame"], ["-f", "pprof"], ["-f", "speedscope"], ["-f", "trace"]):
        LOG.write_text("kept\n")
        done = subprocess.run([ESPY, "-o", LOG, "--append", *options, "-e", "begin { }"], capture_output=True, text=True)
        print(options[1], done.returncode, LOG.read_text() == "kept\n", done.stderr.split("\n")[0])
    for options in (["--append", "-e", "begin { }"], ["--reopen", "-e", "begin { }"], ["record", "--append", "-o", LOG, "begin"]):
        done = subprocess.run([ESPY, *options], capture_output=True, text=True)
        print(done.returncode, done.stderr.split("\n")[0])


def unwritable_case():
    """The directory has gone when SIGHUP comes."""
    directory = SCRATCH / "logs"
    directory.mkdir()
    errors = SCRATCH / "errors"
    global LOG
    LOG = directory / "espy.log"
    with open(errors, "wb") as stream:
        process = start("--reopen", stderr=stream)
    until(has_lines(LOG))
    moved = directory.rename(SCRATCH / "moved") / "espy.log"
    process.send_signal(signal.SIGHUP)
    until(lambda: "WARNING" in errors.read_text())
    until(has_lines(moved, len(lines_of(moved)) + 3))
    process.send_signal(signal.SIGINT)
    print("status", process.wait(LIMIT), "goes on", lines_of(moved)[-1].startswith("@n: "))
    print(next(line for line in errors.read_text().split("\n") if "WARNING" in line).replace(str(SCRATCH), ""))


globals()[sys.argv[1] + "_case"]()
