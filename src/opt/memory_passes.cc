// mem2reg: turns script variables into values.
//
// Lowering keeps each script variable in a stack slot that it loads and stores. This pass turns such slots into SSA
// values, with block parameters where assignments merge: in the iterated dominance frontier of the assigning blocks
// (Cytron et al., "Efficiently Computing Static Single Assignment Form"), pruned to blocks in which the variable is
// live. A variable that is read before any assignment is 0.
//
// A slot qualifies if it is marked as a variable and its address is only used by loads and stores of the whole slot.
#include <algorithm>
#include <bitset>

#include "ir/analysis.h"
#include "opt/pipeline.h"

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

// ---- store_to_load: forwards stored and loaded values to later loads.
//
// Along each chain of blocks with one predecessor, records the known content of memory: the value at a location, or
// zeros. A load from such a location is replaced by the value (narrowed as memory would); a store of the value that a
// private stack object already holds is removed. A write invalidates all locations that it may alias by the rules of
// docs/internals/ir.md. A few dozen locations are recorded at a time, so the time is linear.

namespace {

using namespace ir;

enum class Source : uint8_t { kLoad, kStore, kZero };

struct Known {
  Location location;
  uint32_t size_bytes = 0;
  Source source = Source::kLoad;
  bool is_signed = false;
  ValueId value;
};

constexpr size_t kMaxKnown = 32;

Op narrowing(uint32_t width, bool is_signed) {
  if (width == 1) return is_signed ? Op::k_sext8 : Op::k_zext8;
  if (width == 2) return is_signed ? Op::k_sext16 : Op::k_zext16;
  return is_signed ? Op::k_sext32 : Op::k_zext32;
}

class Forwarder {
 public:
  explicit Forwarder(Function& function) : function_(function), memory_(function) {}
  bool run();

 private:
  void block(BlockId block);
  bool load(ValueId id);   // returns true if the instruction is redundant
  bool store(ValueId id);  // returns true if the instruction is redundant
  void write(const Instruction& instruction);
  void forget(const Location& location, uint32_t size_bytes);
  bool may_overlap(const Known& known, const Location& location, uint32_t size_bytes) const;
  void remember(Known known);
  const Known* find(const Location& location, uint32_t size_bytes) const;

  Function& function_;
  Memory memory_;
  std::vector<Known> known_;
  std::vector<std::vector<Known>> at_end_;  // by block
  std::vector<ValueId> replacement_;
  bool changed_ = false;
};

bool Forwarder::run() {
  replacement_.resize(function_.values.size());
  at_end_.resize(function_.blocks.size());
  Predecessors predecessors(function_);
  for (BlockId id : reverse_post_order(function_)) {
    known_.clear();
    // A loop header has two predecessors, so a single predecessor has been visited already.
    if (predecessors[id].size() == 1) known_ = at_end_[predecessors[id][0].index];
    block(id);
    if (!terminator(function_, id).targets.empty()) at_end_[id.index] = known_;
  }
  if (changed_) replace_all_uses(function_, replacement_);
  return changed_;
}

void Forwarder::block(BlockId block) {
  std::erase_if(function_.blocks[block].instructions, [&](ValueId id) {
    Instruction& instruction = function_.values[id];
    for_each_use(instruction, [&](ValueId& used) { used = resolve(replacement_, used); });
    if (instruction.op == Op::k_load) return load(id);
    if (instruction.op == Op::k_store) return store(id);
    write(instruction);
    return false;
  });
}

const Known* Forwarder::find(const Location& location, uint32_t size_bytes) const {
  for (const Known& known : known_) {
    if (!known.location.has_same_base(location)) continue;
    int64_t begin = location.offset - known.location.offset;
    bool is_inside = begin >= 0 && begin + size_bytes <= known.size_bytes;
    if (known.source == Source::kZero ? is_inside : begin == 0 && size_bytes == known.size_bytes) return &known;
  }
  return nullptr;
}

bool Forwarder::load(ValueId id) {
  Instruction& load = function_.values[id];
  Location location = memory_.at(load.operands[0], load.imm);
  if (!location.is_exact) return false;
  const Known* known = find(location, load.width);
  if (!known) {
    remember({location, load.width, Source::kLoad, load.is_signed, id});
    return false;
  }
  changed_ = true;
  if (known->source == Source::kZero) {
    load = {.imm = 0, .span = load.span};
    return false;
  }
  if (load.width == 8 || (known->source == Source::kLoad && known->is_signed == load.is_signed)) {
    replacement_[id.index] = known->value;
    return true;
  }
  load = {.op = narrowing(load.width, load.is_signed), .operands = {known->value}, .span = load.span};
  return false;
}

bool Forwarder::store(ValueId id) {
  const Instruction& store = function_.values[id];
  Location location = memory_.at(store.operands[0], store.imm);
  ValueId value = store.operands[1];
  if (location.is_exact && memory_.is_private(location)) {
    const Known* known = find(location, store.width);
    const Instruction& stored = function_.values[value];
    bool is_zero = stored.op == Op::k_konst && stored.imm == 0;
    if (known && (known->source == Source::kZero ? is_zero : known->value == value)) return changed_ = true;
  }
  write(store);
  if (location.is_exact) remember({location, store.width, Source::kStore, false, value});
  return false;
}

void Forwarder::write(const Instruction& instruction) {
  bool is_anywhere = memory_.for_each_write(
      instruction, [&](const Location& location, uint32_t size_bytes) { forget(location, size_bytes); });
  if (is_anywhere) std::erase_if(known_, [&](const Known& known) { return !memory_.is_private(known.location); });
  if (instruction.op != Op::k_zero) return;
  Location location = memory_.at(instruction.operands[0]);
  if (location.is_exact) remember({location, static_cast<uint32_t>(instruction.imm), Source::kZero, false, {}});
}

void Forwarder::forget(const Location& location, uint32_t size_bytes) {
  std::erase_if(known_, [&](const Known& known) { return may_overlap(known, location, size_bytes); });
}

bool Forwarder::may_overlap(const Known& known, const Location& location, uint32_t size_bytes) const {
  if (known.location.has_same_base(location)) {
    if (size_bytes == 0 || !location.is_exact) return true;
    return location.offset < known.location.offset + known.size_bytes &&
           known.location.offset < location.offset + size_bytes;
  }
  if (memory_.is_private(known.location) || memory_.is_private(location)) return false;
  return known.location.base == Base::kOther || location.base == Base::kOther || size_bytes == 0;
}

void Forwarder::remember(Known known) {
  if (known_.size() == kMaxKnown) known_.erase(known_.begin());
  known_.push_back(known);
}

}  // namespace

