# deep_cgroup.py COMMAND...: runs the command in a control group whose path is longer than any link that can be read, in a
# mount namespace where control groups of version 2 are at /sys/fs/cgroup.
import os, subprocess, sys

ROOT, NAME, DEPTH = "/sys/fs/cgroup", "d" * 200, 25
found = subprocess.run(["findmnt", "-n", "-o", "TARGET", "-t", "cgroup2"], stdout=subprocess.PIPE, text=True).stdout.split()
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
if found[0] != ROOT:
    subprocess.run(["mount", "--bind", found[0], ROOT], check=True)
top = "espy-deep-%d" % os.getpid()
back = os.open(ROOT, os.O_RDONLY)
os.chdir(ROOT)
made = []
try:
    for name in [top] + [NAME] * DEPTH:
        os.mkdir(name)
        made.append(name)
        os.chdir(name)
    with open("cgroup.procs", "w") as group:
        group.write(str(os.getpid()))
    status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
finally:
    with open(os.open("cgroup.procs", os.O_WRONLY, dir_fd=back), "w") as group:
        group.write(str(os.getpid()))
    for name in reversed(made):
        os.fchdir(os.open("..", os.O_RDONLY))
        os.rmdir(name)
sys.exit(status)
