// OTLP/JSON: contexts of traces, metrics, and the lines of a run. tests/live/otlp.bt reads lines of real runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/otlp.h"
#include "output_support.h"
#include "program/layout.h"

namespace espy::output {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c", kParent = "b7ad6b7169203331";

TraceContext context(std::vector<std::pair<std::string, Value>> arguments) {
  SpanEvent event;
  event.arguments = std::move(arguments);
  return trace_context_of(event);
}

TEST(OtlpContext, IsTakenOfTheArguments) {
  const TraceContext whole =
      context({{"traceparent", string("00-" + std::string(kTrace) + "-" + std::string(kParent) + "-01")}});
  EXPECT_EQ(whole.trace_id, kTrace);
  EXPECT_EQ(whole.parent_id, kParent);
  const TraceContext parts = context(
      {{"trace_id", string("0AF7651916CD43DD8448EB211C80319C")}, {"parent_span_id", {uint64_t{0xb7ad6b7169203331}}}});
  EXPECT_EQ(parts.trace_id, kTrace);
  EXPECT_EQ(parts.parent_id, kParent);
}

TEST(OtlpContext, MayBeBytesOrANumber) {
  EXPECT_EQ(context({{"trace_id", {BufferValue{"0123456789abcdef"}}}}).trace_id, "30313233343536373839616263646566");
  ListValue bytes;
  for (int64_t i = 1; i <= 16; ++i) bytes.items.push_back({i});
  EXPECT_EQ(context({{"trace_id", {bytes}}}).trace_id, "0102030405060708090a0b0c0d0e0f10");
  EXPECT_EQ(context({{"trace_id", {uint64_t{0xab}}}}).trace_id, "000000000000000000000000000000ab");
}

TEST(OtlpContext, WhatIsNoIdIsNone) {
  const auto trace_of = [](std::string_view name, std::string text) {
    return context({{std::string(name), string(std::move(text))}}).trace_id;
  };
  EXPECT_EQ(trace_of("trace_id", "no id"), "");
  EXPECT_EQ(trace_of("trace_id", std::string(32, '0')), "");
  EXPECT_EQ(trace_of("trace_id", std::string(32, 'g')), "");
  EXPECT_EQ(trace_of("traceparent", ""), "");
  EXPECT_EQ(trace_of("traceparent", "00-short-01"), "");
  EXPECT_EQ(context({{"parent_span_id", string(std::string(kParent))}}).parent_id, "");
}

std::string metric(MapView view, types::Kind kind) {
  view.kind = kind;
  return otlp_metric(view, 5, 9, {});
}

TEST(OtlpMetric, CountsAndSumsAreSums) {
  EXPECT_EQ(metric(scalar("@calls", {int64_t{3}}), types::Kind::kCount),
            R"({"name":"calls","unit":"1","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[)"
            R"({"attributes":[],"startTimeUnixNano":"5","timeUnixNano":"9","asInt":"3"}]}})");
  EXPECT_THAT(metric(scalar("@read_bytes", {int64_t{-3}}), types::Kind::kSum),
              HasSubstr(R"("unit":"By","sum":{"aggregationTemporality":2,"isMonotonic":false,)"));
}

TEST(OtlpMetric, OtherNumbersAreGauges) {
  EXPECT_THAT(metric(scalar("@x", {int64_t{3}}), types::Kind::kInt), HasSubstr(R"("gauge":{"dataPoints":[)"));
  EXPECT_THAT(metric(scalar("@x", {UINT64_MAX}), types::Kind::kInt), HasSubstr(R"("asDouble":18446744073709551615)"));
  EXPECT_EQ(metric(scalar("@x", string("text")), types::Kind::kString), "");
}

TEST(OtlpMetric, KeysAreAttributes) {
  MapView view = keyed("@", {{tuple({string("a\"\xff"), number(7)}), {int64_t{1}}}});
  const std::vector<std::string> names = {"comm", "pid % 2"};
  view.key_names = names;
  EXPECT_THAT(metric(view, types::Kind::kCount),
              HasSubstr(R"("attributes":[{"key":"comm","value":{"stringValue":"a\"\\xff"}},)"
                        R"({"key":"key2","value":{"intValue":"7"}}])"));
}

