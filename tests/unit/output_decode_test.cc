// Bytes and their type to values; what each CPU has, as one; the order of a map.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "output_support.h"
#include "program/layout.h"

namespace espy::output {
namespace {

using types::Kind;
using types::TypeId;

TEST(Decode, IntegersHaveTheirWidthAndSign) {
  World world;
  const Bytes ones(8, std::byte{0xff});
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    EXPECT_EQ(world.text(world.types.int_type(size, true), ones), "-1") << size;
    EXPECT_EQ(world.text(world.types.int_type(size, false), ones), std::to_string(UINT64_MAX >> (64 - 8 * size)));
  }
}

TEST(Decode, ScalarsAreShownByTheirMeaning) {
  World world;
  auto& types = world.types;
  const TypeId state = types.define_enum("state", {{"RUNNING", 0}, {"DEAD", -2}}, 4, true, {});
  EXPECT_EQ(world.text(types.bool_type(), bytes_of(uint8_t{1})), "true");
  EXPECT_EQ(world.text(types.float_type(8), bytes_of(1.5)), "1.5");
  EXPECT_EQ(world.text(types.float_type(16), output::Bytes(16)), "null");
  EXPECT_EQ(world.text(types.pointer(types.void_type(), types::AddressSpace::kUser), bytes_of(uint64_t{0x32})), "0x32");
  EXPECT_EQ(world.text(state, bytes_of(int32_t{-2})), "DEAD");
  EXPECT_EQ(world.text(state, bytes_of(int32_t{3})), "3");
  const in_addr v4{htonl(0x7f000001)};
  EXPECT_EQ(world.text(types.simple(Kind::kInet), bytes_of(uint32_t{AF_INET}, v4, uint64_t{0}, uint32_t{0})),
            "127.0.0.1");
  const in6_addr v6 = IN6ADDR_LOOPBACK_INIT;
  EXPECT_EQ(world.text(types.simple(Kind::kInet), bytes_of(uint32_t{AF_INET6}, v6)), "::1");
  const uint8_t mac[6] = {1, 2, 3, 0xab, 0xcd, 0xef};
  EXPECT_EQ(world.text(types.simple(Kind::kMac), bytes_of(mac)), "01:02:03:AB:CD:EF");
}

TEST(Decode, PartsWithoutBytesHaveALimit) {
  World world;
  auto& types = world.types;
  TypeId pair = types.declare_struct("s0", false, {});
  types.define_struct(pair, {}, 0, 1);
  for (int i = 1; i < 14; ++i) {
    const TypeId outer = types.declare_struct("s" + std::to_string(i), false, {});
    types.define_struct(outer, {{"a", pair}, {"b", pair}}, 1, 1);
    pair = outer;
  }
  const std::string few = world.text(types.array(pair, 2), Bytes(2));
  EXPECT_EQ(std::ranges::count(few, '{'), 2 * ((1 << 14) - 1));
  const std::string many = world.text(types.array(pair, 1000), Bytes(1000));
  EXPECT_LT(std::ranges::count(many, '{'), 100'000);
}

TEST(Decode, AddressesInStructsAreKnownByTheirTypesAndNames) {
  World world;
  auto& types = world.types;
  const TypeId be32 = types.int_type(4, false);
  const TypeId in_addr_type = types.declare_struct("in_addr", false, {});
  types.define_struct(in_addr_type, {{"s_addr", be32}}, 4, 4);
  const TypeId packet = types.declare_struct("packet", false, {});
  types.define_struct(packet,
                      {{"saddr", be32},
                       {"daddr", in_addr_type, 32},
                       {"h_dest", types.array(types.int_type(1, false), 6), 64},
                       {"length", be32, 128}},
                      20, 4);
  const uint8_t mac[8] = {1, 2, 3, 0xab, 0xcd, 0xef, 0, 0};
  const Bytes bytes = bytes_of(htonl(0x7f000001), htonl(0x0a000002), mac, uint32_t{7});
  EXPECT_EQ(world.text(packet, bytes),
            "{ .saddr = 16777343, .daddr = { .s_addr = 33554442 }, .h_dest = [1,2,3,171,205,239], .length = 7 }");
  DecodeContext context = world.context();
  context.shows_addresses = true;
  EXPECT_EQ(to_text(output::decode(context, packet, bytes), {}),
            "{ .saddr = 127.0.0.1, .daddr = 10.0.0.2, .h_dest = 01:02:03:AB:CD:EF, .length = 7 }");
  EXPECT_EQ(to_text(output::decode(context, packet, bytes), {.has_zeros = false, .is_c = true, .max_items = 1}, 2),
            "(struct packet){\n    .saddr = 127.0.0.1,\n    ...\n  }");
}

TEST(Decode, StringsEndAtNulOrFillTheirCapacity) {
  World world;
  const TypeId type = world.types.string(4);
  EXPECT_EQ(world.text(type, text_bytes("ab", 4)), "ab");
  EXPECT_EQ(world.text(type, text_bytes("abc", 4)), "abc");
  EXPECT_EQ(world.text(type, text_bytes("abcd", 4)), "abcd");
  const TypeId read = world.types.string(4, true);
  EXPECT_EQ(world.text(read, text_bytes("ab", 4)), "ab");
  EXPECT_EQ(world.text(read, text_bytes("abc", 4)), "abc..");
  EXPECT_EQ(world.text(world.types.array(world.types.char_type(), 4), text_bytes("hi", 4)), "hi");
}

TEST(Decode, BuffersKeepToTheirLengthAndCapacity) {
  World world;
  const TypeId type = world.types.buffer(4);
  EXPECT_EQ(world.text(type, bytes_of(uint32_t{3}) + text_bytes("a\\\x01z", 4)), "a\\\\x01");
  EXPECT_EQ(world.text(type, bytes_of(UINT32_MAX) + text_bytes("abcdefgh", 8)), "abcd");
}

TEST(Decode, MembersOfAnonymousUnionsAreTheOuterOnes) {
  World world;
  auto& types = world.types;
  const TypeId u16 = types.int_type(2, false), u32 = types.int_type(4, false), i32 = types.int_type(4, true);
  const TypeId inner = types.declare_struct("", true, {});
  types.define_struct(inner, {{"low", u16}, {"all", u32}}, 4, 4);
  const TypeId outer = types.declare_struct("outer", false, {});
  types.define_struct(outer, {{"a", u32}, {"", inner, 32}, {"bits", u32, 67, 3}, {"sign", i32, 70, 2}}, 12, 4);
  // 0b11'101'000: three bits at 3, two at 6.
  EXPECT_EQ(world.text(outer, bytes_of(uint32_t{7}, uint32_t{0x10002}, uint32_t{0xe8})),
            "{ .a = 7, .low = 2, .all = 65538, .bits = 5, .sign = -1 }");
  const TypeId nothing = types.declare_struct("nothing", false, {});
  types.define_struct(nothing, {}, 0, 1);
  EXPECT_EQ(world.text(nothing, {}), "{}");
}

TEST(Decode, ArraysMayHoldStructs) {
  World world;
  auto& types = world.types;
  const TypeId pair = types.declare_struct("pair", false, {});
  types.define_struct(pair, {{"x", types.int_type(1, false)}, {"y", types.int_type(1, false), 8}}, 2, 1);
  EXPECT_EQ(world.text(types.array(pair, 2), bytes_of(uint32_t{0x04030201})),
            "[{ .x = 1, .y = 2 },{ .x = 3, .y = 4 }]");
}

TEST(Decode, NamesComeFromTheResolver) {
  World world;
  auto& types = world.types;
  program::Probe probe;
  probe.provider = "kprobe";
  probe.name = "kprobe:vfs_read";
  probe.function = "vfs_read";
  world.formats = {"%H", "%S"};
  world.resolver.kernel_symbol = [](uint64_t address) {
    return address < 0x100 ? Frame{address} : Frame{address, "do_sys_open", address - 0x100};
  };
  world.resolver.user_symbol = [](uint32_t pid, uint64_t address) { return Frame{address, "f" + std::to_string(pid)}; };
  world.resolver.username = [](uint32_t uid) { return "user" + std::to_string(uid); };
  world.resolver.cgroup_path = [](uint64_t id) { return "/c" + std::to_string(id); };
  world.resolver.timestamp = [](std::string_view format, uint64_t ns, uint32_t clock) {
    return std::string(format) + std::to_string(ns) + "@" + std::to_string(clock);
  };
  world.resolver.probe = [&](uint64_t index) { return index == 1 ? &probe : nullptr; };
  const auto simple = [&](Kind kind, const Bytes& bytes) { return world.text(types.simple(kind), bytes); };
  EXPECT_EQ(simple(Kind::kKernelSymbol, bytes_of(uint64_t{0x104})), "do_sys_open");
  EXPECT_EQ(simple(Kind::kKernelSymbol, bytes_of(uint64_t{0x32})), "0x32");
  EXPECT_EQ(simple(Kind::kUserSymbol, bytes_of(uint64_t{1}, uint32_t{9}, uint32_t{0})), "f9");
  EXPECT_EQ(simple(Kind::kUsername, bytes_of(uint32_t{5})), "user5");
  EXPECT_EQ(simple(Kind::kCgroupPath, bytes_of(uint64_t{6})), "/c6");
  EXPECT_EQ(simple(Kind::kTimestamp, bytes_of(uint64_t{12}, uint32_t{1}, uint32_t{7})), "%S12@7");
  EXPECT_EQ(simple(Kind::kTimestamp, bytes_of(uint64_t{12}, uint32_t{2}, uint32_t{7})), "12");
  EXPECT_EQ(simple(Kind::kProbeName, bytes_of(uint64_t{1})), "kprobe:vfs_read");
  EXPECT_EQ(simple(Kind::kFunctionName, bytes_of(uint64_t{1})), "vfs_read");
  EXPECT_EQ(simple(Kind::kProbeType, bytes_of(uint64_t{1})), "kprobe");
  EXPECT_EQ(simple(Kind::kProbeName, bytes_of(uint64_t{2})), "2");
}

TEST(Decode, WithoutAResolverNumbersAreShown) {
  World world;
  for (const Kind kind : {Kind::kUsername, Kind::kCgroupPath, Kind::kTimestamp, Kind::kProbeName})
    EXPECT_EQ(world.text(world.types.simple(kind), bytes_of(uint64_t{42}, uint64_t{0})), "42");
  EXPECT_EQ(world.text(world.types.simple(Kind::kKernelSymbol), bytes_of(uint64_t{42})), "0x2a");
}

TEST(Decode, AnyNegativeReferenceIsAMissingStack) {
  World world;
  const TypeId type = world.types.stack(false, types::StackMode::kBpftrace, 3);
  for (const int64_t reference : {int64_t{-ENOMEM}, INT64_MIN})
    EXPECT_TRUE(std::get<StackValue>(world.decode(type, bytes_of(reference)).node).problem);
}

// Every kind from fewer and fewer bytes; the last of them lie at the end of their allocation, where a sanitizer looks.
TEST(Decode, MissingBytesAreZeros) {
  World world;
  auto& types = world.types;
  const TypeId u64 = types.int_type(8, false);
  std::vector<TypeId> all = {types.bool_type(),   u64,           types.string(9),     types.buffer(9),
                             types.array(u64, 3), types.hist(2), types.lhist(0, 9, 3)};
  all.push_back(types.tuple({u64, types.string(5)}));
  all.push_back(types.stack(true, types::StackMode::kPerf, 3));
  all.push_back(types.tseries({1000, 3, Kind::kAvg}, true));
  all.push_back(types.recent(u64, 3));
  for (const Kind kind : {Kind::kMin, Kind::kMax, Kind::kAvg, Kind::kStats, Kind::kCount, Kind::kSum})
    all.push_back(types.simple(kind, true));
  for (const Kind kind : {Kind::kKernelSymbol, Kind::kUserSymbol, Kind::kInet, Kind::kMac, Kind::kUsername,
                          Kind::kTimestamp, Kind::kCgroupPath, Kind::kProbeName})
    all.push_back(types.simple(kind));
  for (const TypeId type : all) {
    for (size_t size = 0; size <= types[type].size_bytes; ++size) {
      const Bytes exactly(size, std::byte{0x7f});
      to_text(world.decode(type, exactly), {});
      to_text(world.merge(type, exactly, 3), {});
    }
  }
  EXPECT_EQ(world.text(u64, {}), "0");
  EXPECT_EQ(world.text(u64, bytes_of(uint16_t{0x0102})), "258");
}

TEST(Decode, FieldsFollowTheirTail) {
  World world;
  const program::RecordHeader header{1, 48, 0};
  const program::EventField text{world.types.string(100), 16, true}, buffer{world.types.buffer(100), 24, true};
  const Bytes record = bytes_of(header, uint32_t{32}, uint32_t{2}, uint32_t{40}, uint32_t{3}) + text_bytes("hi", 8) +
                       text_bytes("a\1b", 8);
  EXPECT_EQ(to_text(decode_field(world.context(), text, record), {}), "hi");
  EXPECT_EQ(to_text(decode_field(world.context(), buffer, record), {}), "a\\x01b");
  const Bytes wild = bytes_of(header, UINT32_MAX, UINT32_MAX, uint32_t{47}, uint32_t{3}) + Bytes(16);
  EXPECT_EQ(std::get<StringValue>(decode_field(world.context(), text, wild).node).text, "");
  EXPECT_EQ(std::get<BufferValue>(decode_field(world.context(), buffer, wild).node).bytes, std::string(1, '\0'));
}

// ---- CPUs -----------------------------------------------------------------------------------------------------------

TEST(Merge, CountsAndSumsAddUp) {
  World world;
  EXPECT_EQ(
      to_text(world.merge(world.types.simple(Kind::kCount), bytes_of(uint64_t{1}, uint64_t{2}, uint64_t{3}), 3), {}),
      "6");
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kSum, true), bytes_of(int64_t{-5}, int64_t{2}), 2), {}), "-3");
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kSum, false), bytes_of(UINT64_MAX, uint64_t{0}), 2), {}),
            "18446744073709551615");
}

