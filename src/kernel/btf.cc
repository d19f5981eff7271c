// Finding one of 150,000 records in a millisecond without an index.
//
// Records have different lengths, so the record of an id is found only by walking from a known one. A full table of
// offsets would take 600 KB that most runs do not need. Instead a walk keeps the offset of every 64th record: a lookup
// costs a jump and a short walk, and parts that are never reached cost nothing.
//
// Names are searched in reverse. The kernel's strings are unique, so a name is first searched as bytes in the string
// section (memmem, at memory speed), and records are then compared by a 32-bit offset without reading strings. A name
// that is not in the string section needs no search of the records. A listing that asks for the types of all functions
// makes thousands of searches, and then an index of names takes less time.
#include "kernel/btf.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <utility>

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
  if (header.magic != kMagic) return fail("not BTF, or BTF of another byte order");
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

// Makes the index when it is worth its time.
bool Btf::is_indexed() const {
  constexpr uint32_t kManyFinds = 64, kMostRecords = 4 << 20;
  if (!by_name_.empty() || ++finds_ != kManyFinds || end_id() - first_id_ > kMostRecords) return !by_name_.empty();
  for_each([&](const BtfRecord& record) {
    if (record.name_offset != 0) by_name_.emplace_back(name(record), record.id);
    return true;
  });
  std::sort(by_name_.begin(), by_name_.end());
  return !by_name_.empty();
}

std::optional<BtfRecord> Btf::find(std::string_view name, BtfKinds set) const {
  if (is_indexed()) {
    for (auto at = std::lower_bound(by_name_.begin(), by_name_.end(), std::pair(name, 0U));
         at != by_name_.end() && at->first == name; ++at)
      if (const auto record = this->record(at->second); record && record->is(set)) return record;
    return std::nullopt;
  }
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

namespace {

using types::AddressSpace;
using types::Kind;
using types::Member;
using types::TypeId;

// More than real types nest; malformed BTF may have cycles.
constexpr int kMaxDepth = 64;
constexpr int kMaxFunctionDepth = 3;
constexpr uint32_t kMaxParameters = 32;

constexpr BtfKinds kModifiers = kinds(BtfKind::kConst, BtfKind::kVolatile, BtfKind::kRestrict, BtfKind::kTypeTag);

// Encoding bits of an INT record.
constexpr uint32_t kIntSigned = 1;
constexpr uint32_t kIntBool = 4;
uint32_t int_encoding(const BtfRecord& record) { return record.word(0) >> 24 & 0xf; }
uint32_t int_offset_bits(const BtfRecord& record) { return record.word(0) >> 16 & 0xff; }
uint32_t int_bits(const BtfRecord& record) { return record.word(0) & 0xff; }

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

const Btf* BtfSet::vmlinux() { return load(0); }

const std::vector<std::string>& BtfSet::modules() {
  if (modules_) return *modules_;
  modules_.emplace();
  if (DIR* directory = opendir(directory_.c_str())) {
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "vmlinux" && !name.starts_with('.')) modules_->emplace_back(name);
    }
    closedir(directory);
  }
  std::sort(modules_->begin(), modules_->end());
  return *modules_;
}

void BtfSet::use_vmlinux(std::unique_ptr<Btf> btf) {
  objects_.resize(std::max<size_t>(objects_.size(), 1));
  tried_.resize(objects_.size());
  objects_[0] = std::move(btf);
  tried_[0] = true;
}

void BtfSet::add_header(std::unique_ptr<Btf> btf, bool before_kernel) {
  headers_.push_back({std::move(btf), before_kernel});
  found_.clear();
}

const Btf* BtfSet::object(uint32_t module) {
  if (module >= kFirstHeader) {
    return module - kFirstHeader < headers_.size() ? headers_[module - kFirstHeader].btf.get() : nullptr;
  }
  return module == 0 || module <= modules().size() ? load(module) : nullptr;
}