TEST(OtlpMetric, BucketsHaveTheirGreatestValuesAsBounds) {
  LhistValue linear{.min = 0, .max = 30, .step = 10, .buckets = {1, 2, 0, 3, 4}};
  EXPECT_THAT(metric(scalar("@", {linear}), types::Kind::kLhist),
              HasSubstr(R"("count":"10","bucketCounts":["1","2","0","3","4"],"explicitBounds":[-1,9,19,29])"));
  linear.buckets = {0, 0, 5, 0, 0};
  EXPECT_THAT(metric(scalar("@", {linear}), types::Kind::kLhist),
              HasSubstr(R"("count":"5","bucketCounts":["0","5","0"],"explicitBounds":[9,19])"));
  HistValue powers{0, std::vector<uint64_t>(program::hist_bucket_count(0))};
  powers.buckets[4] = 6;  // 4 to 7
  const uint64_t first = program::hist_bucket_start(4, 0), next = program::hist_bucket_start(5, 0);
  EXPECT_THAT(metric(scalar("@", {powers}), types::Kind::kHist),
              HasSubstr(fmt::format(R"("bucketCounts":["0","6","0"],"explicitBounds":[{},{}])", first - 1, next - 1)));
}

TEST(OtlpMetric, AveragesAreHistogramsOfOneBucket) {
  EXPECT_THAT(metric(scalar("@", {StatsValue{4, true, 10, true}}), types::Kind::kAvg),
              HasSubstr(R"("histogram":{"aggregationTemporality":2,"dataPoints":[)"
                        R"({"attributes":[],"startTimeUnixNano":"5","timeUnixNano":"9","count":"4","sum":10}]})"));
}

SpanEvent span(SpanKind kind, uint64_t time_ns, std::string name) {
  SpanEvent out;
  out.kind = kind;
  out.time_ns = time_ns;
  out.pid = out.tid = 7;
  out.comm = "app";
  out.name = out.text = std::move(name);
  return out;
}

TEST(Otlp, NestedSpansBelongToTheTraceThatTheOuterNames) {
  SpanEvent request = span(SpanKind::kEnter, 10, "request");
  request.arguments = {
      {"trace_id", string(std::string(kTrace))}, {"parent_span_id", string(std::string(kParent))}, {"size", number(5)}};
  const std::string out = shown("otlp", [&](Sink& sink) {
    sink.span(request);
    sink.span(span(SpanKind::kEnter, 20, "read"));
    sink.span(span(SpanKind::kInstant, 25, "switch"));
    sink.span(span(SpanKind::kExit, 30, "read"));
    sink.span(span(SpanKind::kExit, 40, "request"));
    sink.finish();
  });
  const std::string trace = fmt::format("\"traceId\":\"{}\"", kTrace);
  EXPECT_THAT(out,
              HasSubstr(trace + R"(,"spanId":"0000000000000002","parentSpanId":"0000000000000001","name":"read")"));
  EXPECT_THAT(out, HasSubstr(trace + fmt::format(R"(,"spanId":"0000000000000001","parentSpanId":"{}")", kParent)));
  EXPECT_THAT(out, HasSubstr(R"("startTimeUnixNano":"1000000000020","endTimeUnixNano":"1000000000030")"));
  EXPECT_THAT(out, HasSubstr(R"("events":[{"timeUnixNano":"1000000000025","name":"switch","attributes":[]}])"));
  EXPECT_THAT(out, HasSubstr(R"({"key":"size","value":{"intValue":"5"}})"));
  EXPECT_THAT(out, Not(HasSubstr("\"trace_id\"")));
}

TEST(Otlp, LinesAreRecords) {
  const std::string out = shown("otlp", [](Sink& sink) {
    sink.text("printf", "one ");
    sink.text("printf", "line\ntwo\nend");
    sink.finish();
  });
  for (const char* line : {"one line", "two", "end"})
    EXPECT_THAT(out, HasSubstr(fmt::format("\"body\":{{\"stringValue\":\"{}\"}}", line)));
}

TEST(Otlp, MapsBeginAnewWhenTheyAreCleared) {
  MapView view = scalar("@x", {int64_t{3}});
  view.kind = types::Kind::kCount;
  const std::string out = shown("otlp", [&](Sink& sink) {
    sink.map(view);
    sink.map_cleared("@x");
    sink.map(view);
    sink.finish();
  });
  EXPECT_THAT(out, HasSubstr(R"("startTimeUnixNano":"1001000000000","timeUnixNano":"1002000000000")"));
  EXPECT_THAT(out, HasSubstr(R"("startTimeUnixNano":"1003000000000","timeUnixNano":"1004000000000")"));
}

}  // namespace
}  // namespace espy::output
