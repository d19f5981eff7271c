// Entries that are kept as bytes have the same order and the same text as Values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "output/compact_entries.h"
#include "output/format.h"
#include "output_support.h"

namespace espy::output {
namespace {

using types::TypeId;

struct Compact : testing::Test {
  World world;
  DecodeContext context = world.context();
  std::mt19937 random{7};

  // Keys whose numbers, and characters of texts, are few, so that many are alike in a part.
  Bytes any_key(TypeId key) {
    constexpr unsigned char kBytes[] = {0, 0, 1, 0x7f, 0x80, 0xff, 'a', 'A'};
    Bytes out(world.types[key].size_bytes);
    for (std::byte& byte : out) byte = std::byte{kBytes[random() % std::size(kBytes)]};
    return out;
  }

  static bool is_less(const Value& a, const Value& b) {
    if (const auto* number = std::get_if<int64_t>(&a.node)) return *number < std::get<int64_t>(b.node);
    return std::get<uint64_t>(a.node) < std::get<uint64_t>(b.node);
  }

  void expect_order(const std::vector<MapEntry>& entries) {
    for (size_t i = 1; i < entries.size(); ++i) {
      const MapEntry &before = entries[i - 1], &entry = entries[i];
      ASSERT_FALSE(is_less(entry.value, before.value)) << i;
      ASSERT_TRUE(is_less(before.value, entry.value) || compare_keys(before.key, entry.key) <= 0) << i;
    }
  }

  void expect_same_order(TypeId key, TypeId value, int count = 500) {
    ASSERT_TRUE(CompactEntries::fits(world.types, key, value));
    CompactEntries compact(context, key);
    std::vector<MapEntry> entries;
    for (int i = 0; i < count; ++i) {
      const Bytes bytes = any_key(key);
      const Value number = world.decode(value, any_key(value));
      compact.add(bytes, number);
      entries.push_back({world.decode(key, bytes), number});
    }
    compact.sort();
    sort_for_display(entries);
    expect_order(entries);
    ASSERT_EQ(compact.size(), entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(to_text(compact.at(i).key, {}), to_text(entries[i].key, {})) << i;
      ASSERT_EQ(to_text(compact.at(i).value, {}), to_text(entries[i].value, {})) << i;
    }
  }
};

TEST_F(Compact, IsInTheOrderOfValues) {
  types::Types& types = world.types;
  const TypeId int8 = types.int_type(1, true), uint16 = types.int_type(2, false), text = types.string(12);
  for (const TypeId key :
       {int8, uint16, types.int_type(4, true), types.int_type(8, true), types.int_type(8, false), types.bool_type(),
        text, types.pointer(int8, types::AddressSpace::kKernel), types.tuple({int8, text, uint16}),
        types.tuple({text, types.tuple({uint16, text}), types.int_type(8, false)})}) {
    for (const TypeId value : {types.int_type(1, true), types.int_type(8, true), types.int_type(8, false)})
      expect_same_order(key, value);
  }
}

// They are sorted in another way.
TEST_F(Compact, IsInTheOrderOfValuesIfThereAreMany) {
  types::Types& types = world.types;
  expect_same_order(types.tuple({types.string(4), types.int_type(4, true)}), types.int_type(1, true), 70'000);
}

TEST_F(Compact, DoesNotFitWhereNamesOrStacksDecide) {
  types::Types& types = world.types;
  const TypeId number = types.int_type(8, true), text = types.string(16);
  EXPECT_FALSE(CompactEntries::fits(types, number, text));
  EXPECT_FALSE(CompactEntries::fits(types, types.array(number, 2), number));
  EXPECT_FALSE(CompactEntries::fits(types, types.tuple({number, types.array(number, 2)}), number));
  EXPECT_TRUE(CompactEntries::fits(types, types.tuple({number, text}), number));
}

}  // namespace
}  // namespace espy::output
