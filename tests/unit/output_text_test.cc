// The text sink against the examples of the language's description, byte for byte.
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>

#include "output_support.h"
#include "program/layout.h"

namespace espy::output {
namespace {

const std::string kFullBar(52, '@');
const std::string kNoBar(52, ' ');

HistValue hist(uint8_t bits, const std::vector<int64_t>& values) {
  HistValue out{bits, std::vector<uint64_t>(program::hist_bucket_count(bits))};
  for (const int64_t value : values) ++out.buckets[program::hist_bucket(value, bits)];
  return out;
}

std::string map_text(const MapView& view) {
  return shown("text", [&](Sink& sink) { sink.map(view); });
}

std::string value_text(const Value& value) {
  return shown("text", [&](Sink& sink) { sink.value(value); });
}

TEST(Text, TheHistogramsOfTheDescription) {
  const std::string text = shown("text", [](Sink& sink) {
    sink.end();
    sink.map(scalar("@h", {hist(0, {-3, 0, 1, 9})}));
    sink.map(scalar("@l", {LhistValue{0, 10, 5, {1, 1, 0, 1}}}));
    sink.map(keyed("@n", {{tuple({string("a"), number(1)}), {hist(0, {5})}}}));
  });
  EXPECT_EQ(text,
            "\n\n@h:\n"
            "(..., 0)               1 |" +
                kFullBar +
                "|\n"
                "[0]                    1 |" +
                kFullBar +
                "|\n"
                "[1]                    1 |" +
                kFullBar +
                "|\n"
                "[2, 4)                 0 |" +
                kNoBar +
                "|\n"
                "[4, 8)                 0 |" +
                kNoBar +
                "|\n"
                "[8, 16)                1 |" +
                kFullBar +
                "|\n"
                "\n@l:\n"
                "(..., 0)               1 |" +
                kFullBar +
                "|\n"
                "[0, 5)                 1 |" +
                kFullBar +
                "|\n"
                "[5, 10)                0 |" +
                kNoBar +
                "|\n"
                "[10, ...)              1 |" +
                kFullBar +
                "|\n"
                "\n@n[a, 1]:\n"
                "[4, 8)                 1 |" +
                kFullBar + "|\n\n");
}

// The labels alone, of all rows.
std::string labels(const Value& value) {
  const std::string text = to_text(value, {});
  std::string out;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    out += text.substr(at, text.find(')', at) + 1 - at) + " ";
  return out;
}

TEST(Text, FinerHistogramsSplitPowersOfTwo) {
  EXPECT_EQ(labels({hist(2, {10, 100})}),
            "[10, 12) [12, 14) [14, 16) [16, 20) [20, 24) [24, 28) [28, 32) [32, 40) [40, 48) [48, 56) [56, 64) "
            "[64, 80) [80, 96) [96, 112) ");
}

TEST(Text, LabelsAreShortenedByPowersOf1024) {
  const auto label = [](int64_t value) { return labels({hist(0, {value})}); };
  EXPECT_EQ(label(1023), "[512, 1K) ");
  EXPECT_EQ(label(1024), "[1K, 2K) ");
  EXPECT_EQ(label(1 << 20), "[1M, 2M) ");
  EXPECT_EQ(label(1 << 30), "[1G, 2G) ");
  EXPECT_EQ(label(1LL << 40), "[1T, 2T) ");
  EXPECT_EQ(label(1LL << 50), "[1P, 2P) ");
  EXPECT_EQ(label(INT64_MAX), "[4E, 8E) ");
  const auto linear = [](int64_t min, int64_t max, int64_t step) {
    LhistValue value{min, max, step, std::vector<uint64_t>(program::lhist_bucket_count(min, max, step), 1)};
    return labels({value});
  };
  EXPECT_EQ(linear(0, 2048, 1024), "(..., 0) [0, 1K) [1K, 2K) [2K, ...) ");
  EXPECT_EQ(linear(0, 2048, 1000), "(..., 0) [0, 1000) [1000, 2000) [2000, 2048) [2048, ...) ");
  EXPECT_EQ(linear(1 << 20, 2 << 20, 512 << 10), "(..., 1M) [1M, 1536K) [1536K, 2M) [2M, ...) ");
  EXPECT_EQ(linear(-10, 0, 5), "(..., -10) [-10, -5) [-5, 0) [0, ...) ");
}

// 15 of 26 is 30 wide in single precision and 29 in double; the field's is single.
TEST(Text, BarsAreSharesOfTheFullest) {
  HistValue value = hist(0, {});
  value.buckets[4] = 26;
  value.buckets[5] = 15;
  EXPECT_EQ(to_text({value}, {}), "[4, 8)                26 |" + kFullBar + "|\n" + "[8, 16)               15 |" +
                                      std::string(30, '@') + std::string(22, ' ') + "|\n");
  // Counts beyond their column push the bar.
  value.buckets = {12345678, 123456789};
  EXPECT_EQ(to_text({value}, {}).substr(0, 27), "(..., 0)        12345678 |@");
}

TEST(Text, AnEmptyHistogramHasNoRows) { EXPECT_EQ(map_text(scalar("@h", {hist(0, {})})), "@h:\n\n"); }

TEST(Text, TheScalarsOfTheDescription) {
  const auto text_of = [](Value value) { return map_text(scalar("@x", std::move(value))); };
  EXPECT_EQ(text_of(number(5)), "@x: 5\n");
  EXPECT_EQ(text_of({StatsValue{1, true, 4, false}}), "@x: { .count = 1, .average = 4, .total = 4 }\n");
  EXPECT_EQ(text_of(tuple({number(1), string("a"), tuple({number(2), number(3)})})), "@x: (1, a, (2, 3))\n");
  EXPECT_EQ(
      text_of({RecordValue{std::make_shared<const RecordNames>(RecordNames{{"a", "b"}}), {number(1), string("x")}}}),
      "@x: { .a = 1, .b = x }\n");
  EXPECT_EQ(text_of({RecordValue{}}), "@x: {}\n");
  EXPECT_EQ(text_of({true}), "@x: true\n");
  EXPECT_EQ(text_of({PointerValue{0x1234}}), "@x: 0x1234\n");
  EXPECT_EQ(text_of({ListValue{{number(1), number(2)}}}), "@x: [1,2]\n");
  EXPECT_EQ(text_of({}), "@x: null\n");
  EXPECT_EQ(text_of({BufferValue{"a\1"}}), "@x: a\\x01\n");
  MapView unset = scalar("@x", {});
  unset.entries.clear();
  EXPECT_EQ(map_text(unset), "");
}

TEST(Text, TheKeyedMapsOfTheDescription) {
  EXPECT_EQ(map_text(keyed("@a", {{number(1), {uint64_t{1}}}})), "@a[1]: 1\n");
  EXPECT_EQ(map_text(keyed("@e", {{tuple({string("x"), number(1)}), {StatsValue{1, true, 4, true}}}})),
            "@e[x, 1]: 4\n");
  EXPECT_EQ(map_text(keyed("@y", {{tuple({tuple({number(1), number(2)}), number(3)}), number(4)}})),
            "@y[(1, 2), 3]: 4\n");
  MapView top = keyed("@m", {{number(1), number(30)}, {number(2), number(10)}, {number(3), number(20)}});
  top.top = 2;
  top.divisor = 10;
  EXPECT_EQ(map_text(top), "@m[3]: 2\n@m[1]: 3\n");
  top.top = 9;
  top.divisor = 0;
  EXPECT_EQ(map_text(top), "@m[2]: 10\n@m[3]: 20\n@m[1]: 30\n");
}

TEST(Text, DivisorsDivideWhatIsAnAmount) {
  const auto divided_by = [](uint64_t divisor, Value value) {
    MapView view = scalar("@x", std::move(value));
    view.divisor = divisor;
    return map_text(view);
  };
  EXPECT_EQ(divided_by(10, number(-25)), "@x: -2\n");
  EXPECT_EQ(divided_by(UINT64_MAX, number(-25)), "@x: 0\n");
  EXPECT_EQ(divided_by(10, {UINT64_MAX}), "@x: 1844674407370955161\n");
  EXPECT_EQ(divided_by(10, {StatsValue{2, true, 150, true}}), "@x: 7\n");
  EXPECT_EQ(divided_by(10, {StatsValue{1, false, -1, true}}), "@x: 1844674407370955161\n");
  EXPECT_EQ(divided_by(10, string("a")), "@x: a\n");
  EXPECT_EQ(divided_by(10, {LhistValue{0, 1, 1, {20, 0, 0}}}), "@x:\n(..., 0)              20 |" + kFullBar + "|\n\n");
  // The bar is of the counts as they are.
  HistValue value = hist(0, {});
  value.buckets[4] = 3;
  value.buckets[5] = 2;
  EXPECT_EQ(divided_by(2, {value}), "@x:\n[4, 8)                 1 |" + kFullBar + "|\n" +
                                        "[8, 16)                1 |" + std::string(34, '@') + std::string(18, ' ') +
                                        "|\n\n");
}

TEST(Text, PrintedValuesEndTheirLine) {
  EXPECT_EQ(value_text(tuple({number(1), string("x")})), "(1, x)\n");
  EXPECT_EQ(value_text(string("hi")), "hi\n");
  EXPECT_EQ(value_text(number(20)), "20\n");
  EXPECT_EQ(value_text({EnumValue{3, ""}}), "3\n");
}

TEST(Text, FullStringsHaveTheTrailer) {
  const auto print = [](Sink& sink) { sink.value({StringValue{"abcd", true}}); };
  EXPECT_EQ(shown("text", print), "abcd..\n");
  EXPECT_EQ(shown("text", print, {.truncation_trailer = "[cut]"}), "abcd[cut]\n");
}

// ---- Stacks ---------------------------------------------------------------------------------------------------------

StackValue stack(types::StackMode mode, bool is_user) {
  StackValue out;
  out.mode = static_cast<uint8_t>(mode);
  out.is_user = is_user;
  out.frames = shared({{0xabc0, "vfs_read", 16, "libc.so.6", "00ff"}, {0x1234}});
  return out;
}

TEST(Text, StacksStandUnderTheirName) {
  const Value kernel{stack(types::StackMode::kBpftrace, false)};
  const std::string frames = "\n        vfs_read+16\n        0x1234\n";
  EXPECT_EQ(map_text(scalar("@k", kernel)), "@k: " + frames + "\n");
  EXPECT_EQ(value_text(kernel), frames + "\n");
  EXPECT_EQ(map_text(keyed("@", {{kernel, number(2)}})), "@[" + frames + "]: 2\n");
  EXPECT_EQ(map_text(keyed("@", {{tuple({kernel, string("bash")}), number(2)}})), "@[" + frames + ", bash]: 2\n");
  EXPECT_EQ(value_text({StackValue{}}), "\n\n");
}

TEST(Text, StacksShowTheirSource) {
  StackValue source;
  source.is_user = true;
  source.frames = shared(
      {{0xabc0, "twice", 0, "a.out", "", "/src/a.c", 7, true}, {0xabc0, "main", 16, "a.out", "", "/src/a.c", 42}});
  EXPECT_EQ(value_text({source}), "\n        [inlined] twice@/src/a.c:7\n        main+16@/src/a.c:42\n\n");
  source.mode = static_cast<uint8_t>(types::StackMode::kPerf);
  EXPECT_EQ(value_text({source}), "\n\tabc0 twice (inlined)\n\tabc0 main+16 (a.out)\n\n");
}

TEST(Text, StackModes) {
  using types::StackMode;
  EXPECT_EQ(value_text({stack(StackMode::kPerf, false)}), "\n\tabc0 vfs_read+16\n\t1234 0x1234\n\n");
  EXPECT_EQ(value_text({stack(StackMode::kPerf, true)}),
            "\n\tabc0 vfs_read+16 (libc.so.6)\n\t1234 0x1234 ([unknown])\n\n");
  EXPECT_EQ(value_text({stack(StackMode::kRaw, true)}), "\nabc0\n1234\n\n");
  EXPECT_EQ(value_text({stack(StackMode::kBuildId, true)}), "\n00ff 0x10\n0x1234\n\n");
}

// ---- Time series ----------------------------------------------------------------------------------------------------

class TextInUtc : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(TextInUtc, TheTimeSeriesOfTheDescription) {
  constexpr uint64_t kStart = ((9 * 60 + 26) * 60 + 44) * 1'000'000'000ULL;
  struct Row {
    uint64_t interval_ns;
    const char* heading;
    const char* time;
  };
  for (const Row& row :
       {Row{1'000'000'000, "hh:mm:ss ", "09:26:44 "}, Row{60'000'000'000, "hh:mm:ss ", "09:26:44 "},
        Row{1'500'000'000, "hh:mm:ss.ms  ", "09:26:44.012 "}, Row{2'000, "hh:mm:ss.us     ", "09:26:44.012345 "},
        Row{1, "hh:mm:ss.ns        ", "09:26:44.012345678 "}}) {
    const std::string margin(std::string_view(row.time).size(), ' '), line(51, '_');
    const std::string scale = margin + "2" + std::string(51, ' ') + "4\n";
    EXPECT_EQ(map_text(scalar("@t", {TseriesValue{row.interval_ns, {{kStart + 12'345'678, 3}}}})),
              "@t:\n" + scale + row.heading + "|" + line + "|\n" + row.time + "|" + std::string(25, ' ') + "*" +
                  std::string(25, ' ') + "| 3\n" + margin + "v" + line + "v\n" + scale + "\n");
  }
}

// The graph has 53 columns, of which the first and the last are its edges.
TEST_F(TextInUtc, TimeSeriesAreDrawnFromEdgeToEdgeWithADotAtZero) {
  const auto row = [](size_t star, size_t dot, const std::string& value) {
    std::string out = "|" + std::string(51, ' ') + "|";
    if (dot > 0) out[dot] = '.';
    out[star] = '*';
    return "00:00:00 " + out + " " + value + "\n";
  };
  constexpr uint64_t kSecond = 1'000'000'000;
  using Points = std::vector<TseriesPoint>;
  const std::string both =
      to_text({TseriesValue{kSecond, Points{{0, -5}, {0, -4}, {0, -3}, {0, 0}, {0, 1}, {0, 5}}}}, {});
  for (const std::string& expected :
       {row(0, 26, "-5"), row(5, 26, "-4"), row(10, 26, "-3"), row(26, 26, "0"), row(31, 26, "1"), row(52, 26, "5")})
    EXPECT_NE(both.find(expected), std::string::npos) << expected << both;
  const std::string positive = to_text({TseriesValue{kSecond, Points{{0, 0}, {0, 1}, {0, 2}}}}, {});
  for (const std::string& expected : {row(0, 0, "0"), row(26, 0, "1"), row(52, 0, "2")})
    EXPECT_NE(positive.find(expected), std::string::npos) << expected << positive;
}

TEST_F(TextInUtc, TimesWithoutDataHaveADash) {
  const std::string text = to_text({TseriesValue{1, {{0, -5}, {1, std::nullopt}, {2, 5}}}}, {});
  const std::string gap(25, ' ');
  EXPECT_NE(text.find("00:00:00.000000000 *" + gap + "." + gap + "| -5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("00:00:00.000000001 |" + gap + "." + gap + "| -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("00:00:00.000000002 |" + gap + "." + gap + "* 5\n"), std::string::npos) << text;
}

TEST_F(TextInUtc, TheWholeRangeOfNumbersHasItsPlace) {
  const std::string text = to_text({TseriesValue{1, {{0, INT64_MIN}, {1, 0}, {2, INT64_MAX}}}}, {});
  const std::string gap(25, ' ');
  EXPECT_NE(text.find(" *" + gap + "." + gap + "| -9223372036854775808\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" |" + gap + "*" + gap + "| 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" |" + gap + "." + gap + "* 9223372036854775807\n"), std::string::npos) << text;
  to_text({TseriesValue{1, {{0, INT64_MAX}}}}, {});
  to_text({TseriesValue{1, {{0, INT64_MIN}}}}, {});
  const std::string of_unsigned = to_text({TseriesValue{1, {{0, -1}, {1, 0}}, false}}, {});
  EXPECT_NE(of_unsigned.find(" 0" + std::string(50, ' ') + " 18446744073709551615\n"), std::string::npos)
      << of_unsigned;
  EXPECT_EQ(to_text({TseriesValue{1, {}}}, {}), "");
}

// ---- Messages -------------------------------------------------------------------------------------------------------

std::string messages(const std::function<void(Sink&)>& use, Quiet quiet = Quiet::kNo) {
  Writer out(-1, Buffering::kFull);
  testing::internal::CaptureStderr();
  use(*find_sink("text")->create(out, {}, quiet));
  return testing::internal::GetCapturedStderr();
}

TEST(Text, MessagesGoToStderr) {
  EXPECT_EQ(messages([](Sink& sink) { sink.attached(1); }), "Attached 1 probe\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.attached(12); }), "Attached 12 probes\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.attached(12); }, Quiet::kYes), "");
  EXPECT_EQ(messages([](Sink& sink) { sink.lost(7); }), "Lost 7 events\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.total_lost(7); }),
            "WARNING: Total lost event count: 7\n  hint: a larger perf_rb_pages has room for more events\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.message("errorf", "bad 1", "stdin", 1, 9, 62); }),
            "stdin:1:9-62: ERROR: bad 1\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.message("warnf", "odd\n", "stdin", 1, 9, 62); }),
            "stdin:1:9-62: WARNING: odd\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.message("runtime_error", "full", "", 0, 0, 0); }), "WARNING: full\n");
  const HelperError error{"probe_read_user", -14, "Bad address", "stdin", 1, 9, 12, "  1 | a\n    | ^\n"};
  EXPECT_EQ(messages([&](Sink& sink) { sink.helper_error(error); }),
            "stdin:1:9-12: WARNING: Bad address\n  1 | a\n    | ^\nAdditional Info - helper: probe_read_user, retcode: "
            "-14\n");
}

TEST(Text, WhatProgramsAreCalledIsEscapedInMessages) {
  EXPECT_EQ(messages([](Sink& sink) { sink.explain("a\x1b[31m\n  b\xff\n"); }), "a\\x1b[31m\n  b\\xff\n");
  EXPECT_EQ(messages([](Sink& sink) { sink.message("runtime_error", "a\x1b[31m", "", 0, 0, 0); }),
            "WARNING: a\\x1b[31m\n");
}

// ---- Terminals ------------------------------------------------------------------------------------------------------

const std::string kName = "a\x1b[31m\n\xff";
const std::string kShownName = R"(a\x1b[31m\x0a\xff)";

Value stack_of_hostile(types::StackMode mode) {
  StackValue out{.frames = {}, .mode = static_cast<uint8_t>(mode), .is_user = true};
  out.frames = shared({{0xabc0, kName, 16, kName}, {.address = 1, .module = kName, .module_address = 2}});
  return {std::move(out)};
}

TextStyle for_terminal() {
  TextStyle style;
  style.is_for_terminal = true;
  style.own_texts = std::make_shared<const std::set<std::string>>(std::set<std::string>{"\x1b[1m"});
  return style;
}

TEST(Terminal, NamesAreEscaped) {
  const TextStyle terminal = for_terminal();
  EXPECT_EQ(to_text(string(kName), terminal), kShownName);
  EXPECT_EQ(to_text({TextValue{kName}}, terminal), kShownName);
  EXPECT_EQ(to_text({EnumValue{1, kName}}, terminal), kShownName);
  EXPECT_EQ(key_text(tuple({string(kName), number(1)}), terminal), kShownName + ", 1");
  for (const auto mode : {types::StackMode::kBpftrace, types::StackMode::kPerf}) {
    const std::string text = to_text(stack_of_hostile(mode), terminal);
    EXPECT_EQ(text.find('\x1b'), text.npos);
    EXPECT_EQ(std::ranges::count(text, '\n'), 3) << text;
  }
  EXPECT_EQ(to_text(string(kName), {}), kName);
  EXPECT_NE(to_text(stack_of_hostile(types::StackMode::kPerf), {}).find(kName), std::string::npos);
}

TEST(Terminal, TextsOfTheScriptAreNot) {
  EXPECT_EQ(to_text(string("\x1b[1m"), for_terminal()), "\x1b[1m");
  EXPECT_EQ(to_text({TextValue{"12\n", true}}, for_terminal()), "12\n");  // strftime
}

TEST(Terminal, LinesOfMemoryStayLinesInFormats) {
  std::string out;
  const Value memory = {StringValue{.text = kName, .is_memory = true}};
  Formatter::create("\x1b[1m%s|%s")->append(out, std::vector<Argument>{{memory}, {string(kName)}}, for_terminal());
  EXPECT_EQ(out, "\x1b[1ma\\x1b[31m\n\\xff|" + kShownName);
}

TEST(Terminal, TheSinkTellsOneByItsDescriptor) {
  int ours = -1, its = -1;
  if (::openpty(&ours, &its, nullptr, nullptr, nullptr) != 0) GTEST_SKIP() << "there are no terminals";
  {
    Writer out(its, Buffering::kFull);
    find_sink("text")->create(out, {}, Quiet::kYes)->value(string(kName));
  }
  char text[256] = {};
  ASSERT_GT(::read(ours, text, sizeof(text) - 1), 0);
  EXPECT_EQ(text, kShownName + "\r\n");
  ::close(ours);
  ::close(its);
}

TEST(Text, ReadyTextIsWrittenAsItIs) {
  EXPECT_EQ(shown("text", [](Sink& sink) { sink.text("printf", std::string_view("a\0b", 3)); }),
            std::string("a\0b", 3));
}

}  // namespace
}  // namespace espy::output
