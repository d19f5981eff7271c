// -f tree: callers above callees, the largest branch first, small ones together, lines that fit, names that are
// escaped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/profile_formats.h"
#include "output_support.h"

namespace espy::output {
namespace {

using ::testing::HasSubstr;

Value stack(const std::vector<std::string>& outer_first) {
  StackValue out;
  out.is_user = true;
  for (const std::string& name : outer_first)
    out.frames.insert(out.frames.begin(), std::make_shared<Frame>(Frame{0x1000, name, 3, "/usr/lib/libx.so", {}}));
  return {std::move(out)};
}

std::string tree(const MapView& view) {
  return shown("tree", [&](Sink& sink) { sink.map(view); });
}

CallTree tree_of(const std::vector<std::pair<std::vector<std::string>, uint64_t>>& stacks) {
  CallTree out;
  for (const auto& [names, weight] : stacks) {
    std::vector<FoldedFrame> frames;
    for (const std::string& name : names) frames.push_back({name, FrameKind::kUser});
    out.add(frames, weight);
  }
  return out;
}

TEST(CallTree, CallersAboveCalleesTheLargestBranchFirst) {
  EXPECT_EQ(tree(keyed("@s", {{stack({"main", "work"}), {uint64_t{750}}},
                              {stack({"main", "idle", "wait"}), {uint64_t{1000}}},
                              {stack({"main"}), {uint64_t{250}}}})),
            "@s: 2,000\n"
            "100.0%  2,000  main\n"
            " 50.0%  1,000  |- idle\n"
            " 50.0%  1,000  |  wait\n"
            " 37.5%    750  |- work\n"
            " 12.5%    250  '- [itself]\n");
}

TEST(CallTree, SmallBranchesAreOneLineWithWhatTheyHave) {
  const std::string text = call_tree_text(tree_of({{{"a", "b"}, 1000}, {{"a", "c"}, 2}, {{"a", "d"}, 3}}), 0);
  EXPECT_EQ(text,
            "100.0%  1,005  a\n"
            " 99.5%  1,000  |- b\n"
            "  0.5%      5  '- [2 smaller branches]\n");
}

TEST(CallTree, AllWeightIsInTheLines) {
  std::vector<std::pair<std::vector<std::string>, uint64_t>> stacks;
  for (int i = 0; i < 50; ++i) stacks.push_back({{"f" + std::to_string(100 + i)}, 10});
  const std::string text = call_tree_text(tree_of(stacks), 0);
  EXPECT_THAT(text, HasSubstr(" 60.0%  300  '- [30 smaller branches]\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 21);
}

TEST(CallTree, LinesFitIntoTheTerminal) {
  const std::string text =
      call_tree_text(tree_of({{{std::string(200, 'x'), "\xe6\x97\xa5\xe6\x9c\xac" + std::string(100, 'y')}, 1}}), 40);
  EXPECT_EQ(text, "100.0%  1  " + std::string(28, 'x') + "~\n" + "100.0%  1  \xe6\x97\xa5\xe6\x9c\xac" +
                      std::string(24, 'y') + "~\n");
}

TEST(CallTree, DeepTreesKeepToTheirIndent) {
  std::vector<std::pair<std::vector<std::string>, uint64_t>> stacks;
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) {
    names.push_back("f" + std::to_string(i));
    stacks.push_back({names, 1000});
  }
  const std::string text = call_tree_text(tree_of(stacks), 80);
  size_t longest = 0;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
    longest = std::max(longest, end - at);
  EXPECT_LE(longest, 80u);
}

TEST(CallTree, NamesOfProgramsCannotSteerTheTerminal) {
  EXPECT_EQ(tree(keyed("@s", {{stack({"a\x1b[2J\nb"}), {uint64_t{1}}}})), "@s: 1\n100.0%  1  a\\x1b[2J\\x0ab\n");
}

TEST(CallTree, MapsWithoutStacksAreText) {
  EXPECT_EQ(tree(keyed("@n", {{{uint64_t{7}}, {uint64_t{3}}}})), "@n[7]: 3\n");
}

TEST(CallTree, NothingIsAHeading) { EXPECT_EQ(call_tree_text({}, 80), ""); }

}  // namespace
}  // namespace espy::output
