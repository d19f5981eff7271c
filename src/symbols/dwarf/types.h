// DWARF's types as the language's. Inside this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "symbols/dwarf/file.h"
#include "types/type.h"

namespace espy::symbols::dwarf {

// The type that a variable, a member or a modifier has (DW_AT_type); nothing for void.
std::optional<Dwarf_Die> type_of(const Dwarf_Die& die);
// Without typedefs, const and their like.
Dwarf_Die peeled(const Dwarf_Die& type);
// As C writes it: "const char *", "struct node *", "size_t", "int[4]".
std::string c_name(const std::optional<Dwarf_Die>& type);

// A class that is passed and returned by its address, as it cannot be copied byte by byte.
bool is_passed_by_reference(const Dwarf_Die& type);
// libstdc++'s std::string, whose first word points to its text.
bool is_standard_string(const Dwarf_Die& type);

class TypeReader {
 public:
  // Structs are completed by `completer`, which must call `complete`.
  TypeReader(File& file, types::Types& types, types::Types::Completer completer);

  types::Types& types() { return types_; }
  // The type; void for none, and for what the language has no notion of.
  types::TypeId convert(const std::optional<Dwarf_Die>& type);
  void complete(types::TypeId struct_type);

 private:
  types::TypeId convert_base(Dwarf_Die& type);
  types::TypeId convert_array(const Dwarf_Die& type);
  types::TypeId convert_struct(const Dwarf_Die& type);
  types::TypeId convert_enum(const Dwarf_Die& type);
  std::optional<types::Member> convert_member(const Dwarf_Die& member);
  std::vector<types::Member> convert_variants(const Dwarf_Die& part);
  void complete_parts(types::TypeId type);
  types::Origin origin_of(const Dwarf_Die& type);

  File& file_;
  types::Types& types_;
  uint32_t module_;
  std::vector<Dwarf_Die> origins_;         // by btf_id - 1
  std::map<const void*, uint32_t> known_;  // by address of the entry
  std::set<types::TypeId> in_progress_;
  int depth_ = 0;
};

}  // namespace espy::symbols::dwarf
