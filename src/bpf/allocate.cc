// Register allocation.
//
// The problem. BPF has ten registers. Calls, which are frequent in tracing programs, take arguments in r1-r5, return in
// r0 and clobber r1-r5; a value that survives a call is in r6-r9 or on a stack of 512 bytes. And the code has a reader
// that other targets do not have: the kernel's verifier, which tracks every value through registers and stack slots. It
// recognizes a spilled pointer only if all 8 bytes are stored at an aligned address, and it relates two null-checked
// pointers only if one is a copy of the other, not if the same computation is done twice.
//
// The approach treats calls as ordinary instructions. Selection emits `r1 = v7` before a call and `v9 = r0` after it,
// as copies on machine registers; a call writes r0-r5. So machine registers have live ranges like virtual ones, and a
// virtual register can be assigned any machine register whose range does not overlap its own. One that is live across a
// call overlaps r0-r5 there and so gets one of r6-r9 without a special rule. Arguments need no parallel move: they are
// set one after the other, and since r1 is live from its copy to the call, a value that is yet to be copied to r2 is
// not in r1.
//
// Ranges are lists of segments with holes (live_ranges.h), not intervals: a value that dies in one arm of a branch
// frees its register in the other arm.
//
// The steps:
//   1. coalesce.cc merges registers that are connected by a copy and never live at the same time. This removes most
//      copies for two-operand instructions (d = a; d += b) and for block parameters.
//   2. Registers are assigned in order of their uses per length, uses in loops weighted tenfold per level. The first
//      choice is a machine register that a copy connects it with, which removes the copy; then r0-r5, which are free;
//      then r6-r9, which the JIT has to save.
//   3. The others are spilled (spill.cc): to the stack, or, if one instruction computes them from nothing, they are
//      rematerialized at each use. Uses go through registers that live for one instruction, which cannot be spilled and
//      evict others.
//   4. After a spill, steps 2 and 3 are repeated on the new code. Each round removes the spilled registers, and the new
//      ones are unspillable, so this terminates; in practice after two or three rounds.
//   5. Spill slots whose ranges do not overlap share their 8 bytes (stack_layout.cc).
//
// It always succeeds: an instruction has at most two explicit registers, besides r0 for a compare-exchange and r1-r5
// before a call, so with everything spilled ten registers suffice.
//
// Limits. Ranges are not split: a value that is used in a loop and crosses a call elsewhere has one location
// throughout. Copies of a value that neither side changes do not share a register while both are live. Both would
// matter for long functions with deep loops, which the verifier's own limits keep rare.
//
// Further reading: Chaitin et al., "Register allocation via coloring" (1981), for spilling everywhere and coalescing;
// Wimmer and Moessenboeck, "Optimized interval splitting in a linear scan register allocator" (2005), for holes and
// hints.
#include "bpf/allocate.h"

#include <algorithm>
#include <map>

#include "bpf/live_ranges.h"

namespace espy::bpf {
namespace {

constexpr Reg kAllocatable = 10;
// In order of preference: first those that calls rarely use.
constexpr Reg kPreference[kAllocatable] = {5, 4, 3, 0, 2, 1, 6, 7, 8, 9};
constexpr double kUnspillableWeight = 1e30;

class Allocator {
 public:
  explicit Allocator(MachineFunction& function) : function_(function) {}

