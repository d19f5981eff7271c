// mem2reg: turns script variables into values.
//
// Lowering keeps each script variable in a stack slot that it loads and stores. This pass turns such slots into SSA
// values, with block parameters where assignments merge: in the iterated dominance frontier of the assigning blocks
// (Cytron et al., "Efficiently Computing Static Single Assignment Form"), pruned to blocks in which the variable is
// live. A variable that is read before any assignment is 0.
//
// A slot qualifies if it is marked as a variable and its address is only used by loads and stores of the whole slot.
#include <algorithm>

#include "ir/analysis.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

constexpr uint32_t kNoVariable = ~uint32_t{0};

class Promotion {
 public:
  explicit Promotion(Function& function) : function_(function) {}
  bool run();

 private:
  bool find_variables();
  void scan_blocks();
  void place_parameters();
  std::vector<bool> live_blocks(uint32_t variable, const Predecessors& predecessors);
  void rename();
  void enter(BlockId block);
  void pass_arguments(BlockId block);
  ValueId current(uint32_t variable);
  void set(uint32_t variable, ValueId value);

  // Returns the variable whose slot the instruction loads or stores, if any.
  uint32_t variable_of(const Instruction& instruction) const {
    if (instruction.op != Op::k_load && instruction.op != Op::k_store) return kNoVariable;
    const Instruction& address = function_.values[instruction.operands[0]];
    return address.op == Op::k_slot ? variable_[address.slot.index] : kNoVariable;
  }

  Function& function_;
  std::vector<uint32_t> variable_;                // by slot
  uint32_t count_ = 0;                            // of variables
  std::vector<std::vector<BlockId>> assigned_;    // by variable: blocks that store it
  std::vector<std::vector<BlockId>> read_first_;  // by variable: blocks that load it before they store it
  std::vector<std::vector<std::pair<uint32_t, ValueId>>> parameters_;  // by block
  std::vector<ValueId> value_;  // by variable, at the current point of the traversal
  std::vector<std::pair<uint32_t, ValueId>> undo_;
  std::vector<ValueId> replacement_;
  ValueId zero_;
};

bool Promotion::run() {
  if (!find_variables()) return false;
  scan_blocks();
  place_parameters();
  rename();
  replace_all_uses(function_, replacement_);
  return true;
}

bool Promotion::find_variables() {
  std::vector<bool> is_plain(function_.slots.size()), is_accessed(function_.slots.size());
  for (SlotId slot : function_.slots.ids()) is_plain[slot.index] = function_.slots[slot].is_variable;
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& instruction = function_.values[id];
      bool is_access = (instruction.op == Op::k_load || instruction.op == Op::k_store) && instruction.width == 8 &&
                       instruction.imm == 0;
      size_t place = 0;
      for_each_use(instruction, [&](ValueId used) {
        const Instruction& address = function_.values[used];
        bool is_address = is_access && place++ == 0;
        if (address.op == Op::k_slot) (is_address ? is_accessed : is_plain)[address.slot.index] = is_address;
      });
    }
  }
  variable_.assign(function_.slots.size(), kNoVariable);
  for (size_t i = 0; i < is_plain.size(); ++i)
    if (is_plain[i] && is_accessed[i]) variable_[i] = count_++;
  return count_ != 0;
}

void Promotion::scan_blocks() {
  assigned_.resize(count_);
  read_first_.resize(count_);
  for (BlockId block : function_.blocks.ids()) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& instruction = function_.values[id];
      uint32_t variable = variable_of(instruction);
      if (variable == kNoVariable) continue;
      std::vector<BlockId>& assigned = assigned_[variable];
      std::vector<BlockId>& read_first = read_first_[variable];
      bool is_assigned = !assigned.empty() && assigned.back() == block;
      if (instruction.op == Op::k_store) {
        if (!is_assigned) assigned.push_back(block);
      } else if (!is_assigned && (read_first.empty() || read_first.back() != block)) {
        read_first.push_back(block);
      }
    }
  }
}

// Returns the blocks at whose start the variable is live.
std::vector<bool> Promotion::live_blocks(uint32_t variable, const Predecessors& predecessors) {
  std::vector<bool> is_assigned(function_.blocks.size()), is_live(function_.blocks.size());
  for (BlockId block : assigned_[variable]) is_assigned[block.index] = true;
  std::vector<BlockId> work = read_first_[variable];
  while (!work.empty()) {
    BlockId block = work.back();
    work.pop_back();
    if (is_live[block.index]) continue;
    is_live[block.index] = true;
    for (BlockId from : predecessors[block])
      if (!is_assigned[from.index]) work.push_back(from);
  }
  return is_live;
}

