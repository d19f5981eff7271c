// Finding one of 150,000 records in a millisecond without an index.
//
// Records have different lengths, so the record of an id is found only by walking from a known one. A full table of
// offsets would take 600 KB that most runs do not need. Instead a walk keeps the offset of every 64th record: a lookup
// costs a jump and a short walk, and parts that are never reached cost nothing.
//
// Names are searched in reverse. The kernel's strings are unique, so a name is first searched as bytes in the string
// section (memmem, at memory speed), and records are then compared by a 32-bit offset without reading strings. A name
// that is not in the string section needs no search of the records.
#include "kernel/btf.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>

#include "base/untrusted_file.h"

namespace espy::kernel {
namespace {

constexpr uint16_t kMagic = 0xeb9f;
constexpr uint32_t kMarkEvery = 64;
constexpr size_t kFixedBytes = 12;  // name, info, size or type
// The kernel takes names below 512 bytes (KSYM_NAME_LEN). Records of malformed BTF can share a longer one.
constexpr size_t kMaxNameBytes = 1024;

struct Header {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_bytes;
  uint32_t types_offset;  // from the end of the header, as strings_offset
  uint32_t types_bytes;
  uint32_t strings_offset;
  uint32_t strings_bytes;
};

uint32_t read_word(const std::byte* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Bytes after the fixed part of a record; nullopt for an unknown kind, whose length is unknown.
std::optional<size_t> tail_bytes(BtfKind kind, uint32_t count) {
  switch (kind) {
    case BtfKind::kInt:
    case BtfKind::kVar:
    case BtfKind::kDeclTag: return 4;
    case BtfKind::kArray: return 12;
    case BtfKind::kStruct:
    case BtfKind::kUnion:
    case BtfKind::kDatasec:
    case BtfKind::kEnum64: return size_t{12} * count;
    case BtfKind::kEnum:
    case BtfKind::kFuncProto: return size_t{8} * count;
    case BtfKind::kPtr:
    case BtfKind::kFwd:
    case BtfKind::kTypedef:
    case BtfKind::kVolatile:
    case BtfKind::kConst:
    case BtfKind::kRestrict:
    case BtfKind::kFunc:
    case BtfKind::kFloat:
    case BtfKind::kTypeTag: return 0;
    case BtfKind::kVoid: break;
  }
  return std::nullopt;
}

}  // namespace

uint32_t BtfRecord::word(size_t index) const {
  return (index + 1) * 4 <= tail.size() ? read_word(tail.data() + index * 4) : 0;
}

Result<std::unique_ptr<Btf>> Btf::open(const std::string& path, const Btf* base) {
  constexpr uint64_t kMaxFileBytes = 1 << 30;
  const UntrustedFile file = TRY(open_untrusted(path, kMaxFileBytes));
  std::unique_ptr<Btf> btf(new Btf);
  btf->mapping_bytes_ = file.size_bytes;
  // A mapped file that is truncated later ends the process. The kernel's files are not; before 6.16 they cannot be
  // mapped.
  struct statfs system = {};
  const bool is_kernels = ::fstatfs(file.fd.get(), &system) == 0 && system.f_type == SYSFS_MAGIC;
  void* mapping = is_kernels && btf->mapping_bytes_ > 0
                      ? mmap(nullptr, btf->mapping_bytes_, PROT_READ, MAP_PRIVATE, file.fd.get(), 0)
                      : MAP_FAILED;
  if (mapping == MAP_FAILED) return parse(TRY(file.read_at(0, file.size_bytes)), base);
  btf->mapping_ = mapping;
  TRY_STATUS(btf->read_header(base));
  return btf;
}

Result<std::unique_ptr<Btf>> Btf::parse(std::string bytes, const Btf* base) {
  std::unique_ptr<Btf> btf(new Btf);
  btf->owned_ = std::move(bytes);
  TRY_STATUS(btf->read_header(base));
  return btf;
}

Btf::~Btf() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

Status Btf::read_header(const Btf* base) {
  const auto bytes = mapping_ ? std::string_view(static_cast<const char*>(mapping_), mapping_bytes_) : owned_;
  Header header = {};
  if (bytes.size() < sizeof header) return fail("BTF is too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return fail("not BTF, or that of a machine with another byte order");
  if (header.version != 1) return fail("BTF of an unknown version");
  const auto section = [&](uint32_t offset, uint32_t size) -> std::optional<std::string_view> {
    const uint64_t start = uint64_t{header.header_bytes} + offset;
    if (start > bytes.size() || size > bytes.size() - start) return std::nullopt;
    return bytes.substr(start, size);
  };
  const auto types = section(header.types_offset, header.types_bytes);
  const auto strings = section(header.strings_offset, header.strings_bytes);
  if (!types || !strings) return fail("BTF is truncated");
  if (!strings->empty() && strings->back() != '\0') return fail("BTF strings are not terminated");
  types_ = std::as_bytes(std::span(types->data(), types->size()));
  strings_ = *strings;
  base_ = base;
  if (base) {
    first_id_ = base->end_id();
    first_string_ = base->first_string_ + static_cast<uint32_t>(base->strings_.size());
  }
  reached_ = {first_id_, 0};
  return {};
}

// Reads the record at `cursor` and advances it; nullopt at the end, or if the record is malformed.
std::optional<BtfRecord> Btf::next(Cursor& cursor) const {
  if (types_.size() - cursor.offset_bytes < kFixedBytes) return std::nullopt;
  const std::byte* bytes = types_.data() + cursor.offset_bytes;
  BtfRecord record{cursor.id, read_word(bytes), read_word(bytes + 4), read_word(bytes + 8), {}};
  const auto tail = tail_bytes(record.kind(), record.count());
  if (!tail || *tail > types_.size() - cursor.offset_bytes - kFixedBytes) return std::nullopt;
  record.tail = {bytes + kFixedBytes, *tail};

  if (cursor.id == reached_.id) {
    if ((cursor.id - first_id_) % kMarkEvery == 0) marks_.push_back(cursor.offset_bytes);
    reached_ = {cursor.id + 1, static_cast<uint32_t>(cursor.offset_bytes + kFixedBytes + *tail)};
  }
  ++cursor.id;
  cursor.offset_bytes += static_cast<uint32_t>(kFixedBytes + *tail);
  return record;
}

uint32_t Btf::end_id() const {
  Cursor cursor = reached_;
  while (next(cursor)) {
  }
  return reached_.id;
}

std::optional<BtfRecord> Btf::record(uint32_t id) const {
  if (id < first_id_) return base_ && id != 0 ? base_->record(id) : std::nullopt;
  Cursor cursor = reached_;
  if (id < reached_.id) {
    const uint32_t mark = (id - first_id_) / kMarkEvery;
    cursor = {first_id_ + mark * kMarkEvery, marks_[mark]};
  }
  while (cursor.id < id) {
    if (!next(cursor)) return std::nullopt;
  }
  return next(cursor);
}

std::string_view Btf::string(uint32_t offset) const {
  if (offset < first_string_) return base_ ? base_->string(offset) : std::string_view{};
  offset -= first_string_;
  if (offset >= strings_.size()) return {};
  const std::string_view rest = strings_.substr(offset, kMaxNameBytes);
  return rest.substr(0, rest.find('\0'));
}

// Offsets of `text` as a whole string, here and in the base, in the shared numbering. The kernel's BTF has at most one.
std::vector<uint32_t> Btf::string_offsets(std::string_view text) const {
  std::vector<uint32_t> offsets = base_ ? base_->string_offsets(text) : std::vector<uint32_t>{};
  if (text.empty() || text.find('\0') != text.npos) return offsets;
  const std::string needle = '\0' + std::string(text) + '\0';
  const char* const begin = strings_.data();
  const char* const end = begin + strings_.size();
  for (const char* at = begin; at < end;) {
    const auto* found =
        static_cast<const char*>(memmem(at, static_cast<size_t>(end - at), needle.data(), needle.size()));
    if (!found) break;
    offsets.push_back(first_string_ + static_cast<uint32_t>(found + 1 - begin));
    at = found + needle.size() - 1;
  }
  // The first string of a module has no NUL before it.
  if (base_ && strings_.starts_with(std::string_view(needle).substr(1))) offsets.push_back(first_string_);
  return offsets;
}

std::optional<BtfRecord> Btf::find(std::string_view name, BtfKinds set) const {
  const auto offsets = string_offsets(name);
  if (offsets.empty()) return std::nullopt;
  std::optional<BtfRecord> found;
  for_each([&](const BtfRecord& record) {
    if (record.is(set) && std::find(offsets.begin(), offsets.end(), record.name_offset) != offsets.end())
      found = record;
    return !found;
  });
  return found;
}

std::optional<Btf::FoundEnumerator> Btf::find_enumerator(std::string_view name) const {
  const auto offsets = string_offsets(name);
  if (offsets.empty()) return std::nullopt;
  std::optional<FoundEnumerator> found;
  for_each([&](const BtfRecord& record) {
    if (!record.is(kinds(BtfKind::kEnum, BtfKind::kEnum64))) return true;
    for (uint32_t i = 0; i < record.count() && !found; ++i) {
      const uint32_t offset = enumerator(record, i, false).name_offset;
      if (std::find(offsets.begin(), offsets.end(), offset) != offsets.end()) found = FoundEnumerator{record, i};
    }
    return !found;
  });
  return found;
}

BtfMember Btf::member(const BtfRecord& record, uint32_t index) {
  const size_t at = size_t{3} * index;
  BtfMember member{record.word(at), record.word(at + 1), record.word(at + 2), 0};
  if (record.kind_flag()) {
    member.bit_size = member.offset_bits >> 24;
    member.offset_bits &= 0xff'ffff;
  }
  return member;
}

// Since LLVM 15 and gcc 13.
bool BtfRecord::has_negative() const {
  constexpr uint32_t kSmallest = 0xffff8000;
  bool out = kind_flag();
  for (uint32_t i = 0; i < count() && kind() == BtfKind::kEnum && !out; ++i) out = word(size_t{2} * i + 1) >= kSmallest;
  return out;
}

BtfEnumerator Btf::enumerator(const BtfRecord& record, uint32_t index, bool has_negative) {
  if (record.kind() == BtfKind::kEnum64) {
    const size_t at = size_t{3} * index;
    const uint64_t value = record.word(at + 1) | uint64_t{record.word(at + 2)} << 32;
    return {record.word(at), static_cast<int64_t>(value)};
  }
  const uint32_t value = record.word(size_t{2} * index + 1);
  const int64_t wide = has_negative ? int64_t{static_cast<int32_t>(value)} : int64_t{value};
  return {record.word(size_t{2} * index), wide};
}

BtfParameter Btf::parameter(const BtfRecord& record, uint32_t index) {
  return {record.word(size_t{2} * index), record.word(size_t{2} * index + 1)};
}

BtfArray Btf::array(const BtfRecord& record) { return {record.word(0), record.word(2)}; }

}  // namespace espy::kernel
