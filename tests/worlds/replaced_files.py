#!/usr/bin/env python3
"""replaced_files.py ESPY [CASE...]: files that are replaced while espy prepares a script, and while it traces them.
Whatever the moment: no program is changed, and the numbers are right, or espy says why not. Status 77 where that
cannot be tried."""

import ctypes
import errno
import os
import pathlib
import platform
import re
import select
import shutil
import subprocess
import sys
import threading
import time
import zipfile

sys.dont_write_bytecode = True
import world as w
from world import Traced, build, check, count_of, end, start

IN_OPEN, EVENT_BYTES = 0x20, 16
libc = ctypes.CDLL(None, use_errno=True)
WHILE_PREPARED = r"(was replaced|was written to|was changed) while the script was prepared"
# Takes the kernel some tenths of a second to load, after the files of probes were read.
LONG = "interval:s:1000 { " + "".join(f"@k[{i}] = count(); " for i in range(1000)) + "}"


class At(threading.Thread):
    """Calls `act` at the Nth opening of a file."""

    def __init__(self, path, count, act):
        super().__init__(daemon=True)
        self.count, self.act, self.has_acted, self.is_over = count, act, False, False
        self.watch = libc.inotify_init1(os.O_CLOEXEC)
        if libc.inotify_add_watch(self.watch, os.fsencode(path), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        self.start()

    def run(self):
        seen = 0
        while not self.is_over:
            if select.select([self.watch], [], [], 0.1)[0]:
                seen += len(os.read(self.watch, 4096)) // EVENT_BYTES
            if seen >= self.count and not self.has_acted:
                try:
                    self.act()
                    self.has_acted = True
                except OSError as error:  # a program that runs cannot be written to
                    check(error.errno == errno.ETXTBSY, str(error))
                    return

    def end(self):
        self.is_over = True
        self.join()
        os.close(self.watch)


def prepare(world):
    if platform.machine() != "x86_64":
        w.skip("the programs are for x86_64")
    for name in ("probed", "other"):
        build(world, f"{name}.s", "-nostdlib", "-static", "-Wl,--build-id=none")
    longest = max(world.path(name).stat().st_size for name in ("probed", "other"))
    for name in ("probed", "other"):
        os.truncate(world.path(name), longest)
    build(world, "calls.c", "-O1", "-g")
    build(world, "calls.c", "-O2", "-g", "-DSTATUS=0", "-falign-functions=64", program="calls2")
    if w.has_header("sys/sdt.h"):
        build(world, "behind.c", "-O1")
        build(world, "behind.c", "-O1", "-DOTHER", program="other_behind")


PROBED, OTHER = 7, 0  # how the programs end


def judge(done, told, what):
    """What a run may be: refused with the reason, or right."""
    said = done.stdout + done.stderr
    if "was written to during the run" in said:  # between espy's last look and the start of the program: see SECURITY.md
        check(done.returncode != 0, f"{what}: said, but status 0\n{said}")
        return
    ended = re.search(r"^target (\d+)$", done.stdout, re.M)
    busy = 126  # the shell's status for a file that is being written to
    ended = int(ended[1]) if ended and int(ended[1]) != busy else None
    check(ended in (None, PROBED, OTHER), f"{what}: the other program was changed\n{said}")
    if re.search(told, said):
        check(done.returncode != 0, f"{what}: said, but status 0\n{said}")
        return
    check(done.returncode == 0, f"{what}: status {done.returncode}\n{said}")
    counts = 1 if ended == PROBED else 0
    check(count_of(done) == counts, f"{what}: {count_of(done)} instead of {counts}\n{said}")


def replaced_at(world, other, replace, script, told, options=(), probed="probed"):
    """Replaces the target at the first, second, ... opening, while a script is prepared that traces it."""
    for opening in range(1, 6):
        world.put(probed)
        at = At(world.target, opening, lambda: replace(other))
        # The command runs what is at the path then.
        command = "sh -c './target; echo target $?'"
        done = world.run("-q", "--strict", *options, "-c", command, "-e", script)
        at.end()
        judge(done, told, f"{replace.__name__} at opening {opening} {' '.join(options)}")


# Or what a file that was written to while its symbols were read has none of.
REPLACED = WHILE_PREPARED + r"|was replaced during the run|was written to during the run|has no function|no probe matches"


def renamed(world):
    """A new file at the path, at each moment of the preparation."""
    script = "uprobe:./target:f { @n = count(); } " + LONG
    for options in ((), ("--no-feature", "uprobe_multi"), ("--budget", "50%")):
        replaced_at(world, "other", world.put, script, REPLACED, options)


def writer(world):
    """A function that gives the same file other content. write(2) sets the time before it copies the bytes, so the time is
    set again after it: what is read in between has the new time and the old bytes, which SECURITY.md leaves out."""
    def write(other):
        world.write(other)
        os.utime(world.target)

    return write


def written(world):
    """Other content of the same file."""
    replaced_at(world, "other", writer(world), "uprobe:./target:f { @n = count(); } " + LONG, REPLACED)


def statements(world):
    """Source lines, results, and arguments by debug information."""
    lines = (w.SOURCES / "calls.c").read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "tick(i)" in text)
    for place in (f"uprobe:./target@calls.c:{line} {{ @n = count(); }}", "uretprobe:./target:tick { @n = count(); }",
                  "uprobe:./target:tick { @n = sum(args.n + 1); }"):
        replaced_at(world, "calls2", world.put, place + LONG, REPLACED, probed="calls")


