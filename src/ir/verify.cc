// Checks the rules of docs/internals/ir.md in their order and stops at the first violation, since later rules rely on
// earlier ones.
#include <fmt/format.h>

#include "ir/analysis.h"
#include "ir/ir_text.h"

namespace espy::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}
  std::string run();

 private:
  bool check_units();
  bool check_function();
  bool check_slots();
  bool check_block(BlockId block);
  bool check_shape(const Instruction& instruction);
  bool check_fields(const Instruction& instruction);
  bool check_targets(const Instruction& instruction);
  bool check_uses();
  bool check_use(ValueId used, BlockId block, size_t place);
  bool define(ValueId id, BlockId block, size_t place);

  // Records the message. Returns false.
  bool wrong(std::string_view what) {
    message_ = fmt::format("function f{}", function_id_.index);
    if (function_ && !function_->name.empty()) message_ += fmt::format(" ({})", function_->name);
    if (block_.valid()) message_ += fmt::format(", b{}", block_.index);
    if (value_.valid()) {
      message_ += fmt::format(", v{}", value_.index);
      if (function_->values.contains(value_) && function_->values[value_].op < Op::kCount)
        message_ += fmt::format(" ({})", info(function_->values[value_].op).name);
    }
    message_ += fmt::format(": {}", what);
    return false;
  }

  const Module& module_;
  FunctionId function_id_;
  const Function* function_ = nullptr;
  BlockId block_;
  ValueId value_;
  std::string message_;
  std::vector<BlockId> defined_;  // by value
  std::vector<size_t> position_;  // in its block: 0 for parameters, from 1 on for instructions
};

std::string Verifier::run() {
  for (FunctionId id : module_.functions.ids()) {
    function_id_ = id;
    function_ = &module_.functions[id];
    block_ = {};
    value_ = {};
    if (!check_function()) return message_;
  }
  if (!check_units()) return message_;
  return {};
}

bool Verifier::check_units() {
  for (const Unit& unit : module_.units) {
    if (!unit.functions.empty() && module_.functions.contains(unit.functions[0])) continue;
    message_ = fmt::format("unit p{}: it has no main function", unit.program.index);
    return false;
  }
  for (const Unit& unit : module_.units) {
    for (FunctionId id : unit.functions) {
      if (module_.functions.contains(id)) continue;
      message_ = fmt::format("unit p{}: there is no function f{}", unit.program.index, id.index);
      return false;
    }
  }
  return true;
}

bool Verifier::check_function() {
  if (function_->parameter_count > 5) return wrong("more than five parameters");
  if (!check_slots()) return false;
  if (function_->blocks.empty()) return wrong("it has no blocks");
  if (!function_->blocks[BlockId{0}].parameters.empty()) return wrong("the entry block has parameters");
  defined_.assign(function_->values.size(), {});
  position_.assign(function_->values.size(), 0);
  for (BlockId block : function_->blocks.ids())
    if (!check_block(block)) return false;
  return check_uses();
}

bool Verifier::check_slots() {
  for (SlotId id : function_->slots.ids()) {
    const Slot& slot = function_->slots[id];
    if (slot.size_bytes == 0 || slot.size_bytes > 512) return wrong(fmt::format("s{} is not 1 to 512 bytes", id.index));
    uint32_t align = slot.align_bytes;
    if (align != 1 && align != 2 && align != 4 && align != 8)
      return wrong(fmt::format("s{}'s alignment is none of 1, 2, 4, 8", id.index));
    if (slot.is_variable && slot.size_bytes != 8) return wrong(fmt::format("variable s{} is not 8 bytes", id.index));
  }
  return true;
}

bool Verifier::define(ValueId id, BlockId block, size_t place) {
  if (!function_->values.contains(id)) return wrong("there is no such value");
  if (defined_[id.index].valid()) return wrong("it is in two places");
  defined_[id.index] = block;
  position_[id.index] = place;
  return true;
}

bool Verifier::check_block(BlockId id) {
  block_ = id;
  const Block& block = function_->blocks[id];
  for (ValueId parameter : block.parameters) {
    value_ = parameter;
    if (!define(parameter, id, 0)) return false;
    if (function_->values[parameter].op != Op::k_param) return wrong("a block parameter's op must be param");
  }
  size_t place = 0;
  for (ValueId each : block.instructions) {
    value_ = each;
    if (!define(each, id, ++place)) return false;
    const Instruction& instruction = function_->values[each];
    if (instruction.op >= Op::kCount) return wrong("there is no such operation");
    bool is_end = info(instruction.op).effect == Effect::end;
    if (is_end && place < block.instructions.size()) return wrong("an end within a block");
    if (!is_end && place == block.instructions.size())
      return wrong("the last instruction of the block does not end it");
    if (!check_shape(instruction) || !check_fields(instruction) || !check_targets(instruction)) return false;
  }
  value_ = {};
  return block.instructions.empty() ? wrong("the block is empty") : true;
}

