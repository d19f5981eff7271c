#!/usr/bin/env python3
"""keys.py ESPY [CASE...]: keys that differ have different texts in each output. Status 77 where that cannot be tried."""

import collections
import gzip
import json
import re
import shlex
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
import world as w
from world import build, check

NAMES = 22  # of the program: the first is there once, the second twice, and so on
BY_NAME = "uprobe:./renamed:tick { @c[comm] = count(); }"
BY_STACK = "uprobe:./renamed:tick { @c[comm, ustack(1)] = count(); }"


def prepare(world):
    build(world, "renamed.c", "-O1", "-g")


def judge(counts, said):
    """Counts by text. Pairs of one text are summed up, as readers would."""
    found = collections.Counter()
    for text, count in counts:
        found[text] += int(count)
    check(sorted(found.values()) == list(range(1, NAMES + 1)), f"{dict(found)}\n{said}")


def output(world, script, *options):
    world.run("-q", "-o", "output", *options, "-c", "./renamed 0", "-e", script)
    return world.path("output").read_bytes()


def text(world):
    said = output(world, BY_NAME).decode(errors="surrogateescape")
    judge(re.findall(r"^@c\[(.*?)\]: (\d+)$", said, re.M | re.S), said)


def terminal(world):
    command = f"{shlex.quote(str(world.espy))} -q -c './renamed 0' -e '{BY_NAME}'"
    done = subprocess.run(["script", "-qc", command, "/dev/null"], cwd=world.directory, capture_output=True)
    said = done.stdout.decode()
    judge(re.findall(r"^@c\[(.*?)\]: (\d+)\r$", said, re.M), said)


def evicted(world):
    """Keys of an LRU map, which the kernel drops before the map is full."""
    for script in ("let @l = lruhash(1000); begin { for ($i : 0..3000) { @l[$i % 990] = 1; } printf(\"%d keys\\n\", len(@l)); clear(@l); exit(); }",
                   "let @l = lruhash(1000); begin { for ($i : 0..3000) { @l[$i % 1010] = count(); } printf(\"%d keys\\n\", len(@l)); clear(@l); exit(); }",
                   "let @l = lruhash(1000); begin { for ($i : 0..3000) { @l[$i % 400] = 1; } printf(\"%d keys\\n\", len(@l)); clear(@l); exit(); }"):
        done = world.run("-q", "--strict", "-e", script)
        if "[kernel-lacks]" in done.stderr:
            return "the kernel cannot count the keys"
        count = int(re.search(r"% (\d+)\]", script)[1])
        is_told = re.search(r"\d+ keys? evicted from @", done.stderr) is not None and done.returncode == 1
        check(is_told or (f"{count} keys" in done.stdout and done.returncode == 0), done.stdout + done.stderr)


def pairs(world):
    """Two texts in a key, whatever commas they have."""
    script = """begin { @c["a,b", "c"] = 1; @c["a", "b,c"] = 2; @c["a, b", "c"] = 3; @c["a", "b, c"] = 4;
        @c["a\\\\, b", "c"] = 5; @c["a b", "(c)"] = 6; @c["ab", "c"] = 7; exit(); }"""
    done = world.run("-q", "-f", "json", "-e", script)
    check(len(json.loads(done.stdout)["data"]["@c"]) == 7, done.stdout + done.stderr)
    done = world.run("-q", "-e", script)
    texts = re.findall(r"^@c\[(.*)\]: \d$", done.stdout, re.M)
    check(len(set(texts)) == 7, done.stdout + done.stderr)


def formats(world):
    said = output(world, BY_NAME, "-f", "json").decode()
    judge(json.loads(said)["data"]["@c"].items(), said)
    said = output(world, BY_NAME, "-f", "otlp").decode()
    points = json.loads(said)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"]
    judge(((each["attributes"][0]["value"]["stringValue"], each["asInt"]) for each in points), said)


def stacks(world):
    said = output(world, BY_STACK, "-f", "folded").decode()
    judge(re.findall(r"^([^\n;]*);[^\n]* (\d+)$", said, re.M), said)
    said = output(world, BY_STACK, "-f", "json").decode()
    judge(json.loads(said)["data"]["@c"].items(), said)
    said = output(world, BY_STACK, "-f", "speedscope").decode()
    profile = json.loads(said)
    names = [each["name"] for each in profile["shared"]["frames"]]
    only = profile["profiles"][0]
    judge(((names[stack[0]], weight) for stack, weight in zip(only["samples"], only["weights"])), said)
    said = output(world, BY_STACK, "-f", "flame").decode()
    judge(re.findall(r'data-d="1".*?<title>(.*?)\n(\d+) ', said), said)
    strings = gzip.decompress(output(world, BY_STACK, "-f", "pprof"))
    for name in (rb"y\xff", rb"y\x5cxff", rb"z\x01", rb"z\x5cx01"):
        check(name in strings, f"no {name} in {strings}")


def metrics(world):
    espy = w.start(world, "--listen=127.0.0.1:0", "-c", "./renamed 20", "-e", BY_NAME)
    try:
        found, until = None, time.time() + w.LONGEST
        while not found and time.time() < until:
            found = re.search(r"http://[^\s/]+", w.said(world))
            time.sleep(0.05)
        said = ""
        while time.time() < until and said.count("espy_c_total{") < NAMES:
            said = urllib.request.urlopen(found[0] + "/metrics").read().decode()
            time.sleep(0.2)
        judge(re.findall(r'^espy_c_total\{comm="(.*)"\} (\d+)$', said, re.M), said + w.said(world))
    finally:
        w.end(world, espy)


CASES = [text, terminal, evicted, pairs, formats, stacks, metrics]

if __name__ == "__main__":
    w.main(CASES, prepare)
