// Where in a machine function each register, or each spill slot, holds something that will still be read.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bpf/machine.h"

namespace espy::bpf {

// Instruction number n, counted over all blocks, reads at position 2n and writes at 2n + 1.
struct Segment {
  uint32_t start = 0, end = 0;  // [start, end)
};
using Range = std::vector<Segment>;  // ascending, disjoint, with gaps between them

bool overlap(const Range& a, const Range& b);
Range unite(const Range& a, const Range& b);

// What one instruction reads and writes, as numbers below the `count` of live_ranges.
struct Touches {
  std::array<uint32_t, 8> reads{}, writes{};
  uint32_t read_count = 0, write_count = 0;
  void read(uint32_t thing) { reads[read_count++] = thing; }
  void write(uint32_t thing) { writes[write_count++] = thing; }
};
using TouchFunction = void (*)(const MachineFunction& function, const MachineInsn& insn, Touches& touches);

// All registers by number, the frame pointer left out.
void touch_registers(const MachineFunction& function, const MachineInsn& insn, Touches& touches);
// Spill slots: objects, counted from slot_count.
void touch_spill_slots(const MachineFunction& function, const MachineInsn& insn, Touches& touches);

// Takes time linear in the function and in the number of (thing, block it is alive in).
std::vector<Range> live_ranges(const MachineFunction& function, uint32_t count, TouchFunction touch);

}  // namespace espy::bpf