void Promotion::place_parameters() {
  parameters_.resize(function_.blocks.size());
  Predecessors predecessors(function_);
  Dominators dominators(function_);
  std::vector<std::vector<BlockId>> frontiers = dominance_frontiers(function_, dominators);
  for (uint32_t variable = 0; variable < count_; ++variable) {
    // Most variables are only used within one block at a time and need no parameters.
    if (read_first_[variable].empty()) continue;
    std::vector<bool> is_live = live_blocks(variable, predecessors), is_placed(function_.blocks.size());
    std::vector<BlockId> work = assigned_[variable];
    while (!work.empty()) {
      BlockId block = work.back();
      work.pop_back();
      for (BlockId join : frontiers[block.index]) {
        if (is_placed[join.index] || !is_live[join.index]) continue;
        is_placed[join.index] = true;
        ValueId parameter = function_.values.add({.op = Op::k_param});
        function_.blocks[join].parameters.push_back(parameter);
        parameters_[join.index].push_back({variable, parameter});
        work.push_back(join);
      }
    }
  }
}

// Traverses the dominator tree with the current values of variables; leaving a subtree undoes its assignments.
void Promotion::rename() {
  replacement_.resize(function_.values.size());
  value_.assign(count_, {});
  Dominators dominators(function_);
  struct Visit {
    BlockId block;
    size_t undo_size;
    bool is_left;
  };
  std::vector<Visit> stack{{BlockId{0}, 0, false}};
  while (!stack.empty()) {
    if (stack.back().is_left) {
      for (; undo_.size() > stack.back().undo_size; undo_.pop_back()) value_[undo_.back().first] = undo_.back().second;
      stack.pop_back();
      continue;
    }
    stack.back().is_left = true;
    stack.back().undo_size = undo_.size();
    BlockId block = stack.back().block;
    enter(block);
    pass_arguments(block);
    for (BlockId child : dominators.children(block)) stack.push_back({child, 0, false});
  }
  // Unreachable blocks may still use removed values; they are removed as well.
  std::vector<bool> keep(function_.blocks.size());
  for (BlockId block : dominators.order()) keep[block.index] = true;
  keep_blocks(function_, keep);
}

void Promotion::set(uint32_t variable, ValueId value) {
  undo_.push_back({variable, value_[variable]});
  value_[variable] = value;
}

ValueId Promotion::current(uint32_t variable) {
  if (value_[variable].valid()) return value_[variable];
  if (!zero_.valid()) {
    zero_ = function_.values.add({});
    std::vector<ValueId>& entry = function_.blocks[BlockId{0}].instructions;
    entry.insert(entry.begin(), zero_);
  }
  return zero_;
}

void Promotion::enter(BlockId block) {
  for (auto [variable, parameter] : parameters_[block.index]) set(variable, parameter);
  std::vector<ValueId> all = std::move(function_.blocks[block].instructions);
  std::vector<ValueId> kept;
  kept.reserve(all.size());
  // current() may insert a zero at the front of the entry, which may be this block.
  function_.blocks[block].instructions.clear();
  for (ValueId id : all) {
    const Instruction& instruction = function_.values[id];
    uint32_t variable = variable_of(instruction);
    if (variable == kNoVariable) {
      kept.push_back(id);
    } else if (instruction.op == Op::k_store) {
      set(variable, instruction.operands[1]);
    } else {
      replacement_[id.index] = current(variable);
    }
  }
  std::vector<ValueId>& instructions = function_.blocks[block].instructions;
  instructions.insert(instructions.end(), kept.begin(), kept.end());
}

void Promotion::pass_arguments(BlockId block) {
  ValueId last = function_.blocks[block].instructions.back();
  for (size_t i = 0; i < function_.values[last].targets.size(); ++i) {
    BlockId to = function_.values[last].targets[i].block;
    for (auto [variable, parameter] : parameters_[to.index]) {
      ValueId value = current(variable);
      function_.values[last].targets[i].arguments.push_back(value);
    }
  }
}

}  // namespace

bool mem2reg(Function& function) { return Promotion(function).run(); }

}  // namespace espy::opt
