// Register allocation, and the live ranges on which it works.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::bpf {

// ---- Live ranges of registers and spill slots in a machine function.

// Instruction n, numbered over all blocks, reads at position 2n and writes at 2n + 1.
struct Segment {
  uint32_t start = 0, end = 0;  // [start, end)
};
using Range = std::vector<Segment>;  // ascending, disjoint, with gaps between them

bool overlap(const Range& a, const Range& b);
bool is_live(const Range& range, uint32_t position);
Range unite(const Range& a, const Range& b);

// The reads and writes of one instruction, as numbers below `count` of live_ranges().
struct Touches {
  std::array<uint32_t, 8> reads{}, writes{};
  uint32_t read_count = 0, write_count = 0;
  void read(uint32_t number) { reads[read_count++] = number; }
  void write(uint32_t number) { writes[write_count++] = number; }
};
using TouchFunction = void (*)(const MachineFunction& function, const MachineInsn& insn, Touches& touches);

// All registers but the frame pointer, by number.
void touch_registers(const MachineFunction& function, const MachineInsn& insn, Touches& touches);
// Spill slots, as object numbers minus slot_count.
void touch_spill_slots(const MachineFunction& function, const MachineInsn& insn, Touches& touches);

// Returns the live ranges by number. Takes time linear in the size of the function, and of the live sets in its blocks.
std::vector<Range> live_ranges(const MachineFunction& function, uint32_t count, TouchFunction touch);

// ---- Register allocation: assigns r0-r9 or stack slots to virtual registers.

// Replaces all virtual registers and removes copies of a register to itself. Adds spill slots to `function.objects`.
void allocate(MachineFunction& function);

// Merges virtual registers that are connected by a copy and never live at the same time (allocate.cc).
void coalesce(MachineFunction& function);

// Replaces `spilled` registers by stack objects or rematerialization. The new registers, each for a single instruction
// or a run of instructions, are marked unspillable. `ranges` are the live ranges of all registers.
void spill(MachineFunction& function, const std::vector<Reg>& spilled, const std::vector<Range>& ranges);

// ---- The stack of a function: live ranges of its slots, and their offsets.

// ---- Live ranges of the stack slots of a function.

// Returns, by slot, the ranges in which its content may still be read. Instructions are numbered in reverse post order.
// An unused slot has no segments.
std::vector<Range> slot_ranges(const ir::Function& function);

// ---- Stack layout: assigns frame offsets to slots and spilled registers.

// Sets the offsets of the objects of `machine` and its stack_bytes. `function` is the IR that it was selected from,
// which determines the live ranges of slots.
void place_objects(const ir::Function& function, MachineFunction& machine);

}  // namespace espy::bpf
