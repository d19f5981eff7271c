// What type everything gets.
#include <gtest/gtest.h>

#include "check_support.h"

namespace espy::check {
namespace {

struct Row {
  const char* script;
  const char* types;
};

class CheckTypes : public ::testing::TestWithParam<Row> {};

TEST_P(CheckTypes, Infers) { EXPECT_EQ(Session(GetParam().script).typed(), GetParam().types) << GetParam().script; }

INSTANTIATE_TEST_SUITE_P(Literals, CheckTypes,
                         ::testing::Values(Row{"begin { $a = 0 }", "$a int8"}, Row{"begin { $a = 1000 }", "$a int16"},
                                           Row{"begin { $a = -129 }", "$a int16"},
                                           Row{"begin { $a = 0xffffffffffffffff }", "$a uint64"},
                                           Row{"begin { $a = \"hi\" }", "$a string[3]"},
                                           Row{"begin { $a = true }", "$a bool"},
                                           Row{"begin { $a = 1 + 200 }", "$a int16"},
                                           Row{"begin { $a = (1, \"x\") }", "$a (int8,string[2])"}));

INSTANTIATE_TEST_SUITE_P(Widening, CheckTypes,
                         ::testing::Values(Row{"begin { $a = 1; $a = -1000 }", "$a int16"},
                                           Row{"begin { $a = 1; $a = (uint64)2 }", "$a uint64"},
                                           Row{"begin { $a = 1; $a = pid }", "$a uint32"},
                                           Row{"begin { $a = pid; $a = -1 }", "$a int64"},
                                           Row{"begin { $a = \"a\"; $a = \"abc\" }", "$a string[4]"},
                                           Row{"begin { $a = 0; $a++ }", "$a int64"},
                                           Row{"begin { $a = nsecs; $b = nsecs - $a }", "$a uint64; $b int64"},
                                           Row{"begin { @a = 1 } end { @a = 1000 }", "@a int16"}));

INSTANTIATE_TEST_SUITE_P(
    Maps, CheckTypes,
    ::testing::Values(
        Row{"begin { @[pid, comm] = count() }", "@[(uint32,string[16])] count_t"},
        Row{"begin { @[(pid, 1)] = 1; @[1, nsecs] = 2 }", "@[(uint32,uint64)] int8"},
        Row{"begin { @x++; print(@x) }", "@x int64"},
        Row{"begin { @s[tid] = nsecs } end { @h = hist((nsecs - @s[tid]) / 1000); delete(@s[tid]) }",
            "@s[uint32] uint64; @h hist_t"},
        Row{"begin { @c = count(); $a = @c + 1; $b = (int64)@c; if (@c > 5) { } }", "$a int64; $b int64; @c count_t"},
        Row{"begin { @a[1] = 2; for ($kv : @a) { $k = $kv.0 } }", "$kv (int8,int8); $k int8; @a[int8] int8"},
        Row{"let @m = lruhash(10); begin { @m[1] = 1 }", "@m[int8] int8"},
        Row{"begin { clear(@a); @a[kstack] = count() }", "@a[kstack_t] count_t"}));

INSTANTIATE_TEST_SUITE_P(
    Context, CheckTypes,
    ::testing::Values(
        Row{"kprobe:f { $a = arg0; $b = (struct task_struct *)arg1; $c = $b->parent->comm }",
            "$a uint64; $b struct task_struct *; $c string[16]"},
        Row{"kretprobe:f /retval < 0/ { @[-retval] = count() }", "@[int64] count_t"},
        Row{"t:sys:enter_open { $a = str(args->filename); $b = args.task.files.f_inner.b }", "$a string[64]; $b int32"},
        Row{"t:sys:enter_* { @[probe] = count() }", "@[probe] count_t"},
        Row{"begin { $a = GREEN; $b = sizeof(struct file); $c = offsetof(struct file, f_inner.b) }",
            "$a enum color; $b uint64; $c uint64"},
        Row{"struct me { char a; int b; short c : 3; }; begin { $a = sizeof(struct me); $b = ((struct me *)0)->b }",
            "$a uint64; $b int32"},
        Row{"#define N 40 + 2\nbegin { $a = N }", "$a int8"},
        Row{"fn f($a : int32) : uint64 { return 5 } begin { $b = f(2) }", "$b uint64; $a int32"}));

INSTANTIATE_TEST_SUITE_P(
    Macros, CheckTypes,
    ::testing::Values(Row{"macro add(a, b) { a + b } begin { $x = add(pid, 1) }", "$x uint64"},
                      Row{"macro set($v, @m) { $v = 300; @m = $v; let $t = 1; } begin { $t = 1; $x = 1; set($x, @q) }",
                          "$t int8; $x int16; $t#0 int8; @q int16"},
                      Row{"macro inner(a) { a + 1 } macro outer(a) { inner(a) } begin { $x = outer(2) }", "$x int8"},
                      Row{"macro zero() { 0 } begin { $x = zero + 1 }", "$x int8"}));

}  // namespace
}  // namespace espy::check
