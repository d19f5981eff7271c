#!/usr/bin/env python3
"""callers.py ESPY PROGRAM.C: whether the arguments that only a caller still knows are read right, compiled in several
ways: each is what the program has noted, or, where the caller is not known, 0 and counted."""

import os
import re
import subprocess
import sys
import tempfile

WAYS = [["gcc", "-O2"], ["gcc", "-O3"], ["gcc", "-Os"], ["gcc", "-O1"], ["gcc", "-O2", "-no-pie", "-fno-pie"],
        ["gcc", "-O2", "-gdwarf-4"], ["gcc", "-O2", "-fno-omit-frame-pointer"], ["gcc", "-O2", "-flto"],
        ["gcc", "-O2", "-fno-optimize-sibling-calls"], ["clang", "-O2"]]


def line_with(source, text):
    return next(number for number, line in enumerate(source, 1) if text in line)


def main():
    espy, path = sys.argv[1:]
    with open(path) as file:
        source = file.read().splitlines()
    lost, unknowable = line_with(source, "nothing is left"), line_with(source, "nobody can tell")
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "program")
        for way in WAYS:
            if subprocess.run(["which", way[0]], capture_output=True).returncode != 0:
                continue
            subprocess.run([*way, "-g", "-w", "-o", program, path], check=True)
            places = subprocess.run([espy, "-lv", f"uprobe:{program}@callers.c:{lost},uprobe:{program}@callers.c:{unknowable}"],
                                    capture_output=True, text=True).stdout
            is_caller_asked = "(by caller)" in places
            has_tail_calls = way[1] != "-O1" and "-fno-optimize-sibling-calls" not in way
            if has_tail_calls and re.search(r"(int n|long int sum): .*by caller", places):
                sys.exit(f"{way}: a value that a tail call may have replaced is told:\n{places}")
            where = f"uprobe:{program}@callers.c:{lost}"
            hides = f"uretprobe:{program}:lose {{ @returned = count(); }}"  # another address where it returns to
            script = f'{hides} {where} {{ printf("%d %d %ld %ld\\n", locals.a, locals.first, locals.b, locals.second); }}'
            ran = subprocess.run([espy, "-q", "-c", program, "-e", script], capture_output=True, text=True)
            if "is not kept here" in ran.stderr:
                print(f"{' '.join(way)}: the compiler does not say")
                continue
            rows = [tuple(map(int, line.split())) for line in ran.stdout.splitlines() if line and line[0] != "@"]
            right = sum(a == first and b == second for a, first, b, second in rows)
            unknown = sum(a != first and a == 0 or b != second and b == 0 for a, first, b, second in rows)
            wrong = [row for row in rows if row[0] not in (0, row[1]) or row[2] not in (0, row[3])]
            if wrong or right + unknown < len(rows) or not rows:
                sys.exit(f"{way}: wrong: {wrong}\n{ran.stdout}{ran.stderr}\n{places}")
            if unknown and "only the caller has the value" not in ran.stderr:
                sys.exit(f"{way}: what is not known is not said:\n{ran.stderr}")
            print(f"{' '.join(way)}: {right} of {len(rows)} calls are right, {unknown} not known"
                  + (", by callers" if is_caller_asked else ""))


main()
