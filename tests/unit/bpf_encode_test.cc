#include <gtest/gtest.h>

#include "bpf/encode.h"
#include "bpf/machine_code.h"

namespace espy::bpf {
namespace {

// The code of a function that is `insn` and an exit, with one stack object at `object_offset`.
std::vector<program::BpfInsn> code_of(const MachineInsn& insn, int32_t object_offset = 0) {
  const ir::Function source;
  CodedFunction function{ir::FunctionId{0}, &source, {}};
  function.machine.blocks.push_back({{insn, {.code = kJmp | kExit}}});
  function.machine.objects.push_back({.offset = object_offset});
  program::BpfProgram out;
  EXPECT_TRUE(encode({function}, {}, out).empty());
  return out.code;
}

constexpr uint8_t kLoad = kLdx | kModeMem | kDouble;

TEST(Encode, TakesOffsetsOfSixteenBits) {
  EXPECT_EQ(code_of({.code = kLoad, .dst = 1, .src = 2, .offset = 32767})[0].offset, 32767);
  EXPECT_EQ(code_of({.code = kLoad, .dst = 1, .src = 2, .offset = -32768})[0].offset, -32768);
  EXPECT_EQ(code_of({.code = kLoad, .dst = 1, .offset = 8, .object = 0}, -24)[0].offset, -16);
}

TEST(EncodeDeathTest, RefusesLongerOffsets) {
  EXPECT_DEATH(code_of({.code = kLoad, .dst = 1, .src = 2, .offset = 32768}), "internal error in .*encode.cc");
  EXPECT_DEATH(code_of({.code = kLoad, .dst = 1, .src = 2, .offset = -32769}), "internal error in .*encode.cc");
  EXPECT_DEATH(code_of({.code = kLoad, .dst = 1, .offset = -32768, .object = 0}, -8), "internal error in .*encode.cc");
}

TEST(Encode, TakesImmediatesOfThirtyTwoBits) {
  EXPECT_EQ(code_of({.code = kAlu64 | kMov | kImm, .dst = 1, .imm = INT32_MIN})[0].imm, INT32_MIN);
  EXPECT_EQ(code_of({.code = kAlu32 | kMov | kImm, .dst = 1, .imm = 0xffffffff})[0].imm, -1);
  EXPECT_EQ(code_of({.code = kSt | kModeMem | kWord, .dst = 1, .imm = 0x80000000})[0].imm, INT32_MIN);
  const auto constant = code_of({.code = kLdImm64, .dst = 1, .imm = 0x1234567890});
  EXPECT_EQ(constant[0].imm, 0x34567890);
  EXPECT_EQ(constant[1].imm, 0x12);
}

TEST(EncodeDeathTest, RefusesLongerImmediates) {
  EXPECT_DEATH(code_of({.code = kAlu64 | kMov | kImm, .dst = 1, .imm = 0x80000000}), "internal error in .*encode.cc");
  EXPECT_DEATH(code_of({.code = kAlu32 | kMov | kImm, .dst = 1, .imm = int64_t{1} << 32}),
               "internal error in .*encode.cc");
  EXPECT_DEATH(code_of({.code = kSt | kModeMem | kDouble, .dst = 1, .imm = 0x80000000}),
               "internal error in .*encode.cc");
}

// Only the main function; calls of others are as far as before.
TEST(Encode, KeepsFramesOnTheThreadsStackByATailCallThatIsPassedOver) {
  const ir::Function source;
  CodedFunction main{ir::FunctionId{0}, &source, {}}, callee{ir::FunctionId{1}, &source, {}};
  main.machine.blocks.push_back(
      {{{.code = kJmp | kCall, .pseudo = kCallFunction, .function = callee.id}, {.code = kJmp | kExit}}});
  callee.machine.blocks.push_back({{{.code = kJmp | kExit}}});
  program::BpfProgram out;
  out.keeps_thread_stack = true;
  EXPECT_TRUE(encode({main, callee}, {}, out).empty());
  ASSERT_EQ(out.code.size(), 6u);
  EXPECT_EQ(out.code[0], (program::BpfInsn{.code = kAlu64 | kMov | kImm}));
  EXPECT_EQ(out.code[1], (program::BpfInsn{.code = kJmp | kJeq, .offset = 1}));
  EXPECT_EQ(out.code[2], (program::BpfInsn{.code = kJmp | kCall, .imm = 12}));
  EXPECT_EQ(out.code[3].imm, 1);
  EXPECT_EQ(out.functions[0].insn, 0u);
  EXPECT_EQ(out.functions[1].insn, 5u);
}

}  // namespace
}  // namespace espy::bpf
