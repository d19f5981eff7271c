#!/usr/bin/env python3
"""Judges what espy reads of a program's variables by what gdb shows. Usage: variables.py ESPY [SEED [all]]

Makes a C program of many functions with arguments and variables of all kinds, compiles it with -O2, or in `all` ways, asks
`espy -lv` for its statements, and at each of them lets both print every variable when it is first reached. They must
agree in each value that both show; espy must show nothing that gdb holds for optimised out, and little may be known to gdb
alone, floating-point numbers aside, which lie in registers that no probe can read. Ends with status 1 where they disagree,
or agree in too few.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile

FUNCTIONS = 5
ENOUGH = 100  # values in optimised code that both show
TOLERATED = 0.1  # of them, that only gdb shows

GDB_SCRIPT = r"""
import gdb, json

def plain(value):
    kind = value.type.strip_typedefs().code
    if kind == gdb.TYPE_CODE_STRUCT or kind == gdb.TYPE_CODE_UNION:
        return {field.name: plain(value[field]) for field in value.type.strip_typedefs().fields()}
    if kind == gdb.TYPE_CODE_ARRAY:
        low, high = value.type.range()
        items = [plain(value[i]) for i in range(low, high + 1)]
        if value.type.target().strip_typedefs().sizeof == 1:
            text = bytes(item & 255 for item in items)
            return text.split(b"\0")[0].decode("latin1")
        return items
    if kind == gdb.TYPE_CODE_FLT:
        return None
    if kind == gdb.TYPE_CODE_PTR:
        return {"pointer": int(value) != 0}
    if kind == gdb.TYPE_CODE_ENUM:
        return {"enum": [int(value), str(value)]}
    if kind == gdb.TYPE_CODE_BOOL:
        return bool(value)
    return int(value)

def variables(frame):
    found = {}
    while True:
        block = frame.block()
        while True:
            for symbol in block:
                if not (symbol.is_variable or symbol.is_argument) or symbol.name in found:
                    continue
                try:
                    value = symbol.value(frame)
                    found[symbol.name] = "gone" if value.is_optimized_out else plain(value)
                except gdb.error:
                    found[symbol.name] = "beyond gdb"
            if block.function is not None:
                break
            block = block.superblock
        if frame.type() != gdb.INLINE_FRAME:
            return found
        frame = frame.older()

gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("starti", to_string=True)
places = json.load(open("places.json"))
starts = []
for place in places:
    start = "(unsigned long)&%s + %d" % (place["function"], place["offset"])
    starts.append(int(gdb.parse_and_eval(start)))
    gdb.execute("tbreak *%d" % starts[-1], to_string=True)
out = {}
while True:
    try:
        gdb.execute("continue", to_string=True)
        frame = gdb.selected_frame()
    except gdb.error:
        break
    out[frame.pc()] = variables(frame)
