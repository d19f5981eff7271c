// map_lookup_cse: the second lookup of a key in a map reuses the pointer of the first.
//
// This is sound if, on every path from an earlier lookup to this one, the bytes of the key are not written and no
// element is inserted into or deleted from the map: then both return the same element, or both null. So the lookup of
// `@x[k]++`, which may insert, is not available after it; the lookup of a predicate `@x[k] > 3` is. A helper that waits
// for a page lets other threads run that long. They may delete the element, and the kernel then gives it to another
// key.
//
// Availability on every path is a forward dataflow problem over sets of lookups, represented as bits of a word (lookups
// after the 63rd are ignored, so that no set is full by accident). Two keys are equal if they are in the same private
// stack object, or in two that are written once, by equal stores. The key of task storage is the current thread.
#include <algorithm>
#include <map>

#include "ir/analysis.h"
#include "opt/pipeline.h"

namespace espy::opt {
namespace {

using namespace ir;

// One write to a stack object. Constants are compared by value, not by id.
struct Piece {
  int64_t offset = 0;
  uint32_t size_bytes = 0;
  bool is_constant = false;
  int64_t value = 0;  // the constant, or the id of the value
  auto operator<=>(const Piece&) const = default;
};

struct Content {
  std::vector<Piece> pieces;
  BlockId block;   // of all writes
  size_t end = 0;  // position of the last write in the block
  bool is_simple = true;
  int number = -1;  // equal for equal contents
};

struct Lookup {
  ValueId call;
  MapId map;
  uint32_t slot = 0;  // with the key; kThread for task storage
  int64_t offset = 0;
  int content = -1;  // number of the content of its key; -1 if unknown
};

constexpr uint32_t kThread = UINT32_MAX;

// True if the call gives the current thread's value, and inserts none.
bool looks_up_thread(const Function& function, const Instruction& call) {
  if (call.op != Op::k_call || call.helper != Helper::task_storage_get) return false;
  const Instruction& task = function.values[call.operands[1]];
  const Instruction& flags = function.values[call.operands[3]];
  return task.op == Op::k_call && task.helper == Helper::get_current_task_btf && flags.op == Op::k_konst &&
         flags.imm == 0;
}

class LookupReuse {
 public:
  explicit LookupReuse(Function& function) : function_(function), memory_(function) {}
  bool run();

 private:
  bool find_lookups();
  void find_contents();
  void add_piece(Content& content, const Instruction& instruction, const Location& location, uint32_t size_bytes);
  void number_contents();
  void name_keys();
  uint64_t killed_by(const Instruction& instruction) const;
  uint64_t with_map(ValueId map) const;
  uint64_t of_keys() const;
  uint64_t transfer(BlockId block, uint64_t available) const;
  void solve();
  bool replace();
  bool have_equal_keys(const Lookup& a, const Lookup& b) const {
    return a.map == b.map && a.offset == b.offset && (a.slot == b.slot || (a.content >= 0 && a.content == b.content));
  }

  Function& function_;
  Memory memory_;
  std::vector<Lookup> lookups_;
  std::vector<int8_t> number_;       // by value: of the lookup
  std::vector<Content> contents_;    // by slot
  std::vector<uint64_t> available_;  // by block, at its start
  std::vector<BlockId> order_;
};

bool LookupReuse::run() {
  if (!find_lookups()) return false;
  find_contents();
  number_contents();
  name_keys();
  solve();
  return replace();
}

bool LookupReuse::find_lookups() {
  number_.assign(function_.values.size(), -1);
  order_ = reverse_post_order(function_);
  for (BlockId block : order_) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& call = function_.values[id];
      if (call.op != Op::k_call || lookups_.size() == 63) continue;
      if (looks_up_thread(function_, call)) {
        number_[id.index] = static_cast<int8_t>(lookups_.size());
        lookups_.push_back({id, function_.values[call.operands[0]].map, kThread});
      }
      if (call.helper != Helper::map_lookup_elem) continue;
      const Instruction& map = function_.values[call.operands[0]];
      Location key = memory_.at(call.operands[1]);
      if (map.op != Op::k_map || !memory_.is_private(key) || !key.is_exact) continue;
      number_[id.index] = static_cast<int8_t>(lookups_.size());
      lookups_.push_back({id, map.map, key.id, key.offset});
    }
  }
  return lookups_.size() > 1;
}

void LookupReuse::find_contents() {
  contents_.resize(function_.slots.size());
  for (BlockId block : order_) {
    size_t place = 0;
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& instruction = function_.values[id];
      ++place;
      memory_.for_each_write(instruction, [&](const Location& location, uint32_t size_bytes) {
        if (!location.is_slot()) return;
        Content& content = contents_[location.id];
        if (content.block.valid() && content.block != block) content.is_simple = false;
        content.block = block;
        content.end = place;
        add_piece(content, instruction, location, size_bytes);
      });
    }
  }
}

