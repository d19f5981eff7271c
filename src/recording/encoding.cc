#include "recording/encoding.h"

#include <lz4.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/byte_reader.h"
#include "base/fatal.h"

namespace espy::recording {

namespace {

constexpr uint32_t kBlockMagic = 0x4b4c4245;  // "EBLK"
constexpr size_t kCheckedBytes = kBlockHeaderBytes - sizeof(uint32_t);

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace

std::array<char, kBlockHeaderBytes> encode(const BlockHeader& header) {
  std::array<char, kBlockHeaderBytes> out = {};
  size_t at = 0;
  const auto put = [&](uint64_t value, size_t size_bytes) {
    std::memcpy(out.data() + at, &value, size_bytes);
    at += size_bytes;
  };
  put(kBlockMagic, 4);
  put(static_cast<uint8_t>(header.kind), 1);
  put(static_cast<uint8_t>(header.compression), 1);
  put(0, 2);
  put(header.stored_bytes, 4);
  put(header.raw_bytes, 4);
  put(header.first_ns, 8);
  put(header.last_ns, 8);
  put(header.probes, 8);
  put(header.event_count, 4);
  put(header.checksum, 4);
  put(header.number, 4);
  CHECK(at == kCheckedBytes);
  put(checksum_of({out.data(), kCheckedBytes}), 4);
  return out;
}

std::optional<BlockHeader> decode_header(std::string_view bytes) {
  if (bytes.size() < kBlockHeaderBytes) return std::nullopt;
  ByteReader reader(bytes.substr(0, kBlockHeaderBytes));
  if (reader.take_le<uint32_t>() != kBlockMagic) return std::nullopt;
  BlockHeader out;
  const auto kind = reader.take_le<uint8_t>();
  const auto compression = reader.take_le<uint8_t>();
  reader.take_le<uint16_t>();
  out.stored_bytes = reader.take_le<uint32_t>();
  out.raw_bytes = reader.take_le<uint32_t>();
  out.first_ns = reader.take_le<uint64_t>();
  out.last_ns = reader.take_le<uint64_t>();
  out.probes = reader.take_le<uint64_t>();
  out.event_count = reader.take_le<uint32_t>();
  out.checksum = reader.take_le<uint32_t>();
  out.number = reader.take_le<uint32_t>();
  const bool is_intact = reader.take_le<uint32_t>() == checksum_of(bytes.substr(0, kCheckedBytes));
  const bool is_known = kind >= static_cast<uint8_t>(BlockKind::kDescription) &&
                        kind <= static_cast<uint8_t>(BlockKind::kEnd) &&
                        compression <= static_cast<uint8_t>(Compression::kLz4);
  if (!is_intact || !is_known || out.stored_bytes > kMaxBlockBytes || out.raw_bytes > kMaxBlockBytes)
    return std::nullopt;
  out.kind = static_cast<BlockKind>(kind);
  out.compression = static_cast<Compression>(compression);
  return out;
}

std::string compress(std::string_view raw, BlockHeader& header) {
  CHECK(raw.size() <= kMaxBlockBytes);
  const int bound = ::LZ4_compressBound(static_cast<int>(raw.size()));
  std::string out(static_cast<size_t>(bound), '\0');
  const int size = ::LZ4_compress_default(raw.data(), out.data(), static_cast<int>(raw.size()), bound);
  const bool is_smaller = size > 0 && static_cast<size_t>(size) < raw.size();
  header.compression = is_smaller ? Compression::kLz4 : Compression::kNone;
  if (is_smaller) {
    out.resize(static_cast<size_t>(size));
  } else {
    out = raw;
  }
  header.raw_bytes = static_cast<uint32_t>(raw.size());
  header.stored_bytes = static_cast<uint32_t>(out.size());
  header.checksum = checksum_of(out);
  return out;
}

Result<std::string> decompress(std::string_view stored, const BlockHeader& header) {
  if (stored.size() != header.stored_bytes || checksum_of(stored) != header.checksum)
    return fail("its checksum does not match");
  if (header.compression == Compression::kNone) {
    if (header.raw_bytes != header.stored_bytes) return fail("its sizes contradict each other");
    return std::string(stored);
  }
  std::string out(header.raw_bytes, '\0');
  const int size =
      ::LZ4_decompress_safe(stored.data(), out.data(), static_cast<int>(stored.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<uint32_t>(size) != header.raw_bytes) return fail("it cannot be decompressed");
  return out;
}

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
  kType,
  kLayout,
  kProbe,
  kRingId,
  kRingNumber,
  kChild,
};

// Bits of the flags of a type, a layout and a frame.
constexpr uint64_t kSigned = 1, kUnion = 2, kComplete = 4, kIsText = 8, kUserSpace = 16;
constexpr uint64_t kKernelNames = 32, kUserNames = 64;
constexpr uint64_t kInlined = 1, kHasModuleAddress = 2;

// A few bytes can describe much: a recording with more than these is damaged.
constexpr uint64_t kMaxItemBytes = 4 << 20;
constexpr uint64_t kMaxMemoryBytes = 256 << 20;  // of a description, without its texts

void append_item(std::string& out, Tag tag, std::string_view item) {
  append_uleb128(out, static_cast<uint64_t>(tag));
  append_text(out, item);
}

void append_number(std::string& out, Tag tag, uint64_t number) {
  std::string item;
  append_uleb128(item, number);
  append_item(out, tag, item);
}

// The numbers of a type follow its kind; an index is one more than it is, and 0 for none.
uint64_t index_or_none(uint32_t index) { return index == kNoType ? 0 : uint64_t{index} + 1; }

std::string encode(const Type& type) {
  std::string out;
  const uint64_t flags = (type.is_signed ? kSigned : 0) | (type.is_union ? kUnion : 0) |
                         (type.is_complete ? kComplete : 0) | (type.is_text ? kIsText : 0) |
                         (type.is_user_space ? kUserSpace : 0);
  for (const uint64_t number : {static_cast<uint64_t>(type.kind), flags, uint64_t{type.size_bytes},
                                uint64_t{type.align_bytes}, uint64_t{type.count}, index_or_none(type.element)})
    append_uleb128(out, number);
  append_text(out, type.name);
  append_uleb128(out, type.members.size());
  for (const Member& member : type.members) {
    append_text(out, member.name);
    for (const uint64_t number : {index_or_none(member.type), uint64_t{member.offset_bits}, uint64_t{member.bit_size}})
      append_uleb128(out, number);
  }
  for (const Enumerator& enumerator : type.enumerators) {
    append_text(out, enumerator.name);
    append_sleb128(out, enumerator.value);
  }
  return out;
}

std::string encode(const Layout& layout) {
  std::string out;
  append_uleb128(out, (layout.points_to_user_space ? kUserSpace : 0) | (layout.has_kernel_names ? kKernelNames : 0) |
                          (layout.has_user_names ? kUserNames : 0));
  for (const Field& field : layout.fields) {
    append_uleb128(out, static_cast<uint64_t>(field.kind));
    append_uleb128(out, static_cast<uint64_t>(field.role));
    append_text(out, field.name);
    append_uleb128(out, index_or_none(field.type));
    append_text(out, field.shown);
    append_uleb128(out, field.pointer_in);
    append_uleb128(out, field.offset_bytes);
  }
  return out;
}

std::string encode(const Probe& probe) {
  std::string out;
  for (const std::string* text : {&probe.provider, &probe.name, &probe.given, &probe.target, &probe.function})
    append_text(out, *text);
  append_uleb128(out, probe.layout);
  for (const std::string& part : probe.parts) append_text(out, part);
  return out;
}

// ---- Decoding. What is wrong makes the reader fail.

uint32_t take_u32(ByteReader& reader) {
  const uint64_t value = reader.take_uleb128();
  if (value > UINT32_MAX) reader.fail();
  return static_cast<uint32_t>(value);
}

uint32_t take_index(ByteReader& reader) { return take_u32(reader) - 1; }
static_assert(uint32_t{0} - 1 == kNoType);

template <class Enum>
Enum take_enum(ByteReader& reader, Enum last) {
  const uint64_t value = reader.take_uleb128();
  if (value > static_cast<uint64_t>(last)) reader.fail();
  return static_cast<Enum>(value);
}

Type take_type(ByteReader& reader) {
  Type out;
  out.kind = take_enum(reader, TypeKind::kStruct);
  const uint64_t flags = reader.take_uleb128();
  out.is_signed = (flags & kSigned) != 0;
  out.is_union = (flags & kUnion) != 0;
  out.is_complete = (flags & kComplete) != 0;
  out.is_text = (flags & kIsText) != 0;
  out.is_user_space = (flags & kUserSpace) != 0;
  out.size_bytes = take_u32(reader);
  out.align_bytes = take_u32(reader);
  out.count = take_u32(reader);
  out.element = take_index(reader);
  out.name = take_text(reader);
  for (uint64_t left = reader.take_uleb128(); left > 0 && reader.ok(); --left) {
    Member& member = out.members.emplace_back();
    member.name = take_text(reader);
    member.type = take_index(reader);
    member.offset_bits = take_u32(reader);
    member.bit_size = take_u32(reader);
  }
  while (!reader.at_end()) {
    Enumerator& enumerator = out.enumerators.emplace_back();
    enumerator.name = take_text(reader);
    enumerator.value = reader.take_sleb128();
  }
  return out;
}

Layout take_layout(ByteReader& reader) {
  Layout out;
  const uint64_t flags = reader.take_uleb128();
  out.points_to_user_space = (flags & kUserSpace) != 0;
  out.has_kernel_names = (flags & kKernelNames) != 0;
  out.has_user_names = (flags & kUserNames) != 0;
  while (!reader.at_end()) {
    Field& field = out.fields.emplace_back();
    field.kind = take_enum(reader, FieldKind::kNothing);
    field.role = take_enum(reader, FieldRole::kNamed);
    field.name = take_text(reader);
    field.type = take_index(reader);
    field.shown = take_text(reader);
    field.pointer_in = take_u32(reader);
    field.offset_bytes = take_u32(reader);
  }
  return out;
}

Probe take_probe(ByteReader& reader) {
  Probe out;
  for (std::string* text : {&out.provider, &out.name, &out.given, &out.target, &out.function})
    *text = take_text(reader);
  out.layout = take_u32(reader);
  while (!reader.at_end()) out.parts.emplace_back(take_text(reader));
  return out;
}

// False if the item is damaged.
bool decode_item(Tag tag, std::string_view item, Description& out) {
  ByteReader reader(item);
  switch (tag) {
    case Tag::kVersion: out.espy_version = item; break;
    case Tag::kCommand: out.command = item; break;
    case Tag::kRelease: out.kernel_release = item; break;
    case Tag::kArch: out.arch = item; break;
    case Tag::kPageSize: out.page_size_bytes = take_u32(reader); break;
    case Tag::kCpus: out.cpu_count = take_u32(reader); break;
    case Tag::kStarted: out.started_ns = reader.take_uleb128(); break;
    case Tag::kStartedWall: out.started_wall_ns = reader.take_uleb128(); break;
    case Tag::kMaxText: out.max_text_bytes = take_u32(reader); break;
    case Tag::kType: out.types.push_back(take_type(reader)); break;
    case Tag::kLayout: out.layouts.push_back(take_layout(reader)); break;
    case Tag::kProbe: out.probes.push_back(take_probe(reader)); break;
    case Tag::kRingId: out.ring_id = reader.take_uleb128(); break;
    case Tag::kChild: out.child_pid = take_u32(reader); break;
    case Tag::kRingNumber: out.ring_number = reader.take_uleb128(); break;
  }
  return reader.ok();
}

bool is_valid(const Layout& layout, size_t type_count) {
  for (size_t i = 0; i < layout.fields.size(); ++i) {
    const Field& field = layout.fields[i];
    if (field.type != kNoType && field.type >= type_count) return false;
    if (field.role == FieldRole::kMemory && field.pointer_in >= i) return false;
    const bool is_stack = field.role == FieldRole::kKernelStack || field.role == FieldRole::kUserStack;
    if (is_stack != (field.kind == FieldKind::kStack)) return false;
  }
  return true;
}

bool is_valid(const Description& description) {
  const size_t type_count = description.types.size();
  const auto is_type = [&](uint32_t index) { return index == kNoType || index < type_count; };
  for (const Type& type : description.types) {
    if (!is_type(type.element)) return false;
    if (!std::ranges::all_of(type.members, is_type, &Member::type)) return false;
  }
  return std::ranges::all_of(description.layouts, [&](const Layout& each) { return is_valid(each, type_count); }) &&
         std::ranges::all_of(description.probes,
                             [&](const Probe& each) { return each.layout < description.layouts.size(); });
}

uint64_t memory_of(const Type& type) {
  return sizeof(Type) + type.members.size() * sizeof(Member) + type.enumerators.size() * sizeof(Enumerator);
}
uint64_t memory_of(const Layout& layout) { return sizeof(Layout) + layout.fields.size() * sizeof(Field); }
uint64_t memory_of(const Probe& probe) { return sizeof(Probe) + probe.parts.size() * sizeof(std::string); }

// Of the item of that tag that was added last.
uint64_t memory_of_last(Tag tag, const Description& description) {
  switch (tag) {
    case Tag::kType: return memory_of(description.types.back());
    case Tag::kLayout: return memory_of(description.layouts.back());
    case Tag::kProbe: return memory_of(description.probes.back());
    default: return 0;
  }
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

std::string_view take_text(ByteReader& reader) { return reader.take_bytes(reader.take_uleb128()); }

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
  if (description.child_pid != 0) append_number(out, Tag::kChild, description.child_pid);
  if (description.ring_id != 0) append_number(out, Tag::kRingId, description.ring_id);
  if (description.ring_id != 0) append_number(out, Tag::kRingNumber, description.ring_number);
  for (const Type& type : description.types) append_item(out, Tag::kType, encode(type));
  for (const Layout& layout : description.layouts) append_item(out, Tag::kLayout, encode(layout));
  for (const Probe& probe : description.probes) append_item(out, Tag::kProbe, encode(probe));
  return out;
}

std::optional<Description> decode_description(std::string_view bytes) {
  Description out;
  ByteReader reader(bytes);
  uint64_t memory_bytes = 0;
  while (!reader.at_end()) {
    const uint64_t number = reader.take_uleb128();
    const std::string_view item = take_text(reader);
    if (!reader.ok()) return std::nullopt;
    if (number < static_cast<uint64_t>(Tag::kVersion) || number > static_cast<uint64_t>(Tag::kChild)) continue;
    const auto tag = static_cast<Tag>(number);
    if (item.size() > kMaxItemBytes || !decode_item(tag, item, out)) return std::nullopt;
    memory_bytes += memory_of_last(tag, out);
    if (memory_bytes > kMaxMemoryBytes) return std::nullopt;
  }
  return is_valid(out) ? std::optional(std::move(out)) : std::nullopt;
}

void append_frame(std::string& out, const Frame& frame) {
  append_uleb128(out, (frame.is_inlined ? kInlined : 0) | (frame.has_module_address ? kHasModuleAddress : 0));
  append_text(out, frame.symbol);
  append_uleb128(out, frame.offset);
  append_text(out, frame.module);
  append_uleb128(out, frame.module_address);
  append_text(out, frame.file);
  append_uleb128(out, frame.line);
}

Frame take_frame(ByteReader& reader) {
  Frame out;
  const uint64_t flags = reader.take_uleb128();
  out.is_inlined = (flags & kInlined) != 0;
  out.has_module_address = (flags & kHasModuleAddress) != 0;
  out.symbol = take_text(reader);
  out.offset = reader.take_uleb128();
  out.module = take_text(reader);
  out.module_address = reader.take_uleb128();
  out.file = take_text(reader);
  out.line = static_cast<uint32_t>(reader.take_uleb128());
  return out;
}

}  // namespace espy::recording
