#include "symbols/dwarf/type_index.h"

#include <algorithm>

#include "symbols/dwarf/types.h"

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

}  // namespace espy::symbols::dwarf
