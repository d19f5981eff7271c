"""Two processes that want the same CPU, for tests of the scheduler's tools. `busy_pair.py run FILE` writes for the first
one its process id and what the kernel counts (/proc/PID/schedstat: nanoseconds that it waited for a CPU, turns): while both
were busy, and since its beginning. `busy_pair.py waits FILE` compares with runqslower's rows, and `busy_pair.py turns FILE` with
a histogram for the process, on standard input: it must be between the two."""
import os
import re
import sys


def schedstat():
    with open("/proc/self/schedstat") as file:
        return [int(word) for word in file.read().split()]


def burn(seconds):
    end = os.times().user + os.times().system + seconds
    while os.times().user + os.times().system < end:
        pass


def run(path):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    child = os.fork()
    before = schedstat()
    burn(0.4)
    after = schedstat()
    if child:
        os.waitpid(child, 0)
        with open(path, "w") as file:
            print(os.getpid(), after[1] - before[1], after[2] - before[2], *schedstat()[1:], file=file)


def compare(what, path):
    with open(path) as file:
        pid, waited_ns, turns, all_waited_ns, all_turns = map(int, file.read().split())
    if what == "waits":
        seen = sum(int(line.split()[3]) for line in sys.stdin if re.match(rf"[0-9:]{{8}} {pid} ", line))
        least, most, slack = waited_ns / 1000, all_waited_ns / 1000, 2000
    else:
        table = sys.stdin.read().split(f"[{pid}]:\n")[1].split("\n\n")[0]
        seen = sum(int(re.search(r"(\d+) \|", line)[1]) for line in table.splitlines())
        least, most, slack = turns, all_turns, 3
    # A few waits come after the file was written.
    print(f"{what}: {seen} seen, {least} to {most} counted by the kernel", file=sys.stderr)
    return least * 0.95 - slack <= seen <= most * 1.05 + 20 * slack


if sys.argv[1] == "run":
    run(sys.argv[2])
else:
    sys.exit(not compare(*sys.argv[1:]))
