// The types of the language: what a value is, how many bytes it takes, how it is laid out.
//
// In: questions and definitions from `kernel` (BTF), `syntax`-level C definitions and `check`. Out: interned `TypeId`s;
// two types are the same exactly if their ids are equal. Nothing here knows a kernel or a script.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace espy::types {

using TypeId = Id<struct TypeTag>;

enum class Kind : uint8_t {
  kVoid,
  kBool,
  kInt,       // width in `size_bytes` (1, 2, 4, 8; 16 only as seen in C structs), `is_signed`
  kFloat,     // from C structs only: can be skipped and copied, never computed with
  kEnum,      // `name`, `enumerators`; stored as an int of `size_bytes`, `is_signed`
  kPointer,   // `element`, `space`
  kArray,     // `element`, `count`
  kString,    // NUL-padded bytes of capacity `count`, NUL included
  kBuffer,    // uint32 length, then up to `count` bytes
  kTuple,     // `members` without names
  kRecord,    // `members` with names, made by the script
  kStruct,    // C struct or union (`is_union`): `name`, `members`, perhaps still incomplete
  kFunction,  // only behind a pointer; `element` is the return type, `members` the parameters
  // Aggregations: only as a map's value. `is_signed` is that of what was put in.
  kCount,
  kSum,
  kMin,
  kMax,
  kAvg,
  kStats,
  kHist,   // `hist_bits`
  kLhist,  // `lhist_min`, `lhist_max`, `lhist_step`
  kTseries,
  // Numbers with a meaning: stored as said, shown in their own way.
  kKernelStack,   // stored as an event-side or map-side array of addresses, see program/layout.h
  kUserStack,     // the same, with the process
  kKernelSymbol,  // uint64 address
  kUserSymbol,    // uint64 address, uint32 pid, uint32 padding
  kInet,          // uint8 family (4 or 6 as AF_INET, AF_INET6), padding to 4, 16 bytes of address
  kMac,           // 6 bytes
  kUsername,      // uint32 uid
  kTimestamp,     // uint64 nanoseconds, uint32 index into Program::formats, uint32 clock
  kCgroupPath,    // uint64 cgroup id
  kProbeName,     // uint64 index into Program::attach_points: shown as the probe's full name
  kFunctionName,  // the same index: shown as the probed function's name
  kProbeType,     // the same index: shown as the provider's name
};

enum class AddressSpace : uint8_t { kKernel, kUser, kBpf };  // kBpf: our own memory (stack, map values, events)
enum class StackMode : uint8_t { kBpftrace, kPerf, kRaw, kBuildId };

struct Member {
  std::string name;  // empty for tuple elements and anonymous structs and unions
  TypeId type;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;  // of a bit field; 0 for a whole member
  uint32_t offset_bytes() const { return offset_bits / 8; }
};

struct Enumerator {
  std::string name;
  int64_t value = 0;
};

// Where a named type came from, so that its members can be read when they are first asked for.
struct Origin {
  uint32_t module = 0;  // index of the BTF object in the kernel room; 0 is vmlinux; or what add_origin() gave
  uint32_t btf_id = 0;  // 0: defined by the script or by us, complete from the start
};

struct Type {
  Kind kind = Kind::kVoid;
  bool is_signed = false;
  bool is_union = false;
  bool complete = true;                        // kStruct: `members` and `size_bytes` are known
  bool char_like = false;                      // kInt of C type char: arrays of it are strings
  bool may_be_cut = false;                     // kString: read from somewhere; one that fills it was probably longer
  AddressSpace space = AddressSpace::kKernel;  // pointers: of what they point to; structs: of their pointers
  StackMode stack_mode = StackMode::kBpftrace;
  uint8_t hist_bits = 0;  // k of hist(n, k)
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
  TypeId element = {};
  uint32_t count = 0;  // array length, capacity, or frames of a stack
  int64_t lhist_min = 0;
  int64_t lhist_max = 0;
  int64_t lhist_step = 0;
  std::string name;  // tag of struct, union, enum; alias name of an int (`size_t`) where it matters for listing
  std::vector<Member> members;
  std::vector<Enumerator> enumerators;
  Origin origin = {};
};

// What a tseries was declared with; kept beside the type as it is long.
struct TseriesParams {
  uint64_t interval_ns = 0;
  uint32_t intervals = 0;
  Kind aggregation = Kind::kVoid;  // kVoid: last value; else kAvg, kMax, kMin, kSum
};

