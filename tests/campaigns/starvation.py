"""Runs of espy that lack something: memory, descriptors, files, capabilities, a place to write to.

A starved run ends by itself, with a status and a sentence. What it shows with status 0 is complete.
"""

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

MB = 1 << 20
CALLS = 200
DD = f"dd if=/dev/zero of=/dev/null bs=1 count={CALLS} status=none"
OF_DD = "tracepoint:syscalls:sys_enter_write /pid == cpid/"

# Scripts with known work: arguments, and what standard output has to be if nothing is missing.
# write(2) is in a function without an exported name since glibc 2.41.
STACK = rf"\n*@\[\s*\S*(write\+\d+|\[libc\.so\.6\]\+0x[0-9a-f]+)\S*\s*\]: {CALLS}\n\n*"
SCRIPTS = {
    "hello": (["-e", 'begin { printf("hello\\n"); exit(); }'], r"hello\n\n*"),
    "keys": (["-e", "begin { for ($i : 0..1000) { @[$i] = $i; } exit(); }"],
             r"\n*" + "".join(rf"@\[{i}\]: {i}\n" for i in range(1000)) + r"\n*"),
    "count": (["-c", DD, "-e", OF_DD + " { @ = count(); @by[comm] = count(); }"],
              rf"\n*@: {CALLS}\n@by\[dd\]: {CALLS}\n\n*"),
    "lines": (["-c", DD, "-e", OF_DD + ' { printf("%s writes %d\\n", comm, args.count); }'],
              rf"(dd writes 1\n){{{CALLS}}}\n*"),
    "json": (["-f", "json", "-c", DD, "-e", OF_DD + ' { printf("%s\\n", comm); @ = count(); }'],
             rf'({{"type": "attached_probes".*\n)?({{"type": "printf", "data": "dd\\n"}}\n){{{CALLS}}}'
             rf'{{"type": "map", "data": {{"@": {CALLS}}}}}\n'),
    "histogram": (["-c", DD, "-e", OF_DD + " { @[comm] = lhist(args.count, 0, 1000, 1); }"],
                  rf"\n*@\[dd\]:\s*\n(?s:.*)\[1, 2\) +{CALLS} (?s:.*)"),
    "stack": (["-c", DD, "-e", OF_DD + " { @[ustack(1)] = count(); }"], STACK),
    "list": (["-l", "tracepoint:syscalls:sys_enter_write*"],
             r"tracepoint:syscalls:sys_enter_write\ntracepoint:syscalls:sys_enter_writev\n"),
    "system": (["--unsafe", "-e", 'begin { system("echo one"); system("echo two"); exit(); }'], r"one\ntwo\n\n*"),
}

ALARMS = ("terminate called", "internal error", "bug in espy", "Assertion", "Segmentation")
SENTENCE = re.compile(r"^(espy: |\S+:\d+:\d+: error: |error: |ERROR: |.*WARNING: )\S", re.M)


class Run:
    """One run: what it was called with, and how it ended."""

    def __init__(self, name, script, command, status, output, errors, seconds):
        self.name, self.script, self.command, self.status = name, script, command, status
        self.output, self.errors, self.seconds = output, errors, seconds

    def sentence(self):
        """The last line that says what is wrong."""
        lines = [line for line in self.errors.splitlines() if SENTENCE.match(line)]
        return lines[-1] if lines else ""

    def is_complete(self, output=None):
        return re.fullmatch(SCRIPTS[self.script][1], self.output if output is None else output) is not None

    def problem(self, may_be_silent=False):
        """What is wrong with how it ended, or ""."""
        if self.status is None:
            return "hangs"
        for alarm in ALARMS:
            if alarm in self.errors:
                return f"says: {alarm}"
        if self.status < 0:
            return f"is killed by {signal.Signals(-self.status).name}"
        if self.status == 0 and not self.is_complete() and not re.search("WARNING|Lost", self.errors):
            return "has status 0, and incomplete output"
        if self.status != 0 and not self.sentence() and not may_be_silent:
            return f"has status {self.status}, and no sentence"
        return ""

    def text(self):
        return (f"{self.problem()}\n{self.name}: {' '.join(map(repr, self.command))}\nstatus {self.status}, {self.seconds:.1f} s\n"
                f"--- stdout\n{self.output[-4000:]}\n--- stderr\n{self.errors[-4000:]}\n")


def run(espy, name, script, prefix=(), limits=(), environment=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, closed=(), more=(), timeout=30):
    """Runs a script. `prefix`: a command that executes espy; `limits`: (resource, bytes); `closed`: descriptors."""
    command = [*prefix, espy, *more, *SCRIPTS[script][0]]

    def prepare():
        for which, limit in limits:
            resource.setrlimit(which, (limit, resource.getrlimit(which)[1]))
        for descriptor in closed:
            os.close(descriptor)

    began = time.monotonic()
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, preexec_fn=prepare, env=environment,
                               start_new_session=True)
    try:
        output, errors = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        status = None
    decode = lambda text: (text or b"").decode(errors="replace")
    return Run(name, script, command, status, decode(output), decode(errors), time.monotonic() - began)


# ---- What may be missing. Each returns a Run. ----

def without_capabilities(*names):
    """A prefix that drops capabilities; none of them comes back by exec."""
    drop = ",".join(f"-{name}" for name in names)
    return ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}"]


def little_memory(espy, script, megabytes):
    return run(espy, f"memory-{megabytes}", script, limits=[(resource.RLIMIT_AS, megabytes * MB)])


def few_descriptors(espy, script, count):
    prefix = ["bash", "-c", f'ulimit -n {count}; exec "$@"', "bash"]
    return run(espy, f"descriptors-{count}", script, prefix=[*without_capabilities("sys_resource"), *prefix])


