#!/usr/bin/env python3
"""One name, several functions: static ones of several source files, copies that a compiler made, inlined calls, indirect
functions. Each count is that of all calls, or espy says what it does not see, and --strict fails.

  same_names.py ESPY [CASE...]
"""

import re
import shutil
import subprocess

from world import SOURCES, check, count_of, main

CALLS = {"same": 12, "cloned": 110, "split": 130, "inlined": 50, "chosen": 20}


def build(world, *options):
    def compiled(compiler, *more):
        parts = []
        for call in ("call_same_one", "call_same_two"):
            subprocess.run([compiler, "-c", *options, f"-DCALL={call}", SOURCES / "same.c", "-o", f"{call}.o"],
                           cwd=world.directory, check=True)
            parts.append(f"{call}.o")
        return subprocess.run([compiler, *options, *more, SOURCES / "copies.c", *parts, "-o", "program"],
                              cwd=world.directory, capture_output=True).returncode == 0
    world.compiled = compiled


def all_or_said(world, name, kind, action="@n = count();"):
    script = f"{kind}:./program:{name} {{ {action} }}"
    calls = CALLS[name.rstrip("*")]
    done = world.run("-q", "-c", "./program", "-e", script)
    found = count_of(done)
    if found == calls and done.returncode == 0 and "not all calls" not in done.stderr:
        return True
    check(re.search("not all calls|inlined cop", done.stderr) or done.returncode != 0, f"{script}: {found} of {calls}: {done.stderr}")
    check(done.returncode == 0 or re.search(r"has made|indirect function|no probe matches|inlined|unreadable|known here",
                                            done.stderr), f"{script}: {done.stderr}")
    strict = world.run("-q", "--strict", "-c", "./program", "-e", script)
    check(strict.returncode != 0, f"{script}: --strict does not fail")
    return False


def copies(compiler, *options):
    def case(world):
        if shutil.which(compiler) is None:
            return f"no {compiler}"
        build(world, *options)
        indirect = world.compiled(compiler, "-DINDIRECT")
        if not indirect and not world.compiled(compiler):
            return f"{compiler} cannot build it"
        for kind in ("uprobe", "uretprobe"):
            check(all_or_said(world, "same", kind), f"{kind}: not all of two functions with a name")
            check(all_or_said(world, "same*", kind), f"{kind}: not all of two functions that match")
            # Without debug information nothing tells that a call is inlined.
            names = ("cloned", "split") + (("inlined",) if "-g" in options else ()) + (("chosen",) if indirect else ())
            for name in names:
                all_or_said(world, name, kind)
        for name in ("cloned", "split", "same"):
            all_or_said(world, name, "uprobe", "@n = count(); @[arg0] = count();")
            all_or_said(world, name, "uretprobe", "@n = count(); @[retval] = count();")
        done = world.run("-q", "-c", "./program", "-e", "uprobe:./program:same { @n = sum(arg0); }")
        check(count_of(done) == sum(range(5)) + sum(range(7)), done.stdout + done.stderr)
        if indirect:
            done = world.run("-l", "uprobe:./program:chosen")
            check("indirect" in done.stdout, done.stdout)
        return None
    case.__name__ = "_".join([compiler, *options]).replace("-", "")
    return case


def indirect_of_libc(world):
    """memcpy and memmove are the same code in most libraries, and strlen has a choice of implementations."""
    (world.directory / "calls.c").write_text("""
        #include <string.h>
        int main(int n, char **v) { size_t (*volatile f)(const char *) = strlen; int all = 0;
          for (int i = 0; i < 1000; i++) all += f(v[0]); return all == 3; }""")
    subprocess.run(["cc", "-O1", "calls.c", "-o", "calls"], cwd=world.directory, check=True)
    for name in ("strlen", "memcpy"):
        for kind in ("uprobe", "uretprobe"):
            done = world.run("-q", "-c", "./calls", "-e", f"{kind}:libc:{name} /pid == cpid/ {{ @n = count(); }}")
            is_right = name == "strlen" and done.returncode == 0 and count_of(done) >= 1000
            check(is_right or "is an indirect function" in done.stderr, f"{name}: {done.stdout}{done.stderr}")


CASES = [copies("gcc", "-O0", "-g"), copies("gcc", "-O3", "-g"), copies("gcc", "-O3"), copies("clang", "-O3", "-g"),
         indirect_of_libc]

if __name__ == "__main__":
    main(CASES, lambda world: None)
