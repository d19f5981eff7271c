// Variables: their scopes and their types, which widen with every assignment.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/facts.h"
#include "check/reporter.h"
#include "check/type_rules.h"

namespace espy::check {

struct VariableState {
  Slot slot;
  ExprId pointer = {};                // the first that is assigned
  bool is_assigned = false;           // by a statement before the one being checked
  bool is_let = false;                // declared by a `let` without a value
  bool is_read_unset = false;         // read before it is assigned, which gives 0
  bool iterates_aggregation = false;  // declared by a `for` over a map of aggregations
  int loop_depth = 0;                 // of its declaration: an outer loop may have assigned it in an earlier iteration
};

// Where a variable is declared within a unit; identifies it across rounds.
struct DeclarationSite {
  enum class Kind : uint8_t { kTarget, kStatement, kParameter };
  Kind kind;
  uint32_t index;  // of the ExprId, of the StmtId, or of the parameter

  auto operator<=>(const DeclarationSite&) const = default;
};

// By unit and place of the declaration.
using VariableTypes = std::map<std::pair<size_t, DeclarationSite>, Slot>;

// Types of maps and variables, from elsewhere than their uses.
struct AssumedTypes {
  std::map<std::string, Slot> maps;  // of values, by name
  VariableTypes variables;
};

class Variables {
 public:
  Variables(Facts& facts, Reporter& reporter, Round& round, size_t unit_count)
      : facts_(facts), reporter_(reporter), round_(round), states_(unit_count), declarations_(unit_count) {}

  // Must follow Facts::enter_unit().
  void enter_unit();
  void enter_scope() { scopes_.emplace_back(); }
  void leave_scope() { scopes_.pop_back(); }
  // As leave_scope(); diagnostics can say later that the names were known in this block.
  void leave_block();
  void enter_loop() { ++loop_depth_; }
  void leave_loop() { --loop_depth_; }
  bool is_in_loop() const { return loop_depth_ > 0; }

  // An invalid id if no such variable is in scope. Names include the `$`.
  VariableId find(std::string_view name) const;
  // Declares `name`, which must outlive the unit, in the innermost scope. With `is_explicit` (let, for, parameters),
  // one in scope with the same name is an error.
  VariableId declare(DeclarationSite site, const std::string& name, Span span, bool is_explicit);
  // Declares the variable that the assignment to `target` creates.
  VariableId declare_at(ExprId target, const std::string& name);
  TypeId read(ExprId id, const syntax::Variable& node);

  TypeId type(VariableId id) const { return facts_.unit().variables[id].type; }
  VariableState& state(VariableId id) { return states_[facts_.unit_index()][id.index]; }
  // Makes those that are read, and to which nothing is ever assigned, integers. Returns true if there is one.
  bool settle_unassigned();
  // Whether something reads a variable to which nothing is assigned.
  bool has_unset() const;
  // The types of variables to which something is assigned.
  VariableTypes values() const;
  // Takes these types for the variables.
  void assume(VariableTypes types) { assumed_ = std::move(types); }
  // Replaces the type.
  void set_type(VariableId id, TypeId type);
  // Widens the type so that it holds a value of `type`.
  void add(VariableId id, TypeId type, const Constant& constant, bool is_literal, Span span, ExprId value = {});

 private:
  void report_mismatch(const Variable& variable, TypeId held, TypeId given, Span span);
  struct Scope {
    std::vector<std::pair<std::string_view, VariableId>> names;
  };

  Facts& facts_;
  Reporter& reporter_;
  Round& round_;
  std::vector<std::vector<VariableState>> states_;                   // by unit, by VariableId
  std::vector<std::map<DeclarationSite, VariableId>> declarations_;  // by unit
  VariableTypes assumed_;
  std::vector<Scope> scopes_;                       // outermost first
  std::set<std::string, std::less<>> ended_names_;  // of the unit's blocks that were left
  int loop_depth_ = 0;
};

}  // namespace espy::check
