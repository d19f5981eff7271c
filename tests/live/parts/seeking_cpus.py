# Seeks to 100, 101, 102 and 103, on two CPUs in turn, the higher one first.
import os

cpus = sorted(os.sched_getaffinity(0))[:2]
file = os.open("/dev/zero", os.O_RDONLY)
for offset in range(100, 104):
    os.sched_setaffinity(0, [cpus[(offset + 1) % 2]])
    os.lseek(file, offset, os.SEEK_SET)
