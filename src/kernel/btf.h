// Btf: one BTF object (vmlinux or a module), mapped and read in place.
//
// In: a file or bytes. Out: records by id and by name. Records are decoded on demand and are views into the object,
// which must outlive them. Every access is checked against the object's bounds; malformed BTF ends at the first record
// that cannot be decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::kernel {

// The numbers of the format (Documentation/bpf/btf.rst).
enum class BtfKind : uint8_t {
  kVoid,
  kInt,
  kPtr,
  kArray,
  kStruct,
  kUnion,
  kEnum,
  kFwd,
  kTypedef,
  kVolatile,
  kConst,
  kRestrict,
  kFunc,
  kFuncProto,
  kVar,
  kDatasec,
  kFloat,
  kDeclTag,
  kTypeTag,
  kEnum64,
};

// A set of kinds, for searches: `kinds(BtfKind::kStruct, BtfKind::kUnion)`.
using BtfKinds = uint32_t;
template <class... Kind>
constexpr BtfKinds kinds(Kind... kind) {
  return (... | (BtfKinds{1} << static_cast<uint8_t>(kind)));
}
inline constexpr BtfKinds kStructs = kinds(BtfKind::kStruct, BtfKind::kUnion);
inline constexpr BtfKinds kEnums = kinds(BtfKind::kEnum, BtfKind::kEnum64);

struct BtfRecord {
  uint32_t id = 0;
  uint32_t name_offset = 0;
  uint32_t info = 0;
  uint32_t size_or_type = 0;        // bytes, or the id of a type that this record refers to
  std::span<const std::byte> tail;  // after the twelve bytes that all records have

  BtfKind kind() const { return static_cast<BtfKind>(info >> 24 & 0x1f); }
  uint32_t count() const { return info & 0xffff; }  // members, enumerators, parameters
  bool kind_flag() const { return info >> 31; }     // bit fields in members; a union behind kFwd; negative enumerators
  // Whether an enum is signed. Compilers that do not set the flag show it only by small negative numbers.
  bool has_negative() const;
  bool is(BtfKinds set) const { return set >> static_cast<uint8_t>(kind()) & 1; }

  // The 32-bit word `index` of the tail; 0 past its end.
  uint32_t word(size_t index) const;
};

struct BtfMember {
  uint32_t name_offset = 0;
  uint32_t type = 0;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;  // 0 unless a bit field
};

struct BtfEnumerator {
  uint32_t name_offset = 0;
  int64_t value = 0;
};

struct BtfParameter {
  uint32_t name_offset = 0;
  uint32_t type = 0;  // 0 in the last one: `...`
};

struct BtfArray {
  uint32_t element = 0;
  uint32_t count = 0;
};

class Btf {
 public:
  // `base` is the BTF of vmlinux if this is a module's, whose ids and strings continue those of the base; it must
  // outlive the result.
  static Result<std::unique_ptr<Btf>> open(const std::string& path, const Btf* base = nullptr);
  static Result<std::unique_ptr<Btf>> parse(std::string bytes, const Btf* base = nullptr);
  ~Btf();
  Btf(const Btf&) = delete;
  Btf& operator=(const Btf&) = delete;

  // Ids of this object, without its base, are first_id() to end_id() - 1; the first end_id() reads the whole object.
  uint32_t first_id() const { return first_id_; }
  uint32_t end_id() const;

  // The record of `id`, also from the base; nullopt for 0 (void) and for unknown ids.
  std::optional<BtfRecord> record(uint32_t id) const;
  // The string at `offset`, cut at 1024 bytes; "" if there is none.
  std::string_view string(uint32_t offset) const;
  std::string_view name(const BtfRecord& record) const { return string(record.name_offset); }

  // The first record of one of these kinds with this name, in this object alone.
  std::optional<BtfRecord> find(std::string_view name, BtfKinds set) const;
  // The first enum of this object with an enumerator of that name, and the index of the enumerator.
  struct FoundEnumerator {
    BtfRecord record;
    uint32_t index = 0;
  };
  std::optional<FoundEnumerator> find_enumerator(std::string_view name) const;

  // Calls `visit(record)` for the records of this object in order of ids, until it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    Cursor cursor{first_id_, 0};
    while (const auto record = next(cursor)) {
      if (!visit(*record)) return;
    }
  }

  static BtfMember member(const BtfRecord& record, uint32_t index);
  // `has_negative`: that of the record, which takes time to find out.
  static BtfEnumerator enumerator(const BtfRecord& record, uint32_t index, bool has_negative);
  static BtfParameter parameter(const BtfRecord& record, uint32_t index);
  static BtfArray array(const BtfRecord& record);

 private:
  struct Cursor {  // a place between two records
    uint32_t id;
    uint32_t offset_bytes;
  };

  Btf() = default;
  Status read_header(const Btf* base);
  std::optional<BtfRecord> next(Cursor& cursor) const;
  std::vector<uint32_t> string_offsets(std::string_view text) const;

  std::string owned_;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;

  const Btf* base_ = nullptr;
  uint32_t first_id_ = 1;
  uint32_t first_string_ = 0;  // where the strings of this object start in the numbering shared with the base
  std::span<const std::byte> types_;
  std::string_view strings_;

  // Offsets of every kMarkEvery-th record up to the position reached so far.
  mutable std::vector<uint32_t> marks_;
  mutable Cursor reached_ = {};
};

}  // namespace espy::kernel
