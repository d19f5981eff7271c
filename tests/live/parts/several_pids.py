"""several_pids.py ESPY PROGRAM SCRATCH SCRIPT: espy -p with three processes, of two files; a fourth one, of a file of
these, is not traced. The third process makes its calls after the first two have ended."""
import os
import shutil
import subprocess
import sys
import time

espy, program, scratch, script = sys.argv[1:]
os.chdir(scratch)
shutil.copy(program, "v")
shutil.copy(program, "w")


def wait_for(holds):
    while not holds():
        time.sleep(0.02)


def start(file, threads, calls, number, go):
    return subprocess.Popen([f"./{file}", str(threads), str(calls), "0", go, f"done.{number}"], stdout=subprocess.DEVNULL)


first, second = start("v", 4, 25, 1, "go"), start("v", 4, 15, 2, "go")
third, other = start("w", 4, 10, 3, "go-later"), start("v", 4, 5, 4, "go")
with open("attached", "w") as said:
    run = subprocess.Popen([espy, "-p", f"{first.pid},{second.pid}", "--pid", str(third.pid), script], stderr=said)
wait_for(lambda: "Attached" in open("attached").read() or run.poll() is not None)
open("go", "w").close()
for each in first, second, other:
    each.wait()
assert run.poll() is None, "espy ended before the last process"
open("go-later", "w").close()
third.wait()
assert run.wait() == 0
names = {first.pid: "first", second.pid: "second", third.pid: "third", other.pid: "other"}
sys.stdout.flush()
for pid, name in names.items():
    print(name, pid)
print(open("attached").read())
