// Whole messages, as the user reads them.
#include <gtest/gtest.h>

#include "check_support.h"

namespace espy::check {
namespace {

struct Row {
  const char* script;
  const char* rendered;
};

class CheckErrors : public ::testing::TestWithParam<Row> {};

TEST_P(CheckErrors, AreSaid) { EXPECT_EQ(Session(GetParam().script).rendered(), GetParam().rendered); }

INSTANTIATE_TEST_SUITE_P(
    Names, CheckErrors,
    ::testing::Values(
        Row{"begin { strr(1) }",
            "t:1:9: error: no function named `strr` [unknown-function]\n"
            "  1 | begin { strr(1) }\n"
            "    |         ^~~~ did you mean `str`?\n"},
        Row{"begin { print(pidd) }",
            "t:1:15: error: nothing is named `pidd` [unknown-name]\n"
            "  1 | begin { print(pidd) }\n"
            "    |               ^~~~ did you mean `pid`?\n"},
        Row{"begin { print($x) }",
            "t:1:15: error: `$x` is used before anything is assigned to it [unset-variable]\n"
            "  1 | begin { print($x) }\n"
            "    |               ^~\n"},
        Row{"begin { $a = 1; if (1) { let $a = 2; } }",
            "t:1:30: error: `$a` is declared already, and variables cannot be shadowed [shadowed-variable]\n"
            "  1 | begin { $a = 1; if (1) { let $a = 2; } }\n"
            "    |                              ^~ use another name\n"
            "t:1:9: note: declared here\n"
            "  1 | begin { $a = 1; if (1) { let $a = 2; } }\n"
            "    |         ^~\n"},
        Row{"macro again(a) { again(a) } begin { $x = again(2) }",
            "t:1:18: error: the macro `again` calls itself [recursive-macro]\n"
            "  1 | macro again(a) { again(a) } begin { $x = again(2) }\n"
            "    |                  ^~~~~~~~\n"
            "t:1:42: note: expanded from `again`\n"
            "  1 | macro again(a) { again(a) } begin { $x = again(2) }\n"
            "    |                                          ^~~~~~~~\n"
            "t:1:7: note: defined here\n"
            "  1 | macro again(a) { again(a) } begin { $x = again(2) }\n"
            "    |       ^~~~~\n"},
        Row{"begn { }",
            "t:1:1: error: no probe type named `begn` [unknown-probe]\n"
            "  1 | begn { }\n"
            "    | ^~~~ did you mean `begin`?\n"},
        Row{"t:sys:nothing { }",
            "t:1:1: error: no probe matches `t:sys:nothing` [no-such-probe]\n"
            "  1 | t:sys:nothing { }\n"
            "    | ^~~~~~~~~~~~~ `espy list WORD` searches in the names of probes\n"},
        Row{"t:sys:enter_open { print(args.filenam) }",
            "t:1:31: error: `tracepoint:sys:enter_open` has no argument `filenam` [unknown-argument]\n"
            "  1 | t:sys:enter_open { print(args.filenam) }\n"
            "    |                               ^~~~~~~ did you mean `filename`?\n"},
        Row{"begin { print(args.x) }",
            "t:1:20: error: `begin` probes have no `args` here [unknown-argument]\n"
            "  1 | begin { print(args.x) }\n"
            "    |                    ^\n"},
        Row{"begin { print(retval) }",
            "t:1:15: error: `begin` probes have no `retval` [no-context]\n"
            "  1 | begin { print(retval) }\n"
            "    |               ^~~~~~ kretprobe, uretprobe and fexit have it\n"},
        Row{"begin { $t = (struct task_struct *)0; print($t->pi) }",
            "t:1:49: error: `struct task_struct` has no member `pi` [unknown-member]\n"
            "  1 | begin { $t = (struct task_struct *)0; print($t->pi) }\n"
            "    |                                                 ^~ did you mean `pid`?\n"},
        Row{"begin { $t = (struct nothing *)0 }",
            "t:1:15: error: no type named `struct nothing` [unknown-type]\n"
            "  1 | begin { $t = (struct nothing *)0 }\n"
            "    |               ^~~~~~~~~~~~~~~~ define it in the script\n"},
        Row{"config = { max_strln = 5 } begin { }",
            "t:1:12: error: no config variable named `max_strln` [unknown-config]\n"
            "  1 | config = { max_strln = 5 } begin { }\n"
            "    |            ^~~~~~~~~ did you mean `max_strlen`?\n"},
        Row{"config = { stack_mode = foo } begin { }",
            "t:1:25: error: `stack_mode` must be bpftrace, perf, raw or build_id [bad-config]\n"
            "  1 | config = { stack_mode = foo } begin { }\n"
            "    |                         ^~~\n"}));

INSTANTIATE_TEST_SUITE_P(
    Types, CheckErrors,
    ::testing::Values(
        Row{"begin { $a = 1; $a = \"x\" }",
            "t:1:22: error: `$a` is `int8` and cannot hold `string[2]` [type-mismatch]\n"
            "  1 | begin { $a = 1; $a = \"x\" }\n"
            "    |                      ^~~\n"
            "t:1:9: note: first seen here\n"
            "  1 | begin { $a = 1; $a = \"x\" }\n"
            "    |         ^~\n"},
        Row{"begin { let $a : int8 = 300; }",
            "t:1:25: error: the value does not fit `$a`, which is `int8` [out-of-range]\n"
            "  1 | begin { let $a : int8 = 300; }\n"
            "    |                         ^~~\n"},
        Row{"begin { @a = 1; @a[2] = 3 }",
            "t:1:17: error: `@a` has no keys, but is used with one here [map-has-no-key]\n"
            "  1 | begin { @a = 1; @a[2] = 3 }\n"
            "    |                 ^~~~~\n"
            "t:1:9: note: used without a key here\n"
            "  1 | begin { @a = 1; @a[2] = 3 }\n"
            "    |         ^~\n"},
        Row{"begin { @a[1] = 1; @a[\"x\"] = 3 }",
            "t:1:23: error: the key of `@a` is `int8`, and cannot be `string[2]` [key-mismatch]\n"
            "  1 | begin { @a[1] = 1; @a[\"x\"] = 3 }\n"
            "    |                       ^~~\n"
            "t:1:9: note: first used here\n"
            "  1 | begin { @a[1] = 1; @a[\"x\"] = 3 }\n"
            "    |         ^~~~~\n"},
        Row{"begin { @a[1] = 1; @a[1, 2] = 3 }",
            "t:1:20: error: `@a` has keys of 1 value, 2 are given here [key-mismatch]\n"
            "  1 | begin { @a[1] = 1; @a[1, 2] = 3 }\n"
            "    |                    ^~~~~~~~\n"
            "t:1:9: note: first used here\n"
            "  1 | begin { @a[1] = 1; @a[1, 2] = 3 }\n"
            "    |         ^~~~~\n"},
        Row{"begin { @a = count(); @a = 5 }",
            "t:1:28: error: `@a` holds `count_t`, and cannot hold a plain value [type-mismatch]\n"
            "  1 | begin { @a = count(); @a = 5 }\n"
            "    |                            ^\n"
            "t:1:14: note: first assigned here\n"
            "  1 | begin { @a = count(); @a = 5 }\n"
            "    |              ^~~~~~~\n"},
        Row{"begin { @a = (uint64)1; @a = -1 }",
            "t:1:14: warning: `@a` holds signed and unsigned values, so it becomes `int64` [mixed-signs]\n"
            "  1 | begin { @a = (uint64)1; @a = -1 }\n"
            "    |              ^~~~~~~~~ cast one of them\n"},
        Row{"begin { count() }",
            "t:1:9: error: an aggregation must be assigned to a map [aggregation-not-assigned]\n"
            "  1 | begin { count() }\n"
            "    |         ^~~~~~~ write `@ = count()`\n"},
        Row{"begin { $a = 1 / 0 }",
            "t:1:14: error: this divides by zero [bad-constant]\n"
            "  1 | begin { $a = 1 / 0 }\n"
            "    |              ^~~~~\n"},
        Row{"begin { $a = \"x\" + 1 }",
            "t:1:18: error: `+` does not work on `string[2]` and `int8` [bad-operands]\n"
            "  1 | begin { $a = \"x\" + 1 }\n"
            "    |                  ^\n"},
        Row{"begin { $a = \"x\" == 1 }",
            "t:1:18: error: `==` does not work on `string[2]` and `int8` [bad-operands]\n"
            "  1 | begin { $a = \"x\" == 1 }\n"
            "    |                  ^~\n"},
        Row{"begin { $a = (1, 2).5 }",
            "t:1:14: error: `(int8,int8)` has 2 elements, counted from 0 [bad-index]\n"
            "  1 | begin { $a = (1, 2).5 }\n"
            "    |              ^~~~~~~~\n"},
        Row{"begin { $a = *1 }",
            "t:1:14: error: only pointers can be dereferenced, and this is `int8` [not-a-pointer]\n"
            "  1 | begin { $a = *1 }\n"
            "    |              ^~\n"},
        Row{"begin { 1 + 1 }",
            "t:1:9: warning: this value is not used [unused-value]\n"
            "  1 | begin { 1 + 1 }\n"
            "    |         ^~~~~ write `_ = ...` to discard it\n"}));

INSTANTIATE_TEST_SUITE_P(
    Calls, CheckErrors,
    ::testing::Values(
        Row{"begin { str() }",
            "t:1:9: error: `str` takes 1 or 2 arguments, 0 given [wrong-arity]\n"
            "  1 | begin { str() }\n"
            "    |         ^~~~~ it is `any str(pointer p, int length = 64)`\n"},
        Row{"begin { $a = str(1, 2, 3) }",
            "t:1:14: error: `str` takes 1 or 2 arguments, 3 given [wrong-arity]\n"
            "  1 | begin { $a = str(1, 2, 3) }\n"
            "    |              ^~~~~~~~~~~~ it is `any str(pointer p, int length = 64)`\n"},
        Row{"begin { printf(comm) }",
            "t:1:16: error: `printf`'s first argument must be a string literal [not-constant]\n"
            "  1 | begin { printf(comm) }\n"
            "    |                ^~~~\n"},
        Row{"begin { printf(5) }",
            "t:1:16: error: `printf`'s first argument must be a string literal, not `int8` [wrong-argument]\n"
            "  1 | begin { printf(5) }\n"
            "    |                ^\n"},
        Row{"begin { clear(1) }",
            "t:1:15: error: `clear`'s first argument must be a map [not-a-map]\n"
            "  1 | begin { clear(1) }\n"
            "    |               ^\n"},
        Row{"begin { system(\"ls\") }",
            "t:1:9: error: `system` can change the system [unsafe]\n"
            "  1 | begin { system(\"ls\") }\n"
            "    |         ^~~~~~~~~~~~ run with --unsafe to allow it\n"},
        Row{"begin { override(1) }",
            "t:1:9: error: `override` does not work in a `begin` probe [wrong-probe]\n"
            "  1 | begin { override(1) }\n"
            "    |         ^~~~~~~~~~~ it works in tracepoint\n"},
        Row{"begin { while (1) { exit() } }",
            "t:1:21: error: `exit` cannot be called in a loop [exit-in-loop]\n"
            "  1 | begin { while (1) { exit() } }\n"
            "    |                     ^~~~~~ use `break`, and call it after the loop\n"},
        Row{"begin { break; }",
            "t:1:9: error: `break` outside a loop [not-in-loop]\n"
            "  1 | begin { break; }\n"
            "    |         ^~~~~\n"},
        Row{"begin { unroll (200) { } }",
            "t:1:17: error: `unroll` repeats 1 to 100 times, not 200 [out-of-range]\n"
            "  1 | begin { unroll (200) { } }\n"
            "    |                 ^~~\n"},
        Row{"begin { printf }",
            "t:1:9: error: `printf` is a function [not-called]\n"
            "  1 | begin { printf }\n"
            "    |         ^~~~~~ write `printf(...)`\n"}));

// The sizes of the two arguments add up to 0 in 32 bits.
INSTANTIATE_TEST_SUITE_P(
    LargeCopies, CheckErrors,
    ::testing::Values(
        Row{"huge { print(args) }",
            "t:1:14: error: this takes 4294967296 bytes, too many to be copied: 261120 at most [type-too-large]\n"
            "  1 | huge { print(args) }\n"
            "    |              ^~~~ use a member or an element of it, or its address\n"},
        Row{"huge { @m[1] = args.first }",
            "t:1:16: error: `struct first` takes 2147483648 bytes, too many to be copied: 261120 at most "
            "[type-too-large]\n"
            "  1 | huge { @m[1] = args.first }\n"
            "    |                ^~~~~~~~~~ use a member or an element of it, or its address\n"},
        Row{"huge { print(args.first.a); print(sizeof(args.second)) }", ""}, Row{"wide { print(args.a2999) }", ""},
        Row{"wide { print(args) }",
            "t:1:14: error: `args` has 3000 fields here, too many to be copied: 2048 at most [type-too-large]\n"
            "  1 | wide { print(args) }\n"
            "    |              ^~~~ name the fields: `args.NAME`\n"},
        Row{"struct half { int n[40000]; }; begin { @m[*(struct half *)0, *(struct half *)1] = 1 }",
            "t:1:40: error: this takes 320000 bytes, too many to be copied: 261120 at most [type-too-large]\n"
            "  1 | struct half { int n[40000]; }; begin { @m[*(struct half *)0, *(struct half *)1] = 1 }\n"
            "    |                                        ^~ use a member or an element of it, or its address\n"},
        Row{"struct row { int n[100000]; }; begin { let $x : struct row; }",
            "t:1:44: error: `struct row` takes 400000 bytes, too many to be copied: 261120 at most [type-too-large]\n"
            "  1 | struct row { int n[100000]; }; begin { let $x : struct row; }\n"
            "    |                                            ^~ use a member or an element of it, or its address\n"}));

}  // namespace
}  // namespace espy::check