def flipped(world):
    """A symbolic link that leads to one file and the other in turn."""
    end = threading.Event()

    def flip():
        turn = 0
        while not end.is_set():
            os.symlink(("other", "probed")[turn % 2], world.path("flip.new"))
            os.rename(world.path("flip.new"), world.path("flip"))
            turn += 1
            time.sleep(0.002)

    os.symlink("probed", world.path("flip"))
    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        for _ in range(30):
            done = world.run("-q", "-c", "sh -c './other; echo other $?'", "-e", "uprobe:./flip:f { @n = count(); }")
            check("other 1" not in done.stdout, "flipped: the other program was changed\n" + done.stdout + done.stderr)
            check("other 0" in done.stdout or done.returncode != 0, "flipped: " + done.stdout + done.stderr)
    finally:
        end.set()
        flipping.join()


def semaphore(world):
    """The kernel counts two bytes of a file up, where it has the semaphore of a USDT probe."""
    if not world.path("behind").exists():
        return "no sys/sdt.h"
    script = "usdt:./target:shop:sale /arg1 == 0/ { @n = count(); } " + LONG
    for replace in (world.put, writer(world)):
        replaced_at(world, "other_behind", replace, script, REPLACED, probed="behind")


def operands(world):
    """A path with a newline, and what could be operands."""
    if not world.path("behind").exists():
        return "no sys/sdt.h"
    for name in ("dir\nu", "y\n8@%rsp 8@%rsp 8@%rsp "):
        directory = world.path(name)
        directory.mkdir()
        shutil.copy(world.path("behind"), directory / "u")
        literal = f"./{name}/u".replace("\n", "\\n")
        script = f'usdt:"{literal}":shop:sale {{ printf("%d %d\\n", arg0, arg1); }}'
        done = world.run("-q", "--strict", "-c", "sh -c './*/u'", "-e", script)
        shutil.rmtree(directory)
        check(done.stdout.split("\n")[:5] == [f"{i * 10} {i}" for i in range(5)], repr(name) + done.stdout + done.stderr)


