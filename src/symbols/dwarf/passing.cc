#include "symbols/dwarf/passing.h"

#include <algorithm>
#include <initializer_list>

#include "base/strings.h"
#include "kernel/arch/arch.h"
#include "symbols/dwarf/types.h"

namespace espy::symbols::dwarf {

namespace {

constexpr int kMaxCallDepth = 64;  // of references and blocks: malformed debug information can have cycles

// Follows references of an instance to its abstract origin or declaration.
Dwarf_Die origin_of(Dwarf_Die die) {
  for (int hops = 0; hops < kMaxCallDepth; ++hops) {
    std::optional<Dwarf_Die> from;
    for (const unsigned name : {DW_AT_abstract_origin, DW_AT_specification})
      if (!from && own_attribute(die, name)) from = reference(die, name);
    if (!from) break;
    die = *from;
  }
  return die;
}

bool has_any(const Dwarf_Die& die, std::initializer_list<unsigned> flags) {
  return std::ranges::any_of(flags, [&](unsigned name) { return flag(die, name); });
}

std::optional<uint64_t> return_address_of(const Dwarf_Die& site) {
  for (const unsigned name : {DW_AT_call_return_pc, DW_AT_low_pc}) {
    std::optional<Dwarf_Attribute> found = own_attribute(site, name);
    Dwarf_Addr address = 0;
    if (found && dwarf_formaddr(&*found, &address) == 0) return address;
  }
  return std::nullopt;
}

// Returns the register that an argument is passed in; nullopt if it is on the stack.
std::optional<unsigned> register_of(const Dwarf_Die& parameter) {
  std::optional<Dwarf_Attribute> location = own_attribute(parameter, DW_AT_location);
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (!location || dwarf_getlocation(&*location, &ops, &count) != 0 || count != 1) return std::nullopt;
  if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) return ops[0].atom - DW_OP_reg0;
  return ops[0].atom == DW_OP_regx ? std::optional(static_cast<unsigned>(ops[0].number)) : std::nullopt;
}

}  // namespace

Calls::Key Calls::key_of(const Dwarf_Die& function) {
  Dwarf_Die first = origin_of(function);
  if (!flag(first, DW_AT_external)) return {"", first.addr};
  const std::string_view linked = linkage_name(first);
  return {linked.empty() ? name_of(first) : linked, nullptr};
}

void Calls::read_site(const Dwarf_Die& site, const FunctionCode& code, Function& caller) {
  std::optional<Dwarf_Die> callee;
  for (const unsigned name : {DW_AT_call_origin, DW_AT_abstract_origin})
    if (!callee && own_attribute(site, name)) callee = reference(site, name);
  if (has_any(site, {DW_AT_call_tail_call, DW_AT_GNU_tail_call})) {
    if (callee)
      caller.tail_calls.insert(key_of(*callee));
    else
      caller.has_unknown_tail_calls = true;
    return;
  }
  const std::optional<uint64_t> returns_to = return_address_of(site);
  if (callee && returns_to) functions_[key_of(*callee)].calls.push_back({*returns_to, site, code});
}

// Call sites can be children of blocks and of inlined instances.
void Calls::read_sites(const Subtree& scope, const FunctionCode& code, Function& caller, int depth) {
  caller.has_unknown_tail_calls |= depth > kMaxCallDepth;
  if (depth > kMaxCallDepth) return;
  for (const Subtree& child : child_subtrees(scope)) {
    switch (tag(child.die)) {
      case DW_TAG_call_site:
      case DW_TAG_GNU_call_site: read_site(child.die, code, caller); break;
      case DW_TAG_lexical_block:
      case DW_TAG_inlined_subroutine:
      case DW_TAG_try_block:
      case DW_TAG_catch_block: read_sites(child, code, caller, depth + 1); break;
      default: break;
    }
  }
}

void Calls::read_function(const FunctionCode& code) {
  Function& caller = functions_[key_of(code.die)];
  caller.has_code = true;
  caller.has_unknown_tail_calls |=
      !has_any(code.die, {DW_AT_call_all_calls, DW_AT_call_all_source_calls, DW_AT_call_all_tail_calls,
                          DW_AT_GNU_all_call_sites, DW_AT_GNU_all_source_call_sites, DW_AT_GNU_all_tail_call_sites});
  read_sites({code.die}, code, caller, 0);
}

