// store_to_load: forwards stored and loaded values to later loads.
//
// Along each chain of blocks with one predecessor, records the known content of memory: the value at a location, or
// zeros. A load from such a location is replaced by the value (narrowed as memory would); a store of the value that a
// private stack object already holds is removed. A write invalidates all locations that it may alias by the rules of
// docs/ir.md. A few dozen locations are recorded at a time, so the time is linear.
#include <algorithm>

#include "ir/analysis.h"
#include "ir/memory.h"
#include "opt/passes.h"

namespace espy::opt {
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

}  // namespace espy::opt
