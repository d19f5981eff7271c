#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <unordered_set>

#include "base/id.h"

namespace espy {
namespace {

using AppleId = Id<struct AppleTag>;
using PearId = Id<struct PearTag>;

static_assert(!std::is_convertible_v<AppleId, PearId>);
static_assert(!std::is_convertible_v<AppleId, bool>, "an id in arithmetic would be a mistake");
static_assert(sizeof(AppleId) == sizeof(uint32_t));

TEST(Id, IsNothingUntilSet) {
  EXPECT_FALSE(AppleId{}.valid());
  EXPECT_TRUE(AppleId{0}.valid());
  EXPECT_LT(AppleId{1}, AppleId{2});
  EXPECT_EQ(AppleId{}, AppleId{});
}

TEST(Id, Hashes) {
  const std::unordered_set<AppleId> ids = {AppleId{1}, AppleId{2}, AppleId{1}};
  EXPECT_EQ(ids.size(), 2u);
}

TEST(Table, AddsAndFinds) {
  Table<AppleId, std::string> table;
  EXPECT_TRUE(table.empty());
  const AppleId next = table.next_id();
  const AppleId first = table.add("boskoop");
  const AppleId second = table.add("cox");
  EXPECT_EQ(first, next);
  EXPECT_EQ(table[first], "boskoop");
  table[second] += " orange";
  EXPECT_EQ(table[second], "cox orange");
  EXPECT_THAT(table.ids(), testing::ElementsAre(first, second));
  EXPECT_TRUE(table.contains(second));
  EXPECT_FALSE(table.contains(table.next_id()));
  EXPECT_FALSE(table.contains(AppleId{}));
}

TEST(Table, HoldsWhatOnlyMoves) {
  Table<AppleId, std::unique_ptr<int>> table;
  const AppleId id = table.add(std::make_unique<int>(7));
  EXPECT_EQ(*table[id], 7);
}

TEST(TableDeathTest, StopsAtAForeignId) {
  Table<AppleId, int> table;
  EXPECT_DEATH(table[AppleId{0}], "internal error in .*id.h");
  EXPECT_DEATH(table[AppleId{}], "internal error");
}

}  // namespace
}  // namespace espy
