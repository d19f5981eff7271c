#!/usr/bin/env python3
"""entries.py ESPY [CASE...]: functions whose calls are not the events at one instruction: they save their return address,
begin with a loop, or are several symbols; and struct keys with padding. The program stays right, and each count is that of
the calls, or espy says that it is not. Status 77 where that cannot be tried."""

import platform
import re
import shutil
import sys

sys.dont_write_bytecode = True
import world as w
from world import build, check, count_of, skip


def prepare(world):
    if platform.machine() != "x86_64":
        skip("the functions are compiled in this way for x86_64")
    build(world, "entries.c", "-O1", "-fcf-protection=none", "-static", program="saves")
    build(world, "entries.c", "-O1", "-fcf-protection=none", program="loops")
    compiler = shutil.which("g++")
    for level in ("-O0", "-O1", "-O2") if compiler else ():
        w.subprocess.run([compiler, level, "-g", "-fcf-protection=none", "-mindirect-branch=thunk-inline",
                          w.SOURCES / "entries.cc", "-o", world.path(f"classes{level}")], check=True)


def said(done):
    return done.stdout + done.stderr


def saved_returns(world):
    """Their return address is not replaced, whether they are named or match a wildcard."""
    for script in ("uretprobe:./saves:_setjmp { @n = count(); }", "uretprobe:./saves:swapcontext { @n = count(); }",
                   "uretprobe:./saves:setcontext { @n = count(); }"):
        done = world.run("-q", "-c", "./saves saves", "-e", script)
        check(done.returncode == 1 and "uses its return address" in said(done), script + said(done))
    command = "sh -c './saves saves; echo ended $?'"
    done = world.run("-q", "--strict", "-c", command, "-e", "uretprobe:./saves:*etjmp*,uretprobe:./saves:s*ap* { @n = count(); }")
    check(("ended 7" in done.stdout or "ended" not in done.stdout) and done.returncode == 1, said(done))
    done = world.run("trace", "-q", "-c", command, "./saves:_setjmp")
    check("ended 7" in said(done) and "_setjmp" in said(done), said(done))
    # Where the return instruction is probed, the address stays.
    done = world.run("-q", "--strict", "-c", command, "-e", "uretprobe:./saves:getcontext { @n = count(); }")
    check("ended 7" in done.stdout and count_of(done) == 1, said(done))
    # A function that only reads it, and other returns, are probed as ever.
    done = world.run("-q", "--strict", "-c", command, "-e", "uretprobe:./saves:saves { @n = sum(retval); }")
    check(count_of(done) == 7 and "ended 7" in done.stdout and done.returncode == 0, said(done))


def loops(world):
    for kind in ("uprobe", "uretprobe"):
        script = kind + ":./loops:spin { @n = count(); }"
        done = world.run("-q", "-c", "./loops loops", "-e", script)
        is_said = "each iteration of a loop counts as a call" in done.stderr
        check(count_of(done) == 10 or is_said, said(done))
        strict = world.run("-q", "--strict", "-c", "./loops loops", "-e", script)
        check((strict.returncode == 0) == (count_of(done) == 10), said(strict))
    done = world.run("-q", "--strict", "-c", "./loops loops", "-e", "uprobe:./loops:main { @n = count(); }")
    check(done.returncode == 0 and count_of(done) == 1, said(done))


def each_class(world, script, is_right, told):
    programs = [f"classes{level}" for level in ("-O0", "-O1", "-O2") if world.path(f"classes{level}").exists()]
    for program in programs:
        of_program = script.replace("PROGRAM", "./" + program)
        done = world.run("-q", "--strict", "-c", "./" + program, "-e", of_program)
        is_told = done.returncode == 1 and re.search(told, said(done))
        check(is_told or (done.returncode == 0 and is_right(done)), f"{of_program}: {said(done)}")
    return None if programs else "no g++"


def destructors(world):
    return each_class(world, 'uprobe:PROGRAM:cpp:"Both::~Both" { @n = count(); }', lambda done: count_of(done) == 6,
                      "a call may count twice")


def thunks(world):
    return each_class(world, 'uprobe:PROGRAM:cpp:"Both::nine_times" { @n = count(); }', lambda done: count_of(done) == 9,
                      "has a copy of its code")


def returns_that_jump(world):
    return each_class(world, "uretprobe:PROGRAM:cpp:ten_times { @n = count(); @of[retval] = count(); }",
                      lambda done: count_of(done) == 10 and "@of[55]: 10" in done.stdout, "no such thing")


def shared_returns(world):
    return each_class(world, "uretprobe:PROGRAM:thirty_times { @n = count(); }", lambda done: count_of(done) == 30,
                      "no such thing")


def second_halves(world):
    """GCC makes a function of the second half of another one, and inlines it again, within the first half."""
    told = "inlined cop(y|ies) of `part` (is|are) probed"
    for level in ("-O1", "-O2", "-O3"):
        build(world, "second_half.c", level, "-g", program="halves")
        done = world.run("-q", "-c", "./halves", "-e", "uprobe:./halves:part { @n = count(); }")
        check(count_of(done) == 30 or re.search(told, done.stderr), level + said(done))
        strict = world.run("-q", "--strict", "-c", "./halves", "-e", "uprobe:./halves:part { @n = count(); }")
        is_exact = not re.search(told, done.stderr)
        check((strict.returncode == 0) == is_exact, level + said(strict))


def padding(world):
    """Keys are equal if their members are."""
    script = """uprobe:PROGRAM:cpp:keyed {
      @by[*args.key] = count(); @in[1, *args.key] = count(); $key = *(struct Key *)arg0; @same[(1, $key) == (1, *args.key)] = count();
      if (has_key(@by, *args.key)) { @n = count(); } }"""

    def is_right(done):
        keys = re.findall(r"^@(?:by|in)\[.*\]: (\d+)$", done.stdout, re.M)
        return keys == ["10"] * 20 and count_of(done) == 100 and "@same[true]: 100" in done.stdout

    return each_class(world, script, is_right, "no such thing")


CASES = [saved_returns, loops, destructors, thunks, returns_that_jump, shared_returns, second_halves, padding]


if __name__ == "__main__":
    w.main(CASES, prepare)
