#!/usr/bin/env python3
"""overlapping.py ESPY PROGRAM [COUNT [FIRST]]: scripts of several actions whose attach points overlap, at random, on
PROGRAM (programs/called.cc), of which it is known how often each function and system call is called. Each action counts by
probe, func and probetype, and all of these must be right, however the actions share programs. Prints "N scripts, N wrong"
and the scripts that are; COUNT of them (12), from seed FIRST on."""

import collections
import fnmatch
import json
import random
import subprocess
import sys

FUNCTIONS = {f"called{n}": 10 * n for n in range(1, 7)}
CALLS = {"getpgid": 7, "getsid": 9, "getpriority": 11}
OPTIONS = [[], ["-v"], ["--no-feature", "uprobe_session"]]


def point(rng, program):
    """An attach point, and {(probetype, probe, func): how often it fires}."""
    if rng.random() < 0.65:
        provider = rng.choice(["uprobe", "uretprobe"])
        pattern = rng.choice([*FUNCTIONS, "called[1-6]", "called[1-3]", "called[24]", "called6"])
        return f"{provider}:{program}:{pattern}", {
            (provider, f"{provider}:{program}:{name}", name): count
            for name, count in FUNCTIONS.items() if fnmatch.fnmatch(name, pattern)}
    edge = rng.choice(["sys_enter_", "sys_exit_"])
    pattern = edge + rng.choice([*CALLS, "getp*[dy]", "get[ps]*"])
    return f"tracepoint:syscalls:{pattern}", {
        ("tracepoint", f"tracepoint:syscalls:{edge}{name}", edge + name): count
        for name, count in CALLS.items() if fnmatch.fnmatch(edge + name, pattern)}


def make(seed, program):
    """A script, and {(map, key): count}."""
    rng = random.Random(seed)
    script, expected = "", collections.Counter()
    for action in range(rng.randint(1, 6)):
        points = [point(rng, program) for _ in range(rng.randint(1, 3))]
        loops = rng.random() < 0.3
        body = f"@probe{action}[probe] = count(); @func{action}[func] = count();"
        if loops:
            body += f" for ($i : 0..2) {{ @both{action}[probetype, func] = count(); }}"
        script += ", ".join(text for text, _ in points) + f" /pid == cpid/ {{ {body} }}\n"
        for _, fired in points:
            for (provider, name, function), count in fired.items():
                expected[f"@probe{action}", name] += count
                expected[f"@func{action}", function] += count
                if loops:
                    expected[f"@both{action}", f"{provider},{function}"] += 2 * count
    return script, expected


def run(espy, script, program, options):
    done = subprocess.run([espy, "-f", "json", *options, "-e", script, "-c", program], capture_output=True, text=True,
                          check=False)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "map":
            for name, entries in record["data"].items():
                counts.update({(name, key): count for key, count in entries.items()})
    return counts, done.stderr


def main():
    espy, program = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    wrong = 0
    for seed in range(first, first + count):
        script, expected = make(seed, program)
        options = OPTIONS[seed % len(OPTIONS)]
        counts, errors = run(espy, script, program, options)
        if counts == expected:
            continue
        wrong += 1
        print(f"seed {seed} {options}\n{script}{errors}")
        for key in sorted(set(counts) | set(expected)):
            if counts[key] != expected[key]:
                print(f"{key}: {counts[key]}, not {expected[key]}")
    print(f"{count} scripts, {wrong} wrong")


if __name__ == "__main__":
    main()
