// types: the types of the language, of the kernel and of programs: kinds, sizes and layouts of values, and units.
//
// Takes declarations from BTF, DWARF and the script; equal types get equal ids.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"

namespace espy::types {

// ---- Units of the values of maps.

enum class Unit : uint8_t { kNone, kBytes, kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };

// Returns the unit from the last word of a name: bytes of "@read_bytes", nanoseconds of "@ns" and "@wait_nsecs".
Unit unit_of(std::string_view name);

// Returns the unit that a word stands for: "ns", "bytes", "s"; nullopt for other words.
std::optional<Unit> unit_named(std::string_view word);

// "nanoseconds"; "" for none.
std::string_view long_name(Unit unit);

// Returns the name of a map without its `@`; `otherwise` for `@`.
std::string plain_name(std::string_view map_name, std::string_view otherwise);

// ---- The types of the language: kinds, sizes and layouts of values.
//
// Types are interned: two types are the same if and only if their ids are equal. Definitions come from BTF (`kernel`),
// from the script's C definitions and from `check`; this module knows neither a kernel nor a script.

using TypeId = Id<struct TypeTag>;

enum class Kind : uint8_t {
  kVoid,
  kBool,
  kInt,       // width in `size_bytes` (1, 2, 4, 8), `is_signed`
  kFloat,     // parts of C structs: copied, never computed with; with a name, integers of 16 bytes
  kEnum,      // `name`, `enumerators`; stored as an int of `size_bytes`, `is_signed`
  kPointer,   // `element`, `space`
  kArray,     // `element`, `count`
  kString,    // `count` bytes, padded with NUL; at least one NUL, unless `may_lack_nul`
  kBuffer,    // uint32 length, then at most `count` bytes
  kTuple,     // `members` without names
  kRecord,    // `members` with names, from a record expression of the script
  kStruct,    // C struct or union (`is_union`): `name`, `members`; possibly incomplete
  kFunction,  // only behind a pointer; `element` is the return type, `members` the parameters
  // Aggregations, valid only as the value of a map. `is_signed`: of the aggregated values.
  kCount,
  kSum,
  kMin,
  kMax,
  kAvg,
  kStats,
  kHist,   // `hist_bits`
  kLhist,  // `lhist_min`, `lhist_max`, `lhist_step`
  kTseries,
  kRecent,  // the last `count` values of type `element`
  // Values with a text form of their own, in the stored form given here.
  kKernelStack,   // a reference to a stored stack: program/layout.h
  kUserStack,     // a reference to a stored stack, and the process: program/layout.h
  kKernelSymbol,  // uint64 address
  kUserSymbol,    // uint64 address, uint32 pid, uint32 0; or uint64 index of a probe, uint32 0, uint32 1: its function
  kInet,          // uint32 family (AF_INET or AF_INET6), 16 bytes of address
  kMac,           // 6 bytes
  kUsername,      // uint32 uid
  kTimestamp,     // uint64 nanoseconds, uint32 index into Program::formats, uint32 clock
  kCgroupPath,    // uint64 cgroup id
  kProbeName,     // uint64 index into Program::probes; shown as the full name of the probe
  kFunctionName,  // the same index; shown as the name of the probed function
  kProbeType,     // the same index; shown as the name of the provider
};

enum class AddressSpace : uint8_t { kKernel, kUser, kBpf };  // kBpf: the BPF program's own: stack, map values, records
enum class StackMode : uint8_t { kBpftrace, kPerf, kRaw, kBuildId };

struct Member {
  std::string name;  // empty for tuple elements and anonymous structs and unions
  TypeId type;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;  // of a bit field; 0 if the member is none
  bool is_big_endian =
      false;  // an integer in network byte order, by its type in the kernel: `__be16`, `__be32`, `__be64`
  uint32_t offset_bytes() const { return offset_bits / 8; }
};

struct Enumerator {
  std::string name;
  int64_t value = 0;
};

// The source of a named type, from which its members are read on first use.
struct Origin {
  uint32_t module = 0;  // index of the BTF object in `kernel` (0: vmlinux), or a result of Types::add_origin()
  uint32_t btf_id = 0;  // 0: defined by the script or by espy, and complete
};

struct Type {
  Kind kind = Kind::kVoid;
  bool is_signed = false;
  bool is_union = false;
  bool complete = true;       // kStruct: `members` and `size_bytes` are valid
  bool char_like = false;     // kInt: C's char, whose arrays are strings
  bool may_be_cut = false;    // kString: read from memory; one that fills the capacity may be truncated
  bool may_lack_nul = false;  // kString: an array of C's char, all of whose bytes may be text
  AddressSpace space = AddressSpace::kKernel;  // kPointer: of the pointee; kStruct: of its pointers' pointees
  StackMode stack_mode = StackMode::kBpftrace;
  uint8_t hist_bits = 0;  // k of hist(n, k)
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
  TypeId element = {};
  uint32_t count = 0;  // array length, capacity, or frames of a stack
  int64_t lhist_min = 0;
  int64_t lhist_max = 0;
  int64_t lhist_step = 0;
  std::string name;  // tag of a struct, union or enum; alias of an int (`size_t`), for listings
  std::vector<Member> members;
  std::vector<Enumerator> enumerators;
  Origin origin = {};
};

// The parameters of a tseries type.
struct TseriesParams {
  uint64_t interval_ns = 0;
  uint32_t intervals = 0;
  Kind aggregation = Kind::kVoid;  // kVoid: last value; else kAvg, kMax, kMin, kSum
};

// All types of one run. Ids stay valid; references returned by operator[] are invalidated by the next definition.
class Types {
 public:
  Types();

