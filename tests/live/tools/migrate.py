"""migrate.py FILE: goes from one CPU to another 60 times; writes its process id, how often the kernel has moved it
meanwhile, and since it began and a few times more, as it ends."""
import os
import sys


def moves():
    with open("/proc/self/sched") as file:
        return next(int(line.split(":")[1]) for line in file if "nr_migrations" in line)


cpus = sorted(os.sched_getaffinity(0))[:2]
before = moves()
for _ in range(30):
    for cpu in cpus:
        os.sched_setaffinity(0, {cpu})
after = moves()
with open(sys.argv[1], "w") as file:
    print(os.getpid(), after - before, after + 10, file=file)