const Btf* BtfSet::load(uint32_t module) {
  if (module >= objects_.size()) {
    objects_.resize(module + 1);
    tried_.resize(module + 1);
  }
  if (tried_[module]) return objects_[module].get();
  tried_[module] = true;
  const Btf* base = module == 0 ? nullptr : vmlinux();
  if (module != 0 && !base) return nullptr;
  auto btf = Btf::open(directory_ + "/" + std::string(module_name(module)), base);
  if (btf) objects_[module] = std::move(*btf);
  return objects_[module].get();
}

std::optional<uint32_t> BtfSet::module_index(std::string_view name) {
  if (name == "vmlinux") return 0;
  const auto found = std::lower_bound(modules().begin(), modules().end(), name);
  if (found == modules().end() || *found != name) return std::nullopt;
  return static_cast<uint32_t>(found - modules().begin()) + 1;
}

std::string_view BtfSet::module_name(uint32_t module) {
  if (module == 0) return "vmlinux";
  if (module >= kFirstHeader) return "headers";
  return modules()[module - 1];
}

std::optional<BtfPlace> BtfSet::record(uint32_t module, uint32_t id) {
  const Btf* btf = object(module);
  if (!btf) return std::nullopt;
  const auto record = btf->record(id);
  if (!record) return std::nullopt;
  return BtfPlace{id < btf->first_id() ? 0 : module, *record};
}

std::optional<BtfPlace> BtfSet::find(std::string_view name, BtfKinds set) {
  const auto [entry, is_new] = found_.try_emplace({std::string(name), set});
  if (is_new) entry->second = search(name, set);
  return entry->second;
}

std::vector<uint32_t> BtfSet::search_order() {
  std::vector<uint32_t> out;
  const auto add_headers = [&](bool before_kernel) {
    for (uint32_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].before_kernel == before_kernel) out.push_back(kFirstHeader + i);
    }
  };
  add_headers(true);
  for (uint32_t module = 0; vmlinux() && module <= modules().size(); ++module) out.push_back(module);
  add_headers(false);
  return out;
}

std::optional<BtfPlace> BtfSet::search(std::string_view name, BtfKinds set) {
  for (const uint32_t module : search_order()) {
    // Functions of headers are not the kernel's.
    if (module >= kFirstHeader && (set & kinds(BtfKind::kFunc)) != 0) continue;
    const Btf* btf = object(module);
    if (!btf) continue;
    if (const auto record = btf->find(name, set)) return BtfPlace{module, *record};
  }
  return std::nullopt;
}

std::optional<std::pair<BtfPlace, uint32_t>> BtfSet::find_enumerator(std::string_view name) {
  for (const uint32_t module : search_order()) {
    const Btf* btf = object(module);
    if (!btf) continue;
    if (const auto found = btf->find_enumerator(name)) return {{BtfPlace{module, found->record}, found->index}};
  }
  return std::nullopt;
}

TypeId BtfConverter::convert(uint32_t module, uint32_t id) {
  const auto place = set_.record(module, id);
  if (!place || depth_ >= kMaxDepth) return types_.void_type();
  ++depth_;
  const TypeId type = convert_record(*place);
  --depth_;
  return type;
}

TypeId BtfConverter::convert_record(const BtfPlace& place) {
  switch (place.record.kind()) {
    case BtfKind::kInt: return convert_int(place);
    case BtfKind::kFloat: return convert_float(place.record.size_or_type);
    case BtfKind::kPtr: return convert_pointer(place);
    case BtfKind::kArray: return convert_array(place);
    case BtfKind::kStruct:
    case BtfKind::kUnion:
    case BtfKind::kFwd: return convert_struct(place);
    case BtfKind::kEnum:
    case BtfKind::kEnum64: return convert_enum(place);
    case BtfKind::kFuncProto: return convert_function(place);
    case BtfKind::kTypedef:
    case BtfKind::kVolatile:
    case BtfKind::kConst:
    case BtfKind::kRestrict:
    case BtfKind::kTypeTag:
    case BtfKind::kFunc:
    case BtfKind::kVar: return convert(place.module, place.record.size_or_type);
    case BtfKind::kVoid:
    case BtfKind::kDatasec:
    case BtfKind::kDeclTag: break;
  }
  return types_.void_type();
}

TypeId BtfConverter::convert_float(uint32_t size_bytes) {
  const bool known = size_bytes == 4 || size_bytes == 8 || size_bytes == 16;
  return known ? types_.float_type(size_bytes) : types_.void_type();
}

