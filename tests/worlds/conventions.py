#!/usr/bin/env python3
"""Calling conventions: each argument and each result is right, or is not shown, and espy says why.

  conventions.py ESPY [CASE...]
"""

import platform
import re
import shutil
import subprocess

from world import SOURCES, check, main

# What the programs pass and return, as espy prints it; a text that is none must not be shown.
CC_ARGUMENTS = {
    "three": "{ .a = 31, .b = 32, .c = 33 }", "pair": "{ .a = 31, .b = 32 }", "large": "{ .a = 31, .b = 32, .c = 33 }",
    "packed": "{ .c = 99, .i = 31 }", "bits": "{ .a = 31, .b = 32, .c = 33 }", "copied": "{ .a = 31 }",
    "virtual": "{ .a = 31 }", "aligned": "{ .a = 31 }", "empty": "{}", "text": "hey",
    "either": "{ .f = 1.5, .i = 1069547520 }", "extended": "{ .x = null }", "extended_number": "null", "wide": "null",
}
CC_RESULTS = {
    "three": "{ .a = 7, .b = 8, .c = 9 }", "pair": "{ .a = 7, .b = 8 }", "large": "{ .a = 7, .b = 8, .c = 9 }",
    "packed": "{ .c = 99, .i = 7 }", "bits": "{ .a = 7, .b = 8, .c = 9 }", "copied": "{ .a = 7 }",
    "virtual": "{ .a = 7 }", "aligned": "{ .a = 7 }", "either": "{ .f = 7, .i = 1088421888 }", "short": "-2",
    "unused": "8", "constant": "9",
}
RUST_ARGUMENTS = {
    "three": "{ .a = 31, .b = 32, .c = 33 }", "pair": "{ .a = 31, .b = 32 }", "small": "{ .a = 31, .f = 1.5 }",
    "uneven": "{ .variant = B, .B = { .__0 = 9 } }", "niche": "{ .variant = B, .B = { .__0 = 9 } }",
    "floats": "[1,2]", "shorts": "[1,2,3,4,5]", "large": "[1,2,3,4,5]", "text": "{ .data_ptr = ADDRESS, .length = 3 }",
    "option": "{ .variant = Some, .Some = { .__0 = 5 } }", "tuple": "{ .__0 = 1, .__1 = 31 }", "wide": "null",
}
RUST_RESULTS = {
    "three": "{ .a = 7, .b = 8, .c = 9 }", "pair": "{ .a = 7, .b = 500 }", "small": "{ .a = 7, .f = 1.5 }",
    "uneven": "{ .variant = B, .B = { .__0 = 9 } }", "niche": "{ .variant = B, .B = { .__0 = 9 } }",
    "option": "{ .variant = Some, .Some = { .__0 = 7 } }",
    "text": "{ .variant = Some, .Some = { .__0 = { .data_ptr = ADDRESS, .length = 1 } } }",
    "result": "{ .variant = Ok, .Ok = { .__0 = 47 } }", "tuple": "{ .__0 = 1, .__1 = 7 }", "bytes": "[1,2,7]",
    "shorts": "[1,2,3,4,7]", "number": "-2", "unused": "8", "constant": "9", "box": "ADDRESS",
}


def is_as(shown, truth):
    pattern = re.escape(truth).replace("ADDRESS", "0x[0-9a-f]{5,}")
    return re.fullmatch(pattern, shown) is not None


def lines_of(world, probe, shown):
    """Runs the action at each function; returns pairs of its short name, without the letter, and what was shown."""
    done = world.run("-q", "-c", "./program", "-e", f'{probe} {{ printf("%s ", func); print({shown}); }}')
    check(done.returncode == 0, done.stderr)
    found = [line.partition(" ")[::2] for line in done.stdout.splitlines() if line]
    return [(re.sub(r"^.*:|\..*$", "", name).partition("_")[2], text) for name, text in found], done.stderr


