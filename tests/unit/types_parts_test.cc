#include <gtest/gtest.h>

#include "types/parts.h"

namespace espy::types {
namespace {

class PartsTest : public testing::Test {
 protected:
  TypeId declare(const std::string& name) { return types_.declare_struct(name, false, {1, ++count_}, 0, {}); }
  // A struct of these members, if that is possible.
  bool define(TypeId id, const std::vector<TypeId>& members) {
    std::vector<Member> named;
    for (const TypeId member : members) named.push_back({.name = "m" + std::to_string(named.size()), .type = member});
    if (!parts_.may_define(types_, id, named)) return false;
    types_.define_struct(id, std::move(named), 0, 1);
    return true;
  }

  Types types_;
  Parts parts_;
  uint32_t count_ = 0;
};

TEST_F(PartsTest, AStructMayContainOthersAndPointToItself) {
  const TypeId inner = declare("inner"), outer = declare("outer");
  EXPECT_TRUE(define(inner, {types_.int64(), types_.pointer(inner, AddressSpace::kUser)}));
  EXPECT_TRUE(define(outer, {inner, types_.array(inner, 1000), types_.pointer(outer, AddressSpace::kUser)}));
}

TEST_F(PartsTest, AStructDoesNotContainItself) {
  const TypeId self = declare("self"), first = declare("first"), second = declare("second");
  EXPECT_FALSE(define(self, {types_.int64(), self}));
  EXPECT_TRUE(parts_.is_refused(self));
  EXPECT_TRUE(define(second, {types_.array(first, 2)}));  // while `first` is being read
  EXPECT_FALSE(define(first, {second}));
}

TEST_F(PartsTest, WhatCouldNotBeCompletedNeverIs) {
  const TypeId unknown = declare("unknown"), holder = declare("holder");
  EXPECT_TRUE(define(holder, {unknown}));
  EXPECT_FALSE(define(unknown, {types_.int64()}));
}

TEST_F(PartsTest, EachWithTwoOfTheNextAreTooMany) {
  TypeId last = declare("s0");
  ASSERT_TRUE(define(last, {}));
  uint32_t defined = 0;
  for (; defined < 100; ++defined) {
    const TypeId next = declare("s" + std::to_string(defined + 1));
    if (!define(next, {last, last})) break;
    last = next;
  }
  EXPECT_EQ(defined, 15u);  // 2^16 - 1 parts
}

TEST_F(PartsTest, StructsAreNotNestedWithoutEnd) {
  TypeId last = declare("s0");
  ASSERT_TRUE(define(last, {types_.int64()}));
  uint32_t defined = 0;
  for (; defined < 1000; ++defined) {
    const TypeId next = declare("s" + std::to_string(defined + 1));
    if (!define(next, {last})) break;
    last = next;
  }
  EXPECT_GE(defined, 200u);
  EXPECT_LT(defined, 256u);
}

}  // namespace
}  // namespace espy::types