TypeId BtfConverter::convert_int(const BtfPlace& place) {
  const BtfRecord& record = place.record;
  const uint32_t size = record.size_or_type;
  if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16) return types_.void_type();
  const uint32_t encoding = int_encoding(record);
  if (size == 1 && encoding & kIntBool) return types_.bool_type();
  const bool is_signed = encoding & kIntSigned;
  if (size != 1) return types_.int_type(size, is_signed);
  // Arrays of plain `char` are strings; `signed char`, which BTF of older kernels has without a sign, and `unsigned
  // char` are numbers.
  const std::string_view name = set_.object(place.module)->name(record);
  return name == "char" ? types_.char_type(is_signed) : types_.int_type(1, is_signed || name == "signed char");
}

// The tags of a pointer are between it and its target: PTR -> TYPE_TAG "user" -> CONST -> INT.
TypeId BtfConverter::convert_pointer(const BtfPlace& place) {
  AddressSpace space = AddressSpace::kKernel;
  auto target = set_.record(place.module, place.record.size_or_type);
  for (int steps = 0; target && target->record.is(kModifiers) && steps < kMaxDepth; ++steps) {
    const bool is_tag = target->record.kind() == BtfKind::kTypeTag;
    if (is_tag && set_.object(target->module)->name(target->record) == "user") space = AddressSpace::kUser;
    target = set_.record(target->module, target->record.size_or_type);
  }
  return types_.pointer(target ? convert(*target) : types_.void_type(), space);
}

TypeId BtfConverter::convert_array(const BtfPlace& place) {
  const BtfArray array = Btf::array(place.record);
  return types_.array(convert(place.module, array.element), array.count);
}

TypeId BtfConverter::convert_struct(const BtfPlace& place) {
  const BtfRecord& record = place.record;
  const bool forward = record.kind() == BtfKind::kFwd;
  const bool is_union = forward ? record.kind_flag() : record.kind() == BtfKind::kUnion;
  return types_.declare_struct(std::string(set_.object(place.module)->name(record)), is_union,
                               {place.module, record.id}, forward ? 0 : record.size_or_type);
}

TypeId BtfConverter::convert_enum(const BtfPlace& place) {
  const auto [known, is_new] = enums_.try_emplace({place.module, place.record.id}, types_.void_type());
  if (is_new) known->second = read_enum(place);
  return known->second;
}

TypeId BtfConverter::read_enum(const BtfPlace& place) {
  const Btf& btf = *set_.object(place.module);
  const BtfRecord& record = place.record;
  std::vector<types::Enumerator> enumerators;
  enumerators.reserve(record.count());
  const bool has_negative = record.has_negative();
  for (uint32_t i = 0; i < record.count(); ++i) {
    const BtfEnumerator enumerator = Btf::enumerator(record, i, has_negative);
    enumerators.push_back({std::string(btf.string(enumerator.name_offset)), enumerator.value});
  }
  const uint32_t size = record.size_or_type;
  if (size != 1 && size != 2 && size != 4 && size != 8) return types_.void_type();
  return types_.define_enum(std::string(btf.name(record)), std::move(enumerators), size, has_negative,
                            {place.module, record.id});
}

TypeId BtfConverter::convert_function(const BtfPlace& place) {
  if (function_depth_ >= kMaxFunctionDepth) return types_.function(types_.void_type(), {});
  // Parameters of functions that are parameters of functions can be the same ones many times.
  const auto key = std::tuple(place.module, place.record.id, function_depth_);
  if (const auto known = functions_.find(key); known != functions_.end()) return known->second;
  ++function_depth_;
  Prototype converted = prototype(place);
  --function_depth_;
  return functions_[key] = types_.function(converted.result, std::move(converted.parameters));
}

