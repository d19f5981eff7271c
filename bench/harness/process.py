"""Start tracers, wait until they trace, stop them, and read what the kernel knows of them."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time

KILL_TIMEOUT_S = 60  # a killed bpftrace closes its perf events first, each after a grace period of the kernel


def median(samples):
    ordered = sorted(samples)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Failure(Exception):
    """A tracer did not do what the benchmark needs; the text says what, for the row that is left out."""


class Cell:
    """One measurement of a tool for a row. If it fails, or takes longer than the limit, the row says so, and the tracers
    that it started are killed. Has to be used in the main thread, which gets the signal."""

    limit_s = 180

    def __init__(self, row, tool):
        self.row, self.tool = row, tool

    def __enter__(self):
        signal.signal(signal.SIGALRM, self.end)
        signal.setitimer(signal.ITIMER_REAL, self.limit_s)

    def end(self, *_):
        raise Failure(f"took longer than {self.limit_s} s")

    def __exit__(self, kind, failure, _):
        signal.setitimer(signal.ITIMER_REAL, 0)
        for tracer in list(Tracer.running):
            tracer.kill()
        if kind and issubclass(kind, Failure):
            self.row.failures[self.tool] = str(failure)
            return True
        return False


def read_file(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def run_measured(spawn, command, environment=None):
    """Runs a command to its end: (wall time in ms, peak memory in MiB, what it printed)."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as report:
        try:
            process = subprocess.Popen(
                ["sh", "-c", 'exec "$@" 3>&%d' % write_end, "sh", spawn, *command], pass_fds=[write_end],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                start_new_session=True)
        finally:
            os.close(write_end)
        try:
            output, errors = process.communicate()
        except Failure:
            os.killpg(process.pid, signal.SIGKILL)  # the command, too, which `spawn` waits for
            raise
        fields = report.read().split()
    if process.returncode != 0 or len(fields) != 3 or fields[2] != "0":
        raise Failure("failed: " + first_line(errors))
    return int(fields[0]) / 1e6, int(fields[1]) / 1024, output.decode(errors="replace")


def first_line(text):
    lines = [line for line in text.decode(errors="replace").splitlines() if "RLIMIT_MEMLOCK" not in line]
    return lines[0][:160] if lines else "without a word"


class Tracer:
    """A tracer (or the loader of a C program) that runs beside the benchmark."""

    running = set()

    def __init__(self, command, stdout=subprocess.DEVNULL, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                        env=environment)
        self.pid = self.process.pid
        self.usage = None  # of the ended process
        self.errors = b""
        self.running.add(self)

    def wait_until_tracing(self):
        """Returns once the tracer holds a BPF program and has gone quiet: everything is attached then."""
        used_ns, since = self.cpu_ns(), time.monotonic()
        while True:
            time.sleep(0.15)
            if self.is_gone():
                self.collect()
                raise Failure("ended early: " + first_line(self.errors))
            now_used_ns, now = self.cpu_ns(), time.monotonic()
            busy = (now_used_ns - used_ns) / 1e9 / (now - since)
            used_ns, since = now_used_ns, now
            if busy < 0.05 and self.statistics():
                return

    def cpu_ns(self):
        """CPU time of all threads so far."""
        total_ns = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").glob("*"):
            fields = read_file(task / "schedstat").split()
            total_ns += int(fields[0]) if fields else 0
        return total_ns

    def user_and_system_s(self):
        fields = read_file(f"/proc/{self.pid}/stat").rsplit(")", 1)[-1].split()
        ticks = os.sysconf("SC_CLK_TCK")
        return (int(fields[11]) / ticks, int(fields[12]) / ticks) if fields else (0.0, 0.0)

    def statistics(self):
        """{program id: (run time in ns, runs)} of the BPF programs that the tracer holds."""
        programs = {}
        for descriptor in pathlib.Path(f"/proc/{self.pid}/fdinfo").glob("*"):
            fields = dict(line.split(":", 1) for line in read_file(descriptor).splitlines() if ":" in line)
            if "run_cnt" in fields:
                programs[int(fields["prog_id"])] = (int(fields["run_time_ns"]), int(fields["run_cnt"]))
        return programs

    def written_bytes(self):
        """Bytes given to write(2) so far, also by a process that has ended but is not collected yet."""
        for line in read_file(f"/proc/{self.pid}/io").splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
        return 0

    def is_gone(self):
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None

    def interrupt(self):
        """Sends SIGINT and waits for the end, which is left to collect(): seconds."""
        start = time.monotonic()
        os.kill(self.pid, signal.SIGINT)
        while not self.is_gone():
            time.sleep(0.0002)
        return time.monotonic() - start

    def collect(self):
        """Takes the ended process off the kernel's hands: its use of the machine, its messages, its status."""
        _, status, self.usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.set_blocking(self.process.stderr.fileno(), False)  # a child that detaches may hold the other end
        self.errors = self.process.stderr.read() or b""
        self.process.stderr.close()
        self.running.discard(self)

    def stop(self):
        elapsed_s = self.interrupt()
        self.collect()
        return elapsed_s

    def kill(self):
        """Does nothing if the tracer has ended. One that the kernel holds is left behind."""
        if self.process.returncode is not None:
            return
        self.process.kill()
        end = time.monotonic() + KILL_TIMEOUT_S
        while not self.is_gone():
            if time.monotonic() > end:
                self.running.discard(self)
                return
            time.sleep(0.01)
        self.collect()


class Statistics:
    """Has the kernel time every run of a BPF program while the block lasts: as long as the descriptor of
    BPF_ENABLE_STATS (Linux 5.8) is open, which ends with this process, however it ends."""

    CALL = {"x86_64": 321, "aarch64": 280}  # bpf(2)
    ENABLE_STATS = 32
    RUN_TIME = 0

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        attribute = ctypes.c_uint32(self.RUN_TIME)
        number = self.CALL[os.uname().machine]
        self.descriptor = libc.syscall(number, self.ENABLE_STATS, ctypes.byref(attribute), ctypes.sizeof(attribute))
        if self.descriptor < 0:
            raise Failure("the kernel does not time programs: " + os.strerror(ctypes.get_errno()))

    def __exit__(self, *_):
        os.close(self.descriptor)
