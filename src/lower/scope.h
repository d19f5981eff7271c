// The action or inlined function that is being lowered, with its variables and loops.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "check/checked.h"
#include "ir/ir.h"

namespace espy::lower {

// Where a variable is: in one of these, if it has a place yet. It is no value of the IR: the copies of an unrolled body
// share the place, and a value of one copy need not dominate the others.
struct VariableStorage {
  ir::SlotId slot;  // of `owner`, the function that may use it
  ir::FunctionId owner;
  uint32_t frame_offset = 0;               // 0: not in the frame
  std::optional<uint32_t> scratch_offset;  // of what is no scalar

  bool is_placed() const { return slot.valid() || frame_offset != 0 || scratch_offset; }
};

// What `continue` and `break` jump to.
struct Loop {
  ir::BlockId next;
  ir::BlockId done;
};

// An action, or one call of a script's function.
struct Activation {
  const check::Unit* unit = nullptr;
  std::set<uint32_t> shared_variables = {};   // those that must be in the frame (shared_variables.h)
  std::vector<VariableStorage> storage = {};  // by VariableId
  ir::BlockId return_block = {};              // of a function
  ir::SlotId result = {};                     // the value of `return`, or its address
  uint32_t result_offset = 0;                 // not 0: it is in the frame instead
  std::vector<Loop> loops = {};               // the innermost last, of the current callback alone
  size_t callback_depth = 0;
};

class Scope {
 public:
  // Runs `body` with `activation` as the current one.
  void with(Activation& activation, const std::function<void()>& body);

  Activation& activation() { return *activation_; }
  const check::Unit& unit() const { return *activation_->unit; }
  const check::ExprFact& fact(check::ExprId expr) const { return unit().fact(expr); }
  const check::StmtFact& fact(check::StmtId stmt) const { return unit().fact(stmt); }
  types::TypeId type(check::ExprId expr) const { return fact(expr).type; }
  std::optional<int64_t> integer(check::ExprId expr) const { return check::constant_as<int64_t>(fact(expr).constant); }
  std::optional<std::string> text(check::ExprId expr) const {
    return check::constant_as<std::string>(fact(expr).constant);
  }
  bool is_constant(check::ExprId expr) const { return !std::holds_alternative<std::monostate>(fact(expr).constant); }

 private:
  Activation* activation_ = nullptr;
};

}  // namespace espy::lower