void Calls::read_all() {
  if (has_read_) return;
  // Of what took too long earlier.
  functions_.clear();
  std::set<const void*> seen;  // a function may have code in several places
  for (Unit& unit : file_.units())
    for (const FunctionCode& code : file_.functions(unit))
      if (seen.insert(code.die.addr).second) read_function(code);
  has_read_ = true;
}

// Whether a call of the function can enter it again through tail calls only, with other arguments.
bool Calls::may_be_tail_called(const Key& function) {
  std::vector<Key> left{function};
  std::set<Key> seen;
  while (!left.empty()) {
    const auto found = functions_.find(left.back());
    left.pop_back();
    if (found == functions_.end() || !found->second.has_code || found->second.has_unknown_tail_calls) return true;
    for (const Key& next : found->second.tail_calls) {
      if (next == function) return true;
      if (seen.insert(next).second) left.push_back(next);
    }
  }
  return false;
}

const std::vector<Call>* Calls::calls_to(const Dwarf_Die& function) {
  const Key key = key_of(function);
  // A library's external function can be replaced by one of another file.
  const bool is_interposable = !key.first.empty() && !file_.is_executable();
  if (is_interposable) return nullptr;
  read_all();
  Function& found = functions_[key];
  if (!found.is_identified_by_return_address) found.is_identified_by_return_address = !may_be_tail_called(key);
  return *found.is_identified_by_return_address ? &found.calls : nullptr;
}

std::optional<Dwarf_Attribute> Calls::argument(const Call& call, unsigned register_number) {
  for (const Dwarf_Die& child : children(call.site)) {
    const int kind = tag(child);
    if (kind != DW_TAG_call_site_parameter && kind != DW_TAG_GNU_call_site_parameter) continue;
    if (register_of(child) != register_number) continue;
    for (const unsigned name : {DW_AT_call_value, DW_AT_GNU_call_site_value})
      if (auto value = own_attribute(child, name)) return value;
  }
  return std::nullopt;
}

namespace {

using types::Kind;

constexpr int kMaxPassingDepth = 16;
constexpr size_t kMaxMembers = 64;         // of a value of 16 bytes
constexpr uint32_t kMostInRegisters = 16;  // bytes
constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kVectorRegisterBytes = 16;  // that each compiler uses, without options
constexpr uint64_t kEncodingDecimalFloat = 0xf;

constexpr std::string_view kUndefined =
    "is passed as a class without a definition here (perhaps -fstandalone-debug adds it)";
constexpr std::string_view kUnknownInRust = "is of a type that versions of rustc pass in different places";
constexpr std::string_view kUnknownType = "is of a type that espy does not know how to pass";

// What a compiler for C, C++ and the like follows. Those of other languages have conventions of their own.
bool follows_c(int language) {
  switch (language) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_ObjC:
    case DW_LANG_ObjC_plus_plus:
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08:
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Mips_Assembler: return true;
    default:
      // Of DWARF 6: C++17, C++20, C17, Fortran 2018, Ada 2005, Ada 2012; assembler, C++23, C23, Fortran 2023.
      return (language >= 0x2a && language <= 0x2f) || language == 0x31 || language == 0x3a || language == 0x3e ||
             language == 0x3f;
  }
}

int language_of(const Dwarf_Die& die) {
  std::optional<Dwarf_Die> unit = unit_of(die);
  return unit ? dwarf_srclang(&*unit) : -1;
}

// Whether it is a floating-point number of 16 bytes that is no long double.
bool is_quad(const Dwarf_Die& base) {
  const uint64_t encoding = number(base, DW_AT_encoding).value_or(0);
  const bool is_named_so = name_of(base).find("128") != std::string_view::npos || name_of(base) == "real(kind=16)";
  return is_named_so && (encoding == DW_ATE_float || encoding == DW_ATE_complex_float);
}

// ---- Parts of a value that the language has no type for, so that the calling convention does not see them

