#include "recording/encoding.h"

#include "base/byte_reader.h"

namespace espy::recording {

namespace {

// A description is a sequence of items: a tag, the size of the item in bytes, the item. Items of unknown tags are
// ignored.
enum class Tag : uint8_t {
  kVersion = 1,
  kCommand,
  kRelease,
  kArch,
  kPageSize,
  kCpus,
  kStarted,
  kStartedWall,
  kMaxText,
  kTracepoint,
  kProbe,
};

void append_item(std::string& out, Tag tag, std::string_view item) {
  append_uleb128(out, static_cast<uint64_t>(tag));
  append_text(out, item);
}

void append_number(std::string& out, Tag tag, uint64_t number) {
  std::string item;
  append_uleb128(item, number);
  append_item(out, tag, item);
}

std::string_view take_text(ByteReader& reader) { return reader.take_bytes(reader.take_uleb128()); }

std::optional<Tracepoint> decode_tracepoint(ByteReader item) {
  Tracepoint out;
  out.category = take_text(item);
  out.event = take_text(item);
  out.format = take_text(item);
  return item.ok() ? std::optional(out) : std::nullopt;
}

std::optional<Probe> decode_probe(ByteReader item) {
  Probe out;
  out.name = take_text(item);
  while (item.ok() && !item.at_end()) {
    const auto kind = item.take_le<uint8_t>();
    if (kind > static_cast<uint8_t>(FieldKind::kText)) return std::nullopt;
    out.fields.push_back({std::string(take_text(item)), static_cast<FieldKind>(kind)});
  }
  return item.ok() ? std::optional(out) : std::nullopt;
}

template <class T>
bool append_decoded(std::vector<T>& out, std::optional<T> item) {
  if (item) out.push_back(std::move(*item));
  return item.has_value();
}

// False if the item is damaged.
bool decode_item(Tag tag, std::string_view item, Description& out) {
  ByteReader reader(item);
  const auto take_u32 = [&](uint32_t& number) {
    const uint64_t value = reader.take_uleb128();
    number = static_cast<uint32_t>(value);
    return reader.ok() && value <= UINT32_MAX;
  };
  const auto take_u64 = [&](uint64_t& number) {
    number = reader.take_uleb128();
    return reader.ok();
  };
  switch (tag) {
    case Tag::kVersion: out.espy_version = item; return true;
    case Tag::kCommand: out.command = item; return true;
    case Tag::kRelease: out.kernel_release = item; return true;
    case Tag::kArch: out.arch = item; return true;
    case Tag::kPageSize: return take_u32(out.page_size_bytes);
    case Tag::kCpus: return take_u32(out.cpu_count);
    case Tag::kStarted: return take_u64(out.started_ns);
    case Tag::kStartedWall: return take_u64(out.started_wall_ns);
    case Tag::kMaxText: return take_u32(out.max_text_bytes);
    case Tag::kTracepoint: return append_decoded(out.tracepoints, decode_tracepoint(reader));
    case Tag::kProbe: return append_decoded(out.probes, decode_probe(reader));
  }
  return true;
}

}  // namespace

void append_uleb128(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_sleb128(std::string& out, int64_t value) {
  for (; value < -64 || value > 63; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value & 0x7f);
}

void append_text(std::string& out, std::string_view text) {
  append_uleb128(out, text.size());
  out += text;
}

std::string encode(const Description& description) {
  std::string out;
  append_item(out, Tag::kVersion, description.espy_version);
  append_item(out, Tag::kCommand, description.command);
  append_item(out, Tag::kRelease, description.kernel_release);
  append_item(out, Tag::kArch, description.arch);
  append_number(out, Tag::kPageSize, description.page_size_bytes);
  append_number(out, Tag::kCpus, description.cpu_count);
  append_number(out, Tag::kStarted, description.started_ns);
  append_number(out, Tag::kStartedWall, description.started_wall_ns);
  append_number(out, Tag::kMaxText, description.max_text_bytes);
  for (const Tracepoint& tracepoint : description.tracepoints) {
    std::string item;
    for (const std::string& part : {tracepoint.category, tracepoint.event, tracepoint.format}) append_text(item, part);
    append_item(out, Tag::kTracepoint, item);
  }
  for (const Probe& probe : description.probes) {
    std::string item;
    append_text(item, probe.name);
    for (const Field& field : probe.fields) {
      item += static_cast<char>(field.kind);
      append_text(item, field.name);
    }
    append_item(out, Tag::kProbe, item);
  }
  return out;
}

std::optional<Description> decode_description(std::string_view bytes) {
  Description out;
  ByteReader reader(bytes);
  while (!reader.at_end()) {
    const uint64_t tag = reader.take_uleb128();
    const std::string_view item = take_text(reader);
    if (!reader.ok()) return std::nullopt;
    const bool is_known = tag >= static_cast<uint64_t>(Tag::kVersion) && tag <= static_cast<uint64_t>(Tag::kProbe);
    if (is_known && !decode_item(static_cast<Tag>(tag), item, out)) return std::nullopt;
  }
  return out;
}

}  // namespace espy::recording
