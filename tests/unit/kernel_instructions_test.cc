// The lengths of instructions, judged by objdump over whole libraries.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols_support.h"

namespace espy::kernel {
namespace {

using symbols::testing::has_tool;

uint32_t length(std::vector<uint8_t> bytes) { return find_arch("x86_64")->instruction_length(bytes); }

TEST(Instructions, SingleOnes) {
  EXPECT_EQ(length({0x55}), 1u);                                      // push rbp
  EXPECT_EQ(length({0x48, 0x89, 0xe5}), 3u);                          // mov rbp, rsp
  EXPECT_EQ(length({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}), 10u);       // movabs
  EXPECT_EQ(length({0xf6, 0xc1, 0x01}), 3u);                          // test cl, 1
  EXPECT_EQ(length({0xf6, 0xd1}), 2u);                                // not cl
  EXPECT_EQ(length({0x66, 0x81, 0x3d, 1, 2, 3, 4, 5, 6}), 9u);        // cmp word [rip+..], imm16
  EXPECT_EQ(length({0xc5, 0xf8, 0x77}), 3u);                          // vzeroupper
  EXPECT_EQ(length({0x62, 0xf1, 0xfe, 0x28, 0x6f, 0x46, 0x01}), 7u);  // vmovdqu64 ymm0, [rsi+32]
  EXPECT_EQ(length({0xf3, 0x0f, 0x1e, 0xfa}), 4u);                    // endbr64
  EXPECT_EQ(length({0x48, 0x8b, 0x04, 0x25, 1, 2, 3, 4}), 8u);        // mov rax, [abs32]
}

TEST(Instructions, CutOffOnesAreNone) {
  EXPECT_EQ(length({}), 0u);
  EXPECT_EQ(length({0x48}), 0u);
  EXPECT_EQ(length({0xe8, 0, 0}), 0u);
}

TEST(Instructions, Returns) {
  const auto is_return = [](std::vector<uint8_t> code) { return find_arch("x86_64")->go.is_return(code); };
  EXPECT_TRUE(is_return({0xc3}));               // ret
  EXPECT_TRUE(is_return({0xf3, 0xc3}));         // rep ret
  EXPECT_TRUE(is_return({0xf2, 0xc3}));         // bnd ret
  EXPECT_TRUE(is_return({0xc2, 0x08, 0x00}));   // ret 8
  EXPECT_FALSE(is_return({0xcb}));              // lret
  EXPECT_FALSE(is_return({0x48, 0xc3}));        // a prefix that no compiler writes
  EXPECT_FALSE(is_return({0x0f, 0xc2, 0xc3}));  // part of another
}

TEST(Instructions, WhereTheyLead) {
  using Kind = Flow::Kind;
  using Bytes = std::vector<uint8_t>;
  const auto flow = [](const Bytes& code, const Bytes& before = {}) {
    EXPECT_EQ(length(code), code.size());
    return flow_of(*find_arch("x86_64"), before, code);
  };
  EXPECT_EQ(flow({0x48, 0xc7, 0xc0, 0xc3, 0xc3, 0xc3, 3}).kind, Kind::kNext);  // mov $0x3c3c3c3, %rax
  EXPECT_EQ(flow({0xe8, 1, 0, 0, 0}).kind, Kind::kNext);                       // call
  EXPECT_EQ(flow({0xff, 0xd0}).kind, Kind::kNext);                             // call *%rax
  EXPECT_EQ(flow({0xff, 0x70, 0x08}).kind, Kind::kNext);                       // push 8(%rax)
  EXPECT_EQ(flow({0xeb, 0x05}).distance, 7);                                   // jmp +5
  EXPECT_EQ(flow({0xe9, 0xfb, 0xff, 0xff, 0xff}).distance, 0);                 // jmp to itself
  EXPECT_EQ(flow({0xf2, 0xe9, 0, 0, 0, 0}).distance, 6);                       // bnd jmp
  EXPECT_EQ(flow({0x74, 0xfe}).distance, 0);                                   // je to itself
  EXPECT_EQ(flow({0x0f, 0x84, 0x10, 0, 0, 0}).distance, 22);                   // je
  EXPECT_EQ(flow({0xff, 0xe0}).kind, Kind::kUnknown);                          // jmp *%rax
  EXPECT_EQ(flow({0x3e, 0xff, 0xe0}).kind, Kind::kNext);                       // notrack jmp *%rax
  EXPECT_EQ(flow({0xff, 0x60, 0x10}).kind, Kind::kUnknown);                    // jmp *16(%rax)
  EXPECT_EQ(flow({0xff, 0x25, 0, 0, 0, 0}).kind, Kind::kUnknown);              // jmp *x(%rip)
  EXPECT_EQ(flow({0xff, 0x24, 0xc5, 0, 0, 0, 0}).kind, Kind::kNext);           // jmp *table(,%rax,8)
  EXPECT_EQ(flow({0xff, 0xe0}, {0x48, 0x01, 0xd0}).kind, Kind::kNext);         // add %rdx, %rax; jmp *%rax
  EXPECT_EQ(flow({0xff, 0xe0}, {0x48, 0x03, 0xc2}).kind, Kind::kNext);         // the same
  EXPECT_EQ(flow({0xff, 0xe0}, {0x48, 0x01, 0xc2}).kind, Kind::kUnknown);      // add %rax, %rdx; jmp *%rax
  EXPECT_EQ(flow({0x41, 0xff, 0xe3}, {0x49, 0x01, 0xd3}).kind, Kind::kNext);   // add %rdx, %r11; jmp *%r11
  EXPECT_EQ(flow({0xff, 0xe3}, {0x49, 0x01, 0xd3}).kind, Kind::kUnknown);      // add %rdx, %r11; jmp *%rbx
  EXPECT_EQ(flow({0xcb}).kind, Kind::kUnknown);                                // lret
}

// Every instruction of a library: "   1234:\t48 89 e5 \tmov ...", as -w keeps them on a line each.
TEST(Instructions, AgreeWithObjdump) {
  if (!has_tool("objdump")) GTEST_SKIP() << "objdump is not installed";
  std::FILE* pipe = ::popen(
      "objdump -d -w "
      "$(ldconfig -p | awk '/libc.so.6/ && /x86-64/ { print $NF; exit }') 2>/dev/null",
      "r");
  ASSERT_NE(pipe, nullptr);
  size_t count = 0, wrong = 0;
  char line[1024];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    const std::string text = line;
    const size_t colon = text.find(":\t");
    const size_t end = text.find('\t', colon + 2);
    if (colon == text.npos || end == text.npos || text.find("(bad)") != text.npos) continue;
    std::vector<uint8_t> bytes;
    std::istringstream hex(text.substr(colon + 2, end - colon - 2));
    for (std::string byte; hex >> byte;) bytes.push_back(static_cast<uint8_t>(std::stoul(byte, nullptr, 16)));
    const size_t real = bytes.size();
    bytes.resize(real + 8, 0x90);  // what follows must not matter
    ++count;
    if (length(bytes) == real) continue;
    if (++wrong <= 10) ADD_FAILURE() << "length " << length(bytes) << ", not " << real << ": " << text;
  }
  ::pclose(pipe);
  EXPECT_EQ(wrong, 0u) << "of " << count;
  if (count == 0) GTEST_SKIP() << "there is no x86-64 libc.so.6";
}

}  // namespace
}  // namespace espy::kernel