// (value, set) on each of three CPUs.
TEST(Merge, ExtremesIgnoreCpusWithoutAValue) {
  World world;
  const auto merged = [&](Kind kind, bool is_signed, int64_t a, int64_t b) {
    const Bytes cpus = bytes_of(a, uint64_t{1}, int64_t{0}, uint64_t{0}, b, uint64_t{1});
    return to_text(world.merge(world.types.simple(kind, is_signed), cpus, 3), {});
  };
  EXPECT_EQ(merged(Kind::kMin, true, 5, 7), "5");
  EXPECT_EQ(merged(Kind::kMax, true, -5, -7), "-5");
  EXPECT_EQ(merged(Kind::kMin, true, -1, 3), "-1");
  EXPECT_EQ(merged(Kind::kMin, false, -1, 3), "3");
  EXPECT_EQ(merged(Kind::kMax, false, -1, 3), "18446744073709551615");
}

TEST(Merge, AveragesTruncateTowardZero) {
  World world;
  const Bytes cpus = bytes_of(int64_t{-5}, uint64_t{1}, int64_t{-2}, uint64_t{1});
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kAvg, true), cpus, 2), {}), "-3");
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kStats, true), cpus, 2), {}),
            "{ .count = 2, .average = -3, .total = -7 }");
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kAvg, true), Bytes(32), 2), {}), "0");
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kAvg), bytes_of(UINT64_MAX, uint64_t{1}), 1), {}),
            "18446744073709551615");
}