bool is_unknown_base(const Dwarf_Die& base, types::TypeId converted, const types::Types& types) {
  const bool has_no_type = types[converted].kind == Kind::kVoid;
  const bool is_wide_bits = name_of(base).starts_with("_BitInt") && types[converted].size_bytes > kWordBytes;
  return has_no_type || is_wide_bits || is_quad(base);
}

bool has_unknown_part(TypeReader& reader, const Dwarf_Die& type, int depth) {
  const Dwarf_Die plain = peeled(type);
  if (depth > kMaxPassingDepth) return true;
  switch (tag(plain)) {
    case DW_TAG_base_type: return is_unknown_base(plain, reader.convert(plain), reader.types());
    case DW_TAG_array_type: {
      const auto element = type_of(plain);
      return flag(plain, DW_AT_GNU_vector) || !element || has_unknown_part(reader, *element, depth + 1);
    }
    case DW_TAG_ptr_to_member_type: {
      const auto target = type_of(plain);
      return target && tag(peeled(*target)) == DW_TAG_subroutine_type;
    }
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type: break;
    default: return false;
  }
  const std::vector<Dwarf_Die> parts = first_children(plain, kMaxMembers);
  return std::ranges::any_of(parts, [&](const Dwarf_Die& child) {
    const bool is_part =
        tag(child) == DW_TAG_inheritance || (tag(child) == DW_TAG_member && !flag(child, DW_AT_external));
    const auto of_part = is_part && !flag(child, DW_AT_declaration) ? type_of(child) : std::nullopt;
    return of_part && has_unknown_part(reader, *of_part, depth + 1);
  });
}

// ---- Values that are passed as another type is

// Returns a type that is passed in the same way; nullopt if the type itself has all that matters.
std::optional<types::TypeId> stand_in(types::Types& types, const Dwarf_Die& plain) {
  Dwarf_Word size = 0;
  Dwarf_Die copy = plain;
  if (dwarf_aggregate_size(&copy, &size) != 0) size = 0;
  switch (tag(plain)) {
    case DW_TAG_unspecified_type:  // std::nullptr_t
      return types.uint64();
    case DW_TAG_array_type:
      if (!flag(plain, DW_AT_GNU_vector) || size > kVectorRegisterBytes) return std::nullopt;
      return types.float_type(8);
    case DW_TAG_ptr_to_member_type: {
      const auto target = type_of(plain);
      const bool is_function = target && tag(peeled(*target)) == DW_TAG_subroutine_type;
      return is_function ? std::optional(types.array(types.uint64(), 2)) : std::nullopt;
    }
    case DW_TAG_base_type: break;
    default: return std::nullopt;
  }
  const uint64_t encoding = number(plain, DW_AT_encoding).value_or(0);
  const auto small = static_cast<uint32_t>(std::min<uint64_t>(size, 64));
  if (encoding == DW_ATE_complex_float && (small == 8 || small == 16 || small == 32))
    return is_quad(plain) ? std::nullopt : std::optional(types.array(types.float_type(small / 2), 2));
  const bool is_half = encoding == DW_ATE_float && small == 2;
  const bool is_in_one_vector = is_half || (encoding == DW_ATE_float && is_quad(plain)) ||
                                (encoding == kEncodingDecimalFloat && small <= kVectorRegisterBytes);
  return is_in_one_vector ? std::optional(types.float_type(8)) : std::nullopt;
}

// ---- Functions

constexpr std::string_view kNoCall = "cannot be known here: the function does not follow the calling convention";
constexpr std::string_view kMaybeNoCall = "cannot be known here: the compiler may have changed the calling convention";
constexpr std::string_view kOtherLanguage = "cannot be known here: its language has a calling convention of its own";

// LLVM removes results that no caller uses (DeadArgumentElimination). From version 15 on the function is marked then.
bool is_of_old_llvm(const Dwarf_Die& function) {
  constexpr int64_t kFirstClang = 15, kFirstRustc = 65;
  const std::string_view producer = producer_of(function);
  const auto number_after = [&](std::string_view word) -> std::optional<int64_t> {
    const size_t at = producer.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = producer.substr(at + word.size());
    return parse_int(rest.substr(0, rest.find_first_not_of("0123456789")));
  };
  if (const auto rustc = number_after("rustc version 1.")) return *rustc < kFirstRustc;
  const auto clang = number_after("clang version ");
  return clang && *clang < kFirstClang;
}

