#include <gtest/gtest.h>

#include <string>

#include "base/sparse_table.h"

namespace espy {
namespace {

using PearId = Id<struct PearTag>;

TEST(SparseTable, ReadsAsNothingWhereNothingWasWritten) {
  SparseTable<PearId, std::string> facts;
  const auto& read_only = facts;
  EXPECT_EQ(read_only[PearId{0}], "");
  EXPECT_EQ(read_only[PearId{}], "");
  facts[PearId{300}] = "ripe";
  EXPECT_EQ(read_only[PearId{300}], "ripe");
  for (const uint32_t other : {0U, 299U, 301U, 100000U}) EXPECT_EQ(read_only[PearId{other}], "");
  EXPECT_EQ(read_only[PearId{}], "");
}

TEST(SparseTable, ReferencesStayValid) {
  SparseTable<PearId, int> facts;
  int& first = facts[PearId{5000}];
  for (uint32_t i = 0; i < 10000; ++i) facts[PearId{i}] = static_cast<int>(i);
  EXPECT_EQ(&first, &facts[PearId{5000}]);
  EXPECT_EQ(first, 5000);
}

TEST(SparseTable, CopiesAreIndependent) {
  SparseTable<PearId, int> facts;
  facts[PearId{70}] = 1;
  SparseTable<PearId, int> copy = facts;
  copy[PearId{70}] = 2;
  EXPECT_EQ(facts[PearId{70}], 1);
  facts = copy;
  EXPECT_EQ(facts[PearId{70}], 2);
}

TEST(SparseTable, HasTheIdsThatWereWrittenAndSomeNeighbours) {
  SparseTable<PearId, int> facts;
  EXPECT_TRUE(facts.ids().empty());
  facts[PearId{100000}] = facts[PearId{70}] = 1;
  const std::vector<PearId> ids = facts.ids();
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_TRUE(std::ranges::binary_search(ids, PearId{70}));
  EXPECT_TRUE(std::ranges::binary_search(ids, PearId{100000}));
  EXPECT_LT(ids.size(), 200U);
}

TEST(SparseTableDeathTest, WillNotWriteToNothing) {
  SparseTable<PearId, int> facts;
  EXPECT_DEATH(facts[PearId{}] = 1, "internal error");
}

}  // namespace
}  // namespace espy