def all_right(world, prefix, arguments, results, least):
    taken, said = lines_of(world, f"uprobe:./program:{prefix}a_*", "args")
    for name, text in taken:
        found = re.fullmatch(r"\{(?: \.(?:self|y) = \w+,?)*(?: \.t = (.*?),?)?(?: \.z = (\d+))? \}", text)
        check(found, f"{name}: {text}")
        check(found[1] is None or is_as(found[1], arguments.get(name, "")), f"{name}: {text}")
        check(found[2] in (None, "77"), f"{name}: {text}")
    given, more = lines_of(world, f"uretprobe:./program:{prefix}[rs]_*", "retval")
    for name, text in given:
        check(is_as(text, results.get(name, "")), f"result of {name}: {text}")
    count = len(taken) + len(given)
    check(count >= least, f"only {count} values are shown")
    check(len(given) == len(results) or "espy skips" in more, "a result is missing: " + more)


def with_compiler(world, compiler, source, *options):
    if shutil.which(compiler) is None:
        return f"no {compiler}"
    done = subprocess.run([compiler, *options, "-g", SOURCES / source, "-o", "program"], cwd=world.directory,
                          capture_output=True, text=True)
    return f"{compiler} fails: {done.stderr[:200]}" if done.returncode != 0 else None


def half_in_vector_register(world):
    """Of struct { double d; long l; }, the number in an integer register."""
    if platform.machine() != "x86_64":
        return
    done = world.run("-q", "-c", "./program", "-e", "uprobe:./program:a_mixed { print((args.t.l, args.z)); }")
    check("(32, 77)" in done.stdout, done.stdout + done.stderr)


def c_plus_plus(compiler, level):
    def case(world):
        reason = with_compiler(world, compiler, "conventions.cc", level, "-w", "-std=c++17")
        return reason or all_right(world, "", CC_ARGUMENTS, CC_RESULTS, 20) or half_in_vector_register(world)
    case.__name__ = f"{compiler}{level}".replace("+", "x")
    return case


def rust(level):
    def case(world):
        reason = with_compiler(world, "rustc", "conventions.rs", "-C", f"opt-level={level}")
        if reason:
            return reason
        # Optimised private functions have no known convention, and tell little.
        return all_right(world, "conventions::*", RUST_ARGUMENTS, RUST_RESULTS, 15 if level == 0 else 1)
    case.__name__ = f"rust_O{level}"
    return case


def program_of_32_bits(world):
    (world.directory / "m32.c").write_text("""
        __attribute__((noinline)) int leaf(int x, int y) { asm volatile("" :: "r"(x), "r"(y)); return x - y - 9; }
        static void end(int status) { asm volatile("int $0x80" :: "a"(1), "b"(status)); }
        void _start(void) { int all = 0; for (int i = 0; i < 7; i++) all += leaf(i, 5); end(all == 1000); }""")
    options = ["-m32", "-O1", "-g", "-nostdlib", "-static", "-fno-pie", "-no-pie", "m32.c", "-o", "program"]
    if subprocess.run(["cc", *options], cwd=world.directory, capture_output=True).returncode != 0:
        return "cc makes no programs of 32 bits"
    if world.run("-q", "-c", "./program", "-e", "begin { exit(); }").returncode != 0:
        return "this kernel runs no programs of 32 bits"
    done = world.run("-q", "-c", "./program", "-e", "uprobe:./program:leaf { @n = count(); }")
    check("@n: 7" in done.stdout, done.stdout + done.stderr)
    for probe, shown in [("uprobe", "args"), ("uprobe", "args.x"), ("uprobe", "arg0"), ("uprobe", "sarg0"),
                         ("uprobe", "locals"), ("uretprobe", "retval")]:
        done = world.run("-q", "-c", "./program", "-e", f"{probe}:./program:leaf {{ print({shown}); }}")
        check(done.returncode != 0 and "32-bit programs" in done.stderr, f"{shown}: {done.stdout}{done.stderr}")


CASES = [c_plus_plus(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O2")]
CASES += [rust(level) for level in (0, 1, 3)] + [program_of_32_bits]

if __name__ == "__main__":
    main(CASES, lambda world: None)