def archive(world):
    """A library in an archive, which is replaced by an archive that has it at another place."""
    def pack(name, library, padding):
        with zipfile.ZipFile(world.path(name), "w", zipfile.ZIP_STORED) as out:
            out.writestr("x", "x" * padding)
            out.write(world.path(library), "lib")

    pack("first.zip", "probed", 10)
    pack("second.zip", "other", 10)
    for opening in range(1, 9):
        world.put("first.zip")
        at = At(world.target, opening, lambda: world.put("second.zip"))
        done = world.run("-q", "--strict", "-c", "true", "-e", "uprobe:./target!/lib:f { @n = count(); } " + LONG)
        at.end()
        is_first = world.target.read_bytes() == world.path("first.zip").read_bytes()
        told = re.search(REPLACED + "|has no function", done.stdout + done.stderr)
        check(is_first or (told and done.returncode != 0),
              f"archive at opening {opening}: {done.stdout}{done.stderr}")


def listed(world):
    """`espy trace` and `espy record` read the file before they write their script."""
    for opening in range(1, 6):
        for command in ("trace", "record"):
            world.put("calls")
            at = At(world.target, opening, lambda: world.put("calls2"))
            more = ("-o", "recording") if command == "record" else ()
            probe = "./target:tick" if command == "trace" else "uprobe:./target:tick"
            done = world.run(command, *more, "-c", "sh -c './target; sleep 0.3'", probe)
            at.end()
            said = done.stdout + done.stderr
            is_first = world.target.read_bytes() == world.path("calls").read_bytes()
            check(is_first or re.search(REPLACED, said), f"{command} at opening {opening}: {said}")


def during(world):
    """Replaced while it is traced: the calls in the new file are not seen, and that is said."""
    script = "uprobe:./target:tick { @n = count(); }"
    for replace, told in ((world.put, "was replaced during the run; calls in the new file are not counted"),
                          (lambda _: None, None)):
        world.put("calls")
        espy = start(world, "--strict", "-e", script)
        Traced(world, world.target, 10, "again").end()
        replace("calls")
        Traced(world, world.target, 10, "again").end()
        done = end(world, espy)
        said = done.stdout + done.stderr
        check(count_of(done) == (10 if told else 20), said)
        check(done.returncode == (1 if told else 0), f"status {done.returncode}: {said}")
        check((told or "") in said and ("during the run" in said) == bool(told), said)
    world.put("calls")
    espy = start(world, "--strict", "-e", script)
    world.write("calls2")
    os.utime(world.target)
    done = end(world, espy)
    check("was written to during the run" in done.stderr + done.stdout and done.returncode == 1, done.stdout + done.stderr)
    world.put("calls")
    espy = start(world, "--strict", "-f", "json", "-e", script)
    world.put("calls")
    done = end(world, espy)
    check(re.search(r'"exact": false.*"changed_files": \["\./target was replaced', done.stdout) is not None, done.stdout)
    # A recording keeps it.
    world.put("calls")
    espy = start(world, "--record", "recording", "-e", script)
    Traced(world, world.target, 10, "again").end()
    world.put("calls2")
    done = end(world, espy)
    replayed = world.run("--strict", "-i", "recording", "-e", script)
    check(count_of(replayed) == 10 and replayed.returncode == 1, replayed.stdout + replayed.stderr)
    check("while the events were recorded: ./target was replaced during the run" in replayed.stderr + replayed.stdout,
          done.stdout + done.stderr + replayed.stderr)
    # One that is removed, or has another name or mode, is the same.
    world.put("calls")
    espy = start(world, "--strict", "-e", script)
    Traced(world, world.target, 10, "again").end()
    os.chmod(world.target, 0o755)
    os.link(world.target, world.path("link"))
    os.remove(world.target)
    done = end(world, espy)
    check(done.returncode == 0 and count_of(done) == 10, done.stdout + done.stderr)


