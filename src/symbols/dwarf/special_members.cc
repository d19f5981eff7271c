#include "symbols/dwarf/special_members.h"

#include "symbols/dwarf/types.h"

namespace espy::symbols::dwarf {

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