bool is_of_gcc(const Dwarf_Die& function) { return producer_of(function).starts_with("GNU "); }

// Whether a parameter is in a register, or has been replaced by a constant.
bool is_optimised_parameter(const Dwarf_Die& parameter) {
  if (attribute(parameter, DW_AT_const_value)) return true;
  std::optional<Dwarf_Attribute> place = attribute(parameter, DW_AT_location);
  if (!place) return false;
  const auto is_register = [](const Dwarf_Op* ops, size_t count) {
    return count > 0 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31;
  };
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  Dwarf_Addr base = 0, low = 0, high = 0;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_getlocations(&*place, offset, &base, &low, &high, &ops, &count)) > 0)
    if (is_register(ops, count)) return true;
  return false;
}

bool has_optimised_function(const Subtree& scope, size_t& left, int depth) {
  if (depth > kMaxPassingDepth) return true;
  for (const Subtree& child : child_subtrees(scope)) {
    if (left == 0) return true;
    --left;
    switch (tag(child.die)) {
      case DW_TAG_formal_parameter:
        if (tag(scope.die) == DW_TAG_subprogram && is_optimised_parameter(child.die)) return true;
        break;
      case DW_TAG_subprogram:
      case DW_TAG_namespace:
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:
        if (has_optimised_function(child, left, depth + 1)) return true;
        break;
      default: break;
    }
  }
  return false;
}

}  // namespace

// Code that is not optimised has no parameter in a register; nothing says so directly.
Linkage linkage_of(File& file, const Dwarf_Die& function, uint64_t entry, OptimisedUnits& known) {
  constexpr size_t kMostLookedAt = 1 << 16;
  Linkage out{file.is_global(entry)};
  const std::optional<Dwarf_Die> unit = unit_of(function);
  if (out.is_global || is_of_gcc(function) || !unit) return out;
  const auto [found, is_new] = known.try_emplace(unit->addr, true);
  size_t left = kMostLookedAt;
  if (is_new) found->second = has_optimised_function({*unit}, left, 0);
  out.is_optimised = found->second;
  return out;
}

// LLVM marks functions whose arguments or results it has removed, but no member functions (DW_AT_specification).
std::string_view why_no_convention(const Dwarf_Die& function, const Linkage& linkage) {
  const uint64_t convention = number(function, DW_AT_calling_convention).value_or(DW_CC_normal);
  if (convention != DW_CC_normal && convention != DW_CC_program) return kNoCall;
  const bool may_be_marked = !is_of_old_llvm(function) && !own_attribute(function, DW_AT_specification);
  if (!may_be_marked && !is_of_gcc(function) && !linkage.is_global && linkage.is_optimised) return kMaybeNoCall;
  const int language = language_of(function);
  return follows_c(language) || language == DW_LANG_Rust || language == DW_LANG_Go ? "" : kOtherLanguage;
}

bool may_lose_address(const Dwarf_Die& function, const Linkage& linkage) {
  return !linkage.is_global && linkage.is_optimised && !is_of_gcc(function);
}

std::string_view why_no_result(const Dwarf_Die& function, const types::Type& result, const Linkage& linkage) {
  const std::string_view out = why_no_convention(function, linkage);
  // All languages return one number in the same register.
  return out == kOtherLanguage && (types::is_integer(result) || result.kind == Kind::kPointer) ? "" : out;
}

