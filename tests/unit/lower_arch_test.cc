// Programs for kernels on a CPU that does not exist.
#include "../support/fake_arch.h"
#include "bpf/disassemble.h"
#include "compile/compile.h"
#include "lower_support.h"
#include "program/layout.h"

namespace espy::lower {
namespace {

constexpr const char* kPrints = "raw { printf(\"%d\", pid); }";

class LowerArch : public ::testing::Test {
 protected:
  void use_fake_cpu() { kernel_.cpu = &testing::kFakeArch; }
  std::string code(const std::string& text) {
    Script script(text, kernel_);
    const compile::Compiled compiled =
        compile::compile(script.checked, script.types, kernel_, {.after_pass = opt::verify_after_pass});
    EXPECT_FALSE(compiled.diagnostics.has_errors());
    const program::Program& program = compiled.program;
    std::string out;
    for (const program::BpfProgram& each : program.programs) out += bpf::disassemble(each, program);
    return out;
  }

  testing::FakeKernel kernel_;
};

TEST_F(LowerArch, RingsArePagesOfTheKernel) {
  use_fake_cpu();
  Script script(kPrints, kernel_);
  const program::Program& program = script.lowered.program;
  const uint32_t page_bytes = testing::kFakeArch.page_size_bytes;
  EXPECT_EQ(program.arch, &testing::kFakeArch);
  EXPECT_EQ(program.page_size_bytes, page_bytes);
  EXPECT_EQ(program.ring_slack_bytes, page_bytes);
  const program::BpfMap& ring = program.maps[program.ring];
  EXPECT_EQ(ring.value_size, program::ring_data_offset(page_bytes) + program.ring_bytes + page_bytes);
  EXPECT_EQ(ring.value_size % page_bytes, 0u);
  EXPECT_EQ(ring.first_bytes % page_bytes, 0u);
  EXPECT_NE(ir::print(script.lowered.ir).find("16384"), std::string::npos);
}

TEST_F(LowerArch, ARecordIsPublishedByAPlainStoreWhereStoresAreOrdered) {
  const std::string text = code(kPrints);
  EXPECT_EQ(text.find("store_release"), std::string::npos) << text;
  EXPECT_EQ(text.find("xchg((u32"), std::string::npos) << text;
}

TEST_F(LowerArch, ARecordIsPublishedByAReleaseWhereStoresAreNot) {
  use_fake_cpu();
  EXPECT_NE(code(kPrints).find("store_release((u32 *)"), std::string::npos);
}

TEST_F(LowerArch, WithoutStoresOfReleaseOrderAnExchangePublishes) {
  use_fake_cpu();
  kernel_.lacks = {kernel::Feature::kStoreRelease};
  const std::string text = code(kPrints);
  EXPECT_EQ(text.find("store_release"), std::string::npos) << text;
  EXPECT_NE(text.find("xchg((u32 *)"), std::string::npos) << text;
}

}  // namespace
}  // namespace espy::lower
