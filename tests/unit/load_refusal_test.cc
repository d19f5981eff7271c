// What espy makes of the verifier's logs, which are quoted from kernels.
#include <gtest/gtest.h>

#include <cerrno>

#include "load/refusal.h"

namespace espy::load {
namespace {

constexpr std::string_view kLog =
    "func#0 @0\n"
    "0: R1=ctx() R10=fp0\n"
    "; printf(\"%d\", *p); @ script.bt:3\n"
    "0: (b7) r2 = 0                        ; R2_w=0\n"
    "17: (79) r3 = *(u64 *)(r2 +0)\n"
    "R2 invalid mem access 'scalar'\n"
    "processed 18 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n";

Refusal refusal_of(std::string_view sentence, int code = EINVAL) {
  return read_refusal({}, std::string(sentence) + "\nprocessed 1 insns (limit 1000000)\n", code);
}

RefusalReason reason_of(std::string_view sentence, int code = EINVAL) {
  return load::reason_of(refusal_of(sentence, code), {});
}

std::string reported(const Refusal& refusal, const program::BpfProgram& code, bool takes_addresses) {
  source::Diagnostics diagnostics;
  report_refusal(refusal, code, takes_addresses, diagnostics);
  return diagnostics.all().empty()
             ? ""
             : std::string(diagnostics.all().front().id) + ": " + diagnostics.all().front().message;
}

TEST(Refusal, HasTheMessageAndTheLastInstruction) {
  const Refusal refusal = read_refusal({}, std::string(kLog), EACCES);
  EXPECT_EQ(refusal.sentence, "R2 invalid mem access 'scalar'");
  EXPECT_EQ(refusal.insn, 17U);
  EXPECT_EQ(refusal.code, EACCES);
  EXPECT_EQ(refusal.log, kLog);
}

TEST(Refusal, TellsMessagesFromStates) {
  EXPECT_EQ(refusal_of("R1=ctx() R10=fp0").sentence, "");
  EXPECT_EQ(refusal_of("R3 !read_ok").sentence, "R3 !read_ok");
  EXPECT_EQ(refusal_of("from 3 to 7: R0=0").sentence, "");
  EXPECT_EQ(refusal_of("back-edge from insn 3 to 2").sentence, "back-edge from insn 3 to 2");
}

TEST(Refusal, IsInTheLineOfTheLastInstruction) {
  program::BpfProgram code;
  for (uint32_t i = 0; i < 3; ++i) code.lines.push_back({10 * i, {{}, i, i + 1}});
  EXPECT_EQ(span_of(read_refusal({}, std::string(kLog), EACCES), code).begin, 1U);
  EXPECT_EQ(span_of(read_refusal({}, "", E2BIG), code).begin, 0U);
}

TEST(Refusal, LacksRightsOrResources) {
  EXPECT_FALSE(is_by_verifier(refusal_of("", EPERM)));
  EXPECT_FALSE(is_by_verifier(refusal_of("", ENOMEM)));
  EXPECT_TRUE(is_by_verifier(refusal_of("", E2BIG)));
}

TEST(RefusalReason, IsOneOfTheVerifiersLimits) {
  EXPECT_EQ(reason_of("BPF program is too large. Processed 1000001 insn", E2BIG), RefusalReason::kTooLong);
  EXPECT_EQ(reason_of("The sequence of 8193 jumps is too complex.", E2BIG), RefusalReason::kTooLong);
  EXPECT_EQ(reason_of("", E2BIG), RefusalReason::kTooLong);
  EXPECT_EQ(reason_of("The total number of maps per program has reached the limit of 64", E2BIG),
            RefusalReason::kTooManyMaps);
}

// Before Linux 6.3 there is no message.
TEST(RefusalReason, IsTheNumberOfMapsWithoutAMessage) {
  program::BpfProgram code;
  for (uint32_t i = 0; i < 65; ++i) code.map_references.push_back({0, program::MapId{i}});
  EXPECT_EQ(load::reason_of(refusal_of("", E2BIG), code), RefusalReason::kTooManyMaps);
  code.map_references.pop_back();
  EXPECT_EQ(load::reason_of(refusal_of("", E2BIG), code), RefusalReason::kTooLong);
}

TEST(RefusalReason, IsAHelperThatIsNotThere) {
  EXPECT_EQ(reason_of("unknown func bpf_get_socket_cookie#46"), RefusalReason::kMissingHelper);
  EXPECT_EQ(reason_of("invalid func unknown#208"), RefusalReason::kMissingHelper);
  EXPECT_EQ(reason_of("invalid func unknown#9999"), RefusalReason::kOther);
  EXPECT_EQ(reported(refusal_of("invalid func unknown#208"), {}, false),
            "kernel-lacks: this kernel lacks the helper `ktime_get_tai_ns` (Linux 6.1) for probes of this type, which "
            "this needs");
}

TEST(RefusalReason, IsAFeatureThatIsNotThere) {
  Refusal refusal = refusal_of("invalid func unknown#181");
  refusal.missing_feature = kernel::Feature::kBpfLoop;
  EXPECT_EQ(load::reason_of(refusal, {}), RefusalReason::kMissingFeature);
}

TEST(RefusalReason, IsLockdown) {
  EXPECT_EQ(reason_of("unknown func bpf_probe_read_kernel#113"), RefusalReason::kLockedDown);
  EXPECT_EQ(reason_of("program of this type cannot use helper bpf_probe_read_kernel#113"), RefusalReason::kLockedDown);
  EXPECT_EQ(reason_of("unknown func bpf_probe_read_user#112"), RefusalReason::kOther);
}

TEST(RefusalReason, IsABugUnlessTheScriptTakesAddresses) {
  const Refusal outside = refusal_of("invalid write to stack R10 off=0 size=8");
  EXPECT_EQ(load::reason_of(outside, {}), RefusalReason::kOutside);
  EXPECT_TRUE(reported(outside, {}, true).starts_with("pointer-outside: "));
  EXPECT_EQ(reported(outside, {}, false),
            "verifier: the kernel's verifier rejected this program: invalid write to stack R10 off=0 size=8");
  EXPECT_EQ(reported(refusal_of(""), {}, false),
            "verifier: the kernel's verifier rejected this program: it gave no reason");
}

}  // namespace
}  // namespace espy::load
