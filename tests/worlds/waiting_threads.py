#!/usr/bin/env python3
"""waiting_threads.py ESPY [CASE...]: threads whose pages come late, and what others do in the same probe meanwhile.
Status 77 where that cannot be tried."""

import re
import subprocess
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check, count_of, has_feature, skip

PLAIN = 1000
MOST_WAIT = 8  # of a CPU
ROUNDS = 20
AT_ONCE = "memory reads? failed and returned 0: 8 other threads were running this program on the same CPU"


def prepare(world):
    build(world, "waiting_threads.c", "-O1", "-pthread")
    if subprocess.run(["./waiting_threads", "1"], cwd=world.directory).returncode != 0:
        skip("pages cannot be held here")
    if not has_feature(world, "uprobe_sleep"):
        skip("probes of programs do not wait for pages here")


def texts(world, threads):
    done = world.run("--strict", "-c", f"./waiting_threads {threads}", "-e",
                     "uprobe:./waiting_threads:tick { @[str(arg0)] = count(); @n = count(); }")
    seen = {text: int(n) for text, n in re.findall(r"^@\[(\w*)\]: (\d+)$", done.stdout, re.M)}
    return seen, count_of(done), done


def few(world):
    """All that wait get their pages."""
    for threads in (1, MOST_WAIT - 1):
        seen, total, done = texts(world, threads)
        check(seen == {"late": threads, "plain": PLAIN} and total == PLAIN + threads and done.returncode == 0,
              f"{threads}: {done.stdout}{done.stderr}")


def many(world):
    """More threads than may wait do not silence the probe: the calls of others are seen whole, and each text that
    is missing is counted."""
    for threads in (17, 40):
        seen, total, done = texts(world, threads)
        late = seen.get("late", 0)
        check(seen.get("plain") == PLAIN and total == PLAIN + threads and seen.get("") == threads - late and
              0 < late <= MOST_WAIT, f"{threads}: {done.stdout}{done.stderr}")
        check(done.returncode == 1 and re.search(rf"\b{threads - late} {AT_ONCE}$", done.stderr, re.M) and
              "event skipped" not in done.stderr and "events skipped" not in done.stderr, f"{threads}: {done.stderr}")


def removed_keys(world):
    """A key that is removed while a thread waits is another one afterwards, and its element may be another key's."""
    starts = "uprobe:./waiting_threads:add { %s } uprobe:./waiting_threads:drop { delete(@c, arg0); } "
    action = "uprobe:./waiting_threads:tick_key /@c[arg0]/ { $text = str(arg1); %s @text[$text] = count(); }"
    for first, then, value in (("@c[arg0] = count();", "@c[arg0] = count();", 1),
                               ("@c[arg0] = sum(7);", "@c[arg0] = sum(7);", 7),
                               ("@c[arg0] = 3;", "@c[arg0] = 3;", 3),
                               ("@c[arg0] += 2;", "@c[arg0] += 2;", 2),
                               ("@c[arg0]++;", "@c[arg0]++;", 1)):
        done = world.run("--strict", "-c", f"./waiting_threads keys {ROUNDS}", "-e", starts % first + action % then)
        seen = {int(key): int(n) for key, n in re.findall(r"^@c\[(\d+)\]: (\d+)$", done.stdout, re.M)}
        truth = {key: value for key in range(1, 2 * ROUNDS + 1)}
        check(done.returncode == 0 and seen == truth and f"@text[late]: {ROUNDS}" in done.stdout,
              f"{then} {done.stdout}{done.stderr}")


CASES = [few, many, removed_keys]

if __name__ == "__main__":
    w.main(CASES, prepare)
