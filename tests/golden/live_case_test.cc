#include "golden/support/live_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espy::golden {
namespace {

using testing::HasSubstr;

LiveCase parse(std::string_view text) {
  auto parsed = parse_live_case("x.bt", text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? std::move(*parsed) : LiveCase();
}

std::string error_of(std::string_view text) {
  const auto parsed = parse_live_case("x.bt", text);
  return parsed ? "" : parsed.error().message;
}

TEST(LiveCase, EachDemandIsJudgedOnItsOwnStream) {
  const LiveCase c =
      parse("// expect: o.t\n// expect stderr: err\n// reject: bad\n// reject stderr: worse\nbegin { }\n");
  EXPECT_EQ(unmet_demands(c, {.out = "out\n", .err = "err\n"}), "");
  EXPECT_EQ(unmet_demands(c, {.out = "out\nworse\n", .err = "err\nbad\n"}), "");
  EXPECT_EQ(unmet_demands(c, {.out = "err\n", .err = "out\n"}), "not met: expect: o.t\nnot met: expect stderr: err\n");
  EXPECT_EQ(unmet_demands(c, {.out = "out\nbad\n", .err = "err\n"}), "not met: reject: bad\n");
  EXPECT_EQ(unmet_demands(c, {.out = "out\n", .err = "err\nworse\n"}), "not met: reject stderr: worse\n");
}

TEST(LiveCase, PatternsMatchWholeLines) {
  const LiveCase c = parse("// expect: a+\n// reject: b+\n");
  EXPECT_EQ(unmet_demands(c, {.out = "aa\nxbx\n"}), "");
  EXPECT_EQ(unmet_demands(c, {.out = "xaax\nbb\n"}), "not met: expect: a+\nnot met: reject: b+\n");
}

TEST(LiveCase, ExitStatusIsJudged) {
  EXPECT_EQ(unmet_demands(parse("// exit: 1\n"), {.status = 0}), "exit status 0, not 1\n");
  EXPECT_EQ(unmet_demands(parse("// exit: 1\n"), {.status = 1}), "");
}

TEST(LiveCase, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("// expects: x\n"),
              HasSubstr("x.bt:1: unknown key `expects`; known: alone, args, check, command, ends, exit, "));
  EXPECT_THAT(error_of("// expect: x\n// reject: (\n"), HasSubstr("x.bt:2: `reject:` "));
  EXPECT_EQ(error_of("// expect: x\n// seconds: soon\n"), "x.bt:2: `seconds:` must be a number");
  EXPECT_EQ(error_of("// expect: x\n// ends: never\n"), "x.bt:2: `ends:` must be `itself`");
}

TEST(LiveCase, TestThatExpectsNothingIsAnError) { EXPECT_THAT(error_of("begin { }\n"), HasSubstr("expects nothing")); }

TEST(LiveCase, ShellEndsTheTracerOnceTheWorkloadIsDone) {
  EXPECT_THAT(shell_program(parse("// workload: work\n// expect: x\n")), HasSubstr("( work ) "));
  EXPECT_THAT(shell_program(parse("// expect: x\n")), HasSubstr("kill -INT $TRACER"));
  EXPECT_THAT(shell_program(parse("// expect: x\n// ends: itself\n")), testing::Not(HasSubstr("kill -INT")));
}

}  // namespace
}  // namespace espy::golden
