// How functions pass arguments and results, by their debug information. Internal to dwarf/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols/dwarf/dwarf_file.h"
#include "symbols/dwarf/location.h"
#include "symbols/dwarf/types.h"

namespace espy::symbols::dwarf {

// ---- The call sites of functions and the arguments they pass (DW_TAG_call_site). Internal to dwarf/.
//
// For each call, compilers describe the return address, the callee, and for each argument an expression that the caller
// can still evaluate during the call. With it an argument that the callee has overwritten can be recovered: the return
// address on the stack identifies the call site, which has the expression. This is only valid if the function was
// entered by that call. It was not after a tail call, in which a function returns to the caller of another, and if a
// function of the same name in another file was called. If either is possible, no call sites are returned.

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

// ---- Facts in debug information about the call of a function, for a CPU's calling convention (kernel/arch/arch.h).
// Internal to dwarf/.

// What decides whether a compiler may change how a function is called.
struct Linkage {
  bool is_global = false;  // other files may call it
  bool is_optimised = true;
};
using OptimisedUnits = std::map<const void*, bool>;  // examined types
Linkage linkage_of(File& file, const Dwarf_Die& function, uint64_t entry, OptimisedUnits& known);

// Returns why arguments and results are not where the calling convention of the CPU has them, as a predicate: "is not
// known, as ..."; "" if they are there.
std::string_view why_no_convention(const Dwarf_Die& function, const Linkage& linkage);
// The same for a result of the type.
std::string_view why_no_result(const Dwarf_Die& function, const types::Type& result, const Linkage& linkage);
// Whether a function that leaves its result in memory might not return the address: LLVM drops `sret` from functions
// that no other file calls, without a mark.
bool may_lose_address(const Dwarf_Die& function, const Linkage& linkage);
constexpr std::string_view kNoAddress = "is in memory at an address that an optimised function need not return";

struct Passed {
  kernel::PassedValue value;  // its type may be another one that is passed in the same way
  // Why its place, and the places of later arguments, are not known: "is of a type that ..."; "" if it is known.
  std::string_view unknown = {};
};
// Returns a value of the type, void for nullopt. `found`: the location of the argument, if it is one.
Passed passed_value(TypeReader& reader, const std::optional<Dwarf_Die>& type, const LocateResult* found);

// ---- Properties of a C++ class that decide how its values are passed. Internal to dwarf/.

// Whether the class itself, apart from its members and bases, is not trivial for the purposes of calls (Itanium C++
// ABI, 1.1). Then its destructor or a copy or move constructor is user-provided, all of these constructors are deleted,
// or it has virtual functions or bases.
bool is_non_trivial_by_itself(const Dwarf_Die& plain_class);

}  // namespace espy::symbols::dwarf