void LookupReuse::add_piece(Content& content, const Instruction& instruction, const Location& location,
                            uint32_t size_bytes) {
  Piece piece{location.offset, size_bytes, true, 0};
  if (instruction.op == Op::k_store) {
    const Instruction& stored = function_.values[instruction.operands[1]];
    piece.is_constant = stored.op == Op::k_konst;
    piece.value = piece.is_constant ? stored.imm : int64_t{instruction.operands[1].index};
  }
  bool is_known = location.is_exact && (instruction.op == Op::k_store || instruction.op == Op::k_zero);
  if (!is_known || content.pieces.size() == 64) content.is_simple = false;
  if (content.is_simple) content.pieces.push_back(piece);
}

void LookupReuse::number_contents() {
  std::map<std::vector<Piece>, int> numbers;
  for (Content& content : contents_)
    if (content.is_simple && !content.pieces.empty())
      content.number = numbers.emplace(content.pieces, static_cast<int>(numbers.size())).first->second;
}

// A lookup uses the content if it follows all writes.
void LookupReuse::name_keys() {
  Dominators dominators(function_);
  for (BlockId block : order_) {
    size_t place = 0;
    for (ValueId id : function_.blocks[block].instructions) {
      ++place;
      if (number_[id.index] < 0) continue;
      Lookup& lookup = lookups_[static_cast<size_t>(number_[id.index])];
      if (lookup.slot == kThread) continue;
      const Content& content = contents_[lookup.slot];
      if (content.number < 0) continue;
      bool is_after = content.block == block ? content.end < place : dominators.dominates(content.block, block);
      if (is_after) lookup.content = content.number;
    }
  }
}

uint64_t LookupReuse::with_map(ValueId map) const {
  const Instruction& named = function_.values[map];
  uint64_t bits = 0;
  for (size_t i = 0; i < lookups_.size(); ++i)
    if (named.op != Op::k_map || named.map == lookups_[i].map) bits |= uint64_t{1} << i;
  return bits;
}

// Those that another thread can spoil.
uint64_t LookupReuse::of_keys() const {
  uint64_t bits = 0;
  for (size_t i = 0; i < lookups_.size(); ++i)
    if (lookups_[i].slot != kThread) bits |= uint64_t{1} << i;
  return bits;
}

uint64_t LookupReuse::killed_by(const Instruction& instruction) const {
  constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t bits = 0;
  memory_.for_each_write(instruction, [&](const Location& location, uint32_t) {
    for (size_t i = 0; i < lookups_.size(); ++i)
      if (location.is_slot() && lookups_[i].slot == location.id) bits |= uint64_t{1} << i;
  });
  if (!is_call(instruction.op) || effect_of(instruction) != Effect::write) return bits;
  if (instruction.op != Op::k_call) return kAll;
  switch (instruction.helper) {
    case Helper::map_update_elem:
    case Helper::map_delete_elem: return bits | with_map(instruction.operands[0]);
    case Helper::task_storage_get:
      return looks_up_thread(function_, instruction) ? bits : bits | with_map(instruction.operands[0]);
    case Helper::for_each_map_elem:
    case Helper::loop:
    case Helper::tail_call: return kAll;
    case Helper::copy_from_user: return bits | of_keys();
    default: return bits;
  }
}

uint64_t LookupReuse::transfer(BlockId block, uint64_t available) const {
  for (ValueId id : function_.blocks[block].instructions) {
    const Instruction& instruction = function_.values[id];
    if (effect_of(instruction) == Effect::write) available &= ~killed_by(instruction);
    if (number_[id.index] >= 0) available |= uint64_t{1} << number_[id.index];
  }
  return available;
}

void LookupReuse::solve() {
  Predecessors predecessors(function_);
  available_.assign(function_.blocks.size(), ~uint64_t{0});
  std::vector<uint64_t> at_end(function_.blocks.size(), ~uint64_t{0});
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId block : order_) {
      uint64_t available = block.index == 0 ? 0 : ~uint64_t{0};
      for (BlockId from : predecessors[block]) available &= at_end[from.index];
      if (available == available_[block.index]) continue;
      available_[block.index] = available;
      at_end[block.index] = transfer(block, available);
      changed = true;
    }
  }
}

bool LookupReuse::replace() {
  std::vector<ValueId> replacement(function_.values.size());
  bool changed = false;
  for (BlockId block : order_) {
    uint64_t available = available_[block.index];
    std::erase_if(function_.blocks[block].instructions, [&](ValueId id) {
      const Instruction& instruction = function_.values[id];
      if (effect_of(instruction) == Effect::write) available &= ~killed_by(instruction);
      if (number_[id.index] < 0) return false;
      size_t self = static_cast<unsigned char>(number_[id.index]);
      for (size_t i = 0; i < lookups_.size(); ++i) {
        if (i == self || !(available >> i & 1) || !have_equal_keys(lookups_[i], lookups_[self])) continue;
        replacement[id.index] = lookups_[i].call;
        return changed = true;
      }
      available |= uint64_t{1} << self;
      return false;
    });
  }
  if (changed) replace_all_uses(function_, replacement);
  return changed;
}

}  // namespace

bool map_lookup_cse(Function& function) { return LookupReuse(function).run(); }

}  // namespace espy::opt
