// Btf: one BTF object (vmlinux or a module), mapped and read in place.
//
// In: a file or bytes. Out: records by id and by name. Records are decoded on demand and are views into the object,
// which must outlive them. Every access is checked against the object's bounds; malformed BTF ends at the first record
// that cannot be decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "types/parts.h"
#include "types/type.h"

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
  bool kind_flag() const { return info >> 31; }     // bit fields in members; a union after kFwd; negative enumerators
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
  // For a module, `base` is the BTF of vmlinux, whose ids and strings continue in the module. It must outlive the
  // result.
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
  // `has_negative`: the property of the record, which takes time to find out.
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
  bool is_indexed() const;
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

  mutable uint32_t finds_ = 0;
  mutable std::vector<std::pair<std::string_view, uint32_t>>
      by_name_;  // names and ids, sorted, once there are many finds
};

// ---- From BTF records to the language's types.
//
// In: ids of a BtfSet. Out: TypeIds. A struct is declared with its size; `complete_struct` reads its members on demand,
// so that `task_struct` does not pull in half of the kernel.

// A record and its module. Module 0 is vmlinux; records of a module's base belong to vmlinux.
struct BtfPlace {
  uint32_t module = 0;
  BtfRecord record;
};

// The BTF of vmlinux and of the modules, each opened at its first use. Also the BTF of headers that a C compiler has
// read, under module numbers of their own.
class BtfSet {
 public:
  static constexpr uint32_t kFirstHeader = 1u << 16;

  explicit BtfSet(std::string directory) : directory_(std::move(directory)) {}

  const Btf* vmlinux();
  const std::vector<std::string>& modules();                    // names by index - 1
  const Btf* object(uint32_t module);                           // null if it cannot be read
  std::optional<uint32_t> module_index(std::string_view name);  // "vmlinux" is 0
  std::string_view module_name(uint32_t module);
  std::optional<BtfPlace> record(uint32_t module, uint32_t id);
  void use_vmlinux(std::unique_ptr<Btf> btf);  // instead of the directory's file
  void add_header(std::unique_ptr<Btf> btf, bool before_kernel);

  // Searches headers that precede the kernel, then vmlinux, the modules, and other headers. Answers are cached: scripts
  // repeat names.
  std::optional<BtfPlace> find(std::string_view name, BtfKinds set);
  std::optional<std::pair<BtfPlace, uint32_t>> find_enumerator(std::string_view name);  // the enum, and the index in it

 private:
  struct Header {
    std::unique_ptr<Btf> btf;
    bool before_kernel;
  };

  const Btf* load(uint32_t module);
  std::vector<uint32_t> search_order();  // of modules and headers
  std::optional<BtfPlace> search(std::string_view name, BtfKinds set);

  std::string directory_;
  std::optional<std::vector<std::string>> modules_;
  std::vector<std::unique_ptr<Btf>> objects_;
  std::vector<bool> tried_;
  std::vector<Header> headers_;
  std::map<std::pair<std::string, BtfKinds>, std::optional<BtfPlace>> found_;
};

class BtfConverter {
 public:
  BtfConverter(BtfSet& set, types::Types& types) : set_(set), types_(types) {}

  // The type of record `id`; void if the BTF is malformed.
  types::TypeId convert(uint32_t module, uint32_t id);
  types::TypeId convert(const BtfPlace& place) { return convert(place.module, place.record.id); }
  // Reads the members of a struct that came from BTF, and the members of all structs embedded in it.
  void complete_struct(types::TypeId struct_type);
  // Defines `struct_type`, of any origin, with the members of `place`.
  void define_as(types::TypeId struct_type, const BtfPlace& place);
  // Parameters and result of a kFunc or kFuncProto; each parameter's offset is in 8-byte argument words.
  struct Prototype {
    std::vector<types::Member> parameters;
    types::TypeId result;
  };
  Prototype prototype(const BtfPlace& function);

 private:
  types::TypeId convert_record(const BtfPlace& place);
  types::TypeId convert_int(const BtfPlace& place);
  types::TypeId convert_float(uint32_t size_bytes);
  types::TypeId convert_pointer(const BtfPlace& place);
  types::TypeId convert_array(const BtfPlace& place);
  types::TypeId convert_struct(const BtfPlace& place);
  types::TypeId convert_enum(const BtfPlace& place);
  types::TypeId read_enum(const BtfPlace& place);
  types::TypeId convert_function(const BtfPlace& place);
  types::Member convert_member(const BtfPlace& owner, const BtfMember& member);
  void complete_parts(types::TypeId type);
  uint32_t struct_align(const std::vector<types::Member>& members, uint32_t size_bytes) const;

  BtfSet& set_;
  types::Types& types_;
  int depth_ = 0;
  int function_depth_ = 0;
  std::set<types::TypeId> in_progress_;
  types::Parts parts_;
  std::map<std::pair<uint32_t, uint32_t>, types::TypeId> enums_;            // by module and id
  std::map<std::tuple<uint32_t, uint32_t, int>, types::TypeId> functions_;  // also by function_depth_
};

// ---- BTF as C text, for listing the definitions of structs, unions and enums.

// "struct qstr {\n\tunion {\n\t\t...\n\t};\n\tconst unsigned char *name;\n};"
std::string print_definition(const Btf& btf, const BtfRecord& record);

// The same, also for a typedef. Before each member of a struct or union is its offset in the outermost one, for a bit
// field with the bit after a colon, and its size in bytes. The last line has the total size.
std::string print_layout(const Btf& btf, const BtfRecord& record);

// "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos);" of a function.
std::string print_prototype(const Btf& btf, const BtfRecord& function);

// "loff_t *", "enum restart (*)(struct alarm *, ktime_t)"; "void" of 0.
std::string print_type(const Btf& btf, uint32_t id);

}  // namespace espy::kernel
