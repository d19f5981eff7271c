#!/usr/bin/env python3
"""Runs a command under strace and under `espy strace`, and compares their lines.

Usage: compare_strace.py ESPY DIRECTORY LEAST COMMAND...
DIRECTORY is for files. Fails if espy has less than LEAST percent of strace's lines, thread by thread. Addresses, process
ids and times are equal to all others of their kind, and calls that one of the two interrupts are put together.
"""

import difflib
import pathlib
import re
import subprocess
import sys

SAME = [
    (re.compile(r"\) += "), ") = "),
    (re.compile(r"0x[0-9a-f]{5,}"), "ADDRESS"),
    (re.compile(r'getrandom\("[^"]*"'), 'getrandom("RANDOM"'),
    (re.compile(r"si_[us]time=\d+( /\* [\d.]+ s \*/)?"), "si_time=0"),
    (re.compile(r"tv_(n|u)?sec=\d+"), "tv=0"),
    (re.compile(r"/\* \d+ vars \*/"), "/* vars */"),
    (re.compile(r"getppid\(\) = \d+"), "getppid() = PID"),
    (re.compile(r"f_(bfree|bavail|files|ffree)=\d+"), "f=N"),
]


def read_threads(path):
    """The lines of each thread, in the order in which the threads appear."""
    threads, interrupted = {}, {}
    for line in path.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+) +(.*)", line)
        if not match:
            continue
        thread, text = match.groups()
        lines = threads.setdefault(thread, [])
        if text.endswith("<unfinished ...>"):
            interrupted[thread] = text.removesuffix("<unfinished ...>").removesuffix(" ")
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if resumed and thread in interrupted:
            text = interrupted.pop(thread) + resumed.group(1)
        lines.append(text)
    ids = re.compile(r"(?<![\w.])(" + "|".join(threads) + r")(?![\w.])")
    return [[normal(ids.sub("PID", text)) for text in lines] for lines in threads.values()]


def normal(text):
    for pattern, same in SAME:
        text = pattern.sub(same, text)
    return text


def main():
    espy, directory, least, *command = sys.argv[1:]
    directory = pathlib.Path(directory)
    shown = {}
    for name, tracer in (("strace", ["strace", "-f"]), ("espy", [espy, "strace"])):
        path = directory / f"{name}.out"
        with open(directory / "stdout", "w") as out:
            done = subprocess.run([*tracer, "-o", str(path), *command], stdin=subprocess.DEVNULL, stdout=out)
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode  # of a signal, as in a shell
        shown[name] = read_threads(path), status
    (theirs, their_status), (ours, our_status) = shown["strace"], shown["espy"]
    total = equal = 0
    differences = []
    for lines in theirs:  # the order in which processes begin may differ
        matchers = [difflib.SequenceMatcher(None, lines, other, autojunk=False) for other in ours or [[]]]
        matcher = max(matchers, key=difflib.SequenceMatcher.ratio)
        other = matcher.b
        if other in ours:
            ours.remove(other)
        total += len(lines)
        equal += sum(block.size for block in matcher.get_matching_blocks())
        differences += [line for line in difflib.unified_diff(lines, other, "strace", "espy", n=0, lineterm="")]
    share = 100 * equal / max(total, 1)
    print(f"{equal} of {total} lines, {share:.1f} %: {' '.join(command)[:80]}")
    if share < float(least) or their_status != our_status:
        print(*differences[:60], f"status {their_status} and {our_status}", sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
