// compile() by itself, without a machine: its stages, and what it does with programs that do not fit on the stack.
#include "compile/compile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "check/check.h"
#include "ir/ir_text.h"
#include "kernel/kernel.h"
#include "run/environment.h"
#include "syntax/parser.h"

namespace espy::compile {
namespace {

// A checked script. The recorded kernel has all features.
struct Script {
  source::Sources sources;
  types::Types types;
  source::Diagnostics diagnostics;
  spec::Registry registry = run::make_registry();
  std::unique_ptr<kernel::Kernel> kernel = *kernel::open_recorded_kernel(ESPY_ROOT "/tests/kernels/6.18-x86_64");
  check::Checked checked;

  explicit Script(std::string text) {
    syntax::Ast ast = syntax::parse(sources, sources.add("test", std::move(text)), diagnostics);
    check::CheckRequest request{sources, registry, *kernel, types, nullptr, {}, diagnostics};
    checked = check::check(std::move(ast), request);
    EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, sources);
  }

  Compiled compile(Options options = {}) {
    options.observer = [this](const StageResult& result) {
      EXPECT_EQ(ir::verify(result.ir), "");
      stages.push_back(result.stage);
      is_coded = !result.program.programs[program::ProgramId{0}].code.empty();
    };
    return compile::compile(checked, types, *kernel, options);
  }

  std::vector<Stage> stages;
  bool is_coded = false;
};

// Two loops with many branches.
std::string branchy_loops() {
  std::string out = "begin { $s = (uint64)0; for ($i : 0..100) { for ($j : 0..100) {\n";
  for (int i = 0; i < 30; ++i) out += fmt::format("if (nsecs % {} == 0) {{ $s += {}; }}\n", i + 3, i);
  return out + "} } @ = $s; }";
}

// Makes `count` numbers, all of them live until the last line: 8 bytes of stack each, but for a few in registers.
std::string live_numbers(int count) {
  std::string out, uses;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("$a{0} = nsecs + {0}; ", i);
    uses += fmt::format("@[{0}] = $a{0}; ", i);
  }
  return out + uses;
}

TEST(Compile, ReportsItsStagesInOrder) {
  Script script("begin { @ = 1; }");
  const Compiled compiled = script.compile();
  EXPECT_EQ(script.stages, (std::vector{Stage::kLower, Stage::kOptimize, Stage::kEmit}));
  EXPECT_TRUE(script.is_coded);
  EXPECT_FALSE(compiled.diagnostics.has_errors());
  EXPECT_EQ(compiled.program.programs.size(), 1u);
}

TEST(Compile, OutlinesLoopsOfComplexPrograms) {
  Script script(branchy_loops());
  const Compiled compiled = script.compile();
  EXPECT_EQ(script.stages, (std::vector{Stage::kLower, Stage::kOptimize, Stage::kOutlineLoops, Stage::kEmit}));
  EXPECT_GT(compiled.program.programs[program::ProgramId{0}].functions.size(), 1u);

  Script plain(branchy_loops());
  EXPECT_EQ(plain.compile({.outline_loops = false}).program.programs[program::ProgramId{0}].functions.size(), 1u);
}

TEST(Compile, MergesActionsUnlessToldOtherwise) {
  const char* text =
      "tracepoint:syscalls:sys_enter_openat { @a = count(); } tracepoint:syscalls:sys_exit_openat { @b = count(); } "
      "tracepoint:syscalls:sys_enter_close { @c = count(); }";
  const Compiled merged = Script(text).compile();
  EXPECT_TRUE(merged.has_merged_programs);
  const Compiled separate = Script(text).compile({.separate_programs = true});
  EXPECT_FALSE(separate.has_merged_programs);
  EXPECT_GT(separate.program.programs.size(), merged.program.programs.size());
}

// Each statement looks its key up.
std::string keyed_statements(int count) {
  std::string out = "begin { ";
  for (int i = 0; i < count; ++i) out += fmt::format("@[{}] = count(); ", i);
  return out + "}";
}

TEST(Compile, CallsAHelperByAFunctionIfThereAreHundredsOfCalls) {
  const auto lookups = [](const program::BpfProgram& program) {
    constexpr uint8_t kCall = 0x85;
    return std::ranges::count_if(program.code, [](const program::BpfInsn& insn) {
      return insn.code == kCall && (insn.registers >> 4) == 0 && insn.imm == 1;
    });
  };
  const Compiled many = Script(keyed_statements(300)).compile();
  const program::BpfProgram& program = many.program.programs[program::ProgramId{0}];
  EXPECT_GT(program.functions.size(), 1u);
  EXPECT_EQ(lookups(program), 1);

  const Compiled few = Script(keyed_statements(100)).compile();
  EXPECT_EQ(few.program.programs[program::ProgramId{0}].functions.size(), 1u);
  EXPECT_EQ(lookups(few.program.programs[program::ProgramId{0}]), 200);
}

TEST(Compile, TriesSeparateProgramsWhenTheStackIsTooSmall) {
  Script script("tracepoint:syscalls:sys_enter_close { " + live_numbers(90) +
                "} tracepoint:syscalls:sys_enter_getpid { @c = count(); }");
  const Compiled compiled = script.compile();
  EXPECT_EQ(script.stages, (std::vector{Stage::kLower, Stage::kOptimize, Stage::kEmit, Stage::kLower, Stage::kOptimize,
                                        Stage::kEmit}));
  EXPECT_FALSE(compiled.has_merged_programs);
  ASSERT_TRUE(compiled.diagnostics.has_errors());
  EXPECT_EQ(compiled.diagnostics.all().front().id, "stack-too-large");
}

}  // namespace
}  // namespace espy::compile
