// Loops of a function, and the values that cross the border of a loop: the analysis for outline_loops.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/analysis.h"
#include "ir/ir.h"

namespace espy::opt {

struct Loop {
  ir::BlockId header;
  std::set<ir::BlockId> blocks;
};

struct Exit {  // an edge out of the loop
  ir::BlockId from;
  size_t target;
};

// Returns the natural loops of a function, smallest first, so that a loop precedes those around it.
std::vector<Loop> find_loops(const ir::Function& function);

// Returns true if the value can be computed anywhere: simple values, and the address of the current CPU's part of a map
// value.
bool is_rematerializable(const ir::Function& function, ir::ValueId value);

// The values that may be pointers for the verifier: by their origin; if loaded from the context or through a pointer,
// by whether memory is accessed through them.
class Pointers {
 public:
  explicit Pointers(const ir::Function& function);

  // Returns true if spilling through memory would lose facts that the verifier needs. These are that the value is a
  // pointer, or the bounds of a number that is added to a pointer, if another block has checked them.
  bool must_not_be_stored(ir::ValueId value, const std::set<ir::BlockId>& blocks) const;
  bool operator[](ir::ValueId value) const { return is_pointer_[value.index]; }

  // Returns the numbers, by value, that other blocks add to pointers, directly or through other numbers. The bounds
  // that the verifier knows must hold there.
  std::vector<bool> offsets_outside(const std::set<ir::BlockId>& blocks) const;
  // Whether one of these blocks compares the value by order.
  bool is_checked_in(ir::ValueId value, const std::set<ir::BlockId>& blocks) const;

 private:
  void find_read_through();
  void note_read_through(ir::ValueId value);
  bool visit(ir::ValueId id);
  bool mark(ir::ValueId value);
  bool visit_offset(ir::ValueId id, std::vector<bool>& is_offset) const;
  bool makes_pointer(ir::ValueId id, const ir::Instruction& each) const;
  bool is_bpf_memory(ir::ValueId address) const;

  const ir::Function& function_;
  std::vector<bool> is_pointer_, is_offset_, is_read_through_;
  std::map<ir::ValueId, std::set<ir::BlockId>> checks_;  // by value: the blocks that compare it by order
};

// What crosses the border of a loop, and its layout in the memory that caller and function share.
class CrossingValues {
 public:
  CrossingValues(const ir::Function& function, const Loop& loop)
      : function_(function), loop_(loop), pointers_(function), block_of_(ir::defining_blocks(function)) {}

  // Analyzes the loop. Returns false if it cannot be outlined; the results are then incomplete.
  bool find();

  bool is_inside(ir::BlockId block) const { return loop_.blocks.contains(block); }
  bool is_inside(ir::ValueId value) const { return block_of(value).valid() && is_inside(block_of(value)); }
  ir::BlockId block_of(ir::ValueId value) const { return block_of_[value.index]; }

  const std::vector<Exit>& exits() const { return exits_; }
  const std::set<ir::ValueId>& live_in() const { return live_in_; }
  const std::set<ir::ValueId>& live_out() const { return live_out_; }
  const std::set<ir::ValueId>& rematerialized_in() const { return rematerialized_in_; }
  const std::set<ir::ValueId>& rematerialized_out() const { return rematerialized_out_; }

  // Offsets in the memory, of parameters of the header, live-in and live-out values, and of shared slots.
  uint32_t offset_of(ir::ValueId value) const { return value_offsets_.at(value); }
  std::optional<uint32_t> offset_of(ir::SlotId slot) const {
    const auto shared = shared_slots_.find(slot);
    return shared == shared_slots_.end() ? std::nullopt : std::optional(shared->second);
  }
  uint32_t memory_bytes() const { return memory_bytes_; }

 private:
  bool find_exits();
  bool find_live_in();
  bool use(ir::ValueId value);
  bool find_shared_slots();
  bool find_live_out();
  bool loses_bounds() const;
  bool lay_out_memory();
  bool must_not_be_stored(ir::ValueId value) const { return pointers_.must_not_be_stored(value, loop_.blocks); }

  const ir::Function& function_;
  const Loop& loop_;
  const Pointers pointers_;
  const std::vector<ir::BlockId> block_of_;
  std::vector<Exit> exits_;
  std::set<ir::ValueId> live_in_, live_out_;                      // passed in the memory
  std::set<ir::ValueId> rematerialized_in_, rematerialized_out_;  // computed again on the other side
  std::map<ir::SlotId, uint32_t> shared_slots_;
  std::map<ir::ValueId, uint32_t> value_offsets_;
  uint32_t memory_bytes_ = 0;
};

}  // namespace espy::opt
