#include "runtime/map_reader.h"

#include <algorithm>
#include <cstring>

namespace espy::runtime {

namespace {

using program::ScriptMap;
using program::Storage;

constexpr uint32_t kAssignedBytes = 8;

uint32_t cpus_of(const ScriptMap& map, const program::Program& program) {
  return map.storage == Storage::kGlobalPerCpu ? program.cpu_count : 1;
}

// Returns values that follow each other every `stride` bytes as a per-CPU map has them.
std::vector<std::byte> packed(std::span<const std::byte> bytes, uint32_t size, uint32_t stride, uint32_t count) {
  const uint32_t padded = (size + 7) & ~7U;
  std::vector<std::byte> out(size_t{padded} * count);
  for (uint32_t i = 0; i < count; ++i)
    std::memcpy(out.data() + size_t{i} * padded, bytes.data() + size_t{i} * stride, size);
  return out;
}

bool is_scalar(const ScriptMap& map) {
  return map.storage == Storage::kGlobal || map.storage == Storage::kGlobalPerCpu;
}

}  // namespace

Result<output::MapView> MapReader::read(program::ScriptMapId id) {
  const ScriptMap& map = program_.script_maps[id];
  output::MapView view;
  view.name = map.name;
  view.is_scalar = is_scalar(map);
  if (view.is_scalar) {
    read_scalar(map, view);
  } else if (map.storage != Storage::kThread) {  // of which nothing is shown
    TRY_STATUS(read_hash(map, view));
    output::sort_for_display(view.entries);
  }
  return view;
}

std::span<std::byte> MapReader::scalar_bytes(const ScriptMap& map) {
  return machine_.memory(program_.globals).subspan(map.offset_bytes);
}

void MapReader::read_scalar(const ScriptMap& map, output::MapView& view) {
  const std::span<const std::byte> bytes = scalar_bytes(map);
  const uint32_t cpus = cpus_of(map, program_);
  const uint32_t stride = map.stride_bytes;
  if (output::is_unset(bytes, cpus, stride)) return;
  const uint32_t size = context_.types[map.value].size_bytes;
  if (map.storage == Storage::kGlobal) {
    view.entries.push_back({{}, output::decode(context_, map.value, bytes.subspan(kAssignedBytes, size))});
    return;
  }
  const std::vector<std::byte> values = packed(bytes.subspan(kAssignedBytes), size, stride, cpus);
  view.entries.push_back({{}, output::decode_per_cpu(context_, map.value, values, cpus)});
}

Status MapReader::read_hash(const ScriptMap& map, output::MapView& view) {
  const uint32_t size = context_.types[map.value].size_bytes;
  const auto value_of = [&](const output::DecodeContext& context, std::span<const std::byte> value) {
    switch (map.storage) {
      case Storage::kPercpuHash: return output::decode_per_cpu(context, map.value, value, program_.cpu_count);
      case Storage::kSlotHash:
        return output::decode_per_cpu(context, map.value, packed(value, size, map.stride_bytes, program_.cpu_count),
                                      program_.cpu_count);
      default: return output::decode(context, map.value, value);
    }
  };
  output::FrameCache frames;
  output::DecodeContext context = context_;
  context.frames = &frames;
  return machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    view.entries.push_back({output::decode(context, map.key, key), value_of(context, value)});
  });
}

Result<std::vector<std::vector<std::byte>>> MapReader::keys(const ScriptMap& map) {
  std::vector<std::vector<std::byte>> out;
  TRY_STATUS(machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte>) {
    out.emplace_back(key.begin(), key.end());
  }));
  return out;
}

Status MapReader::clear(program::ScriptMapId id) {
  const ScriptMap& map = program_.script_maps[id];
  if (map.storage == Storage::kThread) return {};  // only at the end, when nothing reads it any more
  if (is_scalar(map)) {
    const uint32_t size = kAssignedBytes + context_.types[map.value].size_bytes;
    for (uint32_t cpu = 0; cpu < cpus_of(map, program_); ++cpu)
      std::ranges::fill(scalar_bytes(map).subspan(size_t{cpu} * map.stride_bytes, size), std::byte{0});
    return {};
  }
  for (const std::vector<std::byte>& key : TRY(keys(map))) TRY_STATUS(machine_.remove(map.map, key));
  return {};
}

Status MapReader::zero(program::ScriptMapId id) {
  const ScriptMap& map = program_.script_maps[id];
  const uint32_t size = context_.types[map.value].size_bytes;
  if (is_scalar(map)) {
    for (uint32_t cpu = 0; cpu < cpus_of(map, program_); ++cpu)
      std::ranges::fill(scalar_bytes(map).subspan(size_t{cpu} * map.stride_bytes + kAssignedBytes, size), std::byte{0});
    return {};
  }
  const uint32_t copies = map.storage == Storage::kPercpuHash ? program_.cpu_count : 1;
  // The kernel reads value_size bytes, which may be more than the type has.
  const size_t stored = (program_.maps[map.map].value_size + 7) & ~7U;
  const std::vector<std::byte> zeros(stored * copies);
  for (const std::vector<std::byte>& key : TRY(keys(map))) TRY_STATUS(machine_.update(map.map, key, zeros));
  return {};
}

}  // namespace espy::runtime
