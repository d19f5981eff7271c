#include "types/type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espy::types {
namespace {

TEST(Types, AreEqualExactlyIfTheirIdsAre) {
  Types types;
  EXPECT_EQ(types.int64(), types.int_type(8, true));
  EXPECT_NE(types.int64(), types.uint64());
  EXPECT_NE(types.char_type(), types.int_type(1, true));
  EXPECT_EQ(types.pointer(types.int64(), AddressSpace::kUser), types.pointer(types.int64(), AddressSpace::kUser));
  EXPECT_NE(types.pointer(types.int64(), AddressSpace::kUser), types.pointer(types.int64(), AddressSpace::kKernel));
  EXPECT_EQ(types.tuple({types.int64(), types.string(4)}), types.tuple({types.int64(), types.string(4)}));
  EXPECT_NE(types.record({{.name = "a", .type = types.int64()}}), types.record({{.name = "b", .type = types.int64()}}));
  EXPECT_NE(types.lhist(0, 10, 1), types.lhist(0, 10, 2));
  EXPECT_NE(types.simple(Kind::kSum, true), types.simple(Kind::kSum, false));
}

TEST(Types, LaysTuplesOutAsCDoes) {
  Types types;
  const TypeId id = types.tuple({types.int_type(1, true), types.int64(), types.string(3), types.int_type(2, false)});
  const Type& tuple = types[id];
  EXPECT_EQ(tuple.members[1].offset_bytes(), 8u);
  EXPECT_EQ(tuple.members[2].offset_bytes(), 16u);
  EXPECT_EQ(tuple.members[3].offset_bytes(), 20u);
  EXPECT_EQ(tuple.size_bytes, 24u);
  EXPECT_EQ(tuple.align_bytes, 8u);
  EXPECT_EQ(types[types.tuple({})].size_bytes, 0u);
  EXPECT_EQ(types[types.tuple({types.bool_type(), types.string(5)})].size_bytes, 6u);
}

TEST(Types, KnowsHowMuchAValueTakes) {
  Types types;
  const auto size = [&](TypeId id) { return types[id].size_bytes; };
  EXPECT_EQ(size(types.simple(Kind::kCount)), 8u);
  EXPECT_EQ(size(types.simple(Kind::kMin)), 16u);
  EXPECT_EQ(size(types.hist(0)), 66u * 8);
  EXPECT_EQ(size(types.lhist(0, 100, 10)), 12u * 8);
  EXPECT_EQ(size(types.lhist(0, 101, 10)), 13u * 8);
  EXPECT_EQ(size(types.tseries({.interval_ns = 1, .intervals = 5}, true)), 120u);
  EXPECT_EQ(size(types.stack(false, StackMode::kBpftrace, 127)), 8u);
  EXPECT_EQ(size(types.stack(true, StackMode::kBpftrace, 127)), 16u);
  EXPECT_EQ(size(types.simple(Kind::kInet)), 20u);
  EXPECT_EQ(size(types.buffer(16)), 20u);
  EXPECT_EQ(size(types.array(types.int64(), UINT32_MAX)), UINT32_MAX) << "sizes stop, they do not wrap";
}

TEST(Types, MakesCharArraysStrings) {
  Types types;
  EXPECT_EQ(types.array(types.char_type(), 16), types.char_array(16));
  EXPECT_EQ(types[types.array(types.int_type(1, true), 16)].kind, Kind::kArray);
  EXPECT_EQ(types[types.array(types.char_type(), 0)].kind, Kind::kArray);
}

TEST(Types, RemembersTseriesParameters) {
  Types types;
  const TypeId last = types.tseries({.interval_ns = 5, .intervals = 2}, true);
  const TypeId max = types.tseries({.interval_ns = 5, .intervals = 2, .aggregation = Kind::kMax}, true);
  EXPECT_NE(last, max);
  EXPECT_EQ(types.tseries_params(max).aggregation, Kind::kMax);
  EXPECT_EQ(types.tseries_params(types.tseries({.interval_ns = 5, .intervals = 2}, true)).aggregation, Kind::kVoid);
}

TEST(Types, KeepsTheScriptsStructsAndTheKernelsApart) {
  Types types;
  const TypeId kernels = types.declare_struct("file", false, {.btf_id = 7});
  EXPECT_EQ(types.declare_struct("file", false, {.btf_id = 7}), kernels);
  EXPECT_NE(types.declare_struct("file", false, {.module = 1, .btf_id = 7}), kernels);
  EXPECT_FALSE(types.find_struct("file").valid());
  EXPECT_FALSE(types[kernels].complete);

  const TypeId scripts = types.declare_struct("file", false, {});
  EXPECT_NE(scripts, kernels);
  EXPECT_EQ(types.find_struct("file"), scripts);
  EXPECT_NE(types.declare_struct("", false, {}), types.declare_struct("", false, {})) << "anonymous ones are all new";

  types.define_struct(scripts, {{.name = "x", .type = types.int64()}}, 8, 8);
  EXPECT_TRUE(types[scripts].complete);
}

TEST(Types, FindsMembersThroughAnonymousStructs) {
  Types types;
  const TypeId inner = types.declare_struct("", true, {});
  types.define_struct(inner, {{.name = "deep", .type = types.int64(), .offset_bits = 64, .bit_size = 3}}, 16, 8);
  const TypeId outer = types.declare_struct("outer", false, {});
  types.define_struct(outer, {{.name = "first", .type = types.int64()}, {.type = inner, .offset_bits = 128}}, 32, 8);
  const auto found = find_member(types, outer, "deep");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->offset_bits, 192u);
  EXPECT_EQ(found->bit_size, 3u);
  EXPECT_FALSE(find_member(types, outer, "none").has_value());
  EXPECT_FALSE(find_member(types, outer, "").has_value());
}