TEST(Merge, HistogramsAddBucketByBucket) {
  World world;
  const uint32_t count = program::hist_bucket_count(0);
  const Value value = world.merge(world.types.hist(0), words(count, {{0, 1}, {4, 2}}) + words(count, {{4, 3}}), 2);
  const auto& hist = std::get<HistValue>(value.node);
  EXPECT_EQ(hist.buckets[0], 1u);
  EXPECT_EQ(hist.buckets[4], 5u);
  EXPECT_EQ(hist.buckets.size(), count);
}

TEST(Merge, TimeSeriesMeetInTheirEpochs) {
  World world;
  const auto points = [&](Kind aggregation) {
    const TypeId type = world.types.tseries({1000, 3, aggregation}, true);
    using Slot = program::TseriesSlot;
    // One CPU still has an epoch that is three before the newest.
    const Bytes cpus = bytes_of(Slot{9, 6, 2}, Slot{7, 1, 1}, Slot{5, 99, 1}) + bytes_of(Slot{9, 3, 1}, Slot{}, Slot{});
    const Value merged = world.merge(type, cpus, 2);
    std::vector<std::optional<int64_t>> out;
    for (const auto& point : std::get<TseriesValue>(merged.node).points) out.push_back(point.value);
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(points(Kind::kSum), ElementsAre(1, std::nullopt, 9));
  EXPECT_THAT(points(Kind::kAvg), ElementsAre(1, std::nullopt, 3));
  EXPECT_THAT(points(Kind::kMin), ElementsAre(1, std::nullopt, 3));
  EXPECT_THAT(points(Kind::kMax), ElementsAre(1, std::nullopt, 6));
}

TEST(Merge, TheLastOfATimeSeriesIsThatOfTheLastTime) {
  World world;
  const TypeId type = world.types.tseries({1000, 1, Kind::kVoid}, true);
  using Slot = program::TseriesSlot;
  const Value merged = world.merge(type, bytes_of(Slot{9, 6, 9500}) + bytes_of(Slot{9, 3, 9400}), 2);
  EXPECT_EQ(std::get<TseriesValue>(merged.node).points[0].value, 6);
}

TEST(Merge, TimeSeriesKeepTheirSign) {
  World world;
  const auto merged = [&](Kind aggregation, bool is_signed) {
    const TypeId type = world.types.tseries({1000, 1, aggregation}, is_signed);
    using Slot = program::TseriesSlot;
    const Value out = world.merge(type, bytes_of(Slot{9, -8, 1}) + bytes_of(Slot{9, 4, 1}), 2);
    EXPECT_EQ(std::get<TseriesValue>(out.node).is_signed, is_signed);
    return std::get<TseriesValue>(out.node).points[0].value;
  };
  EXPECT_EQ(merged(Kind::kMax, true), 4);
  EXPECT_EQ(merged(Kind::kMin, true), -8);
  EXPECT_EQ(merged(Kind::kAvg, true), -2);
  EXPECT_EQ(merged(Kind::kMax, false), -8);
  EXPECT_EQ(merged(Kind::kMin, false), 4);
  EXPECT_EQ(merged(Kind::kAvg, false), INT64_MAX - 1);
}

TEST(Merge, TimeSeriesMayReachTheLastEpoch) {
  World world;
  const TypeId type = world.types.tseries({1000, 2, Kind::kSum}, true);
  using Slot = program::TseriesSlot;
  const Value merged = world.merge(type, bytes_of(Slot{UINT64_MAX - 1, 6, 1}, Slot{1, 1, 1}), 1);
  EXPECT_EQ(std::get<TseriesValue>(merged.node).points.size(), 2u);
}

TEST(Merge, WhatAThreadIsJustSettingIsNotThereYet) {
  World world;
  const TypeId series = world.types.tseries({1000, 2, Kind::kSum}, true);
  using Slot = program::TseriesSlot;
  const Value merged = world.merge(series, bytes_of(Slot{4, 6, 1}, Slot{program::kTseriesBusy, 9, 1}), 1);
  EXPECT_EQ(std::get<TseriesValue>(merged.node).points.size(), 1u);
  const TypeId least = world.types.simple(Kind::kMin, true);
  const Bytes of_two_cpus = bytes_of(int64_t{-7}, program::kExtremeBusy, int64_t{5}, uint64_t{1});
  EXPECT_EQ(to_text(world.merge(least, of_two_cpus, 2), {}), "5");
}

TEST(Merge, AnAverageOverMoreThanHalfOfAllNumbersIsNothing) {
  World world;
  const Bytes words = bytes_of(INT64_MIN, UINT64_MAX);
  EXPECT_EQ(to_text(world.merge(world.types.simple(Kind::kAvg, true), words, 1), {}), "0");
  const TypeId series = world.types.tseries({1000, 1, Kind::kAvg}, true);
  const Value merged = world.merge(series, bytes_of(program::TseriesSlot{1, INT64_MIN, UINT64_MAX}), 1);
  EXPECT_EQ(std::get<TseriesValue>(merged.node).points[0].value, 0);
}

// A recent() of numbers: `taken`, then eight stamps and eight values.
using Eight = std::array<uint64_t, 8>;
Bytes ring(uint64_t taken, const Eight& stamps, const Eight& values) { return bytes_of(taken, stamps, values); }

TEST(Merge, RecentValuesOfAKeyAreTheLastThatAreComplete) {
  World world;
  const TypeId type = world.types.recent(world.types.uint64(), 3);
  const uint64_t busy = program::kRecentBusy;
  const auto text = [&](uint64_t taken, const Eight& stamps) {
    return to_text(world.merge(type, ring(taken, stamps, {10, 11, 12, 13, 14, 15, 16, 17}), 1), {});
  };
  EXPECT_EQ(text(0, {}), "");
  EXPECT_EQ(text(2, {1, 2}), "10\n11");
  EXPECT_EQ(text(5, {1, 2, 3, 4, 5}), "12\n13\n14");
  EXPECT_EQ(text(10, {9, 10, 3, 4, 5, 6, 7, 8}), "17\n10\n11");
  EXPECT_EQ(text(10, {9, busy, 3, 4, 5, 6, 7, 8}), "17\n10") << "one is being written";
  EXPECT_EQ(text(10, {1, 10, 3, 4, 5, 6, 7, 8}), "17\n11") << "one is about to be written";
}

TEST(Merge, RecentValuesOfCpusAreInTheOrderOfTheirTimes) {
  World world;
  const TypeId type = world.types.recent(world.types.uint64(), 3);
  const uint64_t busy = program::kRecentBusy;
  const Bytes cpus = ring(3, {1000, 1500, 1900}, {1, 2, 3}) + ring(0, {}, {}) +
                     ring(9, {2000, 1100, 1200, 1300, 1400, 1600, 1700, busy}, {4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(to_text(world.merge(type, cpus, 3), {}), "10\n3\n4");
  const Bytes same = ring(9, {1000, 1000, 1000}, {1, 2, 3});  // the ninth value is in the first slot
  EXPECT_EQ(to_text(world.merge(type, same, 1), {}), "2\n3\n1");
}

TEST(Merge, UnsetMeansOnNoCpu) {
  EXPECT_TRUE(is_unset(bytes_of(uint64_t{0}, uint64_t{7}, uint64_t{0}, uint64_t{7}), 2, 16));
  EXPECT_FALSE(is_unset(bytes_of(uint64_t{0}, uint64_t{7}, uint64_t{1}, uint64_t{7}), 2, 16));
}

// ---- Order ----------------------------------------------------------------------------------------------------------

std::vector<std::string> keys_in_order(std::vector<MapEntry> entries) {
  sort_for_display(entries);
  std::vector<std::string> out;
  for (const MapEntry& entry : entries) out.push_back(to_text(entry.key, {}));
  return out;
}

TEST(Order, NumbersByValueThenKey) {
  EXPECT_THAT(keys_in_order(
                  {{number(1), number(30)}, {number(3), number(-1)}, {number(4), number(20)}, {number(2), number(20)}}),
              testing::ElementsAre("3", "2", "4", "1"));
  EXPECT_THAT(keys_in_order({{number(1), {UINT64_MAX}}, {number(2), {uint64_t{1}}}}), testing::ElementsAre("2", "1"));
}

TEST(Order, OthersByKey) {
  EXPECT_THAT(keys_in_order({{number(2), string("a")}, {number(-5), string("b")}, {number(-1), string("c")}}),
              testing::ElementsAre("-5", "-1", "2"));
  EXPECT_THAT(keys_in_order({{string("b"), {true}}, {string("a"), {true}}, {string("c"), {false}}}),
              testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(keys_in_order({{{uint64_t{1}}, string("")}, {{UINT64_MAX}, string("")}}),
              testing::ElementsAre("18446744073709551615", "1"));
  EXPECT_THAT(keys_in_order({{tuple({string("b"), number(1)}), string("")},
                             {tuple({string("a"), number(2)}), string("")},
                             {tuple({string("a"), number(1)}), string("")}}),
              testing::ElementsAre("(a, 1)", "(a, 2)", "(b, 1)"));
}

TEST(Order, AggregationsByWhatTheyAmountTo) {
  const auto stats = [](uint64_t count, int64_t total) { return Value{StatsValue{count, true, total, false}}; };
  EXPECT_THAT(keys_in_order({{number(1), stats(1, 10)}, {number(2), stats(10, 20)}}), testing::ElementsAre("2", "1"));
  EXPECT_THAT(keys_in_order({{number(1), {HistValue{0, {0, 5, 1}}}}, {number(2), {HistValue{0, {5, 0, 0}}}}}),
              testing::ElementsAre("2", "1"));
  EXPECT_THAT(
      keys_in_order({{number(1), {LhistValue{0, 1, 1, {3, 0, 0}}}}, {number(2), {LhistValue{0, 1, 1, {0, 1, 1}}}}}),
      testing::ElementsAre("2", "1"));
  EXPECT_THAT(keys_in_order({{number(1), {TseriesValue{1, {{9, 1}}}}}, {number(2), {TseriesValue{1, {{8, 99}}}}}}),
              testing::ElementsAre("2", "1"));
}

}  // namespace
}  // namespace espy::output
