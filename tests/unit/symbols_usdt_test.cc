#include <gtest/gtest.h>

#include "kernel/arch/arch.h"
#include "symbols/elf_file.h"

namespace espy::symbols {
namespace {

// Fails in a build with sanitizers if a sum or a negation overflows.
TEST(UsdtOperand, NumbersAreOfAnySize) {
  const kernel::Arch& arch = kernel::host_arch();
  EXPECT_FALSE(parse_usdt_operand(arch, "-9223372036854775808@$1"));
  const auto sum = parse_usdt_operand(arch, "8@9223372036854775807+9223372036854775807(%rax)");
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->displacement, -2);
  EXPECT_TRUE(parse_usdt_operand(arch, "-4@$-9223372036854775808"));
}

}  // namespace
}  // namespace espy::symbols
