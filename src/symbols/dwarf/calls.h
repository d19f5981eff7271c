// The call sites of functions and the arguments they pass (DW_TAG_call_site). Internal to dwarf/.
//
// For each call, compilers describe the return address, the callee, and for each argument an expression that the caller
// can still evaluate during the call. With it an argument that the callee has overwritten can be recovered: the return
// address on the stack identifies the call site, which has the expression. This is only valid if the function was
// entered by that call. It was not after a tail call, in which a function returns to the caller of another, and if a
// function of the same name in another file was called. If either is possible, no call sites are returned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "symbols/dwarf/file.h"

namespace espy::symbols::dwarf {

struct Call {
  uint64_t return_address = 0;
  Dwarf_Die site;
  FunctionCode caller;
};

class Calls {
 public:
  explicit Calls(File& file) : file_(file) {}

  // Returns all calls of a function from this file; null if a return address does not identify the call.
  const std::vector<Call>* calls_to(const Dwarf_Die& function);
  // Returns the value of the argument in a register, as an expression over the registers of the caller.
  static std::optional<Dwarf_Attribute> argument(const Call& call, unsigned register_number);

 private:
  // Identifies a function and all instances of it: the linkage name if it is external, otherwise the address of its
  // first DIE.
  using Key = std::pair<std::string_view, const void*>;
  struct Function {
    std::vector<Call> calls;              // to it
    std::set<Key> tail_calls;             // by it
    bool has_unknown_tail_calls = false;  // by it
    bool has_code = false;                // in this file
    std::optional<bool> is_identified_by_return_address = {};
  };

  static Key key_of(const Dwarf_Die& function);
  void read_all();
  void read_function(const FunctionCode& code);
  void read_sites(const Subtree& scope, const FunctionCode& code, Function& caller, int depth);
  void read_site(const Dwarf_Die& site, const FunctionCode& code, Function& caller);
  bool may_be_tail_called(const Key& function);

  File& file_;
  bool has_read_ = false;
  std::map<Key, Function> functions_;
};

}  // namespace espy::symbols::dwarf