// All types of one run. Ids never go bad; references returned by [] do at the next definition.
class Types {
 public:
  Types();

  const Type& operator[](TypeId id) const { return types_[id]; }
  size_t size() const { return types_.size(); }

  // The basic ones exist from the start.
  TypeId void_type() const;
  TypeId bool_type() const;
  TypeId int_type(uint32_t size_bytes, bool is_signed);  // 1, 2, 4, 8 (16 for C layout)
  TypeId int64() { return int_type(8, true); }
  TypeId uint64() { return int_type(8, false); }
  TypeId char_type();  // int8 that makes arrays strings
  TypeId float_type(uint32_t size_bytes);
  // A kind whose size and meaning need nothing more: kCount, kKernelSymbol, kInet, kMac, kUsername, kProbeName, ...
  TypeId simple(Kind kind, bool is_signed = false);

  TypeId pointer(TypeId element, AddressSpace space);
  TypeId array(TypeId element, uint32_t count);
  TypeId string(uint32_t capacity_bytes, bool may_be_cut = false);
  TypeId buffer(uint32_t capacity_bytes);
  TypeId tuple(const std::vector<TypeId>& elements);  // laid out as a C struct
  TypeId record(std::vector<Member> named_elements);  // offsets are computed here
  // The type as it lies in user memory: what pointers in it point to is user memory, too. Structs must be complete.
  TypeId in_user_memory(TypeId id);
  TypeId function(TypeId result, std::vector<Member> parameters);
  TypeId hist(uint8_t bits);
  TypeId lhist(int64_t min, int64_t max, int64_t step);
  TypeId tseries(TseriesParams params, bool is_signed);
  const TseriesParams& tseries_params(TypeId id) const;
  TypeId stack(bool user, StackMode mode, uint32_t frames);

  // Named types. `name` is the tag alone; struct and union share one name space, enums have another. Declaring twice
  // with the same origin gives the same id.
  // `size_bytes`: where it is known before the members are, so that arrays of it have theirs.
  // `space`: of what its pointers point to.
  TypeId declare_struct(std::string name, bool is_union, Origin origin, uint32_t size_bytes = 0,
                        AddressSpace space = AddressSpace::kKernel);
  void define_struct(TypeId id, std::vector<Member> members, uint32_t size_bytes, uint32_t align_bytes);
  TypeId define_enum(std::string name, std::vector<Enumerator> enumerators, uint32_t size_bytes, bool is_signed,
                     Origin origin);
  TypeId find_struct(std::string_view name) const;  // as last declared by the script; invalid if none
  TypeId find_enum(std::string_view name) const;
  // The script's typedefs, and where a member was named: `typedef struct foo bar;`
  void define_alias(std::string name, TypeId target);
  TypeId find_alias(std::string_view name) const;

  // For types that are not BTF's: an Origin::module of one's own, and who reads the members of its structs.
  using Completer = std::function<void(Types&, TypeId struct_type)>;
  uint32_t add_origin(Completer completer);
  // Has the members of such a struct read; false where it is none of these.
  bool complete_by_origin(TypeId struct_type);

 private:
  TypeId intern(Type type, const std::string& key);

  Table<TypeId, Type> types_;
  std::map<std::string, TypeId, std::less<>> interned_;
  std::map<std::string, TypeId, std::less<>> structs_;
  std::map<std::string, TypeId, std::less<>> enums_;
  std::map<std::string, TypeId, std::less<>> aliases_;
  std::vector<std::pair<TypeId, TseriesParams>> tseries_;
  std::vector<Completer> completers_;
};

bool is_integer(const Type& type);       // kInt, kBool, kEnum
bool is_aggregation(const Type& type);   // kCount .. kTseries
bool is_struct_like(const Type& type);   // has `members` with values: struct, record, tuple
bool is_by_reference(const Type& type);  // larger than a register: handled by address in lowering

// `name` among the members, looking through anonymous structs and unions. The offset is from the outermost start.
struct FoundMember {
  TypeId type;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;
};
std::optional<FoundMember> find_member(const Types& types, TypeId struct_type, std::string_view name);

// "int", "pointer", "count_t".
std::string_view kind_word(Kind kind);

// As the language writes it: "uint64", "struct task_struct *", "string[64]", "(int8,string[3])", "count_t".
std::string to_string(const Types& types, TypeId id);

}  // namespace espy::types
