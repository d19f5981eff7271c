#!/usr/bin/env python3
"""Scripts on events that are recorded at the same time: what `espy -i` prints is what the live run has printed.

Usage: replays.py same | recorded | killed COUNT [ARGUMENT...] | damaged
"""

import os
import random
import signal
import subprocess
import sys
import time

ESPY = os.environ["ESPY"]
SCRATCH = os.environ["SCRATCH"]
FACTOR = float(os.environ.get("TIME_FACTOR", "1"))
AT_A_TIME = 10

# What the traced process does, once it is continued: the same each time.
WORK = """kill -STOP $$
for i in 1 2 3 4 5; do read -r line < /etc/passwd; done
while read -r word rest; do :; done < /proc/self/status
for name in /etc/hosts /nonexistent /etc/a-rather-long-name-that-is-not-there; do : < $name; done 2>/dev/null
cd /usr/bin; [ -x sh ]; [ -d /tmp ]; echo text > /dev/null; umask 022; ulimit -n > /dev/null"""

ENTER, EXIT = "t:syscalls:sys_enter_", "t:syscalls:sys_exit_"
DUP = "dup2" if os.path.exists("/sys/kernel/tracing/events/syscalls/sys_enter_dup2") else "dup3"
OPEN, READ = ENTER + "openat", ENTER + "read"


def scripts():
    yield from (f"t:syscalls:sys_{way}_{name} {{ @ = count(); }}"
                for way in ("enter", "exit") for name in ("openat", "read", "newfstatat", "close", "lseek", "rt_sigprocmask", DUP, "fcntl", "ioctl", "chdir"))
    yield from (f"t:syscalls:{glob} {{ @[{key}] = count(); }}"
                for glob in ("*", "sys_enter_*", "sys_exit_*", "sys_enter_r*")
                for key in ("probe", "func", "comm", "pid, tid", "uid, gid, comm", "probe, cgroup"))
    yield from (f"{READ} {{ @ = {call}; }}"
                for call in ("sum(args.count)", "avg(args.count)", "min(args.count)", "max(args.count)", "stats(args.count)",
                             "hist(args.count)", "lhist(args.count, 0, 1000, 100)"))
    yield from (f"{EXIT}read {{ @[args.ret > 0] = {call}; }}"
                for call in ("sum(args.ret)", "avg(args.ret)", "min(args.ret)", "max(args.ret)", "stats(args.ret)",
                             "hist(args.ret)", "lhist(args.ret, 0, 1000, 100)", "count()"))
    yield from (f"{OPEN} {{ {body} }}" for body in (
        'printf("%s\\n", str(args.filename));',
        'printf("%s %d %x %o\\n", str(args.filename), args.dfd, args.flags, args.mode);',
        'printf("%20s|%-20s|%.5s\\n", comm, str(args.filename), str(args.filename));',
        'printf("%p %s\\n", args.filename, str(args.filename, 8));',
        "print((pid, comm, str(args.filename)));",
        "print(args.flags); print(args.dfd);",
        '@[str(args.filename)] = count();',
        '@[str(args.filename, 6)] = count();',
        '@[str(args.filename), args.flags] = sum(args.mode);',
        'if (str(args.filename) == "/etc/passwd") { @passwd++; } else { @other++; }',
        'if (strncmp(str(args.filename), "/etc", 4) == 0) { @etc = count(); }',
        'if (strcontains(str(args.filename), "long")) { printf("long: %s\\n", str(args.filename)); }',
        '$n = strlen(str(args.filename)); @lengths = hist($n);',
        '@last = str(args.filename);',
        '@opens[tid] += 1; printf("%d\\n", @opens[tid]);',
        '@x[args.flags & 3] = count(); @y[(args.flags & 0x40) != 0 ? "creates" : "opens"] = count();',
        '$i = 0; while ($i < 3) { @loops = count(); $i++; }',
        'for $i : 0..4 { @squares[$i] = sum($i * $i); }',
        'unroll(3) { @unrolled = count(); }',
        '@t = (str(args.filename), args.flags); print(@t.0);',
        '@many[str(args.filename)]++; if (@many[str(args.filename)] == 2) { printf("again: %s\\n", str(args.filename)); }',
        'printf("%d %d %d %d\\n", (int8)args.flags, (uint16)args.flags, -args.dfd, args.flags / 3);',
        'if (args.flags == 0) { return; } @after = count();',
        '@seen[str(args.filename)] = 1; if (has_key(@seen, "/etc/hosts")) { printf("hosts\\n"); exit(); }',
    ))
    yield from (
        f"{READ} /args.fd < 3/ {{ @ = count(); }}",
        f'{READ} /comm == "bash" && args.count >= 128/ {{ @[args.fd] = sum(args.count); }}',
        f"{READ} {{ @start[tid] = args.count; }} {EXIT}read /@start[tid]/ {{ @part = sum(args.ret * 100 / @start[tid]); delete(@start, tid); }}",
        f"{READ} {{ @in = count(); }} {EXIT}read {{ @out = count(); }} end {{ print(@in); print(@out); }}",
        f"{OPEN} {{ @name[tid] = str(args.filename); }} {EXIT}openat {{ printf(\"%s = %d\\n\", @name[tid], args.ret); delete(@name, tid); }}",
        f"{READ} {{ @size[tid] = args.count; }} {EXIT}read /@size[tid]/ {{ @whole = sum(@size[tid]); delete(@size, tid); }} end {{ clear(@size); }}",
        f"{OPEN} {{ @b[tid] = nsecs; }} {EXIT}openat /@b[tid]/ {{ @slow = lhist((nsecs - @b[tid]) / 1000000000, 0, 10, 5); delete(@b, tid); }}",
        f"begin {{ @a[\"x\"] = 1; printf(\"begin\\n\"); }} {OPEN} {{ @a[comm] += 2; }} end {{ print(@a, 1); zero(@a); }}",
        f"t:syscalls:sys_enter_openat, t:syscalls:sys_enter_newfstatat {{ @[func] = count(); }}",
        f"{ENTER}newfstatat {{ printf(\"%s %d\\n\", str(args.filename), args.flag); }}",
        f"{ENTER}write {{ printf(\"%s\", str(args.buf, args.count)); @ = sum(args.count); }}",
        f"{ENTER}close {{ @fds[args.fd] = count(); }} {EXIT}close {{ @errors[args.ret] = count(); }}",
        f"fn twice($x : uint64) : uint64 {{ return $x * 2; }} {READ} {{ @ = sum(twice(args.count)); }}",
        f"macro big(n) {{ n > 1000 }} {READ} {{ if (big(args.count)) {{ @big = count(); }} }}",
        f"let @m = hash(100); {OPEN} {{ @m[str(args.filename)] = 1; }}",
        f"config = {{ max_strlen = 16 }} {OPEN} {{ printf(\"%s\\n\", str(args.filename)); }}",
        f"{ENTER}exit_group {{ printf(\"%s ends: %d\\n\", comm, args.error_code); }}",
        f"t:sched:sched_process_exit {{ printf(\"%s %d\\n\", args.comm, args.prio); @[probe] = count(); }}",
        f"t:sched:sched_process_exit {{ printf(\"%d\\n\", args.pid == pid); }}",
    )


