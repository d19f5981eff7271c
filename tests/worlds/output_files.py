#!/usr/bin/env python3
"""output_files.py ESPY [CASE...]: files to write to in a directory that others can write to. Status 77 where that cannot
be tried."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
import world as w
from world import check

NOBODY = 65534
HELLO = 'begin { printf("hello\\n"); exit(); }'
LINES = "a file of root\n"
SEND = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'packet', ('127.0.0.1', 9))"


def prepare(world):
    world.path("victim").write_text(LINES)
    for name, target, owner in (("own", "victim", 0), ("others", "victim", NOBODY), ("chain", "others", 0)):
        os.symlink(target, world.path(name))
        os.chown(world.path(name), owner, owner, follow_symlinks=False)


def links(world):
    """A link of another user is not followed, whatever leads to it."""
    for name in ("others", "chain", "./others", world.path("others")):
        for command in (["-o", name, "-e", HELLO], ["record", "-o", name, "-c", "true", "tracepoint:raw_syscalls:sys_enter"],
                        ["snapshot", "-o", name]):
            done = world.run(*command)
            check("is a symbolic link of user 65534" in done.stderr and done.returncode == 1, done.stderr)
            check(world.path("victim").read_text() == LINES, "written")
    world.run("-q", "-o", "own", "-e", HELLO)
    check("hello" in world.path("victim").read_text(), "a link of root is not followed")
    done = subprocess.run([world.espy, "-q", "-o", "/dev/stdout", "-e", HELLO], capture_output=True, text=True)
    check("hello" in done.stdout, done.stderr)


def packets(world):
    """Packets of others are appended to files of packets alone."""
    world.path("send.py").write_text(SEND)
    world.path("other.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    for name in ("victim", "others", "other.pcap"):
        before = world.path(name).read_bytes()
        done = packet_to(world, name)
        check("cannot write to " + name in done.stderr, f"{name}: {done.stdout}{done.stderr}")
        check(world.path(name).read_bytes() == before, name + " has grown")
    sizes = []
    for _ in range(2):
        done = packet_to(world, "new.pcap")
        check("cannot" not in done.stderr, done.stderr)
        sizes.append(os.stat(world.path("new.pcap")).st_size)
    check(24 < sizes[0] < sizes[1], f"{sizes}")


def packet_to(world, name):
    return world.run("-q", "-c", "python3 send.py", "-e",
                     f'rawtracepoint:net_dev_queue {{ skboutput("{name}", args.skb, 1500, 14); }}')


CASES = [links, packets]

if __name__ == "__main__":
    w.main(CASES, prepare)
