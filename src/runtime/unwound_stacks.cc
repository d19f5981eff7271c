#include "runtime/unwound_stacks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "output/decode.h"
#include "program/span_buffer.h"
#include "runtime/map_reader.h"

namespace espy::runtime {

namespace {

using types::TypeId;

constexpr uint64_t kShortestIntervalNs = 200'000'000;
constexpr uint64_t kLongestIntervalNs = 30'000'000'000;
constexpr size_t kMostRemoved = 8192;  // at a time, as they are kept
constexpr uint32_t kUnusedEpochs = 2;

// The beginning of a value: see program/unwind.h.
struct Header {
  uint32_t count = 0;
  uint32_t epoch = 0;
};

Header header_of(std::span<const std::byte> value) {
  Header header;
  if (value.size() >= sizeof(header)) std::memcpy(&header, value.data(), sizeof(header));
  return header;
}

std::span<const std::byte> used_part(std::span<const std::byte> value) {
  return value.first(std::min(value.size(), sizeof(Header) + header_of(value).count * sizeof(uint64_t)));
}

bool has_user_stacks(const types::Types& types, TypeId id) {
  if (!id.valid()) return false;
  const types::Type& type = types[id];
  if (type.kind == types::Kind::kUserStack) return true;
  if (type.kind == types::Kind::kPointer || type.kind == types::Kind::kFunction) return false;
  return has_user_stacks(types, type.element) ||
         std::ranges::any_of(type.members, [&](const auto& member) { return has_user_stacks(types, member.type); });
}

}  // namespace

UnwoundStacks::UnwoundStacks(load::Machine& machine, const program::Program& program, const types::Types& types)
    : machine_(machine), program_(program), types_(types), interval_ns_(kShortestIntervalNs) {
  for (const auto& maps : program.unwinding.stacks) kinds_.push_back({.maps = &maps});
  if (kinds_.empty()) return;
  for (const program::ScriptMapId id : program.script_maps.ids()) {
    const program::ScriptMap& map = program.script_maps[id];
    if (!has_user_stacks(types, map.key) && !has_user_stacks(types, map.value)) continue;
    maps_.push_back(id);
    if (map.storage == program::Storage::kThread) can_read_all_ = false;
  }
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == program::kSpanBuffersMap) can_read_all_ = false;
}

std::vector<uint64_t> UnwoundStacks::addresses(TypeId type, uint64_t key) const {
  const auto kind = std::ranges::find_if(kinds_, [&](const Kind& each) { return each.maps->type == type; });
  if (kind == kinds_.end()) return {};
  auto value = machine_.lookup(kind->maps->map, std::as_bytes(std::span(&key, 1)));
  if (const auto removed = kind->removed.find(key); !value && removed != kind->removed.end()) value = removed->second;
  if (!value) return {};
  const std::span<const std::byte> used = used_part(*value).subspan(sizeof(Header));
  std::vector<uint64_t> out(used.size() / sizeof(uint64_t));
  std::memcpy(out.data(), used.data(), out.size() * sizeof(uint64_t));
  return out;
}

std::byte* UnwoundStacks::global(uint32_t offset_bytes) const {
  return machine_.memory(program_.globals).data() + offset_bytes;
}

bool UnwoundStacks::is_crowded(const Kind& kind) const {
  uint64_t added = 0;
  std::memcpy(&added, global(kind.maps->added_offset_bytes), sizeof(added));
  return (added - kind.removed_count) * 2 >= program_.maps[kind.maps->map].max_entries;
}

Status UnwoundStacks::collect(uint64_t now_ns) {
  if (now_ns < next_ns_ || !can_read_all_) return {};
  if (std::ranges::none_of(kinds_, [&](const Kind& kind) { return is_crowded(kind); })) return {};
  uint32_t epoch = 0;
  std::memcpy(&epoch, global(program_.unwinding.epoch_offset_bytes), sizeof(epoch));
  const std::vector<Keys> in_use = TRY(keys_in_use());
  bool is_worth_it = epoch < kUnusedEpochs;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    TRY_STATUS(restore(kinds_[i], in_use[i]));
    const size_t removed = TRY(remove(kinds_[i], in_use[i], epoch));
    is_worth_it = is_worth_it || removed * 16 >= program_.maps[kinds_[i].maps->map].max_entries;
  }
  ++epoch;
  std::memcpy(global(program_.unwinding.epoch_offset_bytes), &epoch, sizeof(epoch));
  interval_ns_ = is_worth_it ? kShortestIntervalNs : std::min(interval_ns_ * 2, kLongestIntervalNs);
  next_ns_ = now_ns + interval_ns_;
  return {};
}

Result<std::vector<UnwoundStacks::Keys>> UnwoundStacks::keys_in_use() const {
  std::vector<Keys> out(kinds_.size());
  output::Resolver resolver;
  resolver.unwound_stack = [&](TypeId type, uint64_t key) -> std::vector<uint64_t> {
    for (size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i].maps->type == type) out[i].insert(key);
    return {};
  };
  MapReader reader(machine_, program_, {types_, resolver});
  for (const program::ScriptMapId map : maps_) TRY_STATUS(reader.read(map));
  return out;
}

Status UnwoundStacks::restore(Kind& kind, const Keys& in_use) {
  for (auto& [key, value] : std::exchange(kind.removed, {})) {
    const auto key_bytes = std::as_bytes(std::span(&key, 1));
    if (!in_use.contains(key) || machine_.lookup(kind.maps->map, key_bytes)) continue;
    value.resize(program_.maps[kind.maps->map].value_size);
    TRY_STATUS(machine_.update(kind.maps->map, key_bytes, value));
    --kind.removed_count;
  }
  return {};
}

Result<size_t> UnwoundStacks::remove(Kind& kind, const Keys& in_use, uint32_t epoch) {
  TRY_STATUS(machine_.for_each(kind.maps->map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof(number));
    const bool is_old = epoch - header_of(value).epoch >= kUnusedEpochs;
    if (!is_old || in_use.contains(number) || kind.removed.size() == kMostRemoved) return;
    const auto used = used_part(value);
    kind.removed.emplace(number, std::vector<std::byte>(used.begin(), used.end()));
  }));
  for (const auto& [key, value] : kind.removed)
    TRY_STATUS(machine_.remove(kind.maps->map, std::as_bytes(std::span(&key, 1))));
  kind.removed_count += kind.removed.size();
  return kind.removed.size();
}

}  // namespace espy::runtime