def wait_for(condition, what):
    end = time.monotonic() + 60 * FACTOR
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"replays: waited for {what} in vain")
        time.sleep(0.01)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def is_attached(path):
    with open(path, encoding="utf-8") as text:
        return "ttached" in text.read()


class Run:
    """espy, live, on a process that has not begun its work."""

    def __init__(self, name, arguments):
        self.out, self.err = f"{SCRATCH}/{name}.out", f"{SCRATCH}/{name}.err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([ESPY, *arguments], stdout=out, stderr=err)

    def wait_until_attached(self):
        wait_for(lambda: self.process.poll() is not None or is_attached(self.err) or is_attached(self.out), "espy to attach")
        if self.process.poll() is not None:
            sys.exit(f"replays: espy failed: {open(self.err, encoding='utf-8').read()}")

    def output(self):
        if self.process.wait(60 * FACTOR) != 0:
            sys.exit(f"replays: espy failed: {open(self.err, encoding='utf-8').read()}")
        with open(self.out, "rb") as out:
            return out.read()


def replayed(recording, script, arguments=()):
    return subprocess.run([ESPY, "-i", recording, *arguments, "-e", script], capture_output=True, check=False, timeout=60 * FACTOR)


def compare(number, batch):
    """Runs the scripts and a recorder beside each other on one process. Returns how many differ when replayed."""
    target = subprocess.Popen(["bash", "-c", WORK], stdout=subprocess.DEVNULL)
    wait_for(lambda: state_of(target.pid) == "T", "the process to stop")
    recording = f"{SCRATCH}/{number}.rec"
    pid = ["-p", str(target.pid)]
    recorder = Run(f"{number}.record", ["record", *pid, "-o", recording, "t:syscalls:*", "t:sched:sched_process_exit"])
    runs = [Run(f"{number}.{i}", [*pid, "-e", script]) for i, script in enumerate(batch)]
    for run in (recorder, *runs):
        run.wait_until_attached()
    os.kill(target.pid, signal.SIGCONT)
    target.wait(60 * FACTOR)
    recorder.output()
    failed = 0
    for run, script in zip(runs, batch):
        live, again = run.output(), replayed(recording, script)
        if again.returncode != 0 or again.stdout != live or not live.strip():
            failed += 1
            print(f"differs: {script}\n--- live\n{live.decode()}\n--- replayed\n{again.stdout.decode()}\n{again.stderr.decode()}")
    return failed


