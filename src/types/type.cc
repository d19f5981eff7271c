#include "types/type.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fatal.h"
#include "types/parts.h"

namespace espy::types {

std::optional<Unit> unit_named(std::string_view word) {
  struct Row {
    std::string_view word;
    Unit unit;
  };
  constexpr Row kRows[] = {{"bytes", Unit::kBytes},        {"ns", Unit::kNanoseconds},
                           {"nsecs", Unit::kNanoseconds},  {"us", Unit::kMicroseconds},
                           {"usecs", Unit::kMicroseconds}, {"ms", Unit::kMilliseconds},
                           {"msecs", Unit::kMilliseconds}, {"secs", Unit::kSeconds},
                           {"seconds", Unit::kSeconds},    {"nanoseconds", Unit::kNanoseconds},
                           {"s", Unit::kSeconds}};
  for (const Row& row : kRows)
    if (row.word == word) return row.unit;
  return std::nullopt;
}

// A map of one letter tells nothing by it.
Unit unit_of(std::string_view name) {
  const size_t before = name.find_last_of("_@.");
  const std::string_view word = before == name.npos ? name : name.substr(before + 1);
  return word == "s" ? Unit::kNone : unit_named(word).value_or(Unit::kNone);
}

std::string_view long_name(Unit unit) {
  switch (unit) {
    case Unit::kNone: return "";
    case Unit::kBytes: return "bytes";
    case Unit::kNanoseconds: return "nanoseconds";
    case Unit::kMicroseconds: return "microseconds";
    case Unit::kMilliseconds: return "milliseconds";
    case Unit::kSeconds: return "seconds";
  }
  return "";
}

std::string plain_name(std::string_view map_name, std::string_view otherwise) {
  if (map_name.starts_with('@')) map_name.remove_prefix(1);
  return std::string(map_name.empty() ? otherwise : map_name);
}

// ---- Structural types are interned by a key that spells them, named types by their origin.

namespace {

// Sizes of aggregations on one CPU. program/layout.h has the same formulas, which this module cannot include; a unit
// test compares the two.
constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kFirstOrigin = 1u << 24;  // beyond all modules of the kernel
constexpr uint32_t kTseriesSlotBytes = 3 * kWordBytes;

constexpr uint64_t hist_size_bytes(uint8_t bits) { return (1 + ((uint64_t{64} - bits + 1) << bits)) * kWordBytes; }

uint64_t lhist_size_bytes(int64_t min, int64_t max, int64_t step) {
  CHECK(step > 0 && max > min);
  const uint64_t range = static_cast<uint64_t>(max) - static_cast<uint64_t>(min);
  const uint64_t unsigned_step = static_cast<uint64_t>(step);
  const uint64_t steps = range / unsigned_step + (range % unsigned_step != 0);
  return (std::min(steps, uint64_t{UINT32_MAX}) + 2) * kWordBytes;
}

// Sizes saturate at 32 bits; the checker's limit on values then rejects the type.
uint32_t clamp_size(uint64_t bytes) { return static_cast<uint32_t>(std::min(bytes, uint64_t{UINT32_MAX})); }

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

struct Extent {
  uint32_t size_bytes;
  uint32_t align_bytes;
};

// Sizes of the kinds without parameters, as in program/layout.h.
Extent simple_extent(Kind kind) {
  switch (kind) {
    case Kind::kCount:
    case Kind::kSum: return {8, 8};
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg:
    case Kind::kStats: return {16, 8};
    case Kind::kKernelSymbol:
    case Kind::kCgroupPath:
    case Kind::kProbeName:
    case Kind::kFunctionName:
    case Kind::kProbeType: return {8, 8};
    case Kind::kUserSymbol:
    case Kind::kTimestamp: return {16, 8};
    case Kind::kInet: return {20, 4};
    case Kind::kMac: return {6, 1};
    case Kind::kUsername: return {4, 4};
    case Kind::kVoid: return {0, 1};
    case Kind::kBool: return {1, 1};
    default: UNREACHABLE("a kind that needs more than its name");
  }
}

// Lays `members` out as C does. Returns their total size and alignment.
Extent lay_out(const Types& types, std::vector<Member>& members) {
  uint64_t offset = 0;
  uint32_t align = 1;
  for (Member& member : members) {
    const Type& type = types[member.type];
    offset = round_up(offset, type.align_bytes);
    member.offset_bits = clamp_size(offset * 8);
    member.bit_size = 0;
    offset += type.size_bytes;
    align = std::max(align, type.align_bytes);
  }
  return {clamp_size(round_up(offset, align)), align};
}

std::string members_key(const std::vector<Member>& members) {
  std::string key;
  for (const Member& member : members) key += fmt::format(",{}:{}", member.name, member.type.index);
  return key;
}

}  // namespace

Types::Types() {
  CHECK(simple(Kind::kVoid) == void_type());
  CHECK(simple(Kind::kBool) == bool_type());
}

TypeId Types::void_type() const { return TypeId{0}; }
TypeId Types::bool_type() const { return TypeId{1}; }

TypeId Types::intern(Type type, const std::string& key) {
  if (const auto found = interned_.find(key); found != interned_.end()) return found->second;
  const TypeId id = types_.add(std::move(type));
  interned_.emplace(key, id);
  return id;
}

TypeId Types::int_type(uint32_t size_bytes, bool is_signed) {
  CHECK(size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8 || size_bytes == 16);
  if (size_bytes == 16) {  // no value of the language, but parts of C structs
    std::string name = is_signed ? "__int128" : "unsigned __int128";
    return intern({.kind = Kind::kFloat, .is_signed = is_signed, .size_bytes = 16, .align_bytes = 16, .name = name},
                  name);
  }
  return intern({.kind = Kind::kInt, .is_signed = is_signed, .size_bytes = size_bytes, .align_bytes = size_bytes},
                fmt::format("{}{}", is_signed ? "int" : "uint", size_bytes * 8));
}

TypeId Types::char_type(bool is_signed) {
  return intern({.kind = Kind::kInt, .is_signed = is_signed, .char_like = true, .size_bytes = 1, .align_bytes = 1},
                is_signed ? "char" : "positive char");
}

TypeId Types::float_type(uint32_t size_bytes) {
  return intern({.kind = Kind::kFloat, .is_signed = true, .size_bytes = size_bytes, .align_bytes = size_bytes},
                fmt::format("float{}", size_bytes * 8));
}

TypeId Types::simple(Kind kind, bool is_signed) {
  const Extent extent = simple_extent(kind);
  return intern(
      {.kind = kind, .is_signed = is_signed, .size_bytes = extent.size_bytes, .align_bytes = extent.align_bytes},
      fmt::format("simple{}{}", static_cast<int>(kind), is_signed ? "s" : ""));
}

TypeId Types::pointer(TypeId element, AddressSpace space) {
  CHECK(types_.contains(element));
  return intern({.kind = Kind::kPointer, .space = space, .size_bytes = 8, .align_bytes = 8, .element = element},
                fmt::format("pointer{}:{}", static_cast<int>(space), element.index));
}

TypeId Types::array(TypeId element, uint32_t count) {
  const Type& type = types_[element];
  // A flexible array member `char name[]` has no capacity, so it is no string; its address can be taken.
  if (type.char_like && count > 0) return char_array(count);
  return intern({.kind = Kind::kArray,
                 .size_bytes = clamp_size(uint64_t{type.size_bytes} * count),
                 .align_bytes = type.align_bytes,
                 .element = element,
                 .count = count},
                fmt::format("array{}:{}", count, element.index));
}

TypeId Types::string(uint32_t capacity_bytes, bool may_be_cut) {
  return intern({.kind = Kind::kString,
                 .may_be_cut = may_be_cut,
                 .size_bytes = capacity_bytes,
                 .align_bytes = 1,
                 .count = capacity_bytes},
                fmt::format("{}string{}", may_be_cut ? "cut " : "", capacity_bytes));
}

TypeId Types::char_array(uint32_t count) {
  return intern({.kind = Kind::kString, .may_lack_nul = true, .size_bytes = count, .align_bytes = 1, .count = count},
                fmt::format("chars{}", count));
}

TypeId Types::buffer(uint32_t capacity_bytes) {
  return intern({.kind = Kind::kBuffer,
                 .size_bytes = clamp_size(uint64_t{4} + capacity_bytes),
                 .align_bytes = 4,
                 .count = capacity_bytes},
                fmt::format("buffer{}", capacity_bytes));
}

TypeId Types::tuple(const std::vector<TypeId>& elements) {
  std::vector<Member> members;
  members.reserve(elements.size());
  for (const TypeId element : elements) members.push_back({.type = element});
  const Extent extent = lay_out(*this, members);
  const std::string key = "tuple" + members_key(members);
  return intern({.kind = Kind::kTuple,
                 .size_bytes = extent.size_bytes,
                 .align_bytes = extent.align_bytes,
                 .members = std::move(members)},
                key);
}

TypeId Types::record(std::vector<Member> named_elements) {
  const Extent extent = lay_out(*this, named_elements);
  const std::string key = "record" + members_key(named_elements);
  return intern({.kind = Kind::kRecord,
                 .size_bytes = extent.size_bytes,
                 .align_bytes = extent.align_bytes,
                 .members = std::move(named_elements)},
                key);
}

// The struct's copy in user memory has the same members; member access applies the address space of the copy.
TypeId Types::in_user_memory(TypeId id) {
  const Type type = types_[id];
  if (type.space == AddressSpace::kUser) return id;
  switch (type.kind) {
    case Kind::kPointer: return pointer(type.element, AddressSpace::kUser);
    case Kind::kArray: return array(in_user_memory(type.element), type.count);
    case Kind::kStruct: {
      if (!type.complete) return id;
      Type twin = type;
      twin.space = AddressSpace::kUser;
      return intern(std::move(twin), fmt::format("user:{}", id.index));
    }
    default: return id;
  }
}

TypeId Types::function(TypeId result, std::vector<Member> parameters) {
  const std::string key = fmt::format("function{}{}", result.index, members_key(parameters));
  return intern({.kind = Kind::kFunction, .element = result, .members = std::move(parameters)}, key);
}

TypeId Types::hist(uint8_t bits) {
  return intern(
      {.kind = Kind::kHist, .hist_bits = bits, .size_bytes = clamp_size(hist_size_bytes(bits)), .align_bytes = 8},
      fmt::format("hist{}", bits));
}

TypeId Types::lhist(int64_t min, int64_t max, int64_t step) {
  return intern({.kind = Kind::kLhist,
                 .is_signed = true,
                 .size_bytes = clamp_size(lhist_size_bytes(min, max, step)),
                 .align_bytes = 8,
                 .lhist_min = min,
                 .lhist_max = max,
                 .lhist_step = step},
                fmt::format("lhist{}:{}:{}", min, max, step));
}

TypeId Types::tseries(TseriesParams params, bool is_signed) {
  const size_t before = types_.size();
  const TypeId id = intern({.kind = Kind::kTseries,
                            .is_signed = is_signed,
                            .size_bytes = clamp_size(uint64_t{kTseriesSlotBytes} * params.intervals),
                            .align_bytes = 8,
                            .count = params.intervals},
                           fmt::format("tseries{}:{}:{}:{}", params.interval_ns, params.intervals,
                                       static_cast<int>(params.aggregation), is_signed));
  if (types_.size() != before) tseries_.emplace_back(id, params);
  return id;
}

const TseriesParams& Types::tseries_params(TypeId id) const {
  const auto found =
      std::find_if(tseries_.begin(), tseries_.end(), [&](const auto& entry) { return entry.first == id; });
  CHECK(found != tseries_.end());
  return found->second;
}

TypeId Types::recent(TypeId element, uint32_t count) {
  return intern({.kind = Kind::kRecent,
                 .size_bytes = clamp_size(RecentLayout(count, types_[element].size_bytes).size_bytes),
                 .align_bytes = 8,
                 .element = element,
                 .count = count},
                fmt::format("recent{}:{}", count, element.index));
}

TypeId Types::stack(bool user, StackMode mode, uint32_t frames) {
  return intern({.kind = user ? Kind::kUserStack : Kind::kKernelStack,
                 .is_signed = true,
                 .stack_mode = mode,
                 .size_bytes = user ? 16u : 8u,
                 .align_bytes = 8,
                 .count = frames},
                fmt::format("{}stack{}:{}", user ? 'u' : 'k', static_cast<int>(mode), frames));
}

// A struct of the script is identified by its tag, one of BTF by its id: two modules may each have a `struct entry`.
TypeId Types::declare_struct(std::string name, bool is_union, Origin origin, uint32_t size_bytes, AddressSpace space) {
  Type type{.kind = Kind::kStruct,
            .is_union = is_union,
            .complete = false,
            .space = space,
            .size_bytes = size_bytes,
            .name = name,
            .origin = origin};
  if (origin.btf_id != 0) return intern(std::move(type), fmt::format("btf{}:{}", origin.module, origin.btf_id));
  if (const auto found = structs_.find(name); found != structs_.end()) return found->second;
  const TypeId id = types_.add(std::move(type));
  if (!name.empty()) structs_.emplace(std::move(name), id);
  return id;
}

void Types::define_struct(TypeId id, std::vector<Member> members, uint32_t size_bytes, uint32_t align_bytes) {
  Type& type = types_[id];
  CHECK(type.kind == Kind::kStruct && align_bytes > 0);
  type.members = std::move(members);
  type.size_bytes = size_bytes;
  type.align_bytes = align_bytes;
  type.complete = true;
}

TypeId Types::define_enum(std::string name, std::vector<Enumerator> enumerators, uint32_t size_bytes, bool is_signed,
                          Origin origin) {
  Type type{.kind = Kind::kEnum,
            .is_signed = is_signed,
            .size_bytes = size_bytes,
            .align_bytes = size_bytes,
            .name = name,
            .enumerators = std::move(enumerators),
            .origin = origin};
  if (origin.btf_id != 0) return intern(std::move(type), fmt::format("btf{}:{}", origin.module, origin.btf_id));
  const TypeId id = types_.add(std::move(type));
  if (!name.empty()) enums_.insert_or_assign(std::move(name), id);
  return id;
}

TypeId Types::find_struct(std::string_view name) const {
  const auto found = structs_.find(name);
  return found == structs_.end() ? TypeId{} : found->second;
}

TypeId Types::find_enum(std::string_view name) const {
  const auto found = enums_.find(name);
  return found == enums_.end() ? TypeId{} : found->second;
}

void Types::define_alias(std::string name, TypeId target) { aliases_.insert_or_assign(std::move(name), target); }

TypeId Types::find_alias(std::string_view name) const {
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? TypeId{} : found->second;
}

uint32_t Types::add_origin(Completer completer, std::string name) {
  origins_.emplace_back(std::move(completer), std::move(name));
  return kFirstOrigin + static_cast<uint32_t>(origins_.size() - 1);
}

std::string_view Types::origin_name(Origin origin) const {
  return origin.module < kFirstOrigin ? std::string_view() : origins_[origin.module - kFirstOrigin].second;
}

bool Types::complete_by_origin(TypeId struct_type) {
  const uint32_t module = types_[struct_type].origin.module;
  if (module < kFirstOrigin) return false;
  // The table may grow while a struct is completed.
  const Completer completer = origins_[module - kFirstOrigin].first;
  completer(*this, struct_type);
  return true;
}

uint32_t capacity_with_nul(const Type& string) { return string.count + (string.may_lack_nul ? 1 : 0); }

bool is_integer(const Type& type) {
  return type.kind == Kind::kInt || type.kind == Kind::kBool || type.kind == Kind::kEnum;
}

bool is_aggregation(const Type& type) { return type.kind >= Kind::kCount && type.kind <= Kind::kRecent; }

bool is_struct_like(const Type& type) {
  return type.kind == Kind::kStruct || type.kind == Kind::kRecord || type.kind == Kind::kTuple;
}

bool is_by_reference(const Type& type) {
  switch (type.kind) {
    case Kind::kVoid:
    case Kind::kBool:
    case Kind::kEnum:
    case Kind::kPointer:
    case Kind::kKernelStack:  // one word: the id of the stored stack
    case Kind::kKernelSymbol:
    case Kind::kUsername:
    case Kind::kCgroupPath:
    case Kind::kProbeName:
    case Kind::kFunctionName:
    case Kind::kProbeType: return false;
    case Kind::kInt: return type.size_bytes > 8;
    default: return true;
  }
}

std::optional<FoundMember> find_member(const Types& types, TypeId struct_type, std::string_view name) {
  if (name.empty()) return std::nullopt;
  const Type& type = types[struct_type];
  for (const Member& member : type.members) {
    if (member.name == name) return FoundMember{member.type, member.offset_bits, member.bit_size};
  }
  for (const Member& member : type.members) {
    if (!member.name.empty() || types[member.type].kind != Kind::kStruct) continue;
    if (auto found = find_member(types, member.type, name)) {
      found->offset_bits += member.offset_bits;
      return found;
    }
  }
  return std::nullopt;
}

namespace {

std::string list(const Types& types, const std::vector<Member>& members, std::string_view separator, bool named) {
  std::string text;
  for (const Member& member : members) {
    if (!text.empty()) text += separator;
    if (named) text += fmt::format(".{} = ", member.name);
    text += to_string(types, member.type);
  }
  return text;
}

std::string tagged(std::string_view keyword, const std::string& name) {
  return fmt::format("{} {}", keyword, name.empty() ? "<anonymous>" : name);
}

// Aggregations of unsigned values have the prefix `u`.
bool has_unsigned_word(Kind kind) {
  return kind == Kind::kSum || kind == Kind::kMin || kind == Kind::kMax || kind == Kind::kAvg || kind == Kind::kStats;
}

}  // namespace

std::string_view kind_word(Kind kind) {
  switch (kind) {
    case Kind::kVoid: return "void";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kEnum: return "enum";
    case Kind::kPointer: return "pointer";
    case Kind::kArray: return "array";
    case Kind::kString: return "string";
    case Kind::kBuffer: return "buffer";
    case Kind::kTuple: return "tuple";
    case Kind::kRecord: return "record";
    case Kind::kStruct: return "struct";
    case Kind::kFunction: return "function";
    case Kind::kCount: return "count_t";
    case Kind::kSum: return "sum_t";
    case Kind::kMin: return "min_t";
    case Kind::kMax: return "max_t";
    case Kind::kAvg: return "avg_t";
    case Kind::kStats: return "stats_t";
    case Kind::kHist: return "hist_t";
    case Kind::kLhist: return "lhist_t";
    case Kind::kTseries: return "tseries_t";
    case Kind::kRecent: return "recent_t";
    case Kind::kKernelStack: return "kstack_t";
    case Kind::kUserStack: return "ustack_t";
    case Kind::kKernelSymbol: return "ksym_t";
    case Kind::kUserSymbol: return "usym_t";
    case Kind::kInet: return "inet";
    case Kind::kMac: return "macaddr_t";
    case Kind::kUsername: return "username_t";
    case Kind::kTimestamp: return "timestamp";
    case Kind::kCgroupPath: return "cgroup_path_t";
    case Kind::kProbeName: return "probe";
    case Kind::kFunctionName: return "func";
    case Kind::kProbeType: return "probetype";
  }
  return "";
}

namespace {

// The text of a type that is no array, and no pointer except one to a function.
std::string to_simple_string(const Types& types, TypeId id) {
  if (!id.valid()) return "none";
  const Type& type = types[id];
  switch (type.kind) {
    case Kind::kInt:
      if (type.char_like) return "char";
      return fmt::format("{}int{}", type.is_signed ? "" : "u", type.size_bytes * 8);
    case Kind::kFloat:
      if (!type.name.empty()) return type.name;
      return type.size_bytes == 4 ? "float" : type.size_bytes == 8 ? "double" : "long double";
    case Kind::kEnum: return tagged("enum", type.name);
    case Kind::kStruct: return tagged(type.is_union ? "union" : "struct", type.name);
    case Kind::kPointer: {
      const Type& function = types[type.element];
      return fmt::format("{} (*)({})", to_string(types, function.element), list(types, function.members, ", ", false));
    }
    case Kind::kString: return fmt::format("string[{}]", type.count);
    case Kind::kBuffer: return fmt::format("buffer[{}]", type.count);
    case Kind::kRecent: return fmt::format("recent_t({}, {})", type.count, to_string(types, type.element));
    case Kind::kTuple: return fmt::format("({})", list(types, type.members, ",", false));
    case Kind::kRecord: return fmt::format("{{{}}}", list(types, type.members, ", ", true));
    case Kind::kFunction:
      return fmt::format("{} ({})", to_string(types, type.element), list(types, type.members, ", ", false));
    default:
      return fmt::format("{}{}", has_unsigned_word(type.kind) && !type.is_signed ? "u" : "", kind_word(type.kind));
  }
}

bool has_suffix(const Types& types, TypeId id) {
  if (!id.valid()) return false;
  const Type& type = types[id];
  return type.kind == Kind::kArray || (type.kind == Kind::kPointer && types[type.element].kind != Kind::kFunction);
}

}  // namespace

// A loop, because scripts and files can nest pointers and arrays deeper than the stack is.
std::string to_string(const Types& types, TypeId id) {
  std::vector<const Type*> outer;
  for (; has_suffix(types, id); id = types[id].element) outer.push_back(&types[id]);
  std::string text = to_simple_string(types, id);
  for (auto type = outer.rbegin(); type != outer.rend(); ++type)
    text += (*type)->kind == Kind::kArray ? fmt::format("[{}]", (*type)->count) : text.ends_with('*') ? "*" : " *";
  return text;
}

}  // namespace espy::types
