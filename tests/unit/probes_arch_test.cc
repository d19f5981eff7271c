// What programs see when their probe fires, on a CPU that does not exist.
#include <gtest/gtest.h>

#include "../support/fake_arch.h"
#include "../support/fake_kernel.h"
#include "probes/all_probes.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kUsdt, kTracepoint;

namespace {

using Kind = spec::Recipe::Kind;
using testing::kFakeArch;

TEST(ProbesArch, ArgumentsAndResultsAreInTheCpusRegisters) {
  types::Types types;
  spec::ProbeContext entry, result;
  add_registers(entry, kFakeArch, types, false);
  add_registers(result, kFakeArch, types, true);
  ASSERT_EQ(entry.arguments.size(), 2u);
  EXPECT_EQ(entry.arguments[1].recipe.offset_bytes, testing::fake::kA1);
  EXPECT_EQ(result.retval->recipe.offset_bytes, testing::fake::kA0);
  add_stack_arguments(entry, kFakeArch, types);
  EXPECT_EQ(entry.arguments[2].recipe.offset_bytes, testing::fake::kSp);
  EXPECT_EQ(entry.arguments[2].recipe.inner_offset_bytes, 0u);
}

TEST(ProbesArch, TheReturnAddressIsInTheLinkRegister) {
  spec::ProbeContext entry, result;
  add_frame(entry, kFakeArch, false);
  add_frame(result, kFakeArch, true);
  EXPECT_EQ(entry.return_address->kind, Kind::kContext);
  EXPECT_EQ(entry.return_address->offset_bytes, testing::fake::kLink);
  EXPECT_EQ(result.frame->displacement, 0);
}

TEST(ProbesArch, TheReturnAddressIsOnTheStack) {
  const kernel::Arch& arch = *kernel::find_arch("x86_64");
  spec::ProbeContext entry, result;
  add_frame(entry, arch, false);
  add_frame(result, arch, true);
  EXPECT_EQ(entry.return_address->kind, Kind::kUserStackWord);
  EXPECT_EQ(entry.return_address->offset_bytes, arch.stack_pointer_offset);
  EXPECT_EQ(result.frame->displacement, -8);
}

class ProbesContext : public ::testing::Test {
 protected:
  spec::ProbeContext context(const spec::Provider& provider, const spec::Share& share) {
    const program::Probe probe;
    spec::ContextRequest request{.probes = {&probe, 1}, .share = share, .kernel = kernel_, .types = types_};
    return provider.context(request);
  }

  testing::FakeKernel kernel_;
  types::Types types_;
};

TEST_F(ProbesContext, UsdtArgumentsAreReadByTheCpusOperands) {
  kernel_.cpu = &kFakeArch;
  const spec::ProbeContext found = context(kUsdt, {.method = "multi", .layout = "-4@a1 8@[stack,16] 1@#9 8@v0"});
  ASSERT_EQ(found.arguments.size(), 4u);
  EXPECT_EQ(found.arguments[0].recipe.kind, Kind::kContext);
  EXPECT_EQ(found.arguments[0].recipe.offset_bytes, testing::fake::kA1);
  EXPECT_EQ(found.arguments[1].recipe.kind, Kind::kUserMemory);
  EXPECT_EQ(found.arguments[1].recipe.offset_bytes, testing::fake::kSp);
  EXPECT_EQ(found.arguments[1].recipe.displacement, 16);
  EXPECT_EQ(found.arguments[2].recipe.kind, Kind::kConstant);
  EXPECT_EQ(found.arguments[2].recipe.displacement, 9);
  EXPECT_NE(found.arguments[3].unreadable, "");
}

TEST_F(ProbesContext, SystemCallsAreToldByTheCpusRegister) {
  EXPECT_TRUE(context(kTracepoint, {.method = "sys_exit"}).compat_register);
  kernel_.cpu = &kFakeArch;
  const spec::ProbeContext found = context(kTracepoint, {.method = "sys_exit"});
  EXPECT_EQ(found.number.inner_offset_bytes, testing::fake::kCall);
  EXPECT_FALSE(found.compat_register);
}

}  // namespace
}  // namespace espy::probes