bool store_to_load(Function& function) { return Forwarder(function).run(); }

// ---- dse: dead store elimination.
//
// Considers private stack objects (ir/analysis.h) only. Removes all writes to objects that are never read. For the
// others, walks each block backwards with the set of bytes that are overwritten, or discarded by `ret`, before they are
// read, and removes writes that lie completely within this set.

namespace {

using namespace ir;

constexpr size_t kMaxBytes = 512;  // of a slot
using Bytes = std::bitset<kMaxBytes>;

class DeadStores {
 public:
  explicit DeadStores(Function& function) : function_(function), memory_(function) {}
  bool run();

 private:
  void find_reads();
  bool block(BlockId block);
  bool is_dead(const Instruction& instruction, bool ends_here);
  Bytes& dead_bytes(uint32_t slot, bool ends_here);

  Function& function_;
  Memory memory_;
  std::vector<bool> is_read_;  // by slot
  // By slot: the set, and the walk in which it was reset.
  std::vector<Bytes> dead_;
  std::vector<uint32_t> begun_;
  uint32_t walk_ = 0;
};

bool DeadStores::run() {
  if (function_.slots.empty()) return false;
  find_reads();
  dead_.resize(function_.slots.size());
  begun_.resize(function_.slots.size());
  bool changed = false;
  for (BlockId each : function_.blocks.ids()) changed |= block(each);
  return changed;
}

void DeadStores::find_reads() {
  is_read_.resize(function_.slots.size());
  for (const Block& block : function_.blocks)
    for (ValueId id : block.instructions)
      memory_.for_each_read(function_.values[id], [&](const Location& location, uint32_t) {
        if (location.is_slot()) is_read_[location.id] = true;
      });
}

Bytes& DeadStores::dead_bytes(uint32_t slot, bool ends_here) {
  if (begun_[slot] != walk_) {
    begun_[slot] = walk_;
    ends_here ? dead_[slot].set() : dead_[slot].reset();
  }
  return dead_[slot];
}

bool DeadStores::block(BlockId block) {
  ++walk_;
  bool ends_here = terminator(function_, block).op == Op::k_ret;
  std::vector<ValueId>& instructions = function_.blocks[block].instructions;
  std::vector<bool> drop(instructions.size());
  bool changed = false;
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction& instruction = function_.values[instructions[i]];
    if (is_dead(instruction, ends_here)) {
      drop[i] = changed = true;
      continue;
    }
    memory_.for_each_read(instruction, [&](const Location& location, uint32_t) {
      if (location.is_slot()) dead_bytes(location.id, ends_here).reset();
    });
  }
  if (!changed) return false;
  size_t kept = 0;
  for (size_t i = 0; i < instructions.size(); ++i)
    if (!drop[i]) instructions[kept++] = instructions[i];
  instructions.resize(kept);
  return true;
}

// Returns true if the write is dead; if not, marks its bytes as overwritten.
bool DeadStores::is_dead(const Instruction& instruction, bool ends_here) {
  bool is_plain = instruction.op == Op::k_store || instruction.op == Op::k_zero || instruction.op == Op::k_copy;
  if (!is_plain) return false;
  bool dead = false;
  memory_.for_each_write(instruction, [&](const Location& location, uint32_t size_bytes) {
    if (!memory_.is_private(location)) return;
    if (!is_read_[location.id]) {
      dead = true;
      return;
    }
    if (!location.is_exact || location.offset < 0 || location.offset + size_bytes > int64_t{kMaxBytes}) return;
    Bytes& bytes = dead_bytes(location.id, ends_here);
    size_t first = static_cast<size_t>(location.offset);
    dead = true;
    for (size_t i = first; i < first + size_bytes; ++i) dead &= bytes[i];
    for (size_t i = first; i < first + size_bytes; ++i) bytes.set(i);
  });
  return dead;
}

}  // namespace

bool dse(Function& function) { return DeadStores(function).run(); }

}  // namespace espy::opt
