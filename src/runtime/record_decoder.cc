#include "runtime/record_decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/byte_reader.h"
#include "base/fatal.h"
#include "runtime/resolver.h"

namespace espy::runtime {

output::TextStyle text_style(const spec::Config& config) {
  return {.truncation_trailer = config.print.trunc_trailer,
          .has_zeros = config.print.zeros,
          .is_c = config.print.layout == spec::PrintLayout::kC,
          .max_depth = static_cast<uint32_t>(config.print.depth),
          .max_items = static_cast<uint32_t>(config.print.items),
          .span_layout = config.spans.layout,
          .has_units = config.print.units,
          .units = config.print.map_units,
          .has_percentiles = config.print.percentiles};
}

RecordDecoder::RecordDecoder(load::Machine& machine, const program::Program& program, const types::Types& types,
                             symbols::Symbolizer& symbols, const UnwoundStacks& unwound_stacks,
                             const spec::Config& config, StackDetail detail)
    : program_(program),
      types_(types),
      resolver_(make_resolver(machine, program, symbols, unwound_stacks, detail)),
      styles_{text_style(config), text_style(config), text_style(config)},
      shows_addresses_(config.print.addresses),
      truncated_strings_{config.limits.max_strlen, 0},
      formatters_(program.events.size()) {}

void RecordDecoder::show_on(const TerminalText& terminal) {
  output::TextStyle& of_output = styles_[static_cast<size_t>(TextUse::kOutput)];
  output::TextStyle& of_messages = styles_[static_cast<size_t>(TextUse::kMessage)];
  of_output.is_for_terminal = terminal.is_output;
  of_messages.is_for_terminal = terminal.is_messages;
  of_output.own_texts = of_messages.own_texts = terminal.own_texts;
}

output::DecodeContext RecordDecoder::context() {
  return {types_, resolver_, program_.formats, &truncated_strings_, shows_addresses_};
}

output::Value RecordDecoder::value(const program::EventField& field, std::span<const std::byte> record) {
  return output::decode_field(context(), field, record);
}

int64_t RecordDecoder::integer(const program::EventField& field, std::span<const std::byte> record) const {
  const types::Type& type = types_[field.type];
  CHECK(type.size_bytes <= 8 && !field.is_in_tail);
  uint64_t bits = 0;
  std::memcpy(&bits, record.data() + field.offset_bytes, type.size_bytes);
  const int unused = 64 - 8 * static_cast<int>(type.size_bytes);
  if (unused == 0) return static_cast<int64_t>(bits);
  return type.is_signed ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

const output::Formatter& RecordDecoder::formatter(const program::EventSchema& schema, size_t literal_index) {
  auto& formatters = formatters_[static_cast<size_t>(&schema - &*program_.events.begin())];
  if (const auto at = formatters.find(literal_index); at != formatters.end()) return at->second;
  auto formatter = output::Formatter::create(schema.literals[literal_index]);
  CHECK(formatter.has_value());  // `check` has parsed it
  return formatters.emplace(literal_index, std::move(*formatter)).first->second;
}

const std::string& RecordDecoder::format(const program::EventSchema& schema, std::span<const std::byte> record,
                                         size_t literal_index, size_t first_field, TextUse use) {
  text_.clear();
  formatter(schema, literal_index).append_record(text_, context(), schema, first_field, record, style(use));
  return text_;
}

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

// Removes the stamps of values that were written while `values`, those of a recent(), were copied, and of those added
// after `until_ns`. `later`: the same place, read afterwards.
void keep_complete(std::span<std::byte> values, std::span<const std::byte> later, const types::RecentLayout& layout,
                   uint64_t until_ns) {
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    const size_t at = types::RecentLayout::kStampsOffset + size_t{slot} * sizeof(uint64_t);
    const uint64_t stamp = load_le(values, at);
    if (stamp != load_le(later, at) || stamp > until_ns) std::memset(values.data() + at, 0, sizeof(stamp));
  }
}

bool is_scalar(const ScriptMap& map) {
  return map.storage == Storage::kGlobal || map.storage == Storage::kGlobalPerCpu;
}

}  // namespace

output::MapView MapReader::empty_view(const ScriptMap& map) const {
  output::MapView view;
  view.name = map.name;
  view.is_scalar = is_scalar(map);
  view.kind = context_.types[map.value].kind;
  view.is_signed = context_.types[map.value].is_signed;
  view.key_names = map.key_names;
  view.sampled = map.sampled.value_or(program::SamplePeriod{});
  return view;
}

Result<output::MapView> MapReader::read(program::ScriptMapId id, const Wanted& wanted) {
  const ScriptMap& map = program_.script_maps[id];
  output::MapView view = empty_view(map);
  if (view.is_scalar) {
    read_scalar(map, wanted.until_ns, view);
  } else if (map.storage != Storage::kThread) {  // of which nothing is shown
    const bool is_recent = context_.types[map.value].kind == types::Kind::kRecent;
    TRY_STATUS(is_recent ? read_recent(map, view) : read_hash(map, view, wanted));
    output::sort_for_display(view.entries);
  }
  return view;
}

