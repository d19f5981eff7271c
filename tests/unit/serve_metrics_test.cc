// Maps as families of metrics.
#include <gtest/gtest.h>

#include <cmath>

#include "output/log_sink.h"
#include "output_support.h"
#include "program/layout.h"
#include "serve/described_map.h"
#include "serve/metrics.h"

namespace espy::serve {
namespace {

using output::keyed;
using output::number;
using output::scalar;
using output::string;
using output::tuple;
using types::Kind;

DescribedMap described(std::string name, Kind value, std::vector<std::string> labels = {}) {
  return {{}, std::move(name), value, std::move(labels), "Help.", true};
}

std::string exposed(const DescribedMap& map, const output::MapView& view, size_t most = 100,
                    uint64_t* omitted = nullptr) {
  Exposition out(ExpositionFormat::kOpenMetrics);
  const uint64_t count = MapMetrics(map, "x").write(view, most, {}, out);
  if (omitted != nullptr) *omitted = count;
  const std::string text = out.finish();
  return text.substr(0, text.find("# EOF"));
}

output::HistValue hist(const std::vector<int64_t>& values, uint8_t bits = 0) {
  output::HistValue out{bits, std::vector<uint64_t>(program::hist_bucket_count(bits))};
  for (const int64_t value : values) ++out.buckets[program::hist_bucket(value, bits)];
  return out;
}

TEST(Metrics, ACounterWithEscapedLabels) {
  EXPECT_EQ(exposed(described("@x", Kind::kCount, {"comm", "id"}),
                    keyed("@x", {{tuple({string("a\"b\\\n\xff"), number(-1)}), {uint64_t{UINT64_MAX}}}})),
            "# HELP x Help.\n# TYPE x counter\n"
            "x_total{comm=\"a\\\"b\\\\\\\\x0a\\\\xff\",id=\"-1\"} 18446744073709551615\n");
}

TEST(Metrics, TheOlderTextNamesTheFamilyOfACounterByItsSamples) {
  Exposition out(ExpositionFormat::kText);
  out.family("x", MetricKind::kCounter, "Help.");
  out.sample("_total", "", 1);
  EXPECT_EQ(out.finish(), "# HELP x_total Help.\n# TYPE x_total counter\nx_total 1\n");
}

TEST(Metrics, NegativeTotalsAreNoCounters) {
  uint64_t omitted = 0;
  EXPECT_EQ(exposed(described("@x", Kind::kSum), scalar("@x", number(-5)), 100, &omitted),
            "# HELP x Help.\n# TYPE x counter\n");
  EXPECT_EQ(omitted, 1u);
  EXPECT_EQ(exposed(described("@x", Kind::kMin), scalar("@x", number(-5))), "# HELP x Help.\n# TYPE x gauge\nx -5\n");
}

// The bounds in `text` of one series of a histogram, in their order.
std::vector<std::string> bounds(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = text.find("le=\""); at != text.npos; at = text.find("le=\"", at + 1))
    out.push_back(text.substr(at + 4, text.find('"', at + 4) - at - 4));
  return out;
}

TEST(Metrics, AHistogramIsCumulativeOverAllBounds) {
  const std::string text = exposed(described("@x", Kind::kHist), scalar("@x", {hist({0, 1, 5})}));
  const std::string begin =
      "# HELP x Help. (_sum is estimated from the buckets)\n# TYPE x histogram\n"
      "x_bucket{le=\"0.0\"} 1\nx_bucket{le=\"1.0\"} 2\nx_bucket{le=\"3.0\"} 2\nx_bucket{le=\"7.0\"} 3\n";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_NE(text.find("x_bucket{le=\"+Inf\"} 3\nx_sum 6.5\nx_count 3\n"), text.npos) << text;
  EXPECT_EQ(bounds(text).size(), 65u);
}

TEST(Metrics, KeysOfAHistogram) {
  const std::string text = exposed(described("@x", Kind::kHist, {"k"}),
                                   keyed("@x", {{number(1), {hist({0, 1, 5})}}, {number(2), {hist({2})}}}), 1000);
  EXPECT_NE(text.find("x_bucket{k=\"2\",le=\"1.0\"} 0\nx_bucket{k=\"2\",le=\"3.0\"} 1\n"), text.npos) << text;
  EXPECT_NE(text.find("x_sum{k=\"1\"} 6.5\nx_count{k=\"1\"} 3\n"), text.npos) << text;
}

TEST(Metrics, AHistogramWithNegativeValuesHasNoSum) {
  const std::string text = exposed(described("@x", Kind::kHist), scalar("@x", {hist({-7, 1})}));
  const std::string begin =
      "# HELP x Help. (_sum is estimated from the buckets)\n# TYPE x histogram\n"
      "x_bucket{le=\"-1.0\"} 1\nx_bucket{le=\"0.0\"} 1\nx_bucket{le=\"1.0\"} 2\n";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_TRUE(text.ends_with("x_bucket{le=\"+Inf\"} 2\n")) << text;
}

TEST(Metrics, BoundsDoNotDependOnValues) {
  for (const uint8_t bits : {0, 1, 3, 5}) {
    const auto of = [&](const std::vector<int64_t>& values) {
      return bounds(exposed(described("@x", Kind::kHist), scalar("@x", {hist(values, bits)})));
    };
    EXPECT_EQ(of({0}), of({1'000'000, INT64_MAX})) << int{bits};
    EXPECT_LE(of({0}).size(), 128u) << int{bits};
  }
}

// The last one is INT64_MAX.
TEST(Metrics, BoundsAscend) {
  for (const uint8_t bits : {0, 1, 3, 5}) {
    const std::string text = exposed(described("@x", Kind::kHist), scalar("@x", {hist({-7, 7, INT64_MAX}, bits)}));
    std::vector<std::string> shown = bounds(text);
    ASSERT_GE(shown.size(), 65u) << int{bits};
    EXPECT_EQ(shown.back(), "+Inf");
    shown.pop_back();
    EXPECT_EQ(shown.front(), "-1.0");
    EXPECT_EQ(std::stod(shown.back()), std::ldexp(1.0, 63)) << text;
    for (size_t i = 1; i < shown.size(); ++i) EXPECT_LT(std::stod(shown[i - 1]), std::stod(shown[i])) << int{bits};
    EXPECT_NE(text.find("x_bucket{le=\"" + shown.back() + "\"} 3\n"), text.npos) << text;
  }
}

TEST(Metrics, FineHistogramsShowTwoBoundsForEachDoubling) {
  const std::string text = exposed(described("@x", Kind::kHist), scalar("@x", {hist({1'000'000, 600'000}, 5)}));
  EXPECT_NE(text.find("x_bucket{le=\"524287.0\"} 0\nx_bucket{le=\"786431.0\"} 1\nx_bucket{le=\"1048575.0\"} 2\n"),
            text.npos)
      << text;
}

TEST(Metrics, LongLinearHistogramsShowSomeOfTheirBounds) {
  output::LhistValue linear{0, 1000, 1, std::vector<uint64_t>(1002)};
  linear.buckets[1] = 1;
  linear.buckets[1001] = 2;
  const std::string text = exposed(described("@x", Kind::kLhist), scalar("@x", {linear}));
  EXPECT_EQ(bounds(text).size(), 127u);
  EXPECT_NE(text.find("x_bucket{le=\"-1.0\"} 0\nx_bucket{le=\"7.0\"} 1\n"), text.npos) << text;
  EXPECT_NE(text.find("x_bucket{le=\"999.0\"} 1\nx_bucket{le=\"+Inf\"} 3\n"), text.npos) << text;
}

TEST(Metrics, LinearHistograms) {
  const output::LhistValue linear{10, 25, 10, {1, 2, 3, 4}};
  EXPECT_EQ(exposed(described("@x", Kind::kLhist), scalar("@x", {linear})),
            "# HELP x Help. (_sum is estimated from the buckets)\n# TYPE x histogram\n"
            "x_bucket{le=\"9.0\"} 1\nx_bucket{le=\"19.0\"} 3\nx_bucket{le=\"24.0\"} 6\nx_bucket{le=\"+Inf\"} 10\n"
            "x_sum 204\nx_count 10\n");
}

TEST(Metrics, SummariesAndAverages) {
  EXPECT_EQ(exposed(described("@x", Kind::kStats), scalar("@x", {output::StatsValue{2, true, 9, false}})),
            "# HELP x Help.\n# TYPE x summary\nx_count 2\nx_sum 9\n");
  EXPECT_EQ(exposed(described("@x", Kind::kAvg), scalar("@x", {output::StatsValue{2, true, -9, true}})),
            "# HELP x Help.\n# TYPE x gauge\nx -4\n");
}

TEST(Metrics, KeysKeepTheirPlaceWhenOthersGrowLarger) {
  const DescribedMap map = described("@x", Kind::kCount, {"k"});
  MapMetrics metrics(map, "x");
  const auto text = [&](uint64_t third) {
    Exposition out(ExpositionFormat::kOpenMetrics);
    std::vector<output::MapEntry> entries = {
        {number(1), {uint64_t{1}}}, {number(2), {uint64_t{2}}}, {number(3), {third}}};
    output::sort_for_display(entries);
    EXPECT_EQ(metrics.write(keyed("@x", entries), 2, {}, out), 1u);
    return out.finish();
  };
  const std::string before = text(0), after = text(9);
  EXPECT_EQ(before, after);
  EXPECT_NE(before.find("k=\"1\""), before.npos);
  EXPECT_EQ(before.find("k=\"3\""), before.npos);
}

TEST(Metrics, StacksAndTextsAreLeftOut) {
  uint64_t omitted = 0;
  exposed(described("@x", Kind::kCount, {"k"}), keyed("@x", {{{output::StackValue{}}, {uint64_t{1}}}}), 100, &omitted);
  EXPECT_EQ(omitted, 1u);
  EXPECT_FALSE(metric_kind(Kind::kString));
  EXPECT_FALSE(metric_kind(Kind::kTuple));
}

TEST(Metrics, NamesAreThoseThatPrometheusAccepts) {
  EXPECT_EQ(metric_name("a-b.c"), "a_b_c");
  EXPECT_EQ(metric_name("__x"), "_x");
  EXPECT_EQ(metric_name("1x"), "_1x");
}

// ---- The page

TEST(MapJson, EntriesWithTheirKeys) {
  EXPECT_EQ(map_json(described("@x", Kind::kCount, {"a", "b"}),
                     keyed("@x", {{tuple({string("<x>"), number(1)}), {uint64_t{2}}}}), {}),
            R"({"name":"@x","kind":"count_t","scalar":false,"help":"Help.","keys":1,"labels":["a","b"],)"
            R"("entries":[[["<x>","1"],2]]})");
}

TEST(MapJson, StacksShareTheirFrames) {
  const auto frame = [](std::string name) {
    return std::make_shared<const output::Frame>(output::Frame{1, std::move(name)});
  };
  const auto stack = [&](std::string leaf) {
    return output::Value{output::StackValue{{frame(std::move(leaf)), frame("main")}, 0, true}};
  };
  EXPECT_EQ(map_json(described("@x", Kind::kCount, {"ustack"}),
                     keyed("@x", {{stack("a"), {uint64_t{1}}}, {stack("b;c"), {uint64_t{5}}}}), {}),
            R"({"name":"@x","kind":"count_t","scalar":false,"help":"Help.","keys":2,"labels":["ustack"],)"
            R"("stacks":[[5,0,1],[1,0,2]],"frames":["main","b:c","a"],"kinds":"uuu"})");
}

TEST(RecentLines, JoinsPartsAndForgetsTheOldest) {
  output::RecentLines lines;
  lines.add("printf", "a");
  lines.add("printf", "b\nc\nd");
  EXPECT_EQ(lines.json_from(0), R"([[0,"printf","ab"],[1,"printf","c"]])");
  EXPECT_EQ(lines.json_from(1), R"([[1,"printf","c"]])");
  for (int i = 0; i < 2000; ++i) lines.add_line("print", "x");
  EXPECT_EQ(lines.next_number(), 2002u);
  EXPECT_TRUE(lines.json_from(0).starts_with(R"([[1002,"print","x"],)"));
  for (int i = 0; i < 1000; ++i) lines.add_line("print", std::string(10000, 'y'));
  EXPECT_LT(lines.json_from(0).size(), 300'000u);
}

}  // namespace
}  // namespace espy::serve
