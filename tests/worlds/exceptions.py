#!/usr/bin/env python3
"""exceptions.py ESPY [CASE...]: exceptions and panics that pass traced functions. No probe that espy attaches on its own
ends the program, and returns are counted right; where espy cannot follow them, it says so. Status 77 where that cannot be
tried."""

import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import world as w
from world import SOURCES, check, count_of

FUNCTIONS = ["plain", "landing", "tail", "deep", "cases", "jumping"]
TIMES = "30"
WARNING = "stops-exceptions"


def prepare(world):
    pass


def build(world, compiler, *options):
    subprocess.run([compiler, *options, SOURCES / "exceptions.cc", "-o", "exceptions"], check=True, cwd=world.directory)


def truth_of(world, program):
    told = subprocess.run([world.path(program), TIMES], capture_output=True, text=True, check=True).stdout
    return told, {name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", told, re.M)}


def check_functions(world, program, functions, has_few=True):
    """Returns of which functions are not followed."""
    told, truth = truth_of(world, program)
    command = f"./{program} {TIMES}"
    unfollowed = []
    for function in functions:
        target = f"./{program}:{function}"
        done = world.run("-c", command, "-e", f"uretprobe:{target} {{ @n = count(); }}")
        said = f"{target}: {done.stdout}{done.stderr}"
        if WARNING in done.stderr:
            unfollowed.append(function)
        else:
            check(told in done.stdout, "ended: " + said)
            check(count_of(done) == truth[function], f"of {truth[function]}: {said}")
        for options in ((), ("--graph",), ("--slower-than", "1ns"), ("-s",)):
            done = world.run("trace", *options, "-c", command, target)
            said = f"trace {options} {target}: {done.stdout}{done.stderr}"
            is_refused = done.returncode == 1 and "would end the program" in done.stderr
            check(told in done.stdout or (is_refused and function in unfollowed), "ended: " + said)
            is_said = "is not followed" in done.stderr or is_refused
            check(is_said == (function in unfollowed), said)
        if function not in unfollowed:
            done = world.run("trace", "-c", command, f"{target}(return)")
            shown = re.findall(rf"^ .* {function}\b.* = ", done.stdout, re.M)
            check(len(shown) == truth[function], f"{len(shown)} of {truth[function]}: {done.stdout}{done.stderr}")
    for options in ((), ("--graph",)) if has_few else ():
        done = world.run("trace", *options, "-c", command, f"./{program}:*")
        check(told in done.stdout, f"all of {program}: {done.stdout[:2000]}{done.stderr}")
    return unfollowed


def compiled(world):
    for compiler, options in (("g++", ("-O0",)), ("g++", ("-O2",)), ("g++", ("-Os", "-no-pie")), ("clang++", ("-O2", "-g"))):
        if not shutil.which(compiler):
            continue
        build(world, compiler, *options)
        unfollowed = check_functions(world, "exceptions", FUNCTIONS)
        check(options[0] != "-O0" or unfollowed == [], f"{compiler} {options}: {unfollowed}")
        check("plain" not in unfollowed and "landing" not in unfollowed, f"{compiler} {options}: {unfollowed}")


def stripped(world):
    """What has no names may have parts that have none."""
    build(world, "g++", "-O2", "-rdynamic", "-s")
    told, _ = truth_of(world, "exceptions")
    target = "./exceptions:_Z5plaini"
    done = world.run("trace", "-c", f"./exceptions {TIMES}", target)
    check(told in done.stdout and "is not followed" in done.stderr, done.stdout + done.stderr)


def named(world):
    """A return that is named is followed, with a warning."""
    build(world, "g++", "-O2")
    done = world.run("trace", "-c", f"./exceptions {TIMES}", "./exceptions:tail(i, return)")
    check(WARNING in done.stderr and "tail = " not in done.stderr, done.stdout + done.stderr)
    done = world.run("record", "-o", "recording", "-c", f"./exceptions {TIMES}", "uretprobe:./exceptions:tail")
    check("an exception that passes `tail(int)`" in done.stderr, done.stdout + done.stderr)


def chosen(world):
    """Of calls that a filter chooses, the returns are shown, whatever calls within them had none."""
    truths = [("nested(mark > 0)", int(TIMES), int(TIMES)), ("nested(mark == 0)", 3 * int(TIMES), 0)]
    build(world, "g++", "-O1", "-g")
    for target, entries, returns in truths:
        done = world.run("trace", "-c", f"./exceptions {TIMES}", "./exceptions:" + target)
        shown = (len(re.findall(r" nested\(", done.stdout)), len(re.findall(r" nested = ", done.stdout)))
        check(shown == (entries, returns), f"{target}: {shown}: {done.stdout}{done.stderr}")


def panics(world):
    if not shutil.which("rustc"):
        return "no rustc"
    for options in ((), ("-O",)):
        subprocess.run(["rustc", "-g", *options, SOURCES / "panics.rs", "-o", "panics"], check=True, cwd=world.directory,
                       capture_output=True)
        check(check_functions(world, "panics", ["plain"], has_few=False) == [], f"{options}: not followed")


def plain_c(world):
    """In C, the kernel follows returns, which is cheaper."""
    w.build(world, "first_thread.c", "-O1", "-pthread")
    done = world.run("-l", "-v", "uretprobe:./first_thread:tick")
    done = world.run("--dry-run", "-e", "uretprobe:./first_thread:tick { @n = count(); }")
    check("Attached 1 probe" in done.stdout + done.stderr and WARNING not in done.stderr, done.stdout + done.stderr)


CASES = [compiled, stripped, named, chosen, panics, plain_c]

if __name__ == "__main__":
    w.main(CASES, prepare)
