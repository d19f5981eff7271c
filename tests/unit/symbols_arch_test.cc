// Files for a CPU that does not exist: unwinding rows, USDT operands, Go's convention.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "../support/fake_arch.h"
#include "base/files.h"
#include "symbols/elf_file.h"
#include "symbols/go_functions.h"
#include "symbols/library.h"
#include "symbols/unwind.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using espy::testing::kFakeArch;

// The host's assembler takes register numbers of any CPU.
constexpr const char* kSource = R"(
__asm__(".text\n.globl f\nf:\n"
        ".cfi_startproc simple\n.cfi_return_column 30\n.cfi_def_cfa 31, 0\nnop\n"
        ".cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\nnop\n"
        ".cfi_def_cfa 29, 32\nnop\n"
        ".cfi_offset 30, -8\nnop\n"
        ".cfi_undefined 30\nnop\n"
        ".cfi_endproc\n");
)";

std::string text_of(FrameRule rule) {
  const std::string offset = "+" + std::to_string(rule.offset_bytes());
  const std::string frame = " " + std::to_string(rule.frame_pointer());
  switch (rule.base()) {
    case FrameBase::kUnknown: return "unknown";
    case FrameBase::kEnd: return "end";
    case FrameBase::kStackPointer: return "stack" + offset + frame;
    case FrameBase::kFramePointer: return "frame" + offset + frame;
    default: return "other";
  }
}

TEST(FakeCpu, UnwindingRowsFindTheLinkRegisterWithTheFramePointer) {
  if (!testing::has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  const testing::TempDir directory;
  const std::string path = directory.build("f.so", kSource, "-shared -nostdlib -fno-asynchronous-unwind-tables");
  std::string image = read_file(path).value_or("");
  ASSERT_GT(image.size(), sizeof(Elf64_Ehdr));
  std::memcpy(&image[offsetof(Elf64_Ehdr, e_machine)], &kFakeArch.elf_machine, 2);
  const auto rows = read_unwind_rows(image, "f", kFakeArch);
  ASSERT_TRUE(rows) << rows.error().message;
  std::vector<std::string> rules;
  for (const UnwindRow& row : *rows) rules.push_back(text_of(row.rule));
  EXPECT_EQ(rules, (std::vector<std::string>{"stack+0 0", "stack+32 4", "frame+32 4", "unknown", "end", "unknown"}));
  const auto elsewhere = read_unwind_rows(image, "f", *kernel::find_arch("x86_64"));
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().message, "f is not for x86_64");
}

TEST(FakeCpu, UsdtOperandsAreInItsSyntax) {
  const auto at_register = parse_usdt_operand(kFakeArch, "-4@a1");
  ASSERT_TRUE(at_register);
  EXPECT_EQ(at_register->kind, UsdtOperand::Kind::kRegister);
  EXPECT_EQ(at_register->base, "a1");
  EXPECT_EQ(at_register->size_bytes, 4);
  EXPECT_TRUE(at_register->is_signed);
  const auto in_memory = parse_usdt_operand(kFakeArch, "8@[stack,16]");
  ASSERT_TRUE(in_memory);
  EXPECT_EQ(in_memory->kind, UsdtOperand::Kind::kMemory);
  EXPECT_EQ(in_memory->base, "stack");
  EXPECT_EQ(in_memory->displacement, 16);
  EXPECT_EQ(parse_usdt_operand(kFakeArch, "1@#9")->displacement, 9);
  EXPECT_FALSE(parse_usdt_operand(kFakeArch, "3@a1"));
}

TEST(X86_64, UsdtOperandsAreInAttSyntax) {
  const kernel::Arch& arch = *kernel::find_arch("x86_64");
  const auto in_memory = parse_usdt_operand(arch, "-4@-8(%rbp,%rax,4)");
  ASSERT_TRUE(in_memory);
  EXPECT_EQ(in_memory->base, "rbp");
  EXPECT_EQ(in_memory->index, "rax");
  EXPECT_EQ(in_memory->scale, 4);
  EXPECT_EQ(in_memory->displacement, -8);
  EXPECT_EQ(parse_usdt_operand(arch, "8@sym+4(%rip)")->symbol, "sym");
  EXPECT_EQ(parse_usdt_operand(arch, "4@$-5")->displacement, -5);
  EXPECT_FALSE(parse_usdt_operand(arch, "8@%fs:8"));
  EXPECT_FALSE(parse_usdt_operand(arch, "8@(%rax,%rbx,3)"));
  EXPECT_EQ(arch.usdt.with_displacement("sym+4(%rip)", -20), "-20(%rip)");
  const auto offset = [&](std::string_view name) { return arch.usdt.register_offset(arch, name); };
  EXPECT_EQ(offset("eax"), kernel::find_register(arch, "ax")->offset_bytes);
  EXPECT_EQ(offset("ah"), kernel::find_register(arch, "ax")->offset_bytes + 1);
  EXPECT_EQ(offset("r9d"), kernel::find_register(arch, "r9")->offset_bytes);
  EXPECT_EQ(offset("xmm0"), std::nullopt);
}

TEST(FakeCpu, GoPassesValuesInItsRegisters) {
  types::Types types;
  const auto name = [](uint32_t offset) { return kernel::register_name(kFakeArch, offset); };
  const auto found = go_locations(types, kFakeArch, {types.int64(), types.int64(), types.int64(), types.int64()});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(types::to_string(*found[0], name), "a2");
  EXPECT_EQ(types::to_string(*found[2], name), "a0");
  EXPECT_EQ(types::to_string(*found[3], name), "[stack+0]");
  const std::vector<uint8_t> code = {1, 2, 3, 4, 0xee, 0, 0, 0, 1, 0xee, 0, 0, 0xee, 0, 0, 0};
  EXPECT_TRUE(kFakeArch.go.is_return(std::span(code).subspan(4, 4)));
  EXPECT_EQ(after_stack_check(kFakeArch, code), 12u);
}

TEST(FakeCpu, TheLoadersCacheHasNoLibrariesForIt) {
  const auto bytes = read_file("/etc/ld.so.cache");
  if (!bytes) GTEST_SKIP() << "no cache";
  EXPECT_FALSE(parse_ld_cache(kernel::host_arch(), *bytes).empty());
  EXPECT_TRUE(parse_ld_cache(kFakeArch, *bytes).empty());
}

}  // namespace
}  // namespace espy::symbols
