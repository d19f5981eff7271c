"""Two processes that want the same CPU, for tests of the scheduler's tools. `busy_pair.py run FILE` writes for the first
one its process id and what the kernel counted meanwhile (/proc/PID/schedstat): nanoseconds on the CPU, nanoseconds that it
waited for it, turns. `busy_pair.py waits FILE` compares with runqslower's rows, and `busy_pair.py turns FILE` with a histogram
for the process, on standard input: what the kernel counted before and behind may add some."""
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
            print(os.getpid(), *(b - a for a, b in zip(before, after)), file=file)


def compare(what, path):
    with open(path) as file:
        pid, _, waited_ns, turns = map(int, file.read().split())
    if what == "waits":
        seen = sum(int(line.split()[3]) for line in sys.stdin if re.match(rf"[0-9:]{{8}} {pid} ", line))
        expected, slack = waited_ns / 1000, 2000
    else:
        table = sys.stdin.read().split(f"[{pid}]:\n")[1].split("\n\n")[0]
        seen = sum(int(re.search(r"(\d+) \|", line)[1]) for line in table.splitlines())
        expected, slack = turns, 3
    # The process also has turns before and behind: it starts, waits for its child, and writes the file.
    print(f"{what}: {seen} seen, {expected} counted by the kernel", file=sys.stderr)
    return expected * 0.95 - slack <= seen <= expected * 1.5 + 200000


if sys.argv[1] == "run":
    run(sys.argv[2])
else:
    sys.exit(not compare(*sys.argv[1:]))