Passed passed_value(TypeReader& reader, const std::optional<Dwarf_Die>& type, const LocateResult* found) {
  types::Types& types = reader.types();
  if (!type) return {{types.void_type()}};
  const Dwarf_Die plain = peeled(*type);
  Passed out{{reader.convert(type)}};
  kernel::PassedValue& value = out.value;
  if (types[value.type].kind == Kind::kStruct) reader.complete(value.type);
  value.is_rust = language_of(*type) == DW_LANG_Rust;
  const uint32_t size = types[value.type].size_bytes;
  value.is_by_reference = reader.is_passed_by_reference(*type) || (value.is_rust && size > kMostInRegisters);
  // An argument whose address is in its place is passed by reference, whatever else is known.
  const bool is_aggregate = types[value.type].kind == Kind::kStruct || types[value.type].kind == Kind::kArray;
  value.is_by_reference |= is_aggregate && found != nullptr && found->is_indirect;
  const uint64_t align =
      std::max(number(*type, DW_AT_alignment).value_or(0), number(plain, DW_AT_alignment).value_or(0));
  if (!value.is_by_reference && !types[value.type].complete)
    out.unknown = kUndefined;
  else if (value.is_rust)
    out.unknown = kernel::is_known_in_rust(types, value) ? "" : kUnknownInRust;
  else if (value.is_by_reference)
    return out;
  else if (const auto other = stand_in(types, plain))
    value.type = *other;
  else if (align > kWordBytes && align > types[value.type].align_bytes)
    out.unknown = kUnknownType;
  else if (size <= kMostInRegisters && has_unknown_part(reader, plain, 0))
    out.unknown = kUnknownType;
  return out;
}

namespace {

// Parameters beyond these are not looked at: `this`, two that compilers add, the object, and one more.
constexpr size_t kMaxParameters = 5;

// Whether DW_AT_defaulted and DW_AT_deleted, of DWARF 5, are written: g++ writes them in other versions, too.
bool tells_defaulted(const Dwarf_Die& plain_class) {
  Dwarf_Half version = 0;
  const bool is_known =
      dwarf_cu_info(plain_class.cu, &version, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == 0;
  return is_known && (version >= 5 || producer_of(plain_class).find("-gstrict-dwarf") == std::string_view::npos);
}

bool is_user_provided(const Dwarf_Die& function) {
  return !flag(function, DW_AT_artificial) && !flag(function, DW_AT_deleted) &&
         number(function, DW_AT_defaulted).value_or(DW_DEFAULTED_no) != DW_DEFAULTED_in_class;
}

// Returns the tag of the reference, if references to the class itself are all that a function takes; otherwise 0.
int reference_to_own_class(const Dwarf_Die& function, const Dwarf_Die& plain_class) {
  int out = 0;
  size_t count = 0;
  for (const Dwarf_Die& child : first_children(function, kMaxParameters)) {
    if (tag(child) == DW_TAG_template_type_parameter) return 0;  // of an instance of a template: never a copy
    if (tag(child) != DW_TAG_formal_parameter || flag(child, DW_AT_artificial)) continue;
    const auto type = type_of(child);
    const auto target = type ? type_of(peeled(*type)) : std::nullopt;
    if (!target || peeled(*target).addr != plain_class.addr || ++count > 1) return 0;
    out = tag(peeled(*type));
  }
  return out == DW_TAG_reference_type || out == DW_TAG_rvalue_reference_type ? out : 0;
}

bool is_virtual(const Dwarf_Die& base_or_function) {
  return number(base_or_function, DW_AT_virtuality).value_or(DW_VIRTUALITY_none) != DW_VIRTUALITY_none;
}

}  // namespace

bool is_non_trivial_by_itself(const Dwarf_Die& plain_class) {
  const std::string_view name = name_of(plain_class);
  const std::string_view constructor_name = name.substr(0, name.find('<'));
  const bool knows_copies = tells_defaulted(plain_class);
  bool has_deleted = false, has_usable = false;
  for (const Dwarf_Die& child : children(plain_class)) {
    const bool is_function = tag(child) == DW_TAG_subprogram;
    if ((is_function || tag(child) == DW_TAG_inheritance) && is_virtual(child)) return true;
    if (!is_function) continue;
    const std::string_view function_name = name_of(child);
    if (function_name.starts_with('~') && is_user_provided(child)) return true;
    if (!knows_copies) continue;
    if (function_name == "operator=") {
      // A move assignment deletes the copy constructor that is not declared.
      has_deleted |= reference_to_own_class(child, plain_class) == DW_TAG_rvalue_reference_type;
    } else if (!name.empty() && function_name == constructor_name && reference_to_own_class(child, plain_class) != 0) {
      if (is_user_provided(child)) return true;
      (flag(child, DW_AT_deleted) ? has_deleted : has_usable) = true;
    }
  }
  return has_deleted && !has_usable;
}

}  // namespace espy::symbols::dwarf
