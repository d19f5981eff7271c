#!/usr/bin/env python3
"""scripts/fuzz-hours: a change counts for a target if it is in a function that the target reaches, or just below it;
hours count between commits that have its code as it is now."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from script_module import load_script  # noqa: E402

fuzz_hours = load_script("fuzz-hours")

code = fuzz_hours.Code(f"""COVERED_FUNC: hits: 2 edges: 1/3 espy::first(int) {ROOT}/src/a.cc:10
UNCOVERED_FUNC: hits: 0 edges: 0/3 espy::second() {ROOT}/src/a.cc:20
COVERED_FUNC: hits: 1 edges: 1/1 espy::Type<espy::A, int>::third() const {ROOT}/src/b.h:5
COVERED_FUNC: hits: 1 edges: 1/1 of_the_library /usr/include/library.h:12
""")
for lines, is_changed in [((10, 10), True), ((19, 19), True), ((5, 12), True), ((9, 9), False), ((20, 20), False),
                          ((30, 40), False)]:
    assert code.changed_by({"src/a.cc": [lines]}) == (["src/a.cc"] if is_changed else []), lines
assert code.changed_by({"src/b.h": [(900, 900)]}) == ["src/b.h"]
assert code.changed_by({"src/c.cc": [(10, 10)]}) == []
assert fuzz_hours.NO_CODE.match("+  // A comment.") and fuzz_hours.NO_CODE.match('-#include "base/files.h"')
assert fuzz_hours.NO_CODE.match("+") and not fuzz_hours.NO_CODE.match("+  return 1;  // one")

hours = fuzz_hours.counted_seconds
assert hours([10, 13, 18], [[], [], []]) == 8
assert hours([10, 13, 18], [["src/a.cc"], [], []]) == 5
assert hours([10, 13, 18], [[], [], ["src/a.cc"]]) == 3
assert hours([10, 13, 18, 25], [[], ["src/a.cc"], [], []]) == 7
assert hours([10], [[]]) == 0
