#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "load/bpf.h"

namespace espy::load {
namespace {

// Makes an attribute in memory that is all ones; true if all of it is zero then.
template <class Attr>
bool is_zero_at_first() {
  alignas(Attr) std::byte memory[sizeof(Attr)];
  std::memset(memory, 0xff, sizeof(memory));
  asm volatile("" : : "r"(&memory) : "memory");
  new (memory) Attr;
  asm volatile("" : : "r"(&memory) : "memory");
  return std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0}; });
}

TEST(BpfAttributes, AreZeroToTheirLastByte) {
  EXPECT_TRUE(is_zero_at_first<BtfLoadAttr>());
  EXPECT_TRUE(is_zero_at_first<LinkCreateAttr>());
  EXPECT_TRUE(is_zero_at_first<MapElementAttr>());
  EXPECT_TRUE(is_zero_at_first<ProgLoadAttr>());
  EXPECT_TRUE(is_zero_at_first<MapCreateAttr>());
}

}  // namespace
}  // namespace espy::load