def copied_up(world):
    """A file of the lower layer of overlayfs, which the first change of its mode copies to the upper one."""
    script = "uprobe:./layers/seen/calls:tick { @n = count(); }"
    world.path("layers").mkdir()
    mounts = ["mount", "-t", "tmpfs", "layers", world.path("layers")]
    if subprocess.run(mounts).returncode != 0:
        return "no tmpfs"
    try:
        for name in ("lower", "upper", "work", "seen"):
            world.path(f"layers/{name}").mkdir()
        shutil.copy(world.path("calls"), world.path("layers/lower"))
        layers = "lowerdir=layers/lower,upperdir=layers/upper,workdir=layers/work"
        if subprocess.run(["mount", "-t", "overlay", "-o", layers, "seen", "layers/seen"], cwd=world.directory,
                          capture_output=True).returncode != 0:
            return "no overlayfs"
        for change in ("true", "chmod 700 layers/seen/calls", "dd if=/dev/null of=layers/seen/calls conv=notrunc status=none"):
            command = f"sh -c './layers/seen/calls 10; {change}; ./layers/seen/calls 10; true'"
            done = world.run("-q", "--strict", "-c", command, "-e", script)
            is_told = "may be a copy in the upper layer of overlayfs" in done.stderr and done.returncode == 1
            check(is_told or (count_of(done) == 20 and done.returncode == 0), change + done.stdout + done.stderr)
    finally:
        subprocess.run(["umount", "-lR", world.path("layers")])


def unmapped(world):
    """-p with a file that the process does not map."""
    world.put("calls")
    traced = Traced(world, world.target, 10, "again")
    pid = traced.pid
    script = "uprobe:{}:tick {{ @n = count(); }}"

    def counted(path):
        espy = start(world, "--strict", "-p", pid, "-e", script.format(path))
        traced.call()
        return end(world, espy)

    done = counted("./target")
    check("does not map" not in done.stderr and count_of(done) == 10, done.stdout + done.stderr)
    done = counted(world.path("calls2"))
    check(f"process {pid} does not map {world.path('calls2')}" in done.stderr and count_of(done) == 0, done.stderr)
    world.put("calls")
    done = counted("./target")
    check(f"process {pid} does not map ./target" in done.stderr and f"/proc/{pid}/exe" in done.stderr, done.stderr)
    done = counted(f"/proc/{pid}/exe")
    check("does not map" not in done.stderr and count_of(done) == 10, done.stdout + done.stderr)
    traced.end()


def elsewhere(world):
    """A process in another mount namespace, which has another file at the path."""
    world.put("calls")
    shutil.copy(world.path("calls2"), world.path("inner"))
    command = "mount --bind inner target && exec ./target 10 again"
    traced = Traced(world, "unshare", "-m", "sh", "-c", command)
    if not traced.is_there:
        return "no mount namespaces"
    pid = traced.pid
    espy = start(world, "--strict", "-p", pid, "-e", f"uprobe:{world.target}:tick {{ @n = count(); }}")
    traced.call()
    done = end(world, espy)
    check(done.returncode == 0 and count_of(done) == 10 and "does not map" not in done.stderr, done.stdout + done.stderr)
    # Replaced in that namespace.
    at = At(world.path("inner"), 1, lambda: subprocess.run(
        ["nsenter", "-t", str(pid), "-m", "mount", "--bind", world.path("calls"), world.target], check=True))
    script = f"uprobe:{world.target}:tick {{ @n = count(); }} interval:ms:1 {{ exit(); }} " + LONG
    done = world.run("--strict", "-p", pid, "-e", script)
    at.end()
    is_refused = done.returncode == 1 and re.search(REPLACED, done.stderr)
    is_before = "does not map" in done.stderr  # the file was another one when espy looked first
    check(at.has_acted and (is_refused or is_before), done.stdout + done.stderr)
    traced.end()


CASES = [renamed, written, statements, flipped, semaphore, operands, archive, listed, during, copied_up, unmapped,
         elsewhere]


if __name__ == "__main__":
    w.main(CASES, prepare)
