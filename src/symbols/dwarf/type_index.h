// The types and enumerators of a program by name. Internal to dwarf/.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf/file.h"

namespace espy::symbols::dwarf {

enum class NameCategory : uint8_t { kClass, kEnum, kTypedef, kEnumerator };  // kClass: also structs and unions

// "Basket" of "shop::Basket".
std::string_view last_part(std::string_view name);

// A name is qualified ("shop::Basket"), or the last part of one if only one name has that part. Types within functions
// are not found.
class TypeIndex {
 public:
  explicit TypeIndex(File& file) : file_(file) {}

  struct Found {
    std::optional<Dwarf_Die> die;         // of an enumerator: its enum
    std::vector<std::string> candidates;  // full names, if several have the wanted one as their last part
  };
  // Returns the definition in the unit `near`, else the first one in the file. Units are read until there is one, each
  // at most once.
  Found find(NameCategory category, std::string_view name, const std::optional<Dwarf_Die>& near);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Names = std::unordered_map<std::string, Dwarf_Die, Hash, std::equal_to<>>;
  struct Table {
    std::array<Names, 4> names;      // by category
    std::set<const void*> imported;  // partial units
    Names& operator[](NameCategory category) { return names[static_cast<size_t>(category)]; }
  };

  static void add_scope(const Subtree& scope, const std::string& prefix, Table& table, int depth);
  static void add_enum(const Dwarf_Die& type, const std::string& prefix, Table& table);
  static std::optional<Dwarf_Die> exact(NameCategory category, std::string_view name, Table& table);
  static Found by_last_part(NameCategory category, std::string_view name, Table& table);

  File& file_;
  std::map<const void*, Table> near_;  // by address of the unit
  Table all_;                          // of the units before next_unit_
  size_t next_unit_ = 0;
};

}  // namespace espy::symbols::dwarf