def same():
    every = list(scripts())
    failed = sum(compare(i, every[i : i + AT_A_TIME]) for i in range(0, len(every), AT_A_TIME))
    print(f"{'100 scripts or more' if len(every) >= 100 else len(every)}, {failed} differ")


# Besides those of same(): for runs that record what they show.
TIMED = (
    f'interval:ms:20 {{ printf("tick %d\\n", elapsed / 1000000); print(@n); }} {OPEN} {{ @n = count(); printf("%d %s\\n", nsecs, str(args.filename)); }}',
    f"profile:hz:50 {{ @ticks[cpu] = count(); }} {READ} {{ @[args.fd] = hist(args.count); }} interval:ms:50 {{ print(@); clear(@); }}",
    f'{OPEN} {{ printf("%s %s\\n", strftime("%H:%M:%S.%f", nsecs), ustack); }}',
    f"{OPEN} {{ @[kstack, comm] = count(); }}",
    f'{READ} {{ @ = tseries(args.count, 1s, 5, "sum"); }}',
    f'{OPEN} {{ printf("%s\\n", str(args.filename)); if (strcontains(str(args.filename), "hosts")) {{ exit(); }} }} end {{ printf("over\\n"); }}',
)


def recorded():
    """Scripts with --record, whose output -i gives again."""
    every = [*list(scripts())[::7], *TIMED]
    failed = 0
    for number, script in enumerate(every):
        target = subprocess.Popen(["bash", "-c", WORK], stdout=subprocess.DEVNULL)
        wait_for(lambda: state_of(target.pid) == "T", "the process to stop")
        recording, form = f"{SCRATCH}/r{number}", ["-f", "json"] if number % 5 == 4 else []
        run = Run(f"r{number}", [*form, "--record", recording, "-p", str(target.pid), "-e", script])
        run.wait_until_attached()
        os.kill(target.pid, signal.SIGCONT)
        live, again = run.output(), replayed(recording, script, form)
        target.wait(60 * FACTOR)
        if again.returncode != 0 or again.stdout != live or not live.strip():
            failed += 1
            print(f"differs: {script}\n--- live\n{live.decode()}\n--- replayed\n{again.stdout.decode()}\n{again.stderr.decode()}")
    print(f"{'ten scripts or more' if len(every) >= 10 else len(every)}, {failed} differ")


def killed(times, arguments):
    """A recording that is killed at a random moment is readable. `arguments`: more of the recorder."""
    seen = 0
    chance = random.Random(1)
    for i in range(times):
        recording = f"{SCRATCH}/killed{i}.rec"
        load = subprocess.Popen(["bash", "-c", "while :; do read -r line < /etc/passwd; done"])
        run = Run(f"killed{i}", ["record", "-p", str(load.pid), "-o", recording, *arguments, OPEN])
        run.wait_until_attached()
        time.sleep(chance.uniform(0, 1.5))
        run.process.kill()
        run.process.wait()
        load.kill()
        load.wait()
        again = replayed(recording, OPEN + " { @ = count(); }")
        if again.returncode != 0 or b"was cut off" not in again.stderr:
            sys.exit(f"replays: after kill -9: {again.stdout} {again.stderr}")
        seen += b"@: " in again.stdout
    print(f"readable: {times}, with events: {'some' if seen else 'none'}")


def damaged():
    """Any byte of a recording may be wrong: there is a sentence, or the other events."""
    recording, copy = f"{SCRATCH}/whole.rec", f"{SCRATCH}/damaged.rec"
    subprocess.run([ESPY, "record", "-q", "-o", recording, "-c", "cat /etc/passwd", OPEN], check=True, stdout=subprocess.DEVNULL)
    with open(recording, "rb") as whole:
        content = whole.read()
    chance = random.Random(2)
    for at in chance.sample(range(len(content)), 60):
        with open(copy, "wb") as out:
            out.write(content[:at] + bytes([content[at] ^ chance.randint(1, 255)]) + content[at + 1 :])
        again = replayed(copy, OPEN + " { @ = count(); }")
        if again.returncode not in (0, 1) or (again.returncode == 1 and not again.stderr.startswith(b"espy: ")):
            sys.exit(f"replays: byte {at}: {again.returncode} {again.stderr}")
        if again.returncode == 0 and not again.stderr.count(b"WARNING") and at >= 16:
            sys.exit(f"replays: byte {at} is wrong, without a word")
    print("damaged: explained")


if __name__ == "__main__":
    {"same": same, "recorded": recorded, "killed": lambda: killed(int(sys.argv[2]), sys.argv[3:]), "damaged": damaged}[sys.argv[1]]()
