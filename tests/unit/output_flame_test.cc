// Folded stacks and flame graphs: what is in the lines and boxes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output_support.h"

namespace espy::output {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Value stack(bool is_user, const std::vector<std::string>& inner_first) {
  StackValue out;
  out.is_user = is_user;
  for (const std::string& name : inner_first)
    out.frames.push_back(std::make_shared<Frame>(Frame{0x1000, name, 3, "/usr/lib/libx.so", {}}));
  return {std::move(out)};
}

Value text(std::string text) { return {StringValue{std::move(text)}}; }
Value key(std::vector<Value> items) { return {TupleValue{std::move(items)}}; }

std::string folded(const MapView& view) {
  return shown("folded", [&](Sink& sink) { sink.map(view); });
}

std::string flame(const std::vector<MapView>& views) {
  return shown("flame", [&](Sink& sink) {
    for (const MapView& view : views) sink.map(view);
    sink.finish();
  });
}

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Folded, TheRestOfTheKeyThenUserThenKernelFromTheOutside) {
  const MapView view = keyed(
      "@",
      {{key({stack(false, {"vfs_read", "do_syscall"}), text("cat"), stack(true, {"read", "main"})}), {uint64_t{12}}}});
  EXPECT_EQ(folded(view), "cat;main;read;do_syscall_[k];vfs_read_[k] 12\n");
}

TEST(Folded, FramesWithoutANameAreTheirFile) {
  EXPECT_EQ(folded(keyed("@", {{stack(true, {"", "main"}), {int64_t{1}}}})), "main;[libx.so] 1\n");
}

TEST(Folded, SeparatorsInNamesAreReplaced) {
  EXPECT_EQ(folded(keyed("@", {{key({text("a;b\nc"), stack(true, {"f"})}), {int64_t{1}}}})), "a\\x3bb\\x0ac;f 1\n");
}

TEST(Folded, WeightsAreWhatTheValueCounts) {
  const auto weight = [](Value value) { return folded(keyed("@", {{stack(true, {"f"}), std::move(value)}})); };
  EXPECT_EQ(weight({StatsValue{4, true, 10, true}}), "f 2\n");
  EXPECT_EQ(weight({StatsValue{4, true, 10, false}}), "f 10\n");
  EXPECT_EQ(weight({HistValue{0, {0, 3, 4}}}), "f 7\n");
  EXPECT_EQ(weight({int64_t{-5}}), "");
  EXPECT_EQ(weight({text("x").node}), "f 1\n");
}

TEST(Folded, MapsWithoutStacksAreAside) {
  EXPECT_EQ(folded(keyed("@", {{text("a"), {int64_t{1}}}})), "");
  EXPECT_EQ(folded(scalar("@", stack(true, {"f"}))), "");
}

TEST(Flame, EqualFramesOfOneCallerAreOneBox) {
  const std::string svg =
      flame({keyed("@", {{stack(true, {"b", "main"}), {int64_t{3}}}, {stack(true, {"c", "main"}), {int64_t{1}}}})});
  EXPECT_THAT(svg, HasSubstr("<title>main\n4 (100.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>b\n3 (75.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("x=\"75.0000%\" y=\"140\" width=\"25.0000%\""));
  EXPECT_EQ(count(svg, "<svg class=\"f"), 4U);
  EXPECT_THAT(svg, HasSubstr("\"104\" width=\"100.0000%\""));  // the root is at the top
}

TEST(Flame, WhatIsShownIsNamed) {
  output::MapView map = keyed("@", {{stack(true, {"f"}), {uint64_t{1234}}}});
  map.kind = types::Kind::kCount;
  EXPECT_THAT(flame({map}), HasSubstr(">1,234 events in 2 frames, 1 deep</text>"));
  map.sampled = {"profile", "hz", 99};
  const std::string svg = flame({map});
  EXPECT_THAT(svg, HasSubstr(">1,234 samples in 2 frames, 1 deep</text>"));
  EXPECT_THAT(svg, HasSubstr("</tspan> user code</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("</tspan> kernel")));
  map.kind = types::Kind::kSum;
  map.name = "@bytes";
  EXPECT_THAT(flame({map}), HasSubstr(">1,234 bytes in 2 frames"));
}

TEST(Flame, FramesTooNarrowToBeSeenAreShownByTheScriptOnly) {
  const std::string svg =
      flame({keyed("@", {{stack(true, {"wide"}), {int64_t{9999}}}, {stack(true, {"thin"}), {int64_t{1}}}})});
  EXPECT_EQ(count(svg, "style=\"display:none\"><title>thin"), 1U);
  EXPECT_EQ(count(svg, "style=\"display:none\"><title>wide"), 0U);
}

TEST(Flame, NamesAreEscapedForXml) {
  const std::string svg =
      flame({keyed("@x", {{stack(true, {"a<b>(\"&\")", std::string("x\x01y\xff") + "\xc3\xa4"}), {int64_t{1}}}})});
  EXPECT_THAT(svg, HasSubstr(">a&lt;b&gt;(&quot;&amp;&quot;)</text>"));
  EXPECT_THAT(svg, HasSubstr(">x\\x01y\\xff\xc3\xa4</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("\x01")));
}

TEST(Flame, NamesAreNoPartsOfTheTemplate) {
  EXPECT_THAT(flame({keyed("@x", {{stack(true, {"{{boxes}}", "{{flame.js}}"}), {int64_t{1}}}})}),
              AllOf(HasSubstr(">{{boxes}}</text>"), HasSubstr(">{{flame.js}}</text>")));
  EXPECT_THAT(flame({}), Not(HasSubstr("{{")));
}

TEST(Flame, SeveralMapsStandSideBySide) {
  const std::string svg =
      flame({keyed("@a", {{stack(true, {"f"}), {int64_t{1}}}}), keyed("@b", {{stack(true, {"f"}), {int64_t{1}}}})});
  EXPECT_THAT(svg, HasSubstr(">Stacks of @a, @b</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>@a\n1 (50.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>@b\n1 (50.00%)</title>"));
}

TEST(Flame, TheLastOfAMapCounts) {
  const auto view = [](int64_t weight) { return keyed("@", {{stack(true, {"f"}), {weight}}}); };
  EXPECT_THAT(flame({view(5), view(7)}), HasSubstr("<title>all\n7 (100.00%)</title>"));
}

TEST(Flame, NothingIsAPictureToo) { EXPECT_THAT(flame({}), HasSubstr("</svg>\n")); }

}  // namespace
}  // namespace espy::output