BtfConverter::Prototype BtfConverter::prototype(const BtfPlace& function) {
  auto place = function;
  if (place.record.kind() == BtfKind::kFunc) {
    const auto proto = set_.record(place.module, place.record.size_or_type);
    if (!proto || proto->record.kind() != BtfKind::kFuncProto) return {{}, types_.void_type()};
    place = *proto;
  }
  const Btf& btf = *set_.object(place.module);
  Prototype result{{}, convert(place.module, place.record.size_or_type)};
  uint64_t offset_bytes = 0;
  for (uint32_t i = 0; i < std::min(place.record.count(), kMaxParameters); ++i) {
    const BtfParameter parameter = Btf::parameter(place.record, i);
    if (parameter.type == 0) break;  // the `...` of a variadic function
    const TypeId type = convert(place.module, parameter.type);
    result.parameters.push_back({.name = std::string(btf.string(parameter.name_offset)),
                                 .type = type,
                                 .offset_bits = static_cast<uint32_t>(offset_bytes * 8)});
    offset_bytes += std::max<uint64_t>(8, round_up(std::min(types_[type].size_bytes, 1u << 20), 8));
  }
  return result;
}

void BtfConverter::complete_struct(TypeId struct_type) {
  const types::Origin origin = types_[struct_type].origin;
  auto place = set_.record(origin.module, origin.btf_id);
  // A type that is declared here may be defined elsewhere.
  if (!place || place->record.kind() == BtfKind::kFwd) {
    const std::string name = types_[struct_type].name;
    if (!name.empty()) place = set_.find(name, kStructs);
  }
  if (place) define_as(struct_type, *place);
}

void BtfConverter::define_as(TypeId struct_type, const BtfPlace& place) {
  if (!place.record.is(kStructs) || types_[struct_type].complete || parts_.is_refused(struct_type)) return;
  if (!in_progress_.insert(struct_type).second) return;
  std::vector<Member> members;
  members.reserve(place.record.count());
  for (uint32_t i = 0; i < place.record.count(); ++i) {
    members.push_back(convert_member(place, Btf::member(place.record, i)));
    complete_parts(members.back().type);
  }
  const uint32_t size = place.record.size_or_type;
  const uint32_t align = struct_align(members, size);
  if (parts_.may_define(types_, struct_type, members))
    types_.define_struct(struct_type, std::move(members), size, align);
  in_progress_.erase(struct_type);
}

Member BtfConverter::convert_member(const BtfPlace& owner, const BtfMember& member) {
  Member result{.name = std::string(set_.object(owner.module)->string(member.name_offset)),
                .type = convert(owner.module, member.type),
                .offset_bits = member.offset_bits,
                .bit_size = member.bit_size};
  auto base = set_.record(owner.module, member.type);
  const BtfKinds aliases = kModifiers | kinds(BtfKind::kTypedef);
  for (int steps = 0; base && base->record.is(aliases) && steps < kMaxDepth; ++steps) {
    const std::string_view alias = set_.object(base->module)->name(base->record);
    result.is_big_endian |= alias == "__be16" || alias == "__be32" || alias == "__be64";
    base = set_.record(base->module, base->record.size_or_type);
  }
  const bool is_int = base && base->record.kind() == BtfKind::kInt;
  // Without the bit-field flag, the INT record has the number of bits.
  if (is_int && !owner.record.kind_flag() && int_bits(base->record) != base->record.size_or_type * 8) {
    result.offset_bits += int_offset_bits(base->record);
    result.bit_size = int_bits(base->record);
  }
  result.is_big_endian &= is_int && result.bit_size == 0;
  return result;
}

// A struct is complete only if the structs embedded in it are, also as elements of arrays.
void BtfConverter::complete_parts(TypeId type) {
  while (types_[type].kind == Kind::kArray) type = types_[type].element;
  if (types_[type].kind == Kind::kStruct && !types_[type].complete && in_progress_.size() < kMaxDepth) {
    complete_struct(type);
  }
}

// BTF has no alignment of structs; it follows from the members, unless the struct is packed.
uint32_t BtfConverter::struct_align(const std::vector<Member>& members, uint32_t size_bytes) const {
  uint32_t align = 1;
  for (const Member& member : members) {
    const uint32_t needed = types_[member.type].align_bytes;
    if (member.bit_size == 0 && member.offset_bits % (needed * 8) != 0) return 1;
    align = std::max(align, needed);
  }
  return size_bytes % align == 0 ? align : 1;
}

}  // namespace espy::kernel