json.dump([out.get(start) for start in starts], open("gdb.json", "w"))
"""


class Program:
    """A C program, the same for the same seed."""

    TYPES = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long",
             "unsigned long", "long long", "_Bool", "enum color", "float", "double"]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [
            "#ifdef __clang__", "#define noipa noinline", "#endif",
            "enum color { kRed, kGreen = 7, kBlue };",
            "struct small { int one; short two; unsigned bits : 5; unsigned more : 9; };",
            "struct big { long first; char text[12]; struct small inner; int numbers[3]; struct big *next; };",
            "volatile long sink;",
            "static inline __attribute__((always_inline)) int mix(int left, int right) {",
            "  int mixed = left * 3 + right;",
            "  sink += mixed;",
            "  return mixed ^ 5;",
            "}",
            "__attribute__((noipa)) int opaque(const void *at, long value) { sink += value; return (int)(value + (at != 0)); }",
        ]
        # What is not set yet must be the same in both runs.
        self.lines.append("__attribute__((noipa)) void scrub(void) { volatile char below[8192] = {0}; sink += below[5]; }")
        for number in range(FUNCTIONS):
            self.function(number)
        self.lines.append("int main(void) {")
        self.lines.append('  struct big second = {2, "second", {5, 6, 7, 8}, {9, 10, 11}, 0};')
        self.lines.append('  struct big first = {1, "first", {-1, -2, 3, 4}, {3, 4, 5}, &second};')
        self.lines.append("  struct small tiny = {100, -200, 30, 400};")
        for number in range(FUNCTIONS):
            self.lines.append(f"  scrub(); sink += f{number}({', '.join(self.calls[number])});")
        self.lines.append("  return 0;")
        self.lines.append("}")

    calls = {}

    def function(self, number):
        pick = self.random
        count = pick.randint(2, 8)
        parameters, values, scalars = [], [], []
        for i in range(count):
            what = pick.random()
            if what < 0.12:
                parameters.append(f"struct small p{i}")
                values.append("tiny")
                scalars.append(f"p{i}.one")
            elif what < 0.24:
                parameters.append(f"struct big *p{i}")
                values.append("&first")
                scalars.append(f"(int)p{i}->first")
            elif what < 0.3:
                parameters.append(f"struct big p{i}")
                values.append("second")
                scalars.append(f"p{i}.numbers[1]")
            else:
                kind = pick.choice(self.TYPES)
                parameters.append(f"{kind} p{i}")
                values.append("1" if kind == "_Bool" else "kGreen" if kind.startswith("enum") else
                              str(pick.randint(-99, 99)) if "unsigned" not in kind else str(pick.randint(1, 99)))
                scalars.append(f"(int)p{i}")
        self.calls[number] = values
        put = self.lines.append
        put(f"__attribute__((noipa)) static long f{number}({', '.join(parameters)}) {{")
        put(f"  int a = {pick.choice(scalars)} + {pick.randint(1, 50)};")
        put(f"  long b = a * {pick.randint(2, 9)}L - {pick.choice(scalars)};")
        put(f"  unsigned char c = (unsigned char)(b + {pick.choice(scalars)});")
        put(f"  struct small s = {{a, (short)b, c & 31, {pick.randint(1, 300)}}};")
        put(f"  const int known = {pick.randint(1, 1000)};")
        put("  int table[4] = {a, c, known, 4};")
        put("  char text[8] = \"text\";")
        put(f"  for (int i = 0; i < {pick.randint(2, 5)}; i++) {{")
        put(f"    short step = (short)(a + i * {pick.randint(2, 7)});")
        put("    b += step * s.one;")
        put("    sink += b;")
        if pick.random() < 0.5:
            put(f"    a = opaque({pick.choice(['&s', '0', 'text'])}, b + step);")
        put("  }")
        if pick.random() < 0.6:
            put("  int mixed_in = mix(a, c);")
            put("  b -= mixed_in;")
        put(f"  int later = opaque({pick.choice(['table', 'text', '&s', '0'])}, b);")
        put(f"  enum color color = later > {pick.randint(-50, 500)} ? kBlue : kRed;")
        put("  sink += later + color;")
        put(f"  return b + c + known + s.two + {pick.choice(scalars)};")
        put("}")

    def text(self):
        return "\n".join(self.lines) + "\n"


REFUSED = re.compile(r"^(is|has|points|was) ")


def statements(espy, binary):
    """Of `espy -lv`: name, function, offset, and the variables that can be read."""
    listed = subprocess.run([espy, "-lv", f"uprobe:{binary}@program.c:*"], capture_output=True, text=True, check=True)
    found = []
    for line in listed.stdout.splitlines():
        if not line.startswith(" "):
            found.append({"name": line, "readable": []})
        elif place := re.match(r"\s+column \d+ in .*, at (\S+)\+(\d+)$", line):
            found[-1]["function"], found[-1]["offset"] = place[1], int(place[2])
        else:
            variable, where = line.rsplit(": ", 1) if not re.search(r": (is|has|points) ", line) else line.split(": ", 1)
            if not REFUSED.match(where):
                found[-1]["readable"].append(variable.split()[-1].lstrip("*"))
    names = [each["name"] for each in found]
    return [each for each in found if names.count(each["name"]) == 1 and re.match(r"f\d+$", each["function"])]


def by_espy(espy, binary, places):
    script = ""
    for number, place in enumerate(places):
        fields = ", ".join(f"{name} = locals.{name}" for name in place["readable"])
        script += f"{place['name']} /@seen[{number}] == 0/ {{ @seen[{number}] = 1; print(({number}, ({fields}{',' if len(place['readable']) == 1 else ''}))); }}\n"
    script += "end { clear(@seen); }\n"
    ran = subprocess.run([espy, "-f", "json", "-c", binary, "-"], input=script, capture_output=True, encoding="latin1")
    if ran.returncode != 0:
        sys.exit(f"espy failed:\n{ran.stderr}")
    out = {}
    for line in ran.stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "value":
            out[record["data"][0]] = record["data"][1]
    return out


def by_gdb(directory, binary, places):
    json.dump([{"function": p["function"], "offset": p["offset"]} for p in places],
              open(os.path.join(directory, "places.json"), "w"))
    with open(os.path.join(directory, "judge.py"), "w") as script:
        script.write(GDB_SCRIPT)
    subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", "judge.py", binary], cwd=directory, capture_output=True)
    return json.load(open(os.path.join(directory, "gdb.json")))


def same(ours, theirs):
    if theirs is None:
        return True  # floating point
    if isinstance(ours, str) and isinstance(theirs, int):
        ours = int(ours)  # too large for JSON's numbers
    if isinstance(theirs, dict) and "pointer" in theirs:
        return (ours != 0) == theirs["pointer"]
    if isinstance(theirs, dict) and "enum" in theirs:
        return ours in theirs["enum"]
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(same(ours.get(name), theirs[name]) for name in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return bool(ours) == bool(theirs)
    return ours == theirs


def judge(espy, directory, binary):
    places = [place for place in statements(espy, binary) if place["readable"]]
    # In this order: the kernel may take its time to remove probes.
    theirs, ours = by_gdb(directory, binary, places), by_espy(espy, binary, places)
    agreed = wrong = beyond = floating = unread = 0
    for number, (place, seen) in enumerate(zip(places, theirs)):
        if seen is None or number not in ours:
            unread += 1
            continue
        for name, value in seen.items():
            if name not in place["readable"]:
                floating += value is None
                beyond += value not in ("gone", "beyond gdb", None)
            elif value == "beyond gdb":
                continue
            elif value != "gone" and same(ours[number][name], value):
                agreed += 1
            else:
                wrong += 1
                if wrong <= 10:
                    print(f"{place['name']} ({place['function']}+{place['offset']}): {name} is "
                          f"{ours[number][name]} for espy, {value} for gdb")
    return agreed, wrong, beyond, floating, unread


def main():
    espy = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    ways = [["gcc", "-O2"]]
    if sys.argv[3:] == ["all"]:
        ways += [["gcc", "-O0"], ["gcc", "-O2", "-gdwarf-4"], ["gcc", "-O3", "-no-pie"], ["clang", "-O2"], ["clang", "-O0"]]
    status = 0
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "program.c"), "w") as file:
            file.write(Program(seed).text())
        for number, way in enumerate(ways):
            if subprocess.run(["which", way[0]], capture_output=True).returncode != 0:
                continue
            binary = os.path.join(directory, f"program{number}")
            # Without padding: not every kernel has probes on it.
            command = [*way[:1], "-g", *way[1:], "-w", "-falign-loops=1", "-falign-jumps=1", "-o", binary, "program.c"]
            subprocess.run(command, cwd=directory, check=True)
            agreed, wrong, beyond, floating, unread = judge(espy, directory, binary)
            print(f"{' '.join(way)}: {agreed} values agree, {wrong} do not, {beyond} only gdb has and {floating} more that "
                  f"are floating-point, {unread} places not reached")
            if wrong > 0 or agreed < ENOUGH or beyond > agreed * TOLERATED:
                status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
