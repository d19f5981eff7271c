// Types of a program: by name, and as types of the language. Internal to dwarf/.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbols/dwarf/dwarf_file.h"
#include "types/parts.h"
#include "types/type.h"

namespace espy::symbols::dwarf {

// ---- The types and enumerators of a program by name. Internal to dwarf/.

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

// ---- Conversion of DWARF types to types of the language. Internal to dwarf/.

// Returns the type of a variable, a member or a modifier (DW_AT_type); nullopt for void.
std::optional<Dwarf_Die> type_of(const Dwarf_Die& die);
// Strips typedefs, const and other modifiers.
Dwarf_Die peeled(const Dwarf_Die& type);
// Whether it is the type that GNU as gives the result of each function: unspecified, and without a name.
bool is_of_assembler(const Dwarf_Die& type);
// Returns the size of a type in bytes without the padding after its last member; 0 if it is unknown.
uint64_t size_of_members(const Dwarf_Die& type);
// Returns the offset of a member or a base in its struct, in bytes; nullopt for a virtual base, whose offset only
// values show.
std::optional<uint64_t> offset_of(const Dwarf_Die& member);
// Returns a type in the syntax of C: "const char *", "struct node *", "size_t", "int[4]".
std::string c_name(const std::optional<Dwarf_Die>& type);

class TypeReader {
 public:
  // Requires a `completer` that calls `complete`. `name`: in the program.
  TypeReader(File& file, types::Types& types, types::Types::Completer completer, std::string name);

  types::Types& types() { return types_; }
  // Returns void for nullopt and for types that the language does not have.
  types::TypeId convert(const std::optional<Dwarf_Die>& type);
  void complete(types::TypeId struct_type);
  // Whether a type is std::string of libstdc++, whose first word points to its text.
  bool is_standard_string(const Dwarf_Die& type);
  // Whether it is a class that is passed and returned by address, because it is not trivial for the purposes of calls.
  bool is_passed_by_reference(const Dwarf_Die& type) { return is_passed_by_reference(type, 0); }

 private:
  bool is_passed_by_reference(const Dwarf_Die& type, int depth);
  bool is_declared_string(const Dwarf_Die& plain);
  types::TypeId convert_base(Dwarf_Die& type);
  types::TypeId convert_element(const std::optional<Dwarf_Die>& type);
  types::TypeId convert_array(const Dwarf_Die& type);
  types::TypeId convert_struct(const Dwarf_Die& type);
  types::TypeId convert_enum(const Dwarf_Die& type);
  types::TypeId read_enum(const Dwarf_Die& type);
  std::optional<types::Member> convert_member(const Dwarf_Die& member);
  std::vector<types::Member> convert_variants(const Dwarf_Die& part);
  std::vector<types::Member> text_members(uint32_t address_offset_bytes, uint32_t length_offset_bytes);
  std::vector<types::Member> rust_string_members(const Dwarf_Die& type);  // empty: it is not a String
  void complete_parts(types::TypeId type);
  types::Origin origin_of(const Dwarf_Die& type);
  // Searches all units for the definition of a class that is declared.
  std::optional<Dwarf_Die> find_definition(const Dwarf_Die& declaration);

  File& file_;
  types::Types& types_;
  uint32_t module_;
  std::vector<Dwarf_Die> origins_;         // by btf_id - 1
  std::map<const void*, uint32_t> known_;  // btf_id by address of the DIE, like the key of the next two
  std::map<const void*, types::TypeId> enums_;
  std::map<const void*, bool> by_reference_;
  std::set<const void*> units_with_strings_;  // those whose declarations are in the next one
  std::set<const void*> declared_strings_;
  std::map<std::pair<int, std::string_view>, Dwarf_Die> defined_;  // by tag and name, of the units before next_unit_
  size_t next_unit_ = 0;
  std::set<types::TypeId> in_progress_;
  types::Parts parts_;
  int depth_ = 0;
};

}  // namespace espy::symbols::dwarf
