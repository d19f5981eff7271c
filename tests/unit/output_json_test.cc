// The JSON sink against the description's lines, byte for byte.
#include <gtest/gtest.h>

#include <ctime>

#include "output_support.h"
#include "program/layout.h"

namespace espy::output {
namespace {

std::string line(const std::function<void(Sink&)>& use) { return shown("json", use); }
std::string map_line(const MapView& view) {
  return line([&](Sink& sink) { sink.map(view); });
}
// What stands for a value: `print(v)` without its frame.
std::string json(const Value& value) {
  const std::string begin = R"({"type": "value", "data": )", end = "}\n";
  const std::string text = line([&](Sink& sink) { sink.value(value); });
  EXPECT_TRUE(text.starts_with(begin) && text.ends_with(end)) << text;
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

HistValue hist(const std::vector<int64_t>& values) {
  HistValue out{0, std::vector<uint64_t>(program::hist_bucket_count(0))};
  for (const int64_t value : values) ++out.buckets[program::hist_bucket(value, 0)];
  return out;
}

TEST(Json, TheLinesOfTheDescription) {
  const std::string text = line([](Sink& sink) {
    sink.attached(1);
    sink.value(tuple({number(1), string("x")}));
    sink.text("printf", "x 1\n");
    sink.end();
    sink.map(keyed("@a", {{number(1), {uint64_t{1}}}}));
    sink.map(scalar("@b", {hist({5})}));
    sink.map(scalar("@d", {StatsValue{1, true, 4, false}}));
    sink.map(scalar("@f", tuple({number(1), string("a"), tuple({number(2), number(3)})})));
    sink.map(keyed("@z", {{tuple({number(1), number(2)}), number(5)}}));
  });
  EXPECT_EQ(text, R"({"type": "attached_probes", "count": 1, "data": {"probes": 1}}
{"type": "value", "data": [1,"x"]}
{"type": "printf", "data": "x 1\n"}
{"type": "map", "data": {"@a": {"1": 1}}}
{"type": "hist", "data": {"@b": [{"min": 4, "max": 7, "count": 1}]}}
{"type": "stats", "data": {"@d": {"count": 1, "average": 4, "total": 4}}}
{"type": "map", "data": {"@f": [1,"a",[2,3]]}}
{"type": "map", "data": {"@z": {"1,2": 5}}}
)");
}

// Plain characters are copied eight at a time.
TEST(Json, CharactersAreEscapedAtEachPlace) {
  for (int c = 1; c < 0x80; ++c) {
    const std::string alone = json(string(std::string(1, static_cast<char>(c))));
    const std::string shown = alone.substr(1, alone.size() - 2);
    for (size_t place = 0; place < 18; ++place) {
      std::string text(18, '~');
      text[place] = static_cast<char>(c);
      EXPECT_EQ(json(string(text)), "\"" + std::string(place, '~') + shown + std::string(17 - place, '~') + "\"");
    }
  }
}

TEST(Json, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(json(string("\xff"
                        "a\xc3")),
            R"("\\xffa\\xc3")");
  EXPECT_EQ(json(string("\xed\xa0\x80 \xf4\x90\x80\x80")), R"("\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80")");
  EXPECT_EQ(json(string("für 日本 \U0001F600\x7f")), "\"für 日本 \U0001F600\x7f\"");
  EXPECT_EQ(map_line(keyed("@m", {{string("\xff"), number(1)}, {string("\xfe"), number(1)}})),
            "{\"type\": \"map\", \"data\": {\"@m\": {\"\\\\xfe\": 1, \"\\\\xff\": 1}}}\n");
}

TEST(Json, KeyedMaps) {
  MapView view =
      keyed("@m", {{tuple({string("a"), number(1)}), number(2)}, {tuple({string("b"), number(1)}), number(1)}});
  EXPECT_EQ(map_line(view), "{\"type\": \"map\", \"data\": {\"@m\": {\"b,1\": 1, \"a,1\": 2}}}\n");
  view.top = 1;
  view.divisor = 2;
  EXPECT_EQ(map_line(view), "{\"type\": \"map\", \"data\": {\"@m\": {\"a,1\": 1}}}\n");
  EXPECT_EQ(map_line(keyed("@m", {})), "");
  EXPECT_EQ(map_line(keyed("@", {{tuple({tuple({number(1), string("x y")}), number(2)}), number(3)}})),
            "{\"type\": \"map\", \"data\": {\"@\": {\"1,xy,2\": 3}}}\n");
  EXPECT_EQ(map_line(keyed("@", {{string("key"), {hist({5})}}})),
            "{\"type\": \"hist\", \"data\": {\"@\": {\"key\": [{\"min\": 4, \"max\": 7, \"count\": 1}]}}}\n");
}

std::string line_of_keys(std::vector<Value> keys) {
  std::vector<MapEntry> entries;
  for (Value& key : keys) entries.push_back({std::move(key), number(1)});
  return map_line(keyed("@", std::move(entries)));
}

TEST(Json, KeysOfOneTextHaveNumbersThatNoNameHas) {
  const auto shown = [](std::initializer_list<const char*> names) {
    std::vector<Value> keys;
    for (const char* name : names) keys.push_back({TextValue{name}});
    return line_of_keys(std::move(keys));
  };
  EXPECT_EQ(shown({"f", "f", "f#2"}), "{\"type\": \"map\", \"data\": {\"@\": {\"f\": 1, \"f#2\": 1, \"f##2\": 1}}}\n");
  EXPECT_EQ(shown({"f#2", "f#", "f#2x"}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"f#\": 1, \"f##2\": 1, \"f#2x\": 1}}}\n");
  EXPECT_EQ(shown({"f#2", "f#2"}), "{\"type\": \"map\", \"data\": {\"@\": {\"f##2\": 1, \"f##2#2\": 1}}}\n");
  EXPECT_EQ(line_of_keys({string("page#2"), string("page")}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"page\": 1, \"page#2\": 1}}}\n");
}

TEST(Json, KeysThatWouldBecomeEqualKeepTheirTexts) {
  EXPECT_EQ(line_of_keys({string("x, y"), string("(sd-pam)")}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"sd-pam\": 1, \"x,y\": 1}}}\n");
  EXPECT_EQ(line_of_keys({string("(a)"), string("a")}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"(a)\": 1, \"a\": 1}}}\n");
  EXPECT_EQ(line_of_keys({string("a b"), string("ab")}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"a b\": 1, \"ab\": 1}}}\n");
  EXPECT_EQ(line_of_keys({tuple({string("a"), string("b,c")}), tuple({string("a,b"), string("c")})}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"a,b\\\\,c\": 1, \"a\\\\,b,c\": 1}}}\n");
  const auto names = std::make_shared<const RecordNames>(RecordNames{{"a", "b"}});
  const auto key = [&](const char* text) {
    return tuple({Value{RecordValue{names, {number(1), string(text)}}}, Value{ListValue{{number(2), number(3)}}}});
  };
  EXPECT_EQ(line_of_keys({key("x y"), key("xy")}),
            "{\"type\": \"map\", \"data\": {\"@\": {\"{.a=1,.b=x y},[2,3]\": 1, \"{.a=1,.b=xy},[2,3]\": 1}}}\n");
}

TEST(Json, Histograms) {
  EXPECT_EQ(json({hist({-3, 0, 2})}),
            R"([{"max": -1, "count": 1}, {"min": 0, "max": 0, "count": 1}, {"min": 1, "max": 1, "count": 0}, )"
            R"({"min": 2, "max": 3, "count": 1}])");
  EXPECT_EQ(json({hist({})}), "[]");
  EXPECT_EQ(json({LhistValue{0, 10, 5, {1, 1, 0, 1}}}),
            R"([{"max": -1, "count": 1}, {"min": 0, "max": 4, "count": 1}, {"min": 5, "max": 9, "count": 0}, )"
            R"({"min": 10, "count": 1}])");
  EXPECT_EQ(json({hist({INT64_MAX})}), R"([{"min": 4611686018427387904, "max": "9223372036854775807", "count": 1}])");
  EXPECT_EQ(json({LhistValue{9007199254740993, 9007199254740995, 1, {0, 1, 0, 0}}}),
            R"([{"min": "9007199254740993", "max": "9007199254740993", "count": 1}])");
  MapView view = scalar("@h", {hist({5, 5})});
  view.divisor = 2;
  EXPECT_EQ(map_line(view), "{\"type\": \"hist\", \"data\": {\"@h\": [{\"min\": 4, \"max\": 7, \"count\": 1}]}}\n");
}

TEST(Json, Stats) {
  EXPECT_EQ(map_line(scalar("@s", {StatsValue{2, true, 12, false}})),
            "{\"type\": \"stats\", \"data\": {\"@s\": {\"count\": 2, \"average\": 6, \"total\": 12}}}\n");
  EXPECT_EQ(map_line(scalar("@av", {StatsValue{1, true, 4, true}})), "{\"type\": \"stats\", \"data\": {\"@av\": 4}}\n");
}

TEST(Json, TimeSeries) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const std::string of_unsigned = map_line(scalar("@u", {TseriesValue{500'000'000, {{500'000'000, -1}}, false}}));
  EXPECT_NE(of_unsigned.find("\"value\":\"18446744073709551615\"}"), std::string::npos) << of_unsigned;
  EXPECT_EQ(map_line(scalar("@a", {TseriesValue{500'000'000, {{500'000'000, 9}}}})),
            "{\"type\": \"tseries\", \"data\": {\"@a\": [{\"interval_start\":\"1970-01-01 "
            "00:00:00.500000000\",\"value\":9}]}}\n");
}

// A reader takes numbers as doubles: what one cannot hold is a string.
TEST(Json, Numbers) {
  EXPECT_EQ(json(number(-5)), "-5");
  EXPECT_EQ(json(number(1LL << 53)), "9007199254740992");
  EXPECT_EQ(json(number((1LL << 53) + 1)), "\"9007199254740993\"");
  EXPECT_EQ(json(number(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(json(number(INT64_MAX)), "\"9223372036854775807\"");
  EXPECT_EQ(json({uint64_t{1} << 63}), "9223372036854775808");
  EXPECT_EQ(json({UINT64_MAX}), "\"18446744073709551615\"");
  EXPECT_EQ(json({PointerValue{0x32}}), "50");
  EXPECT_EQ(json({EnumValue{50, "e"}}), "50");
  EXPECT_EQ(json({true}), "true");
  EXPECT_EQ(json({}), "null");
}

TEST(Json, Values) {
  EXPECT_EQ(json({ListValue{{number(1), number(2)}}}), "[1,2]");
  EXPECT_EQ(json(tuple({number(1), number(2), string("s"), tuple({number(4), number(5)})})), "[1,2,\"s\",[4,5]]");
  EXPECT_EQ(json({RecordValue{std::make_shared<const RecordNames>(RecordNames{{"a", "b"}}), {number(1), number(2)}}}),
            "{\"a\": 1, \"b\": 2}");
  EXPECT_EQ(json({BufferValue{std::string("\0\xff", 2)}}), "[0,255]");
  EXPECT_EQ(json({TextValue{"::1"}}), "\"::1\"");
  EXPECT_EQ(json(string("\n\r\t\"\\\x01\x1f")), "\"\\n\\r\\t\\\"\\\\\\u0001\\u001f\"");
  EXPECT_EQ(json(string("\u0080\u009b\u00a0")), "\"\\u0080\\u009b\u00a0\"");
  StackValue stack;
  stack.frames = shared({{0xabc0, "vfs_read", 16, "", ""}});
  EXPECT_EQ(json({stack}), "\"\\n        vfs_read+16\\n\"");
}

TEST(Json, WhatHappened) {
  EXPECT_EQ(line([](Sink& sink) { sink.lost(3); }),
            "{\"type\": \"lost_events\", \"count\": 3, \"data\": {\"events\": 3}}\n");
  EXPECT_EQ(line([](Sink& sink) { sink.text("syscall", "hi\n"); }), "{\"type\": \"syscall\", \"data\": \"hi\\n\"}\n");
  EXPECT_EQ(line([](Sink& sink) { sink.message("errorf", "bad", "stdin", 1, 9, 62); }),
            "{\"type\": \"errorf\", \"msg\": \"bad\", \"filename\": \"stdin\", \"line\": 1, \"col\": 9}\n");
  EXPECT_EQ(line([](Sink& sink) { sink.message("runtime_error", "full", "", 0, 0, 0); }),
            "{\"type\": \"runtime_error\", \"msg\": \"full\"}\n");
  EXPECT_EQ(line([](Sink& sink) { sink.end(); }), "");
}

}  // namespace
}  // namespace espy::output
