// The kernel is the judge: scripts are loaded and run on it, with and without the optimizer, and their scalar maps read
// back. Skipped where programs may not be loaded.
#include <unistd.h>

#include "compile/compile.h"
#include "kernel/kernel.h"
#include "load/machine.h"
#include "lower_support.h"

namespace espy::lower {
namespace {

class LowerOnKernel : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    machine_ = load::open_linux();
    if (!machine_->try_feature(kernel::Feature::kBpfV3)) GTEST_SKIP() << "bpf() is not permitted here";
    kernel_ = std::move(*kernel::open_kernel("/", {[this](kernel::Feature f) { return machine_->try_feature(f); }}));
    machine_->use_btf({[this](std::string_view name) { return kernel_->kfunc_id(name); },
                       [](std::string_view) { return std::optional<uint32_t>(); }});
  }

  // Runs the script's first program and gives its map @r.
  int64_t run(const std::string& text) {
    machine_ = load::open_linux();  // one holds one program
    Script script(text, *kernel_);
    const compile::Compiled compiled = compile::compile(script.checked, script.types, *kernel_,
                                                        {.optimize = GetParam(), .after_pass = opt::verify_after_pass});
    EXPECT_FALSE(compiled.diagnostics.has_errors());
    const program::Program& program = compiled.program;
    const Status loaded = machine_->load(program, script.types, script.sources);
    if (!loaded) {
      ADD_FAILURE() << text << "\n" << (machine_->refusal() ? machine_->refusal()->log : loaded.error().message);
      return 0;
    }
    EXPECT_TRUE(machine_->run(program::ProgramId{0}));
    for (const program::ScriptMap& map : program.script_maps) {
      if (map.name != "@r") continue;
      const std::byte* at = machine_->memory(program.globals).data() + map.offset_bytes + 8;
      const types::Type& type = script.types[map.value];
      int64_t value = 0;
      std::memcpy(&value, at, type.size_bytes);
      const int unused = 64 - static_cast<int>(type.size_bytes) * 8;
      const uint64_t high = static_cast<uint64_t>(value) << unused;
      return type.is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
    }
    ADD_FAILURE() << "no @r in " << text;
    return 0;
  }

  std::unique_ptr<load::Machine> machine_;
  std::unique_ptr<kernel::Kernel> kernel_;
};

TEST_P(LowerOnKernel, Arithmetic) {
  EXPECT_EQ(run("begin { $x = (int64)-7; @r = $x / 2; }"), -3);
  EXPECT_EQ(run("begin { $x = (int64)-7; @r = $x % 3; }"), -1);
  EXPECT_EQ(run("begin { $x = (uint64)7; $z = (uint64)0; @r = $x / $z + $x % $z; }"), 2);
  EXPECT_EQ(run("begin { $x = (int64)-8; @r = $x >> 1; }"), -4);
  EXPECT_EQ(run("begin { $x = (uint8)200; @r = (uint8)($x + 100); }"), 44);
  EXPECT_EQ(run("begin { $x = (int32)-1; @r = $x < (int32)1 ? 1 : 2; }"), 1);
}

TEST_P(LowerOnKernel, VariablesStepInPlace) {
  EXPECT_EQ(run("begin { $x = 5; $y = $x++; @r = $x * 10 + $y; }"), 65);
  EXPECT_EQ(run("begin { @x = 5; $y = ++@x; @r = $y; }"), 6);
  EXPECT_EQ(run("begin { @m[1] = 5; @m[1] += 3; @m[2]++; @r = @m[1] * 10 + @m[2]; }"), 81);
}

TEST_P(LowerOnKernel, LoopsEndWhereTheyShould) {
  EXPECT_EQ(run("begin { $s = 0; for ($i : 0..10) { if ($i == 7) { break; } if ($i == 2) { continue; } $s += $i; } "
                "@r = $s; }"),
            19);
  EXPECT_EQ(run("begin { $s = 0; $i = 0; while ($i < 100) { $i++; $s += 2; } @r = $s; }"), 200);
  EXPECT_EQ(run("begin { $s = 0; unroll(5) { $s += 3; } @r = $s; }"), 15);
}

