#!/usr/bin/env python3
"""ends.py CASE: ends runs of espy in the ways of one case, and prints what came of each. ESPY is the program."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.dom.minidom

ESPY = os.environ["ESPY"]
CHATTY = "begin { @b = 1; } tracepoint:raw_syscalls:sys_enter { printf(\"%d %s\\n\", pid, comm); }"
QUIET = "begin { @b = 1; } interval:ms:20 { @ticks++; } end { printf(\"end\\n\"); }"
LIMIT = 20 * int(os.environ.get("TIME_FACTOR", "1"))  # seconds, far above what any of these takes


def start(script, *options, **streams):
    streams.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([ESPY, *options, "-e", script], start_new_session=True, **streams)


def wait_until(condition):
    for _ in range(LIMIT * 50):
        if condition():
            return
        time.sleep(0.02)
    raise SystemExit("waited in vain")


def text_of(file):
    file.seek(0)
    return file.read().decode()


def is_endless_poll(number, timeout):
    """poll(2) with a timeout of -1, or ppoll(2) without one, which is what there is on arm64."""
    if os.uname().machine == "aarch64":
        return number == "73" and timeout == "0x0"
    return timeout in ("0xffffffff", "0xffffffffffffffff")


def is_blocked(process):
    """For a while in one call of write(1 or 2, ...) or poll without a timeout."""
    seen = set()
    for _ in range(5):
        with open(f"/proc/{process.pid}/syscall") as file:
            seen.add(file.read())
        time.sleep(0.02)
    words = seen.pop().split()
    return not seen and len(words) > 3 and (words[1] in ("0x1", "0x2") or is_endless_poll(words[0], words[3]))


def status_of(process):
    try:
        return process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "none: it had to be killed"


def attached(script, *options, **streams):
    """A run whose probes are attached, and the file of its messages."""
    errors = tempfile.TemporaryFile()
    process = start(script, *options, stderr=errors, **streams)
    wait_until(lambda: "Attached" in text_of(errors) or process.poll() is not None)
    return process, errors


def stalled_pipe(name, flags=0):
    reader, writer = os.pipe2(flags)
    process, errors = attached(CHATTY, stdout=writer)
    wait_until(lambda: is_blocked(process))
    process.send_signal(signal.SIGINT)
    print(f"{name}: {status_of(process)}", "the reader has not read" in text_of(errors))


def takes(process, number):
    with open(f"/proc/{process.pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def stalled():
    stalled_pipe("a pipe")
    stalled_pipe("a pipe that does not block", os.O_NONBLOCK)
    master, terminal = pty.openpty()
    process = start(CHATTY, stdout=terminal, stderr=terminal)
    wait_until(lambda: is_blocked(process))
    process.send_signal(signal.SIGTERM)
    print("a terminal:", status_of(process))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    with tempfile.TemporaryFile() as out:
        process = start(QUIET, stdout=out, stderr=writer)
        wait_until(lambda: is_blocked(process) and takes(process, signal.SIGINT))
        process.send_signal(signal.SIGINT)
        print("messages:", status_of(process), "end" in text_of(out), "@b: 1" in text_of(out))


def slow():
    """The reader comes back after the signal: it gets all."""
    reader, writer = os.pipe()
    process, errors = attached(CHATTY, stdout=writer)
    os.close(writer)
    wait_until(lambda: is_blocked(process))
    process.send_signal(signal.SIGINT)
    text = b""
    while piece := os.read(reader, 4096):
        text += piece
    print("a slow reader:", status_of(process), b"@b: 1" in text)


def twice():
    """What `end` runs is waited for, until the second signal."""
    with tempfile.TemporaryFile() as out:
        process, _ = attached('interval:s:1 { } end { printf("end\\n"); system("exec sleep 1000"); }', "--unsafe", stdout=out)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "end" in text_of(out) and not takes(process, signal.SIGTERM))
        process.send_signal(signal.SIGTERM)
        print("the second signal:", status_of(process))
        os.killpg(process.pid, signal.SIGKILL)


def ended_by(number, *options, before=lambda: None):
    with tempfile.TemporaryFile() as out:
        process, errors = attached(QUIET, *options, stdout=out, preexec_fn=before)
        process.send_signal(number)
        return status_of(process), "end" in text_of(out), "@b: 1" in text_of(out), "fired" in text_of(errors)


def signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        print(number.name, *ended_by(number, "-v"))
    ignores = lambda number: lambda: signal.signal(number, signal.SIG_IGN)
    print("SIGINT of a job in the background:", *ended_by(signal.SIGINT, "-v", before=ignores(signal.SIGINT)))
    with tempfile.TemporaryFile() as out:
        process, _ = attached(QUIET, "-v", stdout=out, preexec_fn=ignores(signal.SIGHUP))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        with open(f"/proc/{process.pid}/status") as file:
            ignored = next(line for line in file if line.startswith("SigIgn"))
        print("SIGHUP under nohup is ignored:", bool(int(ignored.split()[1], 16) & 1), status_of(process))
    with tempfile.TemporaryFile() as out:
        process, _ = attached("interval:ms:20 { printf(\"tick\\n\"); }", stdout=out)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        before = len(text_of(out))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(text_of(out)) > before)
        process.send_signal(signal.SIGINT)
        print("stopped and continued:", status_of(process))


def stubborn():
    def run(name, command, when_ready):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            script = QUIET + " tracepoint:syscalls:sys_enter_getppid /pid == cpid/ { exit(); }"
            process = start(script, "-v", "-c", command, stdout=out, stderr=errors)
            when_ready(process)
            status = status_of(process)
            said = "the command of -c runs on" if "the command of -c runs on" in text_of(errors) else ""
            print(f"{name}:", status, "@b: 1" in text_of(out), "fired" in text_of(errors), said)
            os.killpg(process.pid, signal.SIGKILL)

    ignore = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.getppid(); time.sleep(1000)"
    run("a command that ignores SIGTERM", f"python3 -c '{ignore}'", lambda process: None)
    def has_stopped(process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
            stats = [pathlib.Path(f"/proc/{child}/stat").read_text() for child in children.read().split()]
        return any("(python3) T" in stat for stat in stats)
    def end_once_stopped(process):
        wait_until(lambda: has_stopped(process))
        process.send_signal(signal.SIGINT)
    run("a stopped command", "python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'", end_once_stopped)


def thread():
    is_over = threading.Event()
    other = threading.Thread(target=is_over.wait)
    other.start()
    done = subprocess.run([ESPY, "-p", str(other.native_id), "-e", QUIET], capture_output=True, text=True, timeout=LIMIT)
    is_over.set()
    wanted = f"{other.native_id} is a thread, not a process\n  hint: it belongs to process {os.getpid()}"
    print("-p of a thread:", done.returncode, wanted in done.stderr)


def others():
    def run(name, script, *options, **streams):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = start(script, "-v", *options, **{"stdout": out, "stderr": errors, **streams})
            status = status_of(process)
            said = [line for line in text_of(errors).splitlines() if line.startswith("espy:")]
            print(f"{name}:", status, "@b: 1" in text_of(out), "fired" in text_of(errors), *said)

    run("exit(3)", QUIET + " interval:ms:50 { exit(3); }")
    run("-c", QUIET, "-c", "true")
    with tempfile.NamedTemporaryFile("w", delete=False) as garbage:
        garbage.write("garbage")
    os.chmod(garbage.name, 0o755)
    run("-c that cannot run", QUIET, "-c", garbage.name)
    os.unlink(garbage.name)
    watched = subprocess.Popen(["sleep", "0.3"])
    run("-p", QUIET, "-p", str(watched.pid))
    watched.wait()
    run("a full disk", QUIET + " interval:ms:50 { printf(\"x\\n\"); }", "-o", "/dev/full")
    run("a full disk at the end", QUIET + " interval:ms:50 { exit(); }", "-o", "/dev/full")
    reader, writer = os.pipe()
    os.close(reader)
    run("a closed pipe", QUIET + " interval:ms:50 { printf(\"x\\n\"); }", stdout=writer)
    ignore = lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    run("a closed pipe, SIGPIPE ignored", QUIET + " interval:ms:50 { printf(\"x\\n\"); }", stdout=writer,
        preexec_fn=ignore, restore_signals=False)
    run("no stdin", QUIET + " interval:ms:50 { exit(); }", preexec_fn=lambda: os.close(0))
    run("no stdout", QUIET + " interval:ms:50 { exit(); }", preexec_fn=lambda: os.close(1))
    run("no stderr", QUIET + " interval:ms:50 { exit(); }", preexec_fn=lambda: os.close(2))


def is_of_format(form, text):
    """Whether the file of -o is whole."""
    if form == "json":
        return all(json.loads(line) for line in text.splitlines())
    if form == "trace":
        return json.loads(text) == []
    if form == "flame":
        return bool(xml.dom.minidom.parseString(text))
    return True


def formats():
    """In each format, with a file of -o: maps, loss report, `end` and status are there however the run ends."""
    ways = {"SIGTERM": [], "exit(5)": [], "-c": ["-c", "true"], "-c and SIGTERM": ["-c", "sleep 1000"], "-p": ["-p", "PID"],
            "-p and SIGTERM": ["-p", str(os.getpid())], "--follow": ["--follow", "-c", "sh -c 'true; true'"]}
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/out"
        for form in ("text", "json", "trace", "folded", "flame"):
            problems = []
            for way, options in ways.items():
                watched = subprocess.Popen(["sleep", "0.3"])
                options = [str(watched.pid) if option == "PID" else option for option in options]
                script = QUIET + (" interval:ms:20 { exit(5); }" if way == "exit(5)" else "")
                errors = tempfile.TemporaryFile()
                process = start(script, "-v", "-f", form, "-o", path, *options, stdout=subprocess.DEVNULL, stderr=errors)
                said = lambda: text_of(errors) + (pathlib.Path(path).read_text() if os.path.exists(path) else "")
                if way.endswith("SIGTERM"):
                    wait_until(lambda: "Attached" in said() or "attached_probes" in said() or process.poll() is not None)
                    process.send_signal(signal.SIGTERM)
                status = status_of(process)
                wanted = ('"@b": 1', '"ledger"', "end\\n") if form == "json" else ("@b: 1", "fired", "end\n")
                if status != (5 if way == "exit(5)" else 0) or not all(word in said() for word in wanted):
                    problems.append(f"{way}: {status}")
                elif not is_of_format(form, pathlib.Path(path).read_text()):
                    problems.append(f"{way}: broken")
                os.unlink(path)
                watched.kill()
                watched.wait()
            print(f"{form}: {problems}")


{"stalled": stalled, "slow": slow, "twice": twice, "signals": signals, "others": others, "stubborn": stubborn,
 "thread": thread, "formats": formats}[sys.argv[1]]()
