#include "symbols/dwarf/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "symbols/dwarf/passing.h"
#include "types/parts.h"

namespace espy::symbols::dwarf {

namespace {

constexpr int kMaxScopes = 64;

bool is_class_tag(int type_tag) {
  return type_tag == DW_TAG_structure_type || type_tag == DW_TAG_class_type || type_tag == DW_TAG_union_type;
}

bool has_enumerator(const Dwarf_Die& type, std::string_view name) {
  return std::ranges::any_of(children(type), [&](const Dwarf_Die& child) {
    return tag(child) == DW_TAG_enumerator && name_of(child) == name;
  });
}

// The member of a class that is a type of this name, or the enum with an enumerator of this name.
std::optional<Dwarf_Die> find_nested(NameCategory category, const Dwarf_Die& holder, std::string_view name) {
  if (category == NameCategory::kEnumerator && tag(holder) == DW_TAG_enumeration_type)
    return has_enumerator(holder, name) ? std::optional(holder) : std::nullopt;
  for (const Dwarf_Die& child : children(holder)) {
    const int child_tag = tag(child);
    const bool is_enum = child_tag == DW_TAG_enumeration_type;
    if (category == NameCategory::kEnumerator) {
      if (is_enum && !flag(child, DW_AT_enum_class) && has_enumerator(child, name)) return child;
      continue;
    }
    const bool is_wanted = category == NameCategory::kClass  ? is_class_tag(child_tag)
                           : category == NameCategory::kEnum ? is_enum
                                                             : child_tag == DW_TAG_typedef;
    if (is_wanted && name_of(child) == name && !own_attribute(child, DW_AT_declaration)) return child;
  }
  return std::nullopt;
}

}  // namespace

std::string_view last_part(std::string_view name) {
  const size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

void TypeIndex::add_enum(const Dwarf_Die& type, const std::string& prefix, Table& table) {
  const std::string name(name_of(type));
  const bool is_scoped = flag(type, DW_AT_enum_class);
  if (!name.empty()) table[NameCategory::kEnum].try_emplace(prefix + name, type);
  for (const Dwarf_Die& child : children(type)) {
    if (tag(child) != DW_TAG_enumerator) continue;
    const std::string text(name_of(child));
    if (!is_scoped) table[NameCategory::kEnumerator].try_emplace(prefix + text, type);
    if (!name.empty() && (is_scoped || !prefix.empty()))
      table[NameCategory::kEnumerator].try_emplace(prefix + name + "::" + text, type);
  }
}

// Types in classes are not added, but found through their class.
void TypeIndex::add_scope(const Subtree& scope, const std::string& prefix, Table& table, int depth) {
  if (depth > kMaxScopes) return;
  for (const Subtree& inner : child_subtrees(scope)) {
    const Dwarf_Die& child = inner.die;
    const auto add = [&](NameCategory category) {
      const std::string_view name = name_of(child);
      if (name.empty() || own_attribute(child, DW_AT_declaration)) return;
      if (prefix.empty() && table[category].find(name) != table[category].end()) return;
      table[category].try_emplace(prefix + std::string(name), child);
    };
    switch (tag(child)) {
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type: add(NameCategory::kClass); break;
      case DW_TAG_typedef:
      case DW_TAG_base_type: add(NameCategory::kTypedef); break;
      case DW_TAG_enumeration_type: add_enum(child, prefix, table); break;
      case DW_TAG_module:
      case DW_TAG_namespace: {
        // The names of unnamed and inline namespaces are not written.
        const std::string name(flag(child, DW_AT_export_symbols) ? "" : name_of(child));
        add_scope(inner, name.empty() ? prefix : prefix + name + "::", table, depth + 1);
        break;
      }
      case DW_TAG_imported_unit: {
        const auto unit = reference(child, DW_AT_import);
        if (unit && table.imported.insert(unit->addr).second) add_scope({*unit}, prefix, table, depth + 1);
        break;
      }
      default: break;
    }
  }
}

std::optional<Dwarf_Die> TypeIndex::exact(NameCategory category, std::string_view name, Table& table) {
  const Names& names = table[category];
  if (const auto found = names.find(name); found != names.end()) return found->second;
  const size_t colons = name.rfind("::");
  if (colons == std::string_view::npos) return std::nullopt;
  const std::string_view holder = name.substr(0, colons), member = name.substr(colons + 2);
  for (const NameCategory outer : {NameCategory::kClass, NameCategory::kEnum}) {
    if (outer == NameCategory::kEnum && category != NameCategory::kEnumerator) continue;
    const auto type = exact(outer, holder, table);
    if (const auto found = type ? find_nested(category, *type, member) : std::nullopt) return found;
  }
  return std::nullopt;
}

TypeIndex::Found TypeIndex::by_last_part(NameCategory category, std::string_view name, Table& table) {
  Found out;
  std::set<const void*> seen;  // an enumerator has a name with and without its enum
  const std::string ending = "::" + std::string(name);
  for (const auto& [known, die] : table[category]) {
    if (!known.ends_with(ending)) continue;
    if (seen.insert(die.addr).second) out.candidates.push_back(known);
    out.die = die;
  }
  if (out.candidates.size() > 1) out.die.reset();
  if (out.die) out.candidates.clear();
  std::ranges::sort(out.candidates);
  return out;
}

TypeIndex::Found TypeIndex::find(NameCategory category, std::string_view name, const std::optional<Dwarf_Die>& near) {
  if (near) {
    const auto [entry, is_new] = near_.try_emplace(near->addr);
    if (is_new) add_scope({*near}, "", entry->second, 0);
    if (const auto found = exact(category, name, entry->second)) return {found, {}};
    const Found nested = by_last_part(category, name, entry->second);
    if (nested.die || !nested.candidates.empty()) return nested;
  }
  if (!file_.mentions(last_part(name))) return {};
  std::vector<Unit>& units = file_.units();
  for (;; ++next_unit_) {
    if (const auto found = exact(category, name, all_)) return {found, {}};
    if (next_unit_ >= units.size()) return by_last_part(category, name, all_);
    file_.complete(units[next_unit_]);
    add_scope({units[next_unit_].die}, "", all_, 0);
  }
}

// ---- Conversion of DWARF types to types of the language.
//
// A struct is declared on first use and completed on demand, so that one argument does not convert half of the types of
// a program. All pointers are to user memory. Beyond C:
//
// - a reference is a pointer; `.` dereferences both;
// - a base class is an unnamed member, so its members are found in the derived class;
// - std::string of libstdc++ is a pointer to its text, its first word, so that str() accepts it; in an array and behind
//   a pointer, where its size counts, it is an address and a length;
// - a Rust enum whose variants have data is described in types/parts.h;
// - a Rust String is an address and a length, so that str() accepts it.
//
// Not supported: virtual bases, whose offset is only known at run time; pointers to members; complex numbers.

namespace {

using types::AddressSpace;
using types::Kind;
using types::Member;
using types::TypeId;

constexpr int kMaxTypeDepth = 64;
constexpr size_t kMaxDimensions = 64;
constexpr uint64_t kMaxOffsetBytes = UINT32_MAX / 8;  // of a member: offsets are in bits; others are left out

bool is_modifier(int type_tag) {
  switch (type_tag) {
    case DW_TAG_typedef:
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
    case DW_TAG_immutable_type:
    case DW_TAG_packed_type: return true;
    default: return false;
  }
}

bool is_class(int type_tag) {
  return type_tag == DW_TAG_structure_type || type_tag == DW_TAG_class_type || type_tag == DW_TAG_union_type;
}

uint64_t size_of(const Dwarf_Die& type) {
  Dwarf_Die peeled_type = type;
  Dwarf_Word size = 0;
  return dwarf_aggregate_size(&peeled_type, &size) == 0 ? size : 0;
}

uint32_t size_in_u32(const Dwarf_Die& type) {
  return static_cast<uint32_t>(std::min<uint64_t>(size_of(type), UINT32_MAX));
}

// Returns the number of elements in each dimension; 0 if it is not constant. Of an array with too many dimensions,
// nothing is known.
std::vector<uint32_t> dimensions(const Dwarf_Die& array) {
  std::vector<uint32_t> out;
  const std::vector<Dwarf_Die> found_children = first_children(array, kMaxDimensions + 1);
  if (found_children.size() > kMaxDimensions) return {0};
  for (const Dwarf_Die& child : found_children) {
    if (tag(child) != DW_TAG_subrange_type) continue;
    const auto count = number(child, DW_AT_count);
    const auto upper = number(child, DW_AT_upper_bound);
    const uint64_t found = count ? *count : upper ? *upper + 1 : 0;
    out.push_back(found > UINT32_MAX / 8 ? 0 : static_cast<uint32_t>(found));
  }
  if (out.empty()) out.push_back(0);
  return out;
}

std::string tagged(const Dwarf_Die& type, std::string_view word) {
  const std::string_view name = name_of(type);
  return name.empty() ? fmt::format("{} {{...}}", word) : fmt::format("{} {}", word, name);
}

// Whether the language of the unit writes `struct`, `union` and `enum` before names.
bool has_tags(const Dwarf_Die& type) {
  std::optional<Dwarf_Die> unit = unit_of(type);
  if (!unit) return true;
  switch (dwarf_srclang(&*unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11: return true;
    default: return false;
  }
}

std::string with_star(const std::string& element, std::string_view star) {
  return element.ends_with('*') ? element + std::string(star) : element + " " + std::string(star);
}

}  // namespace

std::optional<Dwarf_Die> type_of(const Dwarf_Die& die) { return reference(die, DW_AT_type); }

Dwarf_Die peeled(const Dwarf_Die& type) {
  Dwarf_Die out = type;
  for (int i = 0; i < kMaxTypeDepth && is_modifier(tag(out)); ++i) {
    const auto inner = type_of(out);
    if (!inner) break;
    out = *inner;
  }
  return out;
}

std::optional<uint64_t> offset_of(const Dwarf_Die& member) {
  std::optional<Dwarf_Attribute> place = own_attribute(member, DW_AT_data_member_location);
  if (!place) return 0;
  Dwarf_Word constant = 0;
  if (dwarf_formudata(&*place, &constant) == 0) return constant;
  // DWARF 2: an expression that adds to the address of the struct.
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_getlocation(&*place, &ops, &count) != 0 || count != 1 || ops[0].atom != DW_OP_plus_uconst)
    return std::nullopt;
  return ops[0].number;
}

namespace {

// Of a hostile type only so many members are looked at.
uint64_t size_of_members(const Dwarf_Die& type, size_t& left, int depth) {
  const Dwarf_Die inner = peeled(type);
  const uint64_t size = size_of(inner);
  if (!is_class(tag(inner)) || depth == kMaxTypeDepth) return size;
  uint64_t end = 0;
  for (const Dwarf_Die& child : first_children(inner, left)) {
    if (left == 0) return size;
    --left;
    const bool is_member = tag(child) == DW_TAG_member || tag(child) == DW_TAG_inheritance;
    if (!is_member || flag(child, DW_AT_external) || flag(child, DW_AT_declaration)) continue;
    const std::optional<Dwarf_Die> member = type_of(child);
    const std::optional<uint64_t> offset = offset_of(child);
    if (!member || !offset || *offset > size || number(child, DW_AT_bit_size)) return size;
    end = std::max(end, *offset + size_of_members(*member, left, depth + 1));
  }
  return std::min(end, size);
}

}  // namespace

bool is_of_assembler(const Dwarf_Die& type) {
  Dwarf_Die die = type;
  return dwarf_tag(&die) == DW_TAG_unspecified_type && dwarf_diename(&die) == nullptr;
}

uint64_t size_of_members(const Dwarf_Die& type) {
  constexpr size_t kMaxMembers = 1000;
  size_t left = kMaxMembers;
  return size_of_members(type, left, 0);
}

namespace {

std::string c_name_at(const std::optional<Dwarf_Die>& type, int depth) {
  if (!type) return "void";
  if (depth > kMaxTypeDepth) return "...";
  const auto inner = [&] { return c_name_at(type_of(*type), depth + 1); };
  switch (tag(*type)) {
    case DW_TAG_const_type: {
      const std::string name = inner();
      return name.ends_with('*') ? name + "const" : "const " + name;
    }
    case DW_TAG_volatile_type: return "volatile " + inner();
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type: return inner();
    case DW_TAG_pointer_type:
      if (const auto element = type_of(*type); element && tag(*element) == DW_TAG_subroutine_type)
        return c_name_at(type_of(*element), depth + 1) + " (*)()";
      // Pointer types of Go and Rust have names.
      return name_of(*type).empty() ? with_star(inner(), "*") : std::string(name_of(*type));
    case DW_TAG_reference_type: return with_star(inner(), "&");
    case DW_TAG_rvalue_reference_type: return with_star(inner(), "&&");
    case DW_TAG_array_type: {
      std::string out = inner();
      for (const uint32_t count : dimensions(*type)) out += count == 0 ? "[]" : fmt::format("[{}]", count);
      return out;
    }
    case DW_TAG_structure_type: return has_tags(*type) ? tagged(*type, "struct") : std::string(name_of(*type));
    case DW_TAG_union_type: return has_tags(*type) ? tagged(*type, "union") : std::string(name_of(*type));
    case DW_TAG_enumeration_type: return has_tags(*type) ? tagged(*type, "enum") : std::string(name_of(*type));
    default: return name_of(*type).empty() ? "?" : std::string(name_of(*type));
  }
}

}  // namespace

std::string c_name(const std::optional<Dwarf_Die>& type) { return c_name_at(type, 0); }

namespace {

// Returns the class of a base, or of a member that is one or an array of them.
std::optional<Dwarf_Die> class_of_part(const Dwarf_Die& child) {
  const int kind = tag(child);
  if (kind != DW_TAG_inheritance && (kind != DW_TAG_member || flag(child, DW_AT_external))) return std::nullopt;
  std::optional<Dwarf_Die> type = type_of(child);
  for (int i = 0; i < kMaxTypeDepth && type; ++i) {
    const Dwarf_Die plain = peeled(*type);
    if (tag(plain) != DW_TAG_array_type) return is_class(tag(plain)) ? std::optional(plain) : std::nullopt;
    type = type_of(plain);
  }
  return std::nullopt;
}

}  // namespace

// Clang says it; for g++ it follows from the declarations. Each class is looked at once.
bool TypeReader::is_passed_by_reference(const Dwarf_Die& type, int depth) {
  const Dwarf_Die plain = peeled(type);
  if (!is_class(tag(plain)) || depth > kMaxTypeDepth) return false;
  if (const auto known = by_reference_.find(plain.addr); known != by_reference_.end()) return known->second;
  bool& out = by_reference_[plain.addr];
  if (flag(plain, DW_AT_declaration) && !is_standard_string(plain))
    if (const auto definition = find_definition(plain)) return out = is_passed_by_reference(*definition, depth + 1);
  if (const auto convention = number(plain, DW_AT_calling_convention))
    return out = *convention == DW_CC_pass_by_reference;
  out = is_standard_string(plain) || is_non_trivial_by_itself(plain);
  const auto is_by_reference = [&](const Dwarf_Die& child) {
    const auto part = class_of_part(child);
    return part && is_passed_by_reference(*part, depth + 1);
  };
  out = out || std::ranges::any_of(children(plain), is_by_reference);
  return out;
}

namespace {

constexpr uint32_t kStringBytes = 32;  // of std::string of libstdc++

bool is_named_as_string(const Dwarf_Die& plain) {
  return is_class(tag(plain)) && name_of(plain).starts_with("basic_string<char, std::char_traits<char>");
}

std::vector<Dwarf_Die> namespaces(const std::vector<Dwarf_Die>& scopes, std::string_view name) {
  std::vector<Dwarf_Die> out;
  for (const Dwarf_Die& scope : scopes)
    for (const Dwarf_Die& child : children(scope))
      if (tag(child) == DW_TAG_namespace && name_of(child) == name) out.push_back(child);
  return out;
}

}  // namespace

bool TypeReader::is_standard_string(const Dwarf_Die& type) {
  const Dwarf_Die plain = peeled(type);
  if (!is_named_as_string(plain)) return false;
  return flag(plain, DW_AT_declaration) ? is_declared_string(plain) : size_of(plain) == kStringBytes;
}

// Clang only declares it, as the library has its code. It is that of libstdc++ if it is in this namespace.
bool TypeReader::is_declared_string(const Dwarf_Die& plain) {
  const std::optional<Dwarf_Die> unit = unit_of(plain);
  if (unit && units_with_strings_.insert(unit->addr).second)
    for (const Dwarf_Die& scope : namespaces(namespaces({*unit}, "std"), "__cxx11"))
      for (const Dwarf_Die& child : children(scope))
        if (is_named_as_string(child)) declared_strings_.insert(child.addr);
  return declared_strings_.contains(plain.addr);
}

namespace {

// A member by name, with its offset.
struct Place {
  Dwarf_Die type;
  uint64_t offset_bytes = 0;
};

std::optional<Place> member_named(const Place& in, std::string_view name) {
  for (const Dwarf_Die& child : children(in.type)) {
    const auto type = tag(child) == DW_TAG_member && name_of(child) == name ? type_of(child) : std::nullopt;
    const uint64_t offset = offset_of(child).value_or(0);
    if (type) return Place{peeled(*type), in.offset_bytes + offset};
  }
  return std::nullopt;
}

// Returns the first pointer in a struct, also within its members. Looks at `left` structs at most.
std::optional<Place> first_pointer(const Place& in, int& left, int depth = 0) {
  if (tag(in.type) == DW_TAG_pointer_type) return in;
  if (!is_class(tag(in.type)) || depth > 8 || --left < 0) return std::nullopt;
  for (const Dwarf_Die& child : children(in.type)) {
    const auto type = tag(child) == DW_TAG_member ? type_of(child) : std::nullopt;
    if (!type) continue;
    const uint64_t offset = offset_of(child).value_or(0);
    if (auto found = first_pointer({peeled(*type), in.offset_bytes + offset}, left, depth + 1)) return found;
  }
  return std::nullopt;
}

}  // namespace

// What str() takes for a text (types/parts.h).
std::vector<Member> TypeReader::text_members(uint32_t address_offset_bytes, uint32_t length_offset_bytes) {
  const TypeId bytes = types_.pointer(types_.int_type(1, false), AddressSpace::kUser);
  return {{.name = "data_ptr", .type = bytes, .offset_bits = address_offset_bytes * 8},
          {.name = "length", .type = types_.uint64(), .offset_bits = length_offset_bytes * 8}};
}

// A String is a Vec<u8>, whose buffer is a pointer in wrappers that differ between versions of Rust.
std::vector<Member> TypeReader::rust_string_members(const Dwarf_Die& type) {
  auto unit = name_of(type) == "String" ? unit_of(type) : std::nullopt;
  if (!unit || dwarf_srclang(&*unit) != DW_LANG_Rust) return {};
  const auto vector = member_named({type}, "vec");
  const auto length = vector ? member_named(*vector, "len") : std::nullopt;
  const auto buffer = vector ? member_named(*vector, "buf") : std::nullopt;
  int most = 100;
  const auto address = buffer ? first_pointer(*buffer, most) : std::nullopt;
  if (!length || !address || size_of(length->type) != 8) return {};
  if (std::max(length->offset_bytes, address->offset_bytes) > kMaxOffsetBytes) return {};
  return text_members(static_cast<uint32_t>(address->offset_bytes), static_cast<uint32_t>(length->offset_bytes));
}

TypeReader::TypeReader(File& file, types::Types& types, types::Types::Completer completer, std::string name)
    : file_(file), types_(types), module_(types.add_origin(std::move(completer), std::move(name))) {}

TypeId TypeReader::convert(const std::optional<Dwarf_Die>& type) {
  if (!type || depth_ >= kMaxTypeDepth) return types_.void_type();
  Dwarf_Die plain = peeled(*type);
  ++depth_;
  TypeId out = types_.void_type();
  switch (tag(plain)) {
    case DW_TAG_base_type: out = convert_base(plain); break;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      out = types_.pointer(convert_element(type_of(plain)), AddressSpace::kUser);
      break;
    case DW_TAG_array_type: out = convert_array(plain); break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
      out = is_standard_string(plain) ? types_.pointer(types_.char_type(), AddressSpace::kUser) : convert_struct(plain);
      break;
    case DW_TAG_enumeration_type: out = convert_enum(plain); break;
    case DW_TAG_subroutine_type: out = types_.function(types_.void_type(), {}); break;
    case DW_TAG_ptr_to_member_type: out = types_.int64(); break;
    default: break;
  }
  --depth_;
  return out;
}

TypeId TypeReader::convert_base(Dwarf_Die& type) {
  const auto size = static_cast<uint32_t>(size_of(type));
  const bool is_width = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
  if (!is_width) return types_.void_type();
  switch (number(type, DW_AT_encoding).value_or(0)) {
    case DW_ATE_boolean: return size == 1 ? types_.bool_type() : types_.int_type(size, false);
    case DW_ATE_float: return size >= 4 ? types_.float_type(size) : types_.void_type();
    case DW_ATE_signed: return types_.int_type(size, true);
    case DW_ATE_signed_char:
    case DW_ATE_unsigned_char: {
      const bool is_signed = number(type, DW_AT_encoding) == DW_ATE_signed_char;
      if (size == 1 && name_of(type) == "char") return types_.char_type(is_signed);
      return types_.int_type(size, is_signed);
    }
    case DW_ATE_unsigned:
    case DW_ATE_address:
    case DW_ATE_UTF:
    case DW_ATE_ASCII:
    case DW_ATE_UCS: return types_.int_type(size, false);
    default: return types_.void_type();
  }
}

// What is in an array or behind a pointer has the size of the string, not of a pointer.
TypeId TypeReader::convert_element(const std::optional<Dwarf_Die>& type) {
  return type && is_standard_string(*type) ? convert_struct(peeled(*type)) : convert(type);
}

TypeId TypeReader::convert_array(const Dwarf_Die& type) {
  TypeId out = convert_element(type_of(type));
  const std::vector<uint32_t> counts = dimensions(type);
  for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
    complete_parts(out);
    out = types_.array(out, types_[out].size_bytes == 0 ? 0 : *count);  // nothing bounds a count of nothing
  }
  return out;
}

types::Origin TypeReader::origin_of(const Dwarf_Die& type) {
  const auto [entry, is_new] = known_.try_emplace(type.addr, static_cast<uint32_t>(origins_.size() + 1));
  if (is_new) origins_.push_back(type);
  return {module_, entry->second};
}

TypeId TypeReader::convert_struct(const Dwarf_Die& type) {
  return types_.declare_struct(std::string(name_of(type)), tag(type) == DW_TAG_union_type, origin_of(type),
                               size_in_u32(type), AddressSpace::kUser);
}

TypeId TypeReader::convert_enum(const Dwarf_Die& type) {
  const auto [known, is_new] = enums_.try_emplace(type.addr, types_.void_type());
  if (is_new) known->second = read_enum(type);
  return known->second;
}

namespace {

// Whether the type below an enum has a sign; nullopt if it has none, as before DWARF 3.
std::optional<bool> is_signed_below(const Dwarf_Die& enum_type) {
  const std::optional<Dwarf_Die> below = type_of(enum_type);
  const Dwarf_Die plain = below ? peeled(*below) : enum_type;
  const auto encoding = tag(plain) == DW_TAG_base_type ? number(plain, DW_AT_encoding) : std::nullopt;
  if (!encoding) return std::nullopt;
  return *encoding == DW_ATE_signed || *encoding == DW_ATE_signed_char;
}

int64_t cut_to(int64_t value, uint32_t size_bytes, bool is_signed) {
  const uint32_t unused_bits = 64 - 8 * size_bytes;
  const uint64_t shifted = static_cast<uint64_t>(value) << unused_bits;
  return is_signed ? static_cast<int64_t>(shifted) >> unused_bits : static_cast<int64_t>(shifted >> unused_bits);
}

}  // namespace

TypeId TypeReader::read_enum(const Dwarf_Die& type) {
  const auto size = static_cast<uint32_t>(size_of(type));
  if (size != 1 && size != 2 && size != 4 && size != 8) return types_.void_type();
  std::vector<types::Enumerator> enumerators;
  bool has_negative = false;
  for (const Dwarf_Die& child : children(type)) {
    const auto constant = tag(child) == DW_TAG_enumerator ? attribute(child, DW_AT_const_value) : std::nullopt;
    const std::optional<int64_t> value = constant ? integer(*constant) : std::nullopt;
    if (!value) continue;
    has_negative |= *value < 0 && is_signed(*constant);
    enumerators.push_back({std::string(name_of(child)), *value});
  }
  const bool has_sign = is_signed_below(type).value_or(has_negative);
  for (types::Enumerator& each : enumerators) each.value = cut_to(each.value, size, has_sign);
  return types_.define_enum(std::string(name_of(type)), std::move(enumerators), size, has_sign, origin_of(type));
}

std::optional<Member> TypeReader::convert_member(const Dwarf_Die& member) {
  const bool is_base = tag(member) == DW_TAG_inheritance;
  if (!is_base && tag(member) != DW_TAG_member) return std::nullopt;
  // Static members and the vtable pointer are not members of the value.
  if (flag(member, DW_AT_external) || flag(member, DW_AT_declaration) || flag(member, DW_AT_artificial))
    return std::nullopt;
  const std::optional<uint64_t> place = offset_of(member);
  if (!place || *place > kMaxOffsetBytes) return std::nullopt;
  const uint64_t offset_bytes = *place;
  const auto type = type_of(member);
  Member out{.name = std::string(is_base ? "" : name_of(member)), .type = convert(type)};
  uint64_t offset_bits = offset_bytes * 8;
  if (const auto bits = number(member, DW_AT_bit_size)) {
    if (*bits == 0 || *bits > std::min<uint64_t>(types_[out.type].size_bytes, 8) * 8) return std::nullopt;
    out.bit_size = static_cast<uint32_t>(*bits);
    if (types_[out.type].kind == Kind::kFloat) out.type = types_.int_type(8, types_[out.type].is_signed);  // __int128
    if (const auto at = number(member, DW_AT_data_bit_offset)) {
      offset_bits = *at;
    } else if (const auto from_top = number(member, DW_AT_bit_offset)) {
      // DWARF 2 and 3: the offset is from the most significant bit of the storage unit.
      const uint64_t storage = number(member, DW_AT_byte_size).value_or(type ? size_of(*type) : 0);
      offset_bits += storage * 8 - *from_top - *bits;
    }
  }
  if (offset_bits > kMaxOffsetBytes * 8) return std::nullopt;
  out.offset_bits = static_cast<uint32_t>(offset_bits);
  return out;
}

std::vector<Member> TypeReader::convert_variants(const Dwarf_Die& part) {
  std::vector<Member> out;
  std::vector<types::Enumerator> names;
  for (const Dwarf_Die& variant : children(part)) {
    if (tag(variant) != DW_TAG_variant) continue;
    const std::optional<uint64_t> value = number(variant, DW_AT_discr_value);
    for (const Dwarf_Die& child : children(variant)) {
      std::optional<Member> member = convert_member(child);
      if (!member) continue;
      // A variant without a value is that of all other discriminants.
      names.push_back(
          {value ? member->name : types::kOtherNumbers + member->name, static_cast<int64_t>(value.value_or(0))});
      complete_parts(member->type);
      if (!types_[member->type].members.empty()) out.push_back(std::move(*member));
    }
  }
  const std::optional<Dwarf_Die> which = reference(part, DW_AT_discr);
  const auto type = which ? type_of(*which) : std::nullopt;
  const auto size = type ? static_cast<uint32_t>(size_of(*type)) : 0;
  if (size != 1 && size != 2 && size != 4 && size != 8) return out;
  const TypeId variants =
      types_.define_enum(std::string(types::kVariantsName), std::move(names), size, false, origin_of(part));
  const auto offset = static_cast<uint32_t>(offset_of(*which).value_or(0) * 8);
  out.insert(out.begin(), Member{.name = std::string(types::kDiscriminant), .type = variants, .offset_bits = offset});
  return out;
}

// Each unit is looked through once, for all names.
std::optional<Dwarf_Die> TypeReader::find_definition(const Dwarf_Die& declaration) {
  const std::pair key(tag(declaration), name_of(declaration));
  std::vector<Unit>& units = file_.units();
  for (;; ++next_unit_) {
    if (const auto known = defined_.find(key); known != defined_.end()) return known->second;
    if (next_unit_ >= units.size()) return std::nullopt;
    file_.complete(units[next_unit_]);
    for (const Dwarf_Die& child : children(units[next_unit_].die))
      if (is_class(tag(child)) && !own_attribute(child, DW_AT_declaration))
        defined_.try_emplace({tag(child), name_of(child)}, child);
  }
}

void TypeReader::complete(TypeId struct_type) {
  const types::Type now = types_[struct_type];
  if (now.complete || now.origin.btf_id == 0 || now.origin.btf_id > origins_.size()) return;
  if (parts_.is_refused(struct_type)) return;
  Dwarf_Die die = origins_[now.origin.btf_id - 1];
  const bool is_standard = is_standard_string(die);
  if (!is_standard && flag(die, DW_AT_declaration)) {
    const auto definition = find_definition(die);
    if (!definition) return;
    die = *definition;
  }
  if (!in_progress_.insert(struct_type).second) return;
  std::vector<Member> members = is_standard ? text_members(0, 8) : rust_string_members(die);
  const bool is_string = !members.empty();
  uint32_t align = 1;
  for (const Dwarf_Die& child : is_string ? std::vector<Dwarf_Die>() : children(die)) {
    if (tag(child) == DW_TAG_variant_part)
      for (Member& member : convert_variants(child)) members.push_back(std::move(member));
    if (std::optional<Member> member = convert_member(child)) members.push_back(std::move(*member));
  }
  for (const Member& member : members) {
    complete_parts(member.type);
    const uint32_t needed = types_[member.type].align_bytes;
    if (needed > 0 && (member.bit_size > 0 || member.offset_bits % (needed * 8) == 0)) align = std::max(align, needed);
  }
  const uint32_t size = is_standard ? kStringBytes : size_in_u32(die);
  if (size % align != 0) align = 1;
  if (parts_.may_define(types_, struct_type, members))
    types_.define_struct(struct_type, std::move(members), size, align);
  in_progress_.erase(struct_type);
}

// Completes a struct that is a member or an element of an array.
void TypeReader::complete_parts(TypeId type) {
  while (types_[type].kind == Kind::kArray) type = types_[type].element;
  if (types_[type].kind == Kind::kStruct && !types_[type].complete && in_progress_.size() < kMaxTypeDepth)
    complete(type);
}

}  // namespace espy::symbols::dwarf
