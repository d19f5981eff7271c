// Maps that programs change while they are cleared and zeroed.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "idle_machine.h"
#include "runtime/record_decoder.h"

namespace espy::runtime {
namespace {

constexpr uint32_t kKeysOffset = 8;

// Has a hash of numbers. The kernel, or a program, takes the key `vanishing` once all keys were read.
class ModelMachine final : public load::IdleMachine {
 public:
  std::map<uint64_t, uint64_t> elements;
  uint64_t vanishing = 0;

  std::span<std::byte> memory(program::MapId) override { return std::as_writable_bytes(std::span(globals_)); }
  Status for_each(program::MapId,
                  const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) override {
    for (const auto& [key, value] : elements)
      visit(std::as_bytes(std::span(&key, 1)), std::as_bytes(std::span(&value, 1)));
    elements.erase(vanishing);
    return {};
  }
  Status update(program::MapId, std::span<const std::byte> key, std::span<const std::byte> value) override {
    elements[number(key)] = number(value);
    return {};
  }
  Result<bool> replace(program::MapId map, std::span<const std::byte> key, std::span<const std::byte> value) override {
    if (!elements.contains(number(key))) return false;
    EXPECT_TRUE(update(map, key, value));
    return true;
  }
  Result<bool> remove(program::MapId, std::span<const std::byte> key) override {
    return elements.erase(number(key)) == 1;
  }
  uint64_t& counted_keys() { return globals_[kKeysOffset / sizeof(uint64_t)]; }

 private:
  static uint64_t number(std::span<const std::byte> bytes) {
    uint64_t out = 0;
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  }
  uint64_t globals_[2] = {};
};

class MapReaderTest : public testing::Test {
 protected:
  MapReaderTest() {
    program_.cpu_count = 1;
    program_.globals = program_.maps.add({.name = "globals"});
    program::ScriptMap map;
    map.name = "@";
    map.key = map.value = types_.uint64();
    map.storage = program::Storage::kHash;
    map.map = program_.maps.add({.name = "map", .value_size = 8});
    map.keys_offset = kKeysOffset;
    map_ = program_.script_maps.add(map);
    machine_.elements = {{1, 10}, {2, 20}, {3, 30}};
    machine_.vanishing = 2;
    machine_.counted_keys() = 3;
  }

  types::Types types_;
  output::Resolver resolver_;
  program::Program program_;
  program::ScriptMapId map_;
  ModelMachine machine_;
  MapReader reader_{machine_, program_, {types_, resolver_}};
};

// The one that vanished made room for another, which the end reports.
TEST_F(MapReaderTest, ClearCountsTheKeysThatItRemoves) {
  ASSERT_TRUE(reader_.clear(map_));
  EXPECT_TRUE(machine_.elements.empty());
  EXPECT_EQ(machine_.counted_keys(), 1);
}

TEST_F(MapReaderTest, ZeroDoesNotBringBackAKey) {
  ASSERT_TRUE(reader_.zero(map_));
  EXPECT_EQ(machine_.elements, (std::map<uint64_t, uint64_t>{{1, 0}, {3, 0}}));
}

}  // namespace
}  // namespace espy::runtime