bool Verifier::check_shape(const Instruction& instruction) {
  size_t count = instruction.operands.size();
  int wanted = info(instruction.op).operands;
  if (wanted >= 0 && count != static_cast<size_t>(wanted))
    return wrong(fmt::format("{} operands instead of {}", count, wanted));
  if (wanted < 0 && count > 5) return wrong("more than five arguments");
  size_t targets = instruction.op == Op::k_jump                                         ? 1
                   : instruction.op == Op::k_branch || instruction.op == Op::k_may_goto ? 2
                                                                                        : 0;
  if (instruction.targets.size() != targets)
    return wrong(fmt::format("{} targets instead of {}", instruction.targets.size(), targets));
  return true;
}

bool Verifier::check_fields(const Instruction& instruction) {
  const uint32_t width = instruction.width;
  if (is_atomic(instruction.op)) {
    if (width != 4 && width != 8) return wrong("the width is neither 4 nor 8");
  } else if (accesses_memory(instruction.op)) {
    if (width != 1 && width != 2 && width != 4 && width != 8) return wrong("the width is none of 1, 2, 4, 8");
  }
  switch (instruction.op) {
    case Op::k_zero:
    case Op::k_copy:
      if (instruction.imm <= 0 || instruction.imm > 512) return wrong("the size is not 1 to 512 bytes");
      if (instruction.op == Op::k_zero && instruction.imm % 8) return wrong("the size is not a multiple of 8");
      break;
    case Op::k_param:
      if (instruction.imm < 0 || instruction.imm >= function_->parameter_count) return wrong("no such parameter");
      break;
    case Op::k_slot:
      if (!function_->slots.contains(instruction.slot)) return wrong("there is no such slot");
      break;
    case Op::k_map:
    case Op::k_map_value:
      if (!instruction.map.valid()) return wrong("it names no map");
      break;
    case Op::k_func:
    case Op::k_call_function:
      if (!module_.functions.contains(instruction.function)) return wrong("there is no such function");
      if (instruction.op == Op::k_call_function &&
          instruction.operands.size() != module_.functions[instruction.function].parameter_count)
        return wrong("arguments do not match the function's parameters");
      break;
    case Op::k_call: {
      const HelperInfo& helper = info(instruction.helper);
      if (helper.helper == Helper{0}) return wrong("there is no such helper");
      if (instruction.operands.size() != static_cast<size_t>(helper.arguments))
        return wrong(fmt::format("{} takes {} arguments", helper.name, helper.arguments));
      break;
    }
    default: break;
  }
  return true;
}

bool Verifier::check_targets(const Instruction& instruction) {
  for (const Target& target : instruction.targets) {
    if (!function_->blocks.contains(target.block)) return wrong("a target that is not a block");
    if (target.block.index == 0) return wrong("a jump to the entry block");
    if (target.arguments.size() != function_->blocks[target.block].parameters.size())
      return wrong(fmt::format("arguments do not match the parameters of b{}", target.block.index));
  }
  return true;
}

bool Verifier::check_uses() {
  Dominators dominators(*function_);
  for (BlockId block : function_->blocks.ids()) {
    block_ = block;
    size_t place = 0;
    for (ValueId each : function_->blocks[block].instructions) {
      value_ = each;
      ++place;
      bool is_good = true;
      for_each_use(function_->values[each], [&](ValueId used) {
        if (!is_good) return;
        if (!check_use(used, block, place)) {
          is_good = false;
        } else if (defined_[used.index] != block && dominators.is_reachable(block) &&
                   !dominators.dominates(defined_[used.index], block)) {
          is_good = wrong(fmt::format("its use of v{} is not dominated by the definition", used.index));
        }
      });
      if (!is_good) return false;
    }
  }
  return true;
}

// Checks uses as far as possible without dominators: the value exists, has a result, and precedes uses in its own
// block.
bool Verifier::check_use(ValueId used, BlockId block, size_t place) {
  if (!function_->values.contains(used)) return wrong("it uses a value that does not exist");
  BlockId defined = defined_[used.index];
  if (!defined.valid()) return wrong(fmt::format("it uses v{}, which is in no block", used.index));
  if (!info(function_->values[used].op).has_result)
    return wrong(fmt::format("it uses v{}, which has no result", used.index));
  if (defined == block && position_[used.index] >= place)
    return wrong(fmt::format("it uses v{} before its definition", used.index));
  return true;
}

}  // namespace

std::string verify(const Module& module) { return Verifier(module).run(); }

}  // namespace espy::ir