def no_locked_memory(espy, script):
    return run(espy, "memlock", script, prefix=without_capabilities("sys_resource", "ipc_lock"),
               limits=[(resource.RLIMIT_MEMLOCK, 0)])


def no_processes(espy, script):
    # dac_override: the tree may be below a home that only its owner can read.
    wanted = ",".join(f"+{name}" for name in ("bpf", "perfmon", "sys_ptrace", "dac_override"))
    prefix = ["setpriv", "--reuid=64999", "--regid=64999", "--clear-groups", f"--inh-caps={wanted}",
              f"--ambient-caps={wanted}", "bash", "-c", 'ulimit -u 0; exec "$@"', "bash"]
    return run(espy, "processes", script, prefix=prefix)


def small_stack(espy, script, kilobytes):
    """A soft limit, which any process may raise."""
    return run(espy, f"stack-{kilobytes}k", script, limits=[(resource.RLIMIT_STACK, kilobytes << 10)])


def no_more_stack(espy, script, kilobytes):
    prefix = ["bash", "-c", f'ulimit -s {kilobytes}; exec "$@"', "bash"]
    return run(espy, f"no-more-stack-{kilobytes}k", script, prefix=[*without_capabilities("sys_resource"), *prefix])


def full_output(espy, script, more=()):
    with open("/dev/full", "wb") as full:
        return run(espy, "stdout-full", script, stdout=full, more=more)


def full_file(espy, script, more=()):
    return run(espy, "file-full", script, more=["-o", "/dev/full", *more])


def full_disk(espy, script):
    """-o to a file system with room for one page."""
    shell = 'd=$(mktemp -d); mount -t tmpfs -o size=4k none "$d"; cd "$d"; head -c 4000 /dev/zero > rest; exec "$@"'
    return run(espy, "disk-full", script, prefix=["unshare", "-m", "sh", "-c", shell, "sh"], more=["-o", "out"])


def closed_descriptors(espy, script, which):
    return run(espy, "closed-" + "".join(map(str, which)), script, closed=which)


def unread_output(espy, script):
    """A reader that comes late gets everything."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen([espy, *SCRIPTS[script][0]], stdin=subprocess.DEVNULL, stdout=write_end,
                               stderr=subprocess.PIPE, start_new_session=True)
    os.close(write_end)
    select.select([process.stderr], [], [], 10)  # "Attached", or an error
    output = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([read_end], [], [], 1)[0]:
            continue
        piece = os.read(read_end, 512)
        if not piece:
            break
        output += piece
    os.close(read_end)
    try:
        errors = process.communicate(timeout=10)[1]
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        errors, status = process.communicate()[1], None
    return Run("unread", script, [espy, *SCRIPTS[script][0]], status, output.decode(errors="replace"),
               errors.decode(errors="replace"), 0)


# What is hidden from espy, as commands in a mount namespace of its own.
HIDDEN = {
    "tracefs": "umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; mount -t tmpfs none /sys/kernel/debug; "
               "mount -t tmpfs -o ro none /sys/kernel/tracing",
    "btf": "mount -t tmpfs none /sys/kernel/btf",
    "kallsyms": "mount --bind /dev/null /proc/kallsyms",
    "proc": "umount -l /proc; mount -t tmpfs none /proc",
    "bpffs": "umount -l /sys/fs/bpf; mount -t tmpfs -o ro none /sys/fs/bpf",
    "sys": "mount -t tmpfs none /sys",
    "cpus": "mount -t tmpfs none /sys/devices/system/cpu",
    # espy may be below /tmp: its file stays where it is.
    "tmp": 'exec 3<"$1"; mount -t tmpfs none /tmp; case $1 in /tmp/*) mkdir -p "${1%/*}"; : >"$1"; '
           'mount -c --bind /proc/self/fd/3 "$1";; esac; exec 3<&-; mount -o remount,ro /tmp',
    "passwd": "mount --bind /dev/null /etc/passwd",
    "proc-sys": "mount -t tmpfs none /proc/sys",
}


def hidden(espy, script, what):
    return run(espy, f"hidden-{what}", script, prefix=["unshare", "-m", "sh", "-c", f'{HIDDEN[what]} ; exec "$@"', "sh"])


ENVIRONMENTS = {
    "empty": {},
    "no-home": {"PATH": os.environ.get("PATH", "")},
    "no-tmpdir": {"PATH": os.environ.get("PATH", ""), "TMPDIR": "/nonexistent", "HOME": "/nonexistent"},
    "odd": {"PATH": os.environ.get("PATH", ""), "TMPDIR": "\xff\n", "HOME": "", "COLUMNS": "-1", "TERM": "\x1b", "LANG": "xx"},
}


def environment(espy, script, which):
    return run(espy, f"environment-{which}", script, environment=ENVIRONMENTS[which])


CAPABILITIES = ("sys_admin", "bpf", "perfmon", "sys_resource", "sys_ptrace", "dac_override", "dac_read_search",
                "syslog", "net_admin", "ipc_lock", "kill")


def missing_capabilities(espy, script, names):
    return run(espy, "without-" + "+".join(names), script, prefix=without_capabilities(*names))


def failing_calls(starved_espy, script, kind, first, count):
    env = {**os.environ, "FAIL": kind, "FAIL_AT": str(first)}
    if count:
        env["FAIL_COUNT"] = str(count)
    return run(starved_espy, f"{kind}-{first}-{count or 'all'}", script, environment=env)


def can_run():
    """Why starved runs cannot run here, or ""."""
    if os.geteuid() != 0:
        return "needs root"
    for tool in ("setpriv", "unshare", "mount", "dd"):
        if shutil.which(tool) is None:
            return f"needs {tool}"
    return ""