TEST(Types, AreWrittenAsInTheLanguage) {
  Types types;
  const TypeId task = types.declare_struct("task_struct", false, {});
  const TypeId int8 = types.int_type(1, true);
  const auto text = [&](TypeId id) { return to_string(types, id); };
  EXPECT_EQ(text(types.uint64()), "uint64");
  EXPECT_EQ(text(types.pointer(task, AddressSpace::kKernel)), "struct task_struct *");
  EXPECT_EQ(text(types.pointer(types.pointer(types.void_type(), AddressSpace::kUser), AddressSpace::kUser)), "void **");
  EXPECT_EQ(text(types.string(64)), "string[64]");
  EXPECT_EQ(text(types.tuple({int8, types.string(3)})), "(int8,string[3])");
  EXPECT_EQ(text(types.record({{.name = "a", .type = int8}, {.name = "b", .type = task}})),
            "{.a = int8, .b = struct task_struct}");
  EXPECT_EQ(text(types.array(types.int_type(4, true), 4)), "int32[4]");
  EXPECT_EQ(text(types.define_enum("foo", {}, 4, false, {})), "enum foo");
  EXPECT_EQ(text(types.simple(Kind::kCount)), "count_t");
  EXPECT_EQ(text(types.simple(Kind::kSum, true)), "sum_t");
  EXPECT_EQ(text(types.simple(Kind::kSum, false)), "usum_t");
  EXPECT_EQ(text(types.stack(true, StackMode::kPerf, 3)), "ustack_t");
  const TypeId function = types.function(types.void_type(), {{.name = "x", .type = int8}});
  EXPECT_EQ(text(types.pointer(function, AddressSpace::kKernel)), "void (*)(int8)");
  TypeId deep = types.int_type(4, true);
  for (int i = 0; i < 100'000; ++i)
    deep = i % 2 == 0 ? types.pointer(deep, AddressSpace::kKernel) : types.array(deep, 1);
  EXPECT_THAT(text(deep), testing::StartsWith("int32 *[1] *[1] *"));
}

TEST(Types, AreByReferenceWhereARegisterIsTooSmall) {
  Types types;
  EXPECT_FALSE(is_by_reference(types[types.uint64()]));
  EXPECT_FALSE(is_by_reference(types[types.simple(Kind::kUsername)]));
  EXPECT_TRUE(is_by_reference(types[types.int_type(16, true)]));
  EXPECT_TRUE(is_by_reference(types[types.string(4)]));
  EXPECT_TRUE(is_by_reference(types[types.simple(Kind::kMac)]));
  EXPECT_TRUE(is_by_reference(types[types.simple(Kind::kTimestamp)]));
  EXPECT_TRUE(is_integer(types[types.bool_type()]));
  EXPECT_TRUE(is_aggregation(types[types.hist(2)]));
  EXPECT_FALSE(is_aggregation(types[types.simple(Kind::kMac)]));
}

}  // namespace
}  // namespace espy::types
