// The printer; docs/ir.md has the grammar.
#include <fmt/format.h>

#include <iterator>

#include "base/strings.h"
#include "ir/memory.h"
#include "ir/names.h"
#include "ir/text.h"

namespace espy::ir {
namespace {

class Printer {
 public:
  void function(FunctionId id, const Function& function);
  void unit(const Unit& unit);
  std::string take() { return std::move(out_); }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void id(char letter, uint32_t index) {
    if (index == ValueId::kNone) {
      put("{}?", letter);
    } else {
      put("{}{}", letter, index);
    }
  }
  void value(ValueId value) { id('v', value.index); }
  void values(const std::vector<ValueId>& list, size_t first = 0);
  void address(ValueId base, int64_t offset);
  void target(const Target& target);
  void slot(SlotId slot_id, const Slot& slot);
  void block(BlockId block_id, const Function& function);
  void instruction(const Instruction& instruction);
  bool constant_like(const Instruction& instruction);
  bool memory(const Instruction& instruction);
  bool call(const Instruction& instruction);
  bool end(const Instruction& instruction);

  std::string out_;
};

void Printer::values(const std::vector<ValueId>& list, size_t first) {
  for (size_t i = first; i < list.size(); ++i) {
    if (i > first) put(", ");
    value(list[i]);
  }
}

void Printer::address(ValueId base, int64_t offset) {
  put("[");
  value(base);
  if (offset > 0) put(" + {}", offset);
  if (offset < 0) put(" - {}", -static_cast<uint64_t>(offset));
  put("]");
}

void Printer::target(const Target& target) {
  id('b', target.block.index);
  if (target.arguments.empty()) return;
  put("(");
  values(target.arguments);
  put(")");
}

bool Printer::constant_like(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::k_konst:
    case Op::k_param: put(" {}", instruction.imm); return true;
    case Op::k_slot:
      put(" ");
      id('s', instruction.slot.index);
      return true;
    case Op::k_map:
      put(" ");
      id('m', instruction.map.index);
      return true;
    case Op::k_map_value:
      put(" ");
      id('m', instruction.map.index);
      put(", {}", instruction.imm);
      return true;
    case Op::k_func:
      put(" ");
      id('f', instruction.function.index);
      return true;
    default: return false;
  }
}

bool Printer::memory(const Instruction& instruction) {
  if (accesses_memory(instruction.op)) {
    put(".{}{} ", instruction.is_signed ? "s" : "", instruction.width);
    address(instruction.operands.empty() ? ValueId{} : instruction.operands[0], instruction.imm);
    if (instruction.operands.size() > 1) put(", ");
    values(instruction.operands, 1);
    return true;
  }
  if (instruction.op != Op::k_zero && instruction.op != Op::k_copy) return false;
  put(" ");
  values(instruction.operands);
  put(", {}", instruction.imm);
  return true;
}

bool Printer::call(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::k_call: put(" {}(", info(instruction.helper).name); break;
    case Op::k_kfunc: put(" {}(", instruction.imm); break;
    case Op::k_call_function:
      put(" ");
      id('f', instruction.function.index);
      put("(");
      break;
    default: return false;
  }
  values(instruction.operands);
  put(")");
  if (instruction.is_pure) put(" pure");
  return true;
}

bool Printer::end(const Instruction& instruction) {
  if (instruction.targets.empty()) return false;
  if (instruction.op == Op::k_branch) {
    put(" {} ", name(instruction.condition));
    values(instruction.operands);
    put(",");
  }
  for (size_t i = 0; i < instruction.targets.size(); ++i) {
    put("{}", i ? ", " : " ");
    target(instruction.targets[i]);
  }
  return true;
}

void Printer::instruction(const Instruction& instruction) {
  put("{}", info(instruction.op).name);
  if (!constant_like(instruction) && !memory(instruction) && !call(instruction) && !end(instruction) &&
      !instruction.operands.empty()) {
    put(" ");
    values(instruction.operands);
  }
  if (instruction.is_nullable) put(" nullable");
  put("\n");
}

void Printer::block(BlockId block_id, const Function& function) {
  const Block& block = function.blocks[block_id];
  id('b', block_id.index);
  if (!block.name.empty()) put(" \"{}\"", escape(block.name));
  if (!block.parameters.empty()) {
    put("(");
    values(block.parameters);
    put(")");
  }
  put(":\n");
  for (ValueId each : block.instructions) {
    put("  ");
    if (info(function.values[each].op).has_result) {
      value(each);
      put(" = ");
    }
    instruction(function.values[each]);
  }
}

void Printer::slot(SlotId slot_id, const Slot& slot) {
  put("  slot ");
  id('s', slot_id.index);
  put(" \"{}\" size {} align {}{}\n", escape(slot.name), slot.size_bytes, slot.align_bytes,
      slot.is_variable ? " variable" : "");
}

void Printer::function(FunctionId function_id, const Function& function) {
  if (!out_.empty()) put("\n");
  put("function ");
  id('f', function_id.index);
  put(" \"{}\" parameters {}{}", escape(function.name), function.parameter_count,
      function.is_callback ? " callback" : "");
  if (function.is_global) put(" global");
  if (function.memory_bytes != 0) put(" memory {}", function.memory_bytes);
  put(" {{\n");
  for (SlotId each : function.slots.ids()) slot(each, function.slots[each]);
  for (BlockId each : function.blocks.ids()) block(each, function);
  put("}}\n");
}

void Printer::unit(const Unit& unit) {
  put("unit ");
  id('p', unit.program.index);
  put(":");
  for (size_t i = 0; i < unit.functions.size(); ++i) {
    put("{}", i ? ", " : " ");
    id('f', unit.functions[i].index);
  }
  put("\n");
}

}  // namespace

std::string print(const Function& function, const Module& module) {
  FunctionId id;
  for (FunctionId each : module.functions.ids())
    if (&module.functions[each] == &function) id = each;
  Printer printer;
  printer.function(id, function);
  return printer.take();
}

std::string print(const Module& module) {
  Printer printer;
  for (const Unit& unit : module.units) printer.unit(unit);
  for (FunctionId id : module.functions.ids()) printer.function(id, module.functions[id]);
  return printer.take();
}

}  // namespace espy::ir