  // Returns true if every register is assigned; else `spilled()` must be spilled.
  bool place_all();
  const std::vector<Reg>& spilled() const { return spilled_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  void rename();

 private:
  struct Occupant {
    uint32_t end;
    Reg owner;  // a machine register for its own range
  };
  void weigh();
  void add_hint(const MachineInsn& insn);
  bool place(Reg reg);
  bool evict_for(Reg reg);
  bool is_free(Reg machine, const Range& range) const;
  void occupy(Reg machine, Reg owner);
  void release(Reg reg);
  // Appends the owners of segments of `machine` that overlap the range of `reg`. Returns false if one of them cannot be
  // evicted.
  bool rivals(Reg machine, Reg reg, std::vector<Reg>& out) const;
  template <class Visit>
  void for_each_overlap(Reg machine, const Range& range, Visit visit) const;

  MachineFunction& function_;
  std::vector<Range> ranges_;
  std::vector<double> weights_;
  std::vector<std::vector<Reg>> hints_;  // by virtual register: machine registers connected by copies
  std::vector<Reg> places_;
  std::map<uint32_t, Occupant> occupied_[kAllocatable];  // by start
  std::vector<Reg> spilled_;
};

bool Allocator::place_all() {
  ranges_ = live_ranges(function_, function_.register_end(), touch_registers);
  places_.assign(ranges_.size(), kNoReg);
  hints_.resize(ranges_.size());
  weigh();
  for (Reg machine = 0; machine < kAllocatable; ++machine) occupy(machine, machine);
  std::vector<Reg> order;
  for (Reg reg = kMachineRegisters; reg < ranges_.size(); ++reg)
    if (!ranges_[reg].empty()) order.push_back(reg);
  std::stable_sort(order.begin(), order.end(), [&](Reg a, Reg b) { return weights_[a] > weights_[b]; });
  for (Reg reg : order) {
    if (place(reg) || evict_for(reg)) continue;
    CHECK(!function_[reg].is_unspillable);
    spilled_.push_back(reg);
  }
  return spilled_.empty();
}

void Allocator::weigh() {
  weights_.assign(ranges_.size(), 0);
  for (const MachineBlock& block : function_.blocks) {
    double frequency = 1;
    for (uint32_t i = 0; i < std::min(block.loop_depth, 6u); ++i) frequency *= 10;
    for (const MachineInsn& insn : block.insns) {
      auto use = [&](Reg reg) { weights_[reg] += frequency; };
      for_each_access(insn, use, use);
      if (is_move(insn)) add_hint(insn);
    }
  }
  for (Reg reg = kMachineRegisters; reg < ranges_.size(); ++reg) {
    uint32_t length = 1;
    for (const Segment& segment : ranges_[reg]) length += segment.end - segment.start;
    weights_[reg] /= length;
    if (function_[reg].is_rematerialised) weights_[reg] /= 2;
    if (function_[reg].is_unspillable) weights_[reg] = kUnspillableWeight;
  }
}

void Allocator::add_hint(const MachineInsn& insn) {
  if (is_virtual(insn.dst) && insn.src < kAllocatable) hints_[insn.dst].push_back(insn.src);
  if (is_virtual(insn.src) && insn.dst < kAllocatable) hints_[insn.src].push_back(insn.dst);
}

bool Allocator::place(Reg reg) {
  auto try_place = [&](Reg machine) {
    if (!is_free(machine, ranges_[reg])) return false;
    places_[reg] = machine;
    occupy(machine, reg);
    return true;
  };
  for (size_t i = 0; i < std::min<size_t>(hints_[reg].size(), 8); ++i)
    if (try_place(hints_[reg][i])) return true;
  return std::any_of(std::begin(kPreference), std::end(kPreference), try_place);
}

// Evicts the owners of the machine register with the least total weight, if that is less than the weight of `reg`.
bool Allocator::evict_for(Reg reg) {
  Reg best = kNoReg;
  double best_weight = weights_[reg];
  std::vector<Reg> leaving;
  for (Reg machine : kPreference) {
    std::vector<Reg> owners;
    if (!rivals(machine, reg, owners)) continue;
    double weight = 0;
    for (Reg owner : owners) weight = std::max(weight, weights_[owner]);
    if (weight >= best_weight) continue;
    best = machine;
    best_weight = weight;
    leaving = std::move(owners);
  }
  if (best == kNoReg) return false;
  for (Reg owner : leaving) release(owner);
  places_[reg] = best;
  occupy(best, reg);
  for (Reg owner : leaving)
    if (!place(owner)) spilled_.push_back(owner);
  return true;
}

template <class Visit>
void Allocator::for_each_overlap(Reg machine, const Range& range, Visit visit) const {
  const std::map<uint32_t, Occupant>& taken = occupied_[machine];
  for (const Segment& segment : range) {
    auto it = taken.lower_bound(segment.start);
    if (it != taken.begin() && std::prev(it)->second.end > segment.start) --it;
    for (; it != taken.end() && it->first < segment.end; ++it)
      if (!visit(it->second.owner)) return;
  }
}

bool Allocator::is_free(Reg machine, const Range& range) const {
  bool is_free = true;
  for_each_overlap(machine, range, [&](Reg) { return is_free = false; });
  return is_free;
}

bool Allocator::rivals(Reg machine, Reg reg, std::vector<Reg>& out) const {
  bool can_leave = true;
  for_each_overlap(machine, ranges_[reg], [&](Reg owner) {
    can_leave = is_virtual(owner) && !function_[owner].is_unspillable;
    if (can_leave && std::find(out.begin(), out.end(), owner) == out.end()) out.push_back(owner);
    return can_leave;
  });
  return can_leave;
}

void Allocator::occupy(Reg machine, Reg owner) {
  for (const Segment& segment : ranges_[owner]) occupied_[machine][segment.start] = {segment.end, owner};
}

void Allocator::release(Reg reg) {
  for (const Segment& segment : ranges_[reg]) occupied_[places_[reg]].erase(segment.start);
  places_[reg] = kNoReg;
}

void Allocator::rename() {
  for (MachineBlock& block : function_.blocks) {
    for (MachineInsn& insn : block.insns) {
      if (is_virtual(insn.dst)) insn.dst = places_[insn.dst];
      if (is_virtual(insn.src)) insn.src = places_[insn.src];
    }
    std::erase_if(block.insns, [](const MachineInsn& insn) { return is_move(insn) && insn.dst == insn.src; });
  }
}

}  // namespace

void allocate(MachineFunction& function) {
  coalesce(function);
  while (true) {
    Allocator allocator(function);
    if (allocator.place_all()) return allocator.rename();
    spill(function, allocator.spilled(), allocator.ranges());
  }
}

}  // namespace espy::bpf
