// What is asked of aarch64, on any machine: operands, calling conventions, instructions, frames.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "kernel/abi_constants.h"
#include "kernel/arch/arch.h"
#include "symbols/debug_info.h"
#include "symbols/elf_file.h"
#include "symbols/go_functions.h"
#include "symbols/unwind.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using kernel::Arch;
using types::TypeId;
using types::Types;

const Arch& arm64() { return *kernel::find_arch("aarch64"); }

std::string name_of(uint32_t offset) { return kernel::register_name(arm64(), offset); }

TEST(Aarch64, IsFoundByNameAndByMachine) {
  ASSERT_NE(kernel::find_arch("aarch64"), nullptr);
  EXPECT_EQ(kernel::find_arch(uint16_t{EM_AARCH64}), &arm64());
}

// kernels/cases/kstack.sh sees the frame.
TEST(Aarch64, KernelStacksOfTracepointsHaveOneFrameMore) {
  EXPECT_EQ(arm64().tracepoint_frames, 1u);
  EXPECT_EQ(kernel::find_arch("x86_64")->tracepoint_frames, 0u);
}

// Offsets in struct user_pt_regs.
TEST(Aarch64, RegistersAreThoseOfTheKernel) {
  EXPECT_EQ(kernel::find_register(arm64(), "x7")->offset_bytes, 56u);
  EXPECT_EQ(kernel::find_register(arm64(), "r7")->offset_bytes, 56u);
  EXPECT_EQ(kernel::find_register(arm64(), "lr")->offset_bytes, 240u);
  EXPECT_EQ(arm64().stack_pointer_offset, 248u);
  EXPECT_EQ(arm64().instruction_pointer_offset, 256u);
  EXPECT_EQ(arm64().pt_regs_size_bytes, 336u);
  EXPECT_EQ(arm64().dwarf_offsets[31], arm64().stack_pointer_offset);
  EXPECT_EQ(name_of(29 * 8), "fp");
  EXPECT_EQ(name_of(5 * 8), "x5");
}

TEST(Aarch64, SystemCallsHaveTheGenericNumbers) {
  EXPECT_EQ(kernel::find_syscall_number(arm64(), "openat"), 56u);
  EXPECT_EQ(kernel::find_syscall_number(arm64(), "write"), 64u);
  EXPECT_EQ(kernel::find_syscall_number(arm64(), "open"), std::nullopt);
  EXPECT_EQ(kernel::find_syscall_name(arm64(), 80), "newfstat");
  EXPECT_EQ(kernel::find_syscall_name(arm64(), 92), "arm64_personality");
  EXPECT_EQ(kernel::find_syscall_name(arm64(), 435), "clone3");
}

TEST(Aarch64, HasConstantsOfItsOwn) {
  EXPECT_EQ(kernel::abi_constant(arm64(), "O_DIRECTORY"), 040000);
  EXPECT_EQ(kernel::abi_constant(arm64(), "__NR_openat"), 56);
  EXPECT_EQ(kernel::abi_constant(arm64(), "EPERM"), 1);
}

TEST(Aarch64, UsdtOperandsAreInItsSyntax) {
  using Kind = UsdtOperand::Kind;
  const auto in_register = parse_usdt_operand(arm64(), "-4@w1");
  ASSERT_TRUE(in_register);
  EXPECT_EQ(in_register->kind, Kind::kRegister);
  EXPECT_EQ(arm64().usdt.register_offset(arm64(), in_register->base), 8u);
  const auto in_memory = parse_usdt_operand(arm64(), "8@[x29, -20]");
  ASSERT_TRUE(in_memory);
  EXPECT_EQ(in_memory->kind, Kind::kMemory);
  EXPECT_EQ(in_memory->base, "x29");
  EXPECT_EQ(in_memory->displacement, -20);
  EXPECT_EQ(parse_usdt_operand(arm64(), "8@[sp]")->base, "sp");
  EXPECT_EQ(parse_usdt_operand(arm64(), "8@[sp,#16]")->displacement, 16);
  const auto indexed = parse_usdt_operand(arm64(), "4@[x0, x1, lsl 2]");
  ASSERT_TRUE(indexed);
  EXPECT_EQ(indexed->index, "x1");
  EXPECT_EQ(indexed->scale, 4);
  EXPECT_EQ(parse_usdt_operand(arm64(), "-4@-5")->displacement, -5);
  EXPECT_EQ(parse_usdt_operand(arm64(), "4@#7")->displacement, 7);
  EXPECT_EQ(parse_usdt_operand(arm64(), "8@xzr")->kind, Kind::kConstant);
}

