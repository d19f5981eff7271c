// Stacks that programs have unwound, as user space reads and removes them.
#include <gtest/gtest.h>

#include <cstring>

#include "program/layout.h"
#include "runtime/unwind_tables.h"
#include "simulator/simulator.h"

namespace espy::runtime {
namespace {

constexpr uint32_t kFrames = 3;
constexpr uint64_t kSecondNs = 1'000'000'000;

// A script with one map, by ustack, and room for four stacks.
class UnwoundStacksTest : public testing::Test {
 protected:
  struct Value {
    uint32_t count = 0, epoch = 0;
    uint64_t addresses[kFrames] = {};
  };
  struct Reference {
    uint64_t key = 0;
    uint32_t pid = 1, is_unwound = 1;
  };

  void SetUp() override {
    type_ = types_.stack(true, types::StackMode::kBpftrace, kFrames);
    program_.cpu_count = 1;
    program_.globals = program_.maps.add({.name = "globals", .value_size = 64, .is_mmapable = true});
    stacks_ = program_.maps.add({.name = "stacks",
                                 .kind = program::MapKind::kHash,
                                 .key_size = 8,
                                 .value_size = sizeof(Value),
                                 .max_entries = 4});
    map_ = program_.maps.add({.name = "map",
                              .kind = program::MapKind::kHash,
                              .key_size = sizeof(Reference),
                              .value_size = 8,
                              .max_entries = 16});
    program_.unwinding.epoch_offset_bytes = 8;
    program_.unwinding.stacks.push_back({type_, stacks_, 16});
    program::ScriptMap script_map;
    script_map.name = "@";
    script_map.key = type_;
    script_map.value = types_.uint64();
    script_map.storage = program::Storage::kHash;
    script_map.map = map_;
    program_.script_maps.add(script_map);
    ASSERT_TRUE(machine_.load(program_, types_, sources_));
  }

  // As a program captures a stack of one frame.
  void capture(uint64_t key) {
    Value value{1, 0, {key * 100}};
    std::memcpy(&value.epoch, machine_.memory(program_.globals).data() + 8, 4);
    uint64_t added = 0;
    std::memcpy(&added, machine_.memory(program_.globals).data() + 16, 8);
    if (!has(key)) ++added;
    std::memcpy(machine_.memory(program_.globals).data() + 16, &added, 8);
    ASSERT_TRUE(machine_.update(stacks_, bytes(key), bytes(value)));
  }
  void refer(uint64_t key) { ASSERT_TRUE(machine_.update(map_, bytes(Reference{key}), bytes(uint64_t{1}))); }
  void forget(uint64_t key) { ASSERT_TRUE(machine_.remove(map_, bytes(Reference{key}))); }
  bool has(uint64_t key) { return machine_.lookup(stacks_, bytes(key)).has_value(); }
  void collect(UnwoundStacks& stacks) { ASSERT_TRUE(stacks.collect(now_ns_ += 100 * kSecondNs)); }

  template <typename T>
  static std::vector<std::byte> bytes(const T& value) {
    const auto span = std::as_bytes(std::span(&value, 1));
    return {span.begin(), span.end()};
  }

  types::Types types_;
  types::TypeId type_;
  source::Sources sources_;
  program::Program program_;
  program::MapId stacks_, map_;
  simulator::Simulator machine_;
  uint64_t now_ns_ = 0;
};

TEST_F(UnwoundStacksTest, KeepsStacksWhileThereIsRoom) {
  UnwoundStacks stacks(machine_, program_, types_);
  capture(1);
  for (int i = 0; i < 5; ++i) collect(stacks);
  EXPECT_TRUE(has(1));
}

TEST_F(UnwoundStacksTest, RemovesWhatNothingRefersToAfterTwoEpochs) {
  UnwoundStacks stacks(machine_, program_, types_);
  for (const uint64_t key : {1, 2, 3}) capture(key);
  refer(2);
  collect(stacks);
  collect(stacks);
  EXPECT_TRUE(has(1)) << "a program may have captured it in the epoch before";
  capture(3);
  collect(stacks);
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2));
  EXPECT_TRUE(has(3));
}

TEST_F(UnwoundStacksTest, ShowsAndRestoresWhatWasCapturedWhileItWasRemoved) {
  UnwoundStacks stacks(machine_, program_, types_);
  for (const uint64_t key : {1, 2, 3}) capture(key);
  refer(2);
  for (int i = 0; i < 3; ++i) collect(stacks);
  ASSERT_FALSE(has(1));
  refer(1);  // by a program that has found the stack just before
  EXPECT_EQ(stacks.addresses(type_, 1), std::vector<uint64_t>{100});
  for (const uint64_t key : {4, 5}) capture(key);
  collect(stacks);
  EXPECT_TRUE(has(1));
  EXPECT_EQ(stacks.addresses(type_, 1), std::vector<uint64_t>{100});
}

TEST_F(UnwoundStacksTest, LooksRarelyWhereAllAreInUse) {
  UnwoundStacks stacks(machine_, program_, types_);
  for (const uint64_t key : {1, 2, 3}) {
    capture(key);
    refer(key);
  }
  for (int i = 0; i < 12; ++i) collect(stacks);
  for (const uint64_t key : {1, 2, 3}) forget(key);
  ASSERT_TRUE(stacks.collect(now_ns_ + kSecondNs));
  EXPECT_TRUE(has(1));
  collect(stacks);
  EXPECT_FALSE(has(1) || has(2) || has(3));
}

TEST_F(UnwoundStacksTest, LeavesAllWhereAMapCannotBeRead) {
  program_.script_maps[program_.script_maps.ids()[0]].storage = program::Storage::kThread;
  UnwoundStacks stacks(machine_, program_, types_);
  for (const uint64_t key : {1, 2, 3}) capture(key);
  for (int i = 0; i < 5; ++i) collect(stacks);
  EXPECT_TRUE(has(1));
}

TEST_F(UnwoundStacksTest, LeavesAllWhereRecordsWaitInTheKernel) {
  program_.maps.add({.name = std::string(program::kSpanBuffersMap), .value_size = 64});
  UnwoundStacks stacks(machine_, program_, types_);
  for (const uint64_t key : {1, 2, 3}) capture(key);
  for (int i = 0; i < 5; ++i) collect(stacks);
  EXPECT_TRUE(has(1));
}

}  // namespace
}  // namespace espy::runtime
