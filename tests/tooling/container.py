#!/usr/bin/env python3
"""container.py ESPY: espy as in a container, without a container engine: nothing but the binary, /proc, /sys and
what docs/reference/privileges.md mounts, with the capabilities that it adds. What it says where one of them is missing stands in
that page. Status 77 where this process may not make such a container, and
without espy."""

import ctypes
import os
import pathlib
import platform
import struct
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/privileges.md"
DOCUMENTED = {"BPF": 39, "PERFMON": 38, "SYSLOG": 34, "SYS_PTRACE": 19}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_CAPBSET_DROP = 22, 2, 24
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
libc = ctypes.CDLL(None, use_errno=True)


def forbid_bpf():
    """Filters bpf(2) as the default filter of container engines does: it fails with EPERM."""
    load, equal, answer, eperm = 0x20, 0x15, 0x06, 0x00050001
    filters = [(load, 0, 0, 0), (equal, 0, 1, BPF_SYSCALL[platform.machine()]), (answer, 0, 0, eperm),
               (answer, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filters), ctypes.addressof(code)))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
        sys.exit("prctl(PR_SET_SECCOMP): " + os.strerror(ctypes.get_errno()))


def skip(reason):
    print(f"container.py:1: Skipped\n{reason}")
    sys.exit(77)


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def inside(root, lacks, arguments):
    """In a mount namespace of its own: becomes espy in the container."""
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("-t", "sysfs", "-o", "ro", "sysfs", f"{root}/sys")
    if "tracefs" not in lacks:
        mount("--bind", "/sys/kernel/tracing", f"{root}/sys/kernel/tracing")
    if "seccomp" in lacks:
        forbid_bpf()
    os.chroot(root)
    os.chdir("/")
    kept = [number for name, number in DOCUMENTED.items() if name not in lacks]
    for capability in range(64):
        if capability not in kept:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.execv("/espy", ["espy", *arguments])


def run(espy, lacks, *arguments):
    """What espy prints in a container without what is in `lacks`."""
    namespaces = ["-p", "--fork"] if "pid" in lacks else []
    with tempfile.TemporaryDirectory() as root:
        for name in ("proc", "sys"):
            os.mkdir(f"{root}/{name}")
        subprocess.run(["cp", espy, f"{root}/espy"], check=True)
        command = ["unshare", "-m", *namespaces, sys.executable, __file__, "--inside", root, ",".join(lacks), *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        return done.stdout


def main():
    espy = os.path.realpath(sys.argv[1])
    if not os.access(espy, os.X_OK):
        skip("espy is not built")
    may_mount = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    if os.geteuid() != 0 or may_mount.returncode != 0:
        skip("this process may not make namespaces and mount in them")
    if subprocess.run(["mountpoint", "-q", "/sys/kernel/tracing"], check=False).returncode != 0:
        mount("-t", "tracefs", "tracefs", "/sys/kernel/tracing")
    page = PAGE.read_text()
    problems = []

    def check(wanted, unwanted, lacks, *arguments):
        said = run(espy, lacks, *arguments)
        if wanted not in said or (unwanted and unwanted in said):
            problems.append(f"without {lacks or 'nothing'}: wanted `{wanted}`, got:\n{said}")

    def check_sentence(sentence, *rest):
        if sentence not in page:
            problems.append(f"docs/reference/privileges.md does not have `{sentence}`")
        check(sentence, "", *rest)

    opens = ["-e", "tracepoint:sched:sched_switch { printf(\"at %s\\n\", args.prev_comm); exit(); }"]
    stacks = ["-e", "rawtracepoint:sched_switch { @[kstack(9)] = count(); exit(); }"]
    own = str(os.getpid())  # of user 0, and outside of the container
    user = ["-p", own, "-e", f"begin {{ printf(\"attached\\n\"); exit(); }} uprobe:/proc/{own}/root/bin/bash:main {{ }}"]
    check("at ", "WARNING", [], *opens)
    check("schedule+", "CAP_SYSLOG", [], *stacks)
    check("attached", "WARNING", [], *user)
    check_sentence("tracefs is not mounted at /sys/kernel/tracing", ["tracefs"], *opens)
    check_sentence("a seccomp filter, of a container for example, has to allow bpf(2)", ["seccomp"], *opens)
    check_sentence("tracing needs CAP_BPF and CAP_PERFMON, which this process lacks", ["BPF", "PERFMON"], *opens)
    check_sentence("CAP_SYS_PTRACE", ["SYS_PTRACE"], *user)
    check("--pid=host", "", ["pid"], "-p", "4000000", "-e", "begin { }")
    rootless = subprocess.run(["unshare", "-Ur", espy, "-e", "begin { }"], capture_output=True, text=True, check=False)
    is_made = not rootless.stderr.startswith("unshare:")  # some machines allow no user namespaces
    if is_made and "needs CAP_BPF and CAP_PERFMON in the first user namespace" not in rootless.stderr:
        problems.append(f"in another user namespace: {rootless.stdout}{rootless.stderr}")
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2], sys.argv[3].split(","), sys.argv[4:])
    main()