TEST(Aarch64, OtherUsdtOperandsAreNotUnderstood) {
  for (const char* text : {"8@[x0, w1, sxtw 3]", "8@[x0, :lo12:sym]", "8@[x0, 8]!", "8@[x0, x1, lsl 5]", "8@[w0]",
                           "8@[x31]", "8@[x0", "8@[]", "8@", "8@[x0, 8, 8]"})
    EXPECT_FALSE(parse_usdt_operand(arm64(), text)) << text;
  EXPECT_EQ(arm64().usdt.register_offset(arm64(), "d0"), std::nullopt);
  EXPECT_EQ(arm64().usdt.register_offset(arm64(), "wsp"), arm64().stack_pointer_offset);
}

TEST(Aarch64, UsdtArgumentsMayHaveBlanks) {
  EXPECT_EQ(split_usdt_arguments("8@x0 -4@[sp, 24] 4@5"), (std::vector<std::string>{"8@x0", "-4@[sp, 24]", "4@5"}));
}

// ---- Calling conventions

class Aarch64Calls : public ::testing::Test {
 protected:
  TypeId record(std::vector<types::Member> members, uint32_t size_bytes, uint32_t align_bytes = 8) {
    const TypeId out = types_.declare_struct("s" + std::to_string(types_.size()), false, {});
    types_.define_struct(out, std::move(members), size_bytes, align_bytes);
    return out;
  }
  types::Member member(TypeId type, uint32_t offset_bytes) {
    types::Member out;
    out.name = "m" + std::to_string(offset_bytes);
    out.type = type;
    out.offset_bits = offset_bytes * 8;
    return out;
  }
  TypeId floats(uint32_t count) {
    std::vector<types::Member> members;
    for (uint32_t i = 0; i < count; ++i) members.push_back(member(types_.float_type(8), i * 8));
    return record(members, count * 8);
  }
  std::string text(const std::optional<types::ValueLocation>& place) {
    return place ? types::to_string(*place, name_of) : "vector";
  }
  std::vector<std::string> places(const std::vector<kernel::PassedValue>& arguments) {
    std::vector<std::string> out;
    for (const auto& each : arm64().argument_locations(types_, arm64(), arguments, {types_.void_type()}))
      out.push_back(text(each));
    return out;
  }
  using Texts = std::vector<std::string>;
  Types types_;
};

TEST_F(Aarch64Calls, EightIntegersAreInRegisters) {
  std::vector<kernel::PassedValue> ten(10, {types_.int64()});
  const Texts found = places(ten);
  EXPECT_EQ(found[0], "x0");
  EXPECT_EQ(found[7], "x7");
  EXPECT_EQ(found[8], "[sp]");
  EXPECT_EQ(found[9], "[sp+8]");
}

TEST_F(Aarch64Calls, FloatsTakeVectorRegisters) {
  const TypeId number = types_.float_type(8);
  EXPECT_EQ(places({{number}, {types_.int64()}, {floats(4)}, {types_.int64()}}),
            (Texts{"vector", "x0", "vector", "x1"}));
  // The eighth is the last: then values are on the stack, in order.
  EXPECT_EQ(places({{floats(4)}, {floats(3)}, {floats(2)}, {number}}), (Texts{"vector", "vector", "[sp]", "[sp+16]"}));
  EXPECT_EQ(places({{floats(5)}}), (Texts{"[x0]"}));  // no homogeneous aggregate, and too large
}

TEST_F(Aarch64Calls, StructsAreInRegistersOrByAddress) {
  const TypeId pair = record({member(types_.int64(), 0), member(types_.int_type(4, true), 8)}, 16);
  const TypeId large = record({member(types_.int64(), 0), member(types_.int64(), 8), member(types_.int64(), 16)}, 24);
  EXPECT_EQ(places({{pair}, {large}, {types_.int64()}})[1], "[x2]");
  EXPECT_EQ(places({{pair}, {large}, {types_.int64()}})[2], "x3");
  // A pair that does not fit is on the stack, and so is all after it.
  std::vector<kernel::PassedValue> values(7, {types_.int64()});
  values.push_back({pair});
  values.push_back({types_.int64()});
  EXPECT_EQ(places(values)[7], "[sp]");
  EXPECT_EQ(places(values)[8], "[sp+16]");
}

