"""Calls of a function, 300 of them, and two garbage collections, for beside.sh."""
import gc
import os
import sys
import time

place = sys.argv[1] + "/"


class Part:
    pass


def leaf():
    pass


def top():
    for _ in range(10):
        leaf()


gc.disable()
open(place + "ready", "w").close()
while not os.path.exists(place + "go"):
    time.sleep(0.05)
for _ in range(30):
    top()
for _ in range(50):
    part = Part()
    part.itself = part
del part
gc.collect(1)
gc.collect(2)
open(place + "done", "w").close()
time.sleep(60)
