#include <gtest/gtest.h>

#include <vector>

#include "kernel/arch/arch.h"

namespace espy::kernel {
namespace {

using Code = std::vector<uint8_t>;

const Arch& amd64() { return *find_arch("x86_64"); }

bool can_be_stepped(const Code& code) { return amd64().can_be_stepped({}, std::as_bytes(std::span(code))); }

const Code kNop5 = {0x0f, 0x1f, 0x44, 0x00, 0x00};
const Code kNop10 = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};

// What Linux 6.18 replaces, and what not.
TEST(ProbedNop, FindsWhatTheKernelReplacesByACall) {
  const ProbedNop& nop = *amd64().callable_nop;
  const Code replaced[] = {kNop5,
                           {0x0f, 0x1f, 0x44, 0x00, 0x08},
                           {0x66, 0x0f, 0x1f, 0x40, 0x00},
                           {0x67, 0x0f, 0x1f, 0x40, 0x00},
                           {0x66, 0x66, 0x66, 0x66, 0x90}};
  for (const Code& each : replaced) EXPECT_TRUE(nop.matches(each));
  const Code kept[] = {{},
                       {0x90},
                       {0x0f, 0x1f, 0x44},
                       {0x0f, 0x1f, 0x40, 0x00, 0x90},
                       {0xe9, 0x00, 0x00, 0x00, 0x00},
                       {0x48, 0x8d, 0x74, 0x26, 0x00},
                       {0xe8, 0x00, 0x00, 0x00, 0x00},
                       kNop10};
  for (const Code& each : kept) EXPECT_FALSE(nop.matches(each));
}

TEST(ProbedNop, HasNopsInItsExamples) {
  for (const auto& nop : {amd64().callable_nop, amd64().prefixed_nop})
    EXPECT_TRUE(nop->matches(nop->example.subspan(nop->example_offset)));
}

TEST(ProbedNop, IsNotSteppedWithAPrefix) {
  EXPECT_TRUE(can_be_stepped(kNop5));
  EXPECT_FALSE(can_be_stepped(kNop10));
  EXPECT_FALSE(can_be_stepped({0x3e, 0x0f, 0x1f, 0x40, 0x00}));
  EXPECT_TRUE(amd64().prefixed_nop->matches(kNop10));
  EXPECT_FALSE(amd64().prefixed_nop->matches(kNop5));
}

}  // namespace
}  // namespace espy::kernel