TEST_F(Aarch64Calls, ValuesOf16BytesBeginAtAnEvenRegister) {
  const TypeId wide = record({member(types_.int64(), 0), member(types_.int64(), 8)}, 16, 16);
  EXPECT_EQ(places({{types_.int64()}, {wide}, {types_.int64()}})[2], "x4");
}

TEST_F(Aarch64Calls, AResultInMemoryIsLost) {
  const auto result = [&](TypeId type) { return arm64().result_location(types_, arm64(), {type}); };
  EXPECT_EQ(text(result(types_.int_type(4, true)).place), "x0");
  EXPECT_STREQ(std::string(result(floats(2)).why).c_str(), kernel::kInVectorRegister);
  const auto large = result(record({member(types_.array(types_.int64(), 3), 0)}, 24));
  EXPECT_FALSE(large.place);
  EXPECT_EQ(large.why, "is in memory at an address that the function does not return");
}

TEST_F(Aarch64Calls, GoHas16RegistersAndAWordForTheLinkRegister) {
  const std::vector<TypeId> values(17, types_.int64());
  const auto found = go_locations(types_, arm64(), values);
  EXPECT_EQ(text(found[15]), "x15");
  EXPECT_EQ(text(found[16]), "[sp+8]");
}

// ---- Instructions

std::vector<uint8_t> code(std::initializer_list<uint32_t> instructions) {
  std::vector<uint8_t> out;
  for (const uint32_t each : instructions)
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(each >> (8 * i)));
  return out;
}

bool can_be_stepped(uint32_t instruction) {
  const std::vector<uint8_t> bytes = code({instruction});
  return arm64().can_be_stepped({}, std::as_bytes(std::span(bytes)));
}

TEST(Aarch64, UprobesStepOrEmulateTheseInstructions) {
  for (const uint32_t each : {0xa9bd7bfdu,   // stp x29, x30, [sp, #-48]!
                              0xd503233fu,   // paciasp
                              0xd503245fu,   // bti c
                              0xd503201fu,   // nop
                              0x14000010u,   // b
                              0x94000010u,   // bl
                              0x54000041u,   // b.ne
                              0xb4000040u,   // cbz
                              0x37000040u,   // tbnz
                              0xd61f0200u,   // br x16
                              0xd63f0000u,   // blr x0
                              0xd65f03c0u,   // ret
                              0x90000000u,   // adrp
                              0xd5033bbfu,   // dmb ish
                              0xf9400000u})  // ldr x0, [x0]
    EXPECT_TRUE(can_be_stepped(each)) << std::hex << each;
}

TEST(Aarch64, UprobesCannotHandleTheseInstructions) {
  for (const uint32_t each : {0xc85f7c00u,   // ldxr x0, [x0]
                              0xc8017c02u,   // stxr w1, x2, [x0]
                              0x88dffc00u,   // ldar w0, [x0]
                              0x58000040u,   // ldr x0, literal
                              0x1c000040u,   // ldr s0, literal
                              0x98000040u,   // ldrsw x0, literal
                              0xd8000040u,   // prfm literal
                              0xd53bd040u,   // mrs x0, tpidr_el0
                              0xd51bd040u,   // msr tpidr_el0, x0
                              0xd4000001u,   // svc
                              0xd50323bfu,   // autiasp
                              0xd503203fu,   // yield
                              0xd65f0bffu})  // retaa
    EXPECT_FALSE(can_be_stepped(each)) << std::hex << each;
}

TEST(Aarch64, UprobesWouldBreakExclusiveSequences) {
  const std::vector<uint8_t> add = code({0x11000400});
  const auto behind = [&](std::initializer_list<uint32_t> before) {
    const std::vector<uint8_t> bytes = code(before);
    return arm64().can_be_stepped(std::as_bytes(std::span(bytes)), std::as_bytes(std::span(add)));
  };
  EXPECT_FALSE(behind({0x885f7c00}));                          // ldxr
  EXPECT_FALSE(behind({0x885ffc00, 0x6b01001f, 0x54000061}));  // ldaxr; cmp; b.ne
  EXPECT_TRUE(behind({0x885f7c00, 0x11000400, 0x88027c00}));   // ldxr; add; stxr
  EXPECT_FALSE(behind({0xc87f0440}));                          // ldxp
  EXPECT_TRUE(behind({0x885f7c00, 0xd5033f5f}));               // ldxr; clrex
  EXPECT_TRUE(behind({0x88dffc00}));                           // ldar
  EXPECT_TRUE(behind({0x88a0fc41}));                           // casl
}

