#!/usr/bin/env python3
"""namespaces.py ESPY [CASE...]: processes in pid namespaces below that of espy, numbers of processes that are given
again, and espy in a time namespace. Status 77 where that cannot be tried."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import world as w
from world import Traced, build, check, count_of, said, start

CALLS = 30
SCRIPT = ("uprobe:./numbered:work { @n = count(); @by[pid, tid] = count(); } "
          "tracepoint:syscalls:sys_enter_getppid { @g[pid] = count(); }")
# In a pid namespace: espy with $OPTIONS traces a process in a namespace below it.
INNER = r"""
rm -f go output; mkfifo go
unshare -pf ./numbered "$CALLS" <go >/dev/null &
exec 3>go
pid=
until [ -n "$pid" ]; do
  for each in /proc/[0-9]*; do [ "$(cat $each/comm 2>/dev/null)" = numbered ] && pid=${each#/proc/}; done
done
"$ESPY" --strict -B none $OPTIONS -p $pid -e "$SCRIPT" >output 2>&1 &
until grep -q ^Attached output 2>/dev/null; do kill -0 $! || { cat output; exit 1; }; sleep 0.02; done
echo >&3
wait $!
echo "status $?"
echo "numbered $pid"
cat output
"""


def prepare(world):
    build(world, "numbered.c", "-O1")


def can(*options):
    return subprocess.run(["unshare", *options, "true"], capture_output=True).returncode == 0


def below(world):
    """Their ids are those in espy's namespace, which are different for different processes."""
    if not can("-pf", "--mount-proc"):
        return "no pid namespaces"
    for options in ("", "--follow", "--follow-new"):
        done = subprocess.run(["unshare", "-pf", "--mount-proc", "sh", "-c", INNER], cwd=world.directory, text=True,
                              capture_output=True, timeout=w.LONGEST,
                              env={**os.environ, "ESPY": world.espy, "OPTIONS": options, "SCRIPT": SCRIPT, "CALLS": str(CALLS)})
        pid = re.search(r"^numbered (\d+)$", done.stdout, re.M)
        if "output is not exact" in done.stdout and "status 1" in done.stdout:
            continue
        check(pid and "status 0" in done.stdout, done.stdout + done.stderr)
        for line in (f"@n: {CALLS}", f"@by[{pid[1]}, {pid[1]}]: {CALLS}", f"@g[{pid[1]}]: {CALLS}"):
            check(line in done.stdout.splitlines(), f"{options}: no {line} in {done.stdout}{done.stderr}")


def reused(world):
    """Another process gets the number of the one of -p before espy has seen that it ended."""
    last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
    if not last.exists():
        return "the kernel does not let us choose a number"
    for options in ((), ("--follow",)):
        traced = Traced(world, "./numbered", CALLS)
        espy = start(world, "--strict", *options, "-p", traced.pid, "-e",
                     "tracepoint:syscalls:sys_enter_getppid { @n = count(); @by[comm] = count(); }")
        espy.send_signal(signal.SIGSTOP)
        traced.call()
        traced.end()
        is_reused = False
        for _ in range(100):
            last.write_text(str(traced.pid - 1))
            other = Traced(world, "./numbered", 7000)
            is_reused = other.pid == traced.pid
            other.call()
            other.end()
            if is_reused:
                break
        espy.send_signal(signal.SIGCONT)
        espy.wait(timeout=w.LONGEST)
        done = subprocess.CompletedProcess([], espy.returncode, world.path("output").read_text(), "")
        check(not is_reused or count_of(done) == CALLS or espy.returncode == 1, said(world))


def shifted_time(world):
    """Times are those of the kernel, wherever a time namespace has its start."""
    if not can("-f", "-T", "--boottime", "1000"):
        return "no time namespaces"
    uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    for offset in (100000, -int(uptime / 2)):
        def run(*arguments, **more):
            return subprocess.run(["unshare", "-f", "-T", "--boottime", str(offset), "--monotonic", str(offset), world.espy,
                                   "-q", "--strict", *arguments], cwd=world.directory, text=True, capture_output=True,
                                  timeout=w.LONGEST, **more)

        script = """uprobe:./numbered:work { @n = count(); @elapsed = max(elapsed / 1000000000); $n = nsecs; $m = nsecs(monotonic);
                    @boot = strftime("%s", $n); @monotonic = strftime("%s", $m); @t = tseries(1, 1h, 2); }"""
        before = int(time.time())
        command = f"sh -c 'echo | ./numbered {CALLS}'"
        done = run("-c", command, "-e", script)
        check(count_of(done) == CALLS and count_of(done, "@elapsed") < 60 and done.returncode == 0, done.stdout + done.stderr)
        for name in ("@boot", "@monotonic"):
            check(before <= count_of(done, name) <= time.time() + 1, f"{name} at {before}: {done.stdout}")
        world.path("recording").unlink(missing_ok=True)
        done = run("--record", "recording", "-c", command, "-e", "uprobe:./numbered:work { @n = count(); } interval:ms:10 { @i = count(); }")
        check(count_of(done, "@i") < 6000 and done.returncode == 0, done.stdout + done.stderr)
        done = run("-i", "recording", "--from", "0s", "--to", "100s", "-e", "uprobe:./numbered:work { @n = count(); }")
        check(count_of(done) == CALLS and done.returncode == 0, done.stdout + done.stderr)
        for path in world.directory.glob("ring.*"):
            path.unlink()
        done = run("--last", "10m", "--record", "ring", "-c", command, "-e", "uprobe:./numbered:work { @n = count(); }")
        check(count_of(done) == CALLS, done.stdout + done.stderr)
        done = run("-i", "ring", "-e", "uprobe:./numbered:work { @n = count(); }")
        check(count_of(done) == CALLS and done.returncode == 0, done.stdout + done.stderr)


CASES = [below, reused, shifted_time]

if __name__ == "__main__":
    w.main(CASES, prepare)
