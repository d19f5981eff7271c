// The observer of passes, and the one that verifies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/ir_text.h"
#include "opt/pipeline.h"

namespace espy::opt {
namespace {

constexpr std::string_view kFoldable = R"(function f0 "good" parameters 0 {
b0:
  v0 = konst 1
  v1 = konst 2
  v2 = add v0, v1
  ret v2
}
)";
// v1 uses v0 before its definition.
constexpr std::string_view kBroken = R"(function f1 "bad" parameters 0 {
b0:
  v1 = neg v0
  v0 = konst 0
  ret v1
}
)";

ir::Module module_of(const std::string& text) {
  Result<ir::Module> module = ir::read(text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? std::move(*module) : ir::Module();
}

TEST(OptPipeline, ObserverSeesEachPassThatChangedTheModule) {
  ir::Module module = module_of(std::string(kFoldable));
  std::vector<std::string> passes;
  std::string last;
  optimize(module, [&](std::string_view pass, const ir::Module& now) {
    passes.emplace_back(pass);
    EXPECT_NE(ir::print(now), last) << pass;
    last = ir::print(now);
  });
  EXPECT_THAT(passes, testing::IsSupersetOf({"fold_constants", "dce"}));
  EXPECT_EQ(last, ir::print(module));
}

TEST(OptPipelineDeathTest, VerifyingObserverAbortsOnModuleThatIsNotValid) {
  ir::Module module = module_of(std::string(kFoldable) + std::string(kBroken));
  EXPECT_NE(ir::verify(module), "");
  EXPECT_DEATH(optimize(module, verify_after_pass),
               "after fold_constants: function f1 \\(bad\\).*before its definition");
}

// A pass that leaves the module broken is named, not one of those that run after it.
TEST(OptPipelineDeathTest, VerifyingObserverNamesThePassThatBrokeTheModule) {
  ir::Module module = module_of(std::string(kFoldable));
  const auto break_in_dce = [&](std::string_view pass, const ir::Module& now) {
    ir::Function& function = module.functions[ir::FunctionId{0}];
    if (pass == "dce") function.blocks[ir::BlockId{0}].instructions.clear();
    verify_after_pass(pass, now);
  };
  EXPECT_DEATH(optimize(module, break_in_dce), "after dce: .*the block is empty");
}

TEST(OptPipeline, VerifyingObserverAcceptsValidModule) {
  ir::Module module = module_of(std::string(kFoldable));
  optimize(module, verify_after_pass);
  EXPECT_EQ(ir::verify(module), "");
}

}  // namespace
}  // namespace espy::opt
