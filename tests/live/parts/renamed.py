"""renamed.py GO: threads that change their names, a child that inherits one, and a program that it executes. Each calls
getpgid(2) a known number of times."""
import os
import sys
import threading
import time


def rename(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write(name)


def call(count):
    for _ in range(count):
        os.getpgid(0)


def first():
    rename("espy-test-one")
    call(10)
    child = os.fork()
    if child == 0:
        call(3)
        os.symlink(os.path.realpath(sys.executable), "espy-test-two")
        code = "import os\nfor _ in range(4): os.getpgid(0)"
        os.execv("./espy-test-two", ["./espy-test-two", "-c", code])
    os.waitpid(child, 0)
    rename("espy-test-none")
    call(5)


def second():
    rename("espy-test-long-name")  # the kernel keeps 15 bytes
    call(7)


while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
for each in [threading.Thread(target=first), threading.Thread(target=second)]:
    each.start()
    each.join()
