// printf: against the C library's, and what it has of its own.
#include <gtest/gtest.h>

#include <cstdio>

#include "output/format.h"
#include "output_support.h"

namespace espy::output {
namespace {

std::string formatted(std::string_view format, const std::vector<Value>& values, bool are_c_ints = false) {
  const auto formatter = Formatter::create(format);
  if (!formatter) return "error: " + formatter.error().message;
  std::vector<Argument> arguments;
  for (const Value& value : values) arguments.push_back({value, are_c_ints});
  std::string out;
  formatter->append(out, arguments, {});
  return out;
}

template <class... T>
std::string by_c(const std::string& format, T... values) {
  char text[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  std::snprintf(text, sizeof(text), format.c_str(), values...);
#pragma GCC diagnostic pop
  return text;
}

// Every subset of the flags.
std::vector<std::string> flag_sets() {
  std::vector<std::string> out;
  for (unsigned set = 0; set < 32; ++set) {
    std::string flags;
    for (size_t i = 0; i < 5; ++i)
      if ((set >> i & 1) != 0) flags += "-+ #0"[i];
    out.push_back(flags);
  }
  return out;
}

constexpr int64_t kNumbers[] = {0, 1, -1, 7, 8, 42, -42, 255, 70000, 1LL << 40, INT64_MAX, INT64_MIN};

// Of 64 bits, a conversion without a length is C's with `ll`; of at most 32 bits, it is C's.
TEST(Format, NumbersAreAsInC) {
  int compared = 0;
  for (const std::string& flags : flag_sets())
    for (const char* width : {"", "1", "5", "24"})
      for (const char* precision : {"", ".", ".0", ".1", ".6", ".30"})
        for (const char* length : {"", "hh", "h", "l", "ll", "j", "z", "t"})
          for (const char* conversion : {"d", "i", "u", "o", "x", "X"})
            for (const int64_t number : kNumbers) {
              const std::string before = "%" + flags + width + precision;
              const std::string ours = before + length + conversion;
              const std::string theirs = before + (*length == '\0' ? "ll" : length) + conversion;
              ASSERT_EQ(formatted(ours, {{number}}), by_c(theirs, number)) << ours << " of " << number;
              const int64_t narrow = static_cast<int32_t>(number);
              ASSERT_EQ(formatted(ours, {{narrow}}, true), by_c(ours, narrow)) << ours << " of " << narrow;
              ++compared;
            }
  EXPECT_GT(compared, 400'000);
}

TEST(Format, UnsignedNumbersAreReadAsTheConversionSays) {
  EXPECT_EQ(formatted("%d %u %x", {{UINT64_MAX}, {UINT64_MAX}, {UINT64_MAX}}),
            "-1 18446744073709551615 ffffffffffffffff");
  EXPECT_EQ(formatted("%d %u %x %lx", {{uint64_t{UINT32_MAX}}, {int64_t{-5}}, {int64_t{-5}}, {int64_t{-5}}}, true),
            "-1 4294967291 fffffffb fffffffffffffffb");
}

TEST(Format, StarsTakeValues) {
  for (const int width : {-12, -1, 0, 3, 12})
    for (const int precision : {-5, -2, -1, 0, 3}) {
      EXPECT_EQ(formatted("[%*.*d]", {number(width), number(precision), number(42)}),
                by_c("[%*.*d]", width, precision, 42));
      EXPECT_EQ(formatted("[%0*d]", {number(width), number(42)}), by_c("[%0*d]", width, 42));
      EXPECT_EQ(formatted("[%*.*s]", {number(width), number(precision), string("abcd")}),
                by_c("[%*.*s]", width, precision, "abcd"));
    }
}

TEST(Format, TextsAreAsInC) {
  for (const char* flags : {"", "-"})
    for (const char* width : {"", "2", "16"})
      for (const char* precision : {"", ".", ".2", ".9"})
        for (const char* text : {"", "a", "hello"}) {
          const std::string format = std::string("%") + flags + width + precision + "s|";
          EXPECT_EQ(formatted(format, {string(text)}), by_c(format, text)) << format;
        }
  EXPECT_EQ(formatted("%-16s %6d", {string("comm"), number(12)}), "comm                 12");
  EXPECT_EQ(formatted("%c%3c%-3c|", {number('a'), number('b'), number('c')}), "a  bc  |");
}

TEST(Format, PointersAreAsInC) {
  for (const char* format : {"%p", "%20p|", "%-20p|"})
    for (const uint64_t address : {uint64_t{0}, uint64_t{0x32}, uint64_t{0xffff888100000000}})
      EXPECT_EQ(formatted(format, {{PointerValue{address}}}), by_c(format, reinterpret_cast<void*>(address))) << format;
  EXPECT_EQ(formatted("%x %s", {{PointerValue{0x1234}}, {PointerValue{0x1234}}}), "1234 0x1234");
}

TEST(Format, AnyValueIsAText) {
  const Value state{EnumValue{2, "DEAD"}};
  EXPECT_EQ(formatted("%s %d", {state, state}), "DEAD 2");
  EXPECT_EQ(formatted("%s %d", {{true}, {true}}), "true 1");
  EXPECT_EQ(formatted("%s", {{TextValue{"::1"}}}), "::1");
  EXPECT_EQ(formatted("%10s|", {tuple({number(1), string("x")})}), "    (1, x)|");
  EXPECT_EQ(formatted("%s", {}), "null");
}

TEST(Format, BuffersAndFlags) {
  const Value buffer{BufferValue{std::string("a\\\x01\xff", 4)}};
  EXPECT_EQ(formatted("%r", {buffer}), "a\\\\x01\\xff");
  EXPECT_EQ(formatted("%rx", {buffer}), "\\x61\\x5c\\x01\\xff");
  EXPECT_EQ(formatted("%rh", {buffer}), "61 5c 01 ff");
  EXPECT_EQ(formatted("%gr", {number(0xcc0)}), "GFP_KERNEL");
  EXPECT_EQ(formatted("%gr", {number(0xdc0)}), "GFP_KERNEL|__GFP_ZERO");
  EXPECT_EQ(formatted("%gr", {number(1)}), "GFP_DMA");
  EXPECT_EQ(formatted("%gr", {number(4)}), "GFP_DMA32");
  EXPECT_EQ(formatted("%gr", {number(int64_t{1} << 40)}), "0x10000000000");
}

TEST(Format, QuotientsAreDecimal) {
  for (const char* format : {"%f", "%.2f|", "%10.1f|", "%-10.3f|", "%+.0f", "%010.2f|", "% .1f"})
    for (const int64_t n : {int64_t{0}, int64_t{7}, int64_t{-7}, int64_t{123456}}) {
      EXPECT_EQ(formatted(format, {number(n)}), by_c(format, static_cast<double>(n))) << format;
      EXPECT_EQ(formatted(format, {tuple({number(n), number(8)})}), by_c(format, static_cast<double>(n) / 8)) << format;
    }
  EXPECT_EQ(formatted("%.1f", {tuple({number(1), number(0)})}), "inf");
  EXPECT_EQ(formatted("%5.1f|", {tuple({number(0), number(0)})}), "  nan|");
  EXPECT_EQ(formatted("%.1f", {{uint64_t{1} << 63}}), "9223372036854775808.0");
  EXPECT_EQ(formatted("%.2f", {{TextValue{"1.256"}}}), "1.26");
}

TEST(Format, PercentSigns) {
  EXPECT_EQ(formatted("100%% %d%%", {number(1)}), "100% 1%");
  EXPECT_EQ(formatted("", {}), "");
  EXPECT_EQ(formatted("%%", {}), "%");
}

TEST(Format, FloatingPointGetsASentence) {
  for (const auto& [format, message, offset] :
       {std::tuple{"%e", "there are no floating-point numbers: `%e` cannot be used", 0},
        std::tuple{"ab %10.3lg", "there are no floating-point numbers: `%g` cannot be used", 3}}) {
    const auto parsed = parse_format(format);
    ASSERT_FALSE(parsed.has_value()) << format;
    EXPECT_EQ(parsed.error().message, message);
    EXPECT_EQ(parsed.error().code, offset) << format;
  }
}

TEST(Format, WhatIsNoConversionIsPrintedAsItIs) {
  for (const char* format : {"%", "a%", "%-5.", "%y", "%\n", "%Lu", "%llld", "%n", "%5 %b"}) {
    const auto parsed = parse_format(format);
    ASSERT_TRUE(parsed.has_value()) << format;
    EXPECT_TRUE(parsed->empty()) << format;
    EXPECT_EQ(formatted(format, {}), format);
  }
  EXPECT_EQ(formatted("%5s%\n%%%y%d", {string("ab"), number(1)}), "   ab%\n%%y1");
  EXPECT_EQ(stray_percents("%5s%\n%%%y%d%"), (std::vector<size_t>{3, 7, 11}));
}

TEST(Format, ConversionsKnowTheirParts) {
  const auto parsed = parse_format("a%-+5.*hhd%%%rx");
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->size(), 2u);
  const Conversion& first = (*parsed)[0];
  EXPECT_EQ(first.flags, "-+");
  EXPECT_EQ(first.width, 5);
  EXPECT_EQ(first.precision, -2);
  EXPECT_EQ(first.length, "hh");
  EXPECT_EQ(first.conversion, "d");
  EXPECT_EQ(first.begin, 1u);
  EXPECT_EQ(first.end, 10u);
  EXPECT_EQ((*parsed)[1].conversion, "rx");
}

// ---- Records --------------------------------------------------------------------------------------------------------

struct Fixture {
  World world;
  program::EventSchema schema;
  Bytes record = Bytes(sizeof(program::RecordHeader));

  void add(types::TypeId type, const Bytes& bytes) {
    record.resize((record.size() + 7) & ~size_t{7});
    schema.fields.push_back({type, static_cast<uint32_t>(record.size()), false});
    append(record, bytes.data(), bytes.size());
  }
  std::string direct(const Formatter& formatter, std::span<const std::byte> bytes) const {
    std::string out;
    formatter.append_record(out, world.context(), schema, 0, bytes, {});
    return out;
  }
  std::string by_values(const Formatter& formatter, std::span<const std::byte> bytes) const {
    std::vector<Argument> values;
    for (const auto& field : schema.fields)
      values.push_back({decode_field(world.context(), field, bytes), is_c_int(world.types[field.type])});
    std::string out;
    formatter.append(out, values, {});
    return out;
  }
};

// The path without values says the same as the one through them, of whole records and of any beginning of one.
TEST(FormatRecord, IsTheSameAsThroughValues) {
  Fixture fixture;
  auto& types = fixture.world.types;
  for (const bool is_signed : {false, true})
    for (const uint32_t size : {1u, 2u, 4u, 8u})
      for (const int64_t number : kNumbers)
        fixture.add(types.int_type(size, is_signed), [&] {
          Bytes bytes = bytes_of(number);
          bytes.resize(size);
          return bytes;
        }());
  fixture.add(types.string(16), text_bytes("comm", 16));
  fixture.add(types.string(4), text_bytes("full", 4));
  fixture.add(types.bool_type(), bytes_of(true));
  // Of 100 bytes: one that fits, one that does not and one that is not there.
  const auto tail = static_cast<uint32_t>(fixture.record.size() + 31) & ~7U;
  for (const auto& [offset, length] : {std::pair{tail, 3u}, std::pair{tail, 99u}, std::pair{0xfffffff0u, 99u}}) {
    fixture.add(types.string(100), bytes_of(offset, length));
    fixture.schema.fields.back().is_in_tail = true;
  }
  fixture.record = fixture.record + Bytes(tail + 104 - fixture.record.size(), std::byte{'t'});
  for (const std::string conversion : {"%d|", "%u|", "%s|", "%x|", "%lld|", "%hx|", "%lx|", "%5d|", "%X|", "%c|"}) {
    std::string format;
    for (size_t i = 0; i < fixture.schema.fields.size(); ++i) format += conversion;
    const auto formatter = Formatter::create(format);
    ASSERT_TRUE(formatter.has_value());
    for (size_t size = fixture.record.size();; size -= std::min<size_t>(size, 13)) {
      const Bytes exactly(fixture.record.begin(), fixture.record.begin() + static_cast<ptrdiff_t>(size));
      ASSERT_EQ(fixture.direct(*formatter, exactly), fixture.by_values(*formatter, exactly)) << conversion << size;
      if (size == 0) break;
    }
  }
}

TEST(FormatRecord, BeginsAtTheFirstField) {
  Fixture fixture;
  fixture.add(fixture.world.types.uint64(), bytes_of(uint64_t{1}));
  fixture.add(fixture.world.types.uint64(), bytes_of(uint64_t{2}));
  std::string out;
  Formatter::create("%d").value().append_record(out, fixture.world.context(), fixture.schema, 1, fixture.record, {});
  EXPECT_EQ(out, "2");
}

}  // namespace
}  // namespace espy::output
