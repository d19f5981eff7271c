#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/analysis.h"
#include "ir/ir_text.h"

namespace espy::ir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Function read_one(std::string_view text) {
  Result<Module> module = read(text);
  EXPECT_TRUE(module) << module.error().message;
  EXPECT_EQ(verify(*module), "");
  return module->functions[FunctionId{0}];
}

ValueId v(uint32_t index) { return {index}; }
BlockId b(uint32_t index) { return {index}; }

// A loop with an if inside, and a block that nothing reaches.
constexpr std::string_view kLoop = R"(
function f0 "loop" parameters 1 {
b0:
  v0 = param 0
  v1 = konst 0
  v2 = konst 1
  jump b1(v1)
b1(v3):
  branch ult v3, v0, b2, b5
b2:
  branch eq v3, v2, b3, b4(v3)
b3:
  v4 = add v3, v0
  jump b4(v4)
b4(v5):
  v6 = add v5, v2
  jump b1(v6)
b5:
  ret v3
b6:
  jump b5
}
)";

TEST(IrAnalysis, Predecessors) {
  Function function = read_one(kLoop);
  Predecessors predecessors(function);
  EXPECT_THAT(predecessors[b(0)], IsEmpty());
  EXPECT_THAT(predecessors[b(1)], ElementsAre(b(0), b(4)));
  EXPECT_THAT(predecessors[b(4)], ElementsAre(b(2), b(3)));
}

TEST(IrAnalysis, ReversePostOrderPutsTheFirstTargetFirst) {
  Function function = read_one(kLoop);
  EXPECT_THAT(reverse_post_order(function), ElementsAre(b(0), b(1), b(2), b(3), b(4), b(5)));
}

TEST(IrAnalysis, Dominators) {
  Function function = read_one(kLoop);
  Dominators dominators(function);
  EXPECT_FALSE(dominators.parent(b(0)).valid());
  EXPECT_EQ(dominators.parent(b(4)), b(2));
  EXPECT_EQ(dominators.parent(b(5)), b(1));
  EXPECT_TRUE(dominators.dominates(b(1), b(3)));
  EXPECT_TRUE(dominators.dominates(b(3), b(3)));
  EXPECT_FALSE(dominators.dominates(b(3), b(4)));
  EXPECT_FALSE(dominators.dominates(b(2), b(5)));
  EXPECT_FALSE(dominators.is_reachable(b(6)));
  EXPECT_FALSE(dominators.dominates(b(0), b(6)));
  EXPECT_EQ(dominators.preorder().size(), 6u);
  std::vector<std::vector<BlockId>> frontiers = dominance_frontiers(function, dominators);
  EXPECT_THAT(frontiers[3], ElementsAre(b(4)));
  EXPECT_THAT(frontiers[2], ElementsAre(b(1)));
  EXPECT_THAT(frontiers[1], ElementsAre(b(1)));
}

TEST(IrAnalysis, Uses) {
  Function function = read_one(kLoop);
  EXPECT_EQ(use_counts(function)[3], 5u);
  EXPECT_EQ(use_counts(function)[6], 1u);
  std::vector<ValueId> replacement(function.values.size());
  replacement[2] = v(1);
  replacement[1] = v(0);
  replace_all_uses(function, replacement);
  EXPECT_EQ(replacement[2], v(0));
  EXPECT_EQ(use_counts(function)[0], 5u);
  EXPECT_EQ(use_counts(function)[2], 0u);
}

TEST(IrAnalysis, LivenessFollowsLoopsAndLeavesParametersOut) {
  Function function = read_one(kLoop);
  Liveness live = liveness(function);
  EXPECT_THAT(live.in[0], IsEmpty());
  EXPECT_THAT(live.in[1], ElementsAre(v(0), v(2)));
  EXPECT_THAT(live.in[2], ElementsAre(v(0), v(2), v(3)));
  EXPECT_THAT(live.out[1], ElementsAre(v(0), v(2), v(3)));
  EXPECT_THAT(live.in[4], ElementsAre(v(0), v(2)));
  EXPECT_THAT(live.out[4], ElementsAre(v(0), v(2)));
  EXPECT_THAT(live.in[5], ElementsAre(v(3)));
  live = liveness(function, [](const Instruction& instruction) { return instruction.op != Op::k_konst; });
  EXPECT_THAT(live.in[1], ElementsAre(v(0)));
}

TEST(IrAnalysis, KeepsBlocks) {
  Function function = read_one(kLoop);
  std::vector<bool> keep(7, true);
  keep[6] = false;
  keep_blocks(function, keep);
  EXPECT_EQ(function.blocks.size(), 6u);
  EXPECT_EQ(terminator(function, b(4)).targets[0].block, b(1));
}

TEST(IrAnalysis, PureHelpersArePure) {
  Instruction call{.op = Op::k_call, .helper = Helper::get_current_pid_tgid};
  EXPECT_EQ(effect_of(call), Effect::pure);
  call.helper = Helper::map_lookup_elem;
  EXPECT_EQ(effect_of(call), Effect::read);
  EXPECT_EQ(effect_of({.op = Op::k_kfunc, .is_pure = true}), Effect::pure);
  EXPECT_EQ(effect_of({.op = Op::k_kfunc}), Effect::write);
}

}  // namespace
}  // namespace espy::ir