TEST(Aarch64, InstructionsHaveFourBytes) {
  EXPECT_EQ(arm64().instruction_length(code({0xd65f03c0})), 4u);
  EXPECT_EQ(arm64().instruction_length(std::vector<uint8_t>{0, 0, 0}), 0u);
}

TEST(Aarch64, GoStackChecksAreSteppedOver) {
  const auto behind = [](std::initializer_list<uint32_t> list) { return after_stack_check(arm64(), code(list)); };
  // ldr x16, [x28, #16]; cmp sp, x16; b.ls; str x30, [sp, #-48]!
  EXPECT_EQ(behind({0xf9400b90, 0xeb3063ff, 0x54000309, 0xf81d0ffe}), 12u);
  // ldr x16, [x28, #16]; sub x17, sp, #0x200; cmp x17, x16; b.ls
  EXPECT_EQ(behind({0xf9400b90, 0xd10803f1, 0xeb10023f, 0x54000309, 0xf81d0ffe}), 16u);
  EXPECT_EQ(behind({0xaa0103e0, 0x54000309, 0xd65f03c0}), 0u);
}

TEST(Aarch64, FlowOfInstructions) {
  using Kind = kernel::Flow::Kind;
  const auto flow = [](uint32_t before, uint32_t instruction) {
    const std::vector<uint8_t> first = code({before}), second = code({instruction});
    return kernel::flow_of(arm64(), first, second);
  };
  EXPECT_EQ(flow(0, 0xaa0103e0).kind, Kind::kNext);              // mov x0, x1
  EXPECT_EQ(flow(0, 0x94000002).kind, Kind::kNext);              // bl +8
  EXPECT_EQ(flow(0, 0xd63f0020).kind, Kind::kNext);              // blr x1
  EXPECT_TRUE(arm64().go.is_return(code({0xd65f03c0})));         // ret
  EXPECT_TRUE(arm64().go.is_return(code({0xd65f0bff})));         // retaa
  EXPECT_EQ(flow(0, 0x14000002).distance, 8);                    // b +8
  EXPECT_EQ(flow(0, 0x17fffffe).distance, -8);                   // b -8
  EXPECT_EQ(flow(0, 0x54000040).distance, 8);                    // b.eq +8
  EXPECT_EQ(flow(0, 0xb4ffffc0).distance, -8);                   // cbz x0, -8
  EXPECT_EQ(flow(0, 0x36080040).distance, 8);                    // tbz w0, #1, +8
  EXPECT_EQ(flow(0xaa0103e0, 0xd61f0020).kind, Kind::kUnknown);  // br x1
  EXPECT_EQ(flow(0x8b20c021, 0xd61f0020).kind, Kind::kNext);     // add x1, x1, w0, sxtw; br x1
  EXPECT_EQ(flow(0x8b20c002, 0xd61f0020).kind, Kind::kUnknown);  // add x2, x0, w0, sxtw; br x1
  EXPECT_EQ(flow(0, 0xd71f0be1).kind, Kind::kUnknown);           // braa
}

// ---- Frames

constexpr const char* kFrames = R"(
__asm__(".text\n.globl f\nf:\n"
        ".cfi_startproc simple\n.cfi_return_column 30\n.cfi_def_cfa 31, 0\nnop\n"
        ".cfi_escape 0x2d\nnop\n"  // negate_ra_state, after paciasp
        ".cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\nnop\n"
        ".cfi_def_cfa 29, 32\nnop\n"
        ".cfi_def_cfa 31, 4096\n.cfi_offset 29, -4096\n.cfi_offset 30, -4088\nnop\n"
        ".cfi_def_cfa 29, 4096\nnop\n"
        ".cfi_def_cfa 31, 4192\nnop\n"  // above the arguments of calls
        ".cfi_def_cfa 31, 8192\nnop\n"  // the registers are in the middle
        ".cfi_def_cfa 31, 16\n.cfi_same_value 29\n.cfi_offset 30, -16\nnop\n"
        ".cfi_def_cfa 31, 3056\n.cfi_offset 30, -3024\nnop\n"
        ".cfi_def_cfa 31, 3056\n.cfi_offset 30, -1528\nnop\n"  // in the middle
        ".cfi_undefined 30\nnop\n"
        ".cfi_endproc\n");
)";