output::MapView MapReader::read_element(program::ScriptMapId id, std::span<const std::byte> key) {
  const ScriptMap& map = program_.script_maps[id];
  output::MapView view = empty_view(map);
  const uint32_t key_bytes = program_.maps[map.map].key_size;
  if (key.size() < key_bytes) return view;
  if (const auto value = machine_.lookup(map.map, key.first(key_bytes)))
    view.entries.push_back(
        {output::decode(context_, map.key, key.first(key_bytes)), hash_value(context_, map, *value)});
  return view;
}

std::span<std::byte> MapReader::scalar_bytes(const ScriptMap& map) {
  return machine_.memory(program_.globals).subspan(map.offset_bytes);
}

void MapReader::read_scalar(const ScriptMap& map, uint64_t until_ns, output::MapView& view) {
  const std::span<const std::byte> bytes = scalar_bytes(map);
  const uint32_t cpus = cpus_of(map, program_);
  const uint32_t stride = map.stride_bytes;
  if (output::is_unset(bytes, cpus, stride)) return;
  const uint32_t size = context_.types[map.value].size_bytes;
  if (map.storage == Storage::kGlobal) {
    view.entries.push_back({{}, output::decode(context_, map.value, bytes.subspan(kAssignedBytes, size))});
    return;
  }
  std::vector<std::byte> values = packed(bytes.subspan(kAssignedBytes), size, stride, cpus);
  if (context_.types[map.value].kind == types::Kind::kRecent) {
    std::atomic_thread_fence(std::memory_order_acquire);
    for (uint32_t cpu = 0; cpu < cpus; ++cpu)
      keep_complete(std::span(values).subspan(size_t{cpu} * size, size),
                    bytes.subspan(kAssignedBytes + size_t{cpu} * stride), layout_of(map), until_ns);
  }
  view.entries.push_back({{}, output::decode_per_cpu(context_, map.value, values, cpus)});
}

output::Value MapReader::hash_value(const output::DecodeContext& context, const ScriptMap& map,
                                    std::span<const std::byte> bytes) const {
  switch (map.storage) {
    case Storage::kPercpuHash: return output::decode_per_cpu(context, map.value, bytes, program_.cpu_count);
    case Storage::kSlotHash:
      return output::decode_per_cpu(context, map.value, bytes, program_.cpu_count, map.stride_bytes);
    default: return output::decode(context, map.value, bytes);
  }
}

Status MapReader::read_hash(const ScriptMap& map, output::MapView& view, const Wanted& wanted) {
  if (wanted.is_compact && output::CompactEntries::fits(context_.types, map.key, map.value)) {
    view.compact = output::CompactEntries(context_, map.key);
    TRY_STATUS(machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
      view.compact.add(key, hash_value(context_, map, value));
    }));
    view.compact.sort();
    return {};
  }
  output::FrameCache frames;
  output::DecodeContext context = context_;
  context.frames = &frames;
  return machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    view.entries.push_back({output::decode(context, map.key, key), hash_value(context, map, value)});
  });
}

// Programs may write while the values are read, so the stamps are read again.
Status MapReader::read_recent(const ScriptMap& map, output::MapView& view) {
  std::map<std::vector<std::byte>, std::vector<std::byte>> values;
  TRY_STATUS(machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    values.emplace(std::vector(key.begin(), key.end()), std::vector(value.begin(), value.end()));
  }));
  TRY_STATUS(machine_.for_each(map.map, [&](std::span<const std::byte> key, std::span<const std::byte> value) {
    const auto first = values.find(std::vector(key.begin(), key.end()));
    if (first != values.end()) keep_complete(first->second, value, layout_of(map), UINT64_MAX);
  }));
  output::FrameCache frames;
  output::DecodeContext context = context_;
  context.frames = &frames;
  for (const auto& [key, value] : values)
    view.entries.push_back({output::decode(context, map.key, key), output::decode(context, map.value, value)});
  return {};
}

types::RecentLayout MapReader::layout_of(const ScriptMap& map) const {
  const types::Type& type = context_.types[map.value];
  return {type.count, context_.types[type.element].size_bytes};
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
  for (const std::vector<std::byte>& key : TRY(keys(map))) {
    const bool was_there = TRY(machine_.remove(map.map, key));
    if (was_there && map.keys_offset) count_removed_key(map);
  }
  return {};
}

// Programs count, too.
void MapReader::count_removed_key(const ScriptMap& map) {
  std::byte* word = machine_.memory(program_.globals).data() + map.keys_offset;
  std::atomic_ref(*reinterpret_cast<uint64_t*>(word)).fetch_sub(1, std::memory_order_relaxed);
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
  for (const std::vector<std::byte>& key : TRY(keys(map))) TRY(machine_.replace(map.map, key, zeros));
  return {};
}

}  // namespace espy::runtime
