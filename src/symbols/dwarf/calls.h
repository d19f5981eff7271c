// Who calls a function, and with what: DW_TAG_call_site. Inside this folder only.
//
// Compilers write down of each call where it returns to, whom it calls, and of each argument a value that the caller
// can tell also after the call has begun. By that an argument which the function itself has lost can be found again:
// the return address on the stack tells the call, the call tells the argument. It is the truth only if the function was
// entered by that call. Two things could be between them: a tail call, by which a function takes the place of another
// and returns to the other's caller, and another function of the same name in another file. Where either is possible,
// nothing is told.
#pragma once

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
  FunctionCode caller;  // the function whose code makes it
};

class Calls {
 public:
  explicit Calls(File& file) : file_(file) {}

  // All calls that enter the function and return to code of this file; nothing where a return address proves nothing.
  const std::vector<Call>* of(const Dwarf_Die& function);
  // What a call says of the argument in a register, as an expression over the caller's registers.
  static std::optional<Dwarf_Attribute> argument(const Call& call, unsigned register_number);

 private:
  // A function and all copies of it: by its name, where others may call it, else by where it is described first.
  using Key = std::pair<std::string_view, const void*>;
  struct Function {
    std::vector<Call> calls;        // of it
    std::set<Key> tail_calls;       // by it
    bool has_unknown_ends = false;  // not all of its tail calls are known
    bool is_here = false;
    std::optional<bool> is_provable = {};
  };

  static Key key_of(const Dwarf_Die& function);
  void read_all();
  void read_function(const FunctionCode& code);
  void read_sites(const Dwarf_Die& scope, const FunctionCode& code, Function& caller, int depth);
  void read_site(const Dwarf_Die& site, const FunctionCode& code, Function& caller);
  bool may_come_by_tail_call(const Key& function);

  File& file_;
  bool has_read_ = false;
  std::map<Key, Function> functions_;
};

}  // namespace espy::symbols::dwarf