TEST(Aarch64, UnwindingRowsHaveTheFrameRecord) {
  if (!testing::has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  const testing::TempDir directory;
  std::string image =
      read_file(directory.build("f.so", kFrames, "-shared -nostdlib -fno-asynchronous-unwind-tables")).value_or("");
  ASSERT_GT(image.size(), sizeof(Elf64_Ehdr));
  const uint16_t machine = EM_AARCH64;
  std::memcpy(&image[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof(machine));
  const auto rows = read_unwind_rows(image, "f", arm64());
  ASSERT_TRUE(rows) << rows.error().message;
  const std::vector<FrameRule> expected = {
      FrameRule::make(FrameBase::kStackPointer, 0, FrameRule::kSame),
      FrameRule::make(FrameBase::kStackPointer, 32, 4),
      FrameRule::make(FrameBase::kFramePointer, 32, 4),
      FrameRule::make(FrameBase::kStackPointer, 4096, FrameRule::kAboveBase),
      FrameRule::make(FrameBase::kFramePointer, 4096, FrameRule::kAboveBase),
      FrameRule::make(FrameBase::kStackPointer, 4192, FrameRule::kAboveBase + 12),
      FrameRule{},
      FrameRule::make(FrameBase::kSavedLink, 16, 2),
      FrameRule::make(FrameBase::kSavedLink, 3056, FrameRule::kAboveBase + 4),
      FrameRule{},
      FrameRule::make(FrameBase::kEnd, 0, FrameRule::kSame),
      FrameRule{},
  };
  ASSERT_EQ(rows->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*rows)[i].rule, expected[i]) << "row " << i;
}

// ---- Variables

constexpr const char* kForgetful = R"(volatile long sink;
__attribute__((noipa)) int opaque(long value) { return (int)(sink += value); }
__attribute__((noinline, noclone)) static int work(int a, long b) {
  int got = opaque(a + b);
  got += opaque(got);
  return got + opaque(sink);
}
int main(int argc, char** argv) { return work(argc + 5, 7) + work(9, 8); }
)";

std::string text_of(const DebugVariable& variable) { return types::to_string(*variable.place, name_of); }

// A return probe replaces the link register, so the location has what the kernel finds the original by.
TEST(Aarch64, CallersAreKnownByTheSavedLinkAndTheStackPointerAtTheEntry) {
  using Op = types::LocationOp::Code;
  constexpr const char* kCompiler = "aarch64-linux-gnu-gcc";
  if (!testing::has_tool(kCompiler)) GTEST_SKIP() << "there is no " << kCompiler;
  const testing::TempDir directory;
  const std::string source = directory.write("program.c", kForgetful);
  ASSERT_TRUE(testing::run(std::string(kCompiler) + " -O2 -g -o " + directory.path("program") + " " + source));
  const auto file = ElfFile::open(directory.path("program"));
  ASSERT_TRUE(file);
  const auto debug = file->debug_info();
  ASSERT_TRUE(debug) << debug.error().message;
  const auto statements = (*debug)->statements("program.c", 6, 0);
  ASSERT_FALSE(statements.empty());
  Types types;
  const auto arguments = (*debug)->arguments(types, statements[0].address, "");
  ASSERT_EQ(arguments.size(), 2u);
  ASSERT_TRUE(arguments[1].place) << arguments[1].why;
  const auto& steps = arguments[1].place->pieces[0].steps;
  std::vector<Op> found;
  for (const types::LocationOp& step : steps) found.push_back(step.op);
  const std::vector<Op> expected = {Op::kRegister, Op::kConstant, Op::kAdd,                       // CFA
                                    Op::kRegister, Op::kConstant, Op::kAdd,           Op::kRead,  // saved register
                                    Op::kConstant, Op::kAnd,      Op::kReturnAddress, Op::kLoadBias,
                                    Op::kSub,      Op::kByCaller};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(steps[0].operand, arm64().stack_pointer_offset);
  EXPECT_EQ(text_of(arguments[1]), "= 7 or 8 (by caller)");
}

}  // namespace
}  // namespace espy::symbols
