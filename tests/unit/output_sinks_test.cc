#include <gtest/gtest.h>

#include <set>

#include "output/sink.h"

namespace espy::output {
namespace {

TEST(Sinks, HaveNamesOfTheirOwnAndADescription) {
  std::set<std::string_view> names;
  for (const SinkRow& row : sinks()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_EQ(find_sink(row.name), &row);
  }
  EXPECT_EQ(find_sink("no such format"), nullptr);
}

TEST(Sinks, AreAllInTheHelpText) {
  EXPECT_TRUE(sinks_doc().starts_with("text (default): "));
  for (const SinkRow& row : sinks()) EXPECT_NE(sinks_doc().find(row.doc), std::string::npos) << row.name;
}

}  // namespace
}  // namespace espy::output
