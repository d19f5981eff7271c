#include <gtest/gtest.h>

#include "check_support.h"

namespace espy::check {
namespace {

TEST(Units, KnowTheirOwnExpressionsOnly) {
  constexpr int kActions = 300;
  std::string script;
  for (int i = 0; i < kActions; ++i) script += fmt::format("begin {{ @a = {} + nsecs; print(@a); $x = pid; }}\n", i);
  const Session session(script);
  ASSERT_FALSE(session.diagnostics.has_errors()) << session.rendered();
  ASSERT_EQ(session.checked.units.size(), size_t{kActions});
  for (const Unit& unit : session.checked.units) {
    EXPECT_LT(unit.exprs.ids().size(), 200U);
    EXPECT_LT(unit.stmts.ids().size(), 200U);
  }
}

}  // namespace
}  // namespace espy::check