TEST_P(LowerOnKernel, MapLoopsShareVariables) {
  EXPECT_EQ(run("begin { @m[1] = 10; @m[2] = 20; $s = 0; for ($kv : @m) { $s += $kv.0 + $kv.1; } @r = $s; }"), 33);
  EXPECT_EQ(run("begin { @m[1] = 1; @m[2] = 1; @r = 0; for ($a : @m) { for ($b : @m) { @r += $a.1 * $b.1; } } }"), 4);
  EXPECT_EQ(run("begin { @r = 1; @m[1] = 1; for ($a : @m) { return; } @r = 2; }"), 1);
}

TEST_P(LowerOnKernel, FunctionsReturn) {
  EXPECT_EQ(run("fn top($a : int64, $b : int64) : int64 { if ($a > $b) { return $a; } return $b; } "
                "begin { @r = top(3, 9) * 10 + top(4, 1); }"),
            94);
}

TEST_P(LowerOnKernel, StringsCompareByContent) {
  EXPECT_EQ(run("begin { $s = \"abc\"; @s = $s; @r = @s == \"abc\" ? 1 : 0; }"), 1);
  EXPECT_EQ(run("begin { $s = \"abc\"; @r = $s != \"abd\" ? 1 : 0; }"), 1);
  EXPECT_EQ(run("begin { @m[\"a longer key\"] = 7; @m[\"b\"] = 2; $k = \"b\"; @r = @m[$k]; }"), 2);
}

TEST_P(LowerOnKernel, TuplesKeepTheirParts) {
  EXPECT_EQ(run("begin { $t = (1, \"x\", (2, 3)); @m[$t] = 4; @r = $t.2.1 * 10 + @m[$t]; }"), 34);
  EXPECT_EQ(run("begin { @m[1, \"x\"] = 5; @r = @m[(1, \"x\")]; }"), 5);
}

TEST_P(LowerOnKernel, AggregationsAreMergedWhenRead) {
  EXPECT_EQ(run("begin { @c = count(); @c = count(); @r = (int64)@c; }"), 2);
  EXPECT_EQ(run("begin { @c[1] = count(); @c[1] = count(); @c[2] = count(); @r = (int64)@c[1]; }"), 2);
}

TEST_P(LowerOnKernel, DeletedKeysAreGone) {
  EXPECT_EQ(run("begin { @m[1] = 5; delete(@m[1]); @r = @m[1] + 1; }"), 1);
  EXPECT_EQ(run("begin { @m[1] = 5; @m[2] = 5; @r = len(@m); }"), 2);
}

TEST_P(LowerOnKernel, WhatFollowsExitIsNotReached) { EXPECT_EQ(run("begin { @r = 1; exit(); @r = 2; }"), 1); }

TEST_P(LowerOnKernel, RecordsAreCompleteAndGiveBackWhatTheyDoNotNeed) {
  Script script("begin { $s = str(0); printf(\"%s %d\", $s, 7); printf(\"%d\", 9); }", *kernel_);
  const compile::Compiled compiled = compile::compile(script.checked, script.types, *kernel_,
                                                      {.optimize = GetParam(), .after_pass = opt::verify_after_pass});
  ASSERT_FALSE(compiled.diagnostics.has_errors());
  const program::Program& program = compiled.program;
  ASSERT_TRUE(machine_->load(program, script.types, script.sources));
  ASSERT_TRUE(machine_->run(program::ProgramId{0}));
  const std::span<std::byte> all = machine_->memory(program.ring);
  const uint32_t size = program.maps[program.ring].value_size;
  int found = 0;
  for (uint32_t cpu = 0; cpu < program.cpu_count; ++cpu) {
    const std::byte* ring = all.data() + size_t{cpu} * size;
    uint64_t head = 0;
    std::memcpy(&head, ring, 8);
    if (head == 0) continue;
    uint64_t at = 0;
    while (at < head) {
      program::RecordHeader header = {};
      std::memcpy(&header, ring + 4096 + at, sizeof(header));
      EXPECT_EQ(header.event_plus_one, static_cast<uint32_t>(++found));
      EXPECT_LE(header.size_bytes, 48u);
      ASSERT_GT(header.size_bytes, 0u);
      at += header.size_bytes;
    }
    EXPECT_EQ(at, head);
  }
  EXPECT_EQ(found, 2);
}

INSTANTIATE_TEST_SUITE_P(Both, LowerOnKernel, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Optimized" : "Plain"; });

}  // namespace
}  // namespace espy::lower