  const Type& operator[](TypeId id) const { return types_[id]; }
  size_t size() const { return types_.size(); }

  TypeId void_type() const;
  TypeId bool_type() const;
  TypeId int_type(uint32_t size_bytes, bool is_signed);  // 1, 2, 4, 8; of 16, a kFloat with a name
  TypeId int64() { return int_type(8, true); }
  TypeId uint64() { return int_type(8, false); }
  // C's char, whose sign is up to the CPU and to -funsigned-char: an array of it is a string that may lack a NUL.
  TypeId char_type(bool is_signed = true);
  TypeId float_type(uint32_t size_bytes);
  // Returns the type of a kind without parameters: kCount, kKernelSymbol, kInet, kMac, kUsername, kProbeName, ...
  TypeId simple(Kind kind, bool is_signed = false);

  TypeId pointer(TypeId element, AddressSpace space);
  TypeId array(TypeId element, uint32_t count);
  TypeId string(uint32_t capacity_bytes, bool may_be_cut = false);
  TypeId char_array(uint32_t count);
  TypeId buffer(uint32_t capacity_bytes);
  TypeId tuple(const std::vector<TypeId>& elements);  // laid out as a C struct
  TypeId record(std::vector<Member> named_elements);  // laid out as a C struct; ignores the given offsets
  // Returns the type with all pointees, nested ones included, in user memory. Requires structs to be complete.
  TypeId in_user_memory(TypeId id);
  TypeId function(TypeId result, std::vector<Member> parameters);
  TypeId hist(uint8_t bits);
  TypeId lhist(int64_t min, int64_t max, int64_t step);
  TypeId tseries(TseriesParams params, bool is_signed);
  const TseriesParams& tseries_params(TypeId id) const;
  TypeId recent(TypeId element, uint32_t count);
  TypeId stack(bool user, StackMode mode, uint32_t frames);

  // Named types. `name` is the tag alone; structs and unions share one name space, enums have another. A second
  // declaration with the same origin returns the same id.
  // `size_bytes`: the size if it is known before the members, so that arrays of the type have a size.
  // `space`: the address space of its pointers' pointees.
  TypeId declare_struct(std::string name, bool is_union, Origin origin, uint32_t size_bytes = 0,
                        AddressSpace space = AddressSpace::kKernel);
  void define_struct(TypeId id, std::vector<Member> members, uint32_t size_bytes, uint32_t align_bytes);
  TypeId define_enum(std::string name, std::vector<Enumerator> enumerators, uint32_t size_bytes, bool is_signed,
                     Origin origin);
  TypeId find_struct(std::string_view name) const;  // the script's last declaration; invalid if none
  TypeId find_enum(std::string_view name) const;
  // Typedefs of the script.
  void define_alias(std::string name, TypeId target);
  TypeId find_alias(std::string_view name) const;

  // Registers a source of types other than BTF: the file `name`. Returns the Origin::module for them; `completer`
  // defines the members of a declared struct on first use.
  using Completer = std::function<void(Types&, TypeId struct_type)>;
  uint32_t add_origin(Completer completer, std::string name);
  // The name of a source that was registered so; "" for others.
  std::string_view origin_name(Origin origin) const;
  // Completes a struct through its registered completer. Returns false if its origin has none.
  bool complete_by_origin(TypeId struct_type);

 private:
  TypeId intern(Type type, const std::string& key);

  Table<TypeId, Type> types_;
  std::map<std::string, TypeId, std::less<>> interned_;
  std::map<std::string, TypeId, std::less<>> structs_;
  std::map<std::string, TypeId, std::less<>> enums_;
  std::map<std::string, TypeId, std::less<>> aliases_;
  std::vector<std::pair<TypeId, TseriesParams>> tseries_;
  std::vector<std::pair<Completer, std::string>> origins_;
};

bool is_integer(const Type& type);       // kInt, kBool, kEnum
bool is_aggregation(const Type& type);   // kCount .. kRecent
bool is_struct_like(const Type& type);   // has `members` with values: struct, record, tuple
bool is_by_reference(const Type& type);  // larger than a register; lowering handles such values by address
// Returns the capacity that a string of this type needs to end with a NUL.
uint32_t capacity_with_nul(const Type& string);

struct FoundMember {
  TypeId type;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;
};
// Finds a member by name, also within anonymous structs and unions; the offset counts from the start of `struct_type`.
// nullopt if there is none.
std::optional<FoundMember> find_member(const Types& types, TypeId struct_type, std::string_view name);

// Returns the word for a kind: "int", "pointer", "count_t".
std::string_view kind_word(Kind kind);

// Returns the type in the language's syntax: "uint64", "struct task_struct *", "string[64]", "(int8,string[3])",
// "count_t".
std::string to_string(const Types& types, TypeId id);

}  // namespace espy::types
