#include "bpf/allocate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ir/analysis.h"

namespace espy::bpf {

bool overlap(const Range& a, const Range& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].start < b[j].end && b[j].start < a[i].end) return true;
    a[i].end <= b[j].end ? ++i : ++j;
  }
  return false;
}

bool is_live(const Range& range, uint32_t position) {
  const auto after = std::ranges::upper_bound(range, position, {}, &Segment::start);
  return after != range.begin() && position < std::prev(after)->end;
}

Range unite(const Range& a, const Range& b) {
  Range all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
             [](const Segment& x, const Segment& y) { return x.start < y.start; });
  Range out;
  for (const Segment& segment : all) {
    if (!out.empty() && segment.start <= out.back().end)
      out.back().end = std::max(out.back().end, segment.end);
    else
      out.push_back(segment);
  }
  return out;
}

void touch_registers(const MachineFunction&, const MachineInsn& insn, Touches& touches) {
  auto read = [&](Reg reg) {
    if (reg != kFramePointer) touches.read(reg);
  };
  for_each_access(insn, read, [&](Reg reg) { touches.write(reg); });
}

void touch_spill_slots(const MachineFunction& function, const MachineInsn& insn, Touches& touches) {
  if (insn.object == kNoObject || insn.object < function.slot_count) return;
  uint32_t slot = insn.object - function.slot_count;
  class_of(insn.code) == kLdx ? touches.read(slot) : touches.write(slot);
}

namespace {

class Liveness {
 public:
  Liveness(const MachineFunction& function, uint32_t count, TouchFunction touch)
      : function_(function), touch_(touch), ranges_(count), uses_(count), definitions_(count), end_(count) {}

  std::vector<Range> run() {
    find_outside_uses();
    find_live_out();
    find_segments();
    return std::move(ranges_);
  }

 private:
  Touches touches_of(const MachineInsn& insn) const {
    Touches touches;
    touch_(function_, insn, touches);
    return touches;
  }
  void find_outside_uses();
  void find_live_out();
  void find_segments();
  void scan_block(uint32_t block, uint32_t first);
  void close(uint32_t thing, uint32_t start);

  const MachineFunction& function_;
  TouchFunction touch_;
  std::vector<Range> ranges_;
  std::vector<std::vector<uint32_t>> uses_;         // by number: blocks that read it before they write it
  std::vector<std::vector<uint32_t>> definitions_;  // by number: blocks that write it
  std::vector<std::vector<uint32_t>> live_out_;     // by block
  std::vector<uint32_t> end_;                       // by number: end of the open segment; 0: none
};

void Liveness::find_outside_uses() {
  std::vector<uint32_t> written_in(ranges_.size(), kNoBlock), read_in(ranges_.size(), kNoBlock);
  for (uint32_t block = 0; block < function_.blocks.size(); ++block) {
    for (const MachineInsn& insn : function_.blocks[block].insns) {
      Touches touches = touches_of(insn);
      for (uint32_t i = 0; i < touches.read_count; ++i) {
        uint32_t thing = touches.reads[i];
        if (written_in[thing] == block || read_in[thing] == block) continue;
        read_in[thing] = block;
        uses_[thing].push_back(block);
      }
      for (uint32_t i = 0; i < touches.write_count; ++i) {
        uint32_t thing = touches.writes[i];
        if (written_in[thing] == block) continue;
        written_in[thing] = block;
        definitions_[thing].push_back(block);
      }
    }
  }
}

// For each number: walks the predecessors of the blocks that read it, up to those that write it.
void Liveness::find_live_out() {
  size_t count = function_.blocks.size();
  std::vector<std::vector<uint32_t>> predecessors(count);
  for (uint32_t block = 0; block < count; ++block)
    for_each_successor(function_.blocks[block], [&](uint32_t to) { predecessors[to].push_back(block); });
  live_out_.resize(count);
  std::vector<uint32_t> defines(count, ~0u), is_out(count, ~0u), is_in(count, ~0u);
  for (uint32_t thing = 0; thing < ranges_.size(); ++thing) {
    for (uint32_t block : definitions_[thing]) defines[block] = thing;
    std::vector<uint32_t> todo = uses_[thing];
    for (uint32_t block : todo) is_in[block] = thing;
    while (!todo.empty()) {
      uint32_t block = todo.back();
      todo.pop_back();
      for (uint32_t from : predecessors[block]) {
        if (is_out[from] == thing) continue;
        is_out[from] = thing;
        live_out_[from].push_back(thing);
        if (defines[from] == thing || is_in[from] == thing) continue;
        is_in[from] = thing;
        todo.push_back(from);
      }
    }
  }
}

void Liveness::find_segments() {
  uint32_t first = 0;
  for (const MachineBlock& block : function_.blocks) first += static_cast<uint32_t>(block.insns.size());
  for (uint32_t block = static_cast<uint32_t>(function_.blocks.size()); block-- > 0;) {
    first -= static_cast<uint32_t>(function_.blocks[block].insns.size());
    scan_block(block, first);
  }
  for (Range& range : ranges_) std::reverse(range.begin(), range.end());
}

void Liveness::scan_block(uint32_t block, uint32_t first) {
  const std::vector<MachineInsn>& insns = function_.blocks[block].insns;
  uint32_t end = 2 * (first + static_cast<uint32_t>(insns.size()));
  std::vector<uint32_t> opened = live_out_[block];
  for (uint32_t thing : opened) end_[thing] = end;
  for (uint32_t i = static_cast<uint32_t>(insns.size()); i-- > 0;) {
    Touches touches = touches_of(insns[i]);
    uint32_t position = 2 * (first + i);
    for (uint32_t k = 0; k < touches.write_count; ++k) {
      uint32_t thing = touches.writes[k];
      if (end_[thing] == 0) end_[thing] = position + 2;
      close(thing, position + 1);
    }
    for (uint32_t k = 0; k < touches.read_count; ++k) {
      uint32_t thing = touches.reads[k];
      if (end_[thing] != 0) continue;
      end_[thing] = position + 1;
      opened.push_back(thing);
    }
  }
  for (uint32_t thing : opened)
    if (end_[thing] != 0) close(thing, 2 * first);
}

void Liveness::close(uint32_t thing, uint32_t start) {
  Range& range = ranges_[thing];
  uint32_t end = std::exchange(end_[thing], 0);
  if (start == end) return;
  if (!range.empty() && range.back().start == end)
    range.back().start = start;
  else
    range.push_back({start, end});
}

}  // namespace

std::vector<Range> live_ranges(const MachineFunction& function, uint32_t count, TouchFunction touch) {
  return Liveness(function, count, touch).run();
}

// ---- Register allocation.
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
// Ranges are lists of segments with holes (allocate.h), not intervals: a value that dies in one arm of a branch
// frees its register in the other arm.
//
// The steps:
//   1. The first step merges registers that are connected by a copy and never live at the same time. This removes most
//      copies for two-operand instructions (d = a; d += b) and for block parameters.
//   2. Registers are assigned in order of their uses per length, uses in loops weighted tenfold per level. The first
//      choice is a machine register that a copy connects it with, which removes the copy; then r0-r5, which are free;
//      then r6-r9, which the JIT has to save.
//   3. The others are spilled: to the stack, or, if one instruction computes them from nothing, they are
//      rematerialized at each use. Uses go through registers that live for one instruction, which cannot be spilled and
//      evict others.
//   4. After a spill, steps 2 and 3 are repeated on the new code. Each round removes the spilled registers, and the new
//      ones are unspillable, so this terminates; in practice after two or three rounds.
//   5. Spill slots whose ranges do not overlap share their 8 bytes (stack_slots.cc).
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

// ---- Copy coalescing: merges d and s of a copy d = s if they are never live at the same time.

namespace {

struct Copy {
  Reg dst, src;
  uint32_t depth;
};

std::vector<Copy> copies_of(const MachineFunction& function) {
  std::vector<Copy> copies;
  for (const MachineBlock& block : function.blocks) {
    for (const MachineInsn& insn : block.insns) {
      if (!is_move(insn) || !is_virtual(insn.dst) || !is_virtual(insn.src)) continue;
      // Not merged, so that they stay rematerializable.
      if (function[insn.dst].is_rematerialised || function[insn.src].is_rematerialised) continue;
      copies.push_back({insn.dst, insn.src, block.loop_depth});
    }
  }
  // The most frequently executed copies first: a merge can prevent later ones.
  std::stable_sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.depth > b.depth; });
  return copies;
}

void rename(MachineFunction& function, std::vector<Reg>& leader) {
  auto find = [&](Reg reg) {
    while (leader[reg] != reg) reg = leader[reg] = leader[leader[reg]];
    return reg;
  };
  for (MachineBlock& block : function.blocks) {
    for (MachineInsn& insn : block.insns) {
      if (is_virtual(insn.dst)) insn.dst = find(insn.dst);
      if (is_virtual(insn.src)) insn.src = find(insn.src);
    }
    std::erase_if(block.insns, [](const MachineInsn& insn) { return is_move(insn) && insn.dst == insn.src; });
  }
}

}  // namespace

void coalesce(MachineFunction& function) {
  std::vector<Range> ranges = live_ranges(function, function.register_end(), touch_registers);
  std::vector<Reg> leader(function.register_end());
  std::iota(leader.begin(), leader.end(), Reg{0});
  auto find = [&](Reg reg) {
    while (leader[reg] != reg) reg = leader[reg] = leader[leader[reg]];
    return reg;
  };
  for (const Copy& copy : copies_of(function)) {
    Reg dst = find(copy.dst), src = find(copy.src);
    if (dst == src || overlap(ranges[dst], ranges[src])) continue;
    ranges[dst] = unite(ranges[dst], ranges[src]);
    ranges[src].clear();
    leader[src] = dst;
  }
  rename(function, leader);
}

// ---- Spilling: moves registers to the stack. Each use goes through a new register that is live for that instruction
// or for a run of adjacent ones.
//
// What an ordered comparison says about that register has to hold for the value on the stack, too, which may be the
// index that was checked. Before Linux 6.9 (8ecfc371d829) the verifier does not relate the two, so the register is
// stored again where the comparison leads.

namespace {

constexpr uint8_t kLoad = kLdx | kModeMem | kDouble, kStore = kStx | kModeMem | kDouble,
                  kStoreImm = kSt | kModeMem | kDouble;
constexpr uint32_t kNever = ~uint32_t{0};

class Spiller {
 public:
  Spiller(MachineFunction& function, const std::vector<Reg>& spilled, const std::vector<Range>& ranges)
      : function_(function), ranges_(ranges) {
    homes_.resize(function.register_end());
    for (Reg reg : spilled) {
      homes_[reg].is_spilled = true;
      if (function[reg].is_rematerialised) continue;
      homes_[reg].object = static_cast<uint32_t>(function.objects.size());
      function.objects.emplace_back();
    }
  }

  void run() {
    find_entered_once();
    for (MachineBlock& block : function_.blocks) {
      std::vector<MachineInsn> insns = std::move(block.insns);
      block.insns.clear();
      for (size_t i = 0; i < insns.size(); ++i) rewrite(insns, i, block.insns);
      if (!insns.empty() && is_ordered_comparison(insns.back())) store_compared(insns.back(), block);
    }
    for (const auto& [block, stores] : stores_at_)
      function_.blocks[block].insns.insert(function_.blocks[block].insns.begin(), stores.begin(), stores.end());
  }

 private:
  struct Home {
    bool is_spilled = false;
    uint32_t object = kNoObject;
    Reg stand_in = kNoReg;  // holds the value for a run of adjacent instructions
    bool is_dirty = false;  // the stack does not hold the value of the stand-in yet
  };

  bool is_spilled(Reg reg) const { return is_virtual(reg) && reg < homes_.size() && homes_[reg].is_spilled; }
  bool uses(const MachineInsn& insn, Reg reg) const { return insn.dst == reg || insn.src == reg; }
  bool rewrite_move(MachineInsn insn, std::vector<MachineInsn>& out);
  void find_entered_once();
  void rewrite(const std::vector<MachineInsn>& insns, size_t index, std::vector<MachineInsn>& out);
  void store_compared(const MachineInsn& was, const MachineBlock& block);
  void open(Reg reg, bool is_read, source::Span span, std::vector<MachineInsn>& out);
  void save(Reg reg, source::Span span, std::vector<MachineInsn>& out);

  MachineFunction& function_;
  const std::vector<Range>& ranges_;  // of the registers before spilling
  std::vector<Home> homes_;
  std::vector<uint32_t> entered_once_;  // by block: the position where it began if it has one predecessor, else kNever
  std::map<uint32_t, std::vector<MachineInsn>> stores_at_;  // the beginnings of these blocks
};

void Spiller::find_entered_once() {
  std::vector<uint32_t> predecessors(function_.blocks.size());
  predecessors[0] = 1;
  for (const MachineBlock& block : function_.blocks)
    for_each_successor(block, [&](uint32_t to) { ++predecessors[to]; });
  uint32_t position = 0;
  for (uint32_t block = 0; block < function_.blocks.size(); ++block) {
    entered_once_.push_back(predecessors[block] == 1 && block != 0 ? position : kNever);
    position += 2 * static_cast<uint32_t>(function_.blocks[block].insns.size());
  }
}

// `was` is the last instruction of the block before it was rewritten.
void Spiller::store_compared(const MachineInsn& was, const MachineBlock& block) {
  const MachineInsn& now = block.insns.back();
  const auto store_at = [&](uint32_t to, Reg reg, Reg stand_in) {
    if (!is_spilled(reg) || homes_[reg].object == kNoObject) return;
    if (entered_once_[to] == kNever || !is_live(ranges_[reg], entered_once_[to])) return;
    stores_at_[to].push_back({.code = kStore, .src = stand_in, .object = homes_[reg].object, .span = was.span});
  };
  for_each_successor(block, [&](uint32_t to) {
    store_at(to, was.dst, now.dst);
    if (was.src != was.dst) store_at(to, was.src, now.src);
  });
}

// Copies to and from a spilled register, and constants into one, become a single load or store.
bool Spiller::rewrite_move(MachineInsn insn, std::vector<MachineInsn>& out) {
  bool is_constant = insn.code == (kAlu64 | kMov | kImm);
  if (!is_move(insn) && !is_constant) return false;
  bool to_stack = is_spilled(insn.dst) && homes_[insn.dst].object != kNoObject && homes_[insn.dst].stand_in == kNoReg;
  bool from_stack = is_move(insn) && is_spilled(insn.src) && homes_[insn.src].object != kNoObject;
  if (to_stack && (is_constant || !is_spilled(insn.src))) {
    uint8_t code = is_constant ? kStoreImm : kStore;
    Reg src = is_constant ? kNoReg : insn.src;
    out.push_back({.code = code, .src = src, .imm = insn.imm, .object = homes_[insn.dst].object, .span = insn.span});
    return true;
  }
  if (from_stack && !is_spilled(insn.dst) && homes_[insn.src].stand_in == kNoReg) {
    out.push_back({.code = kLoad, .dst = insn.dst, .object = homes_[insn.src].object, .span = insn.span});
    return true;
  }
  return false;
}

void Spiller::rewrite(const std::vector<MachineInsn>& insns, size_t index, std::vector<MachineInsn>& out) {
  MachineInsn insn = insns[index];
  Reg dst = insn.dst, src = insn.src;
  const MachineInsn* next = index + 1 < insns.size() ? &insns[index + 1] : nullptr;
  // If the next instruction continues with the destination, the copy is better done in a register.
  bool goes_on = next && is_spilled(dst) && (uses(*next, dst));
  if (is_spilled(dst) && function_[dst].is_rematerialised && access(insn).writes_dst)
    return;  // rematerialized at its uses
  if (!goes_on && rewrite_move(insn, out)) return;
  Access a = access(insn);
  if (is_spilled(dst)) {
    open(dst, a.reads_dst || (src == dst && a.reads_src), insn.span, out);
    insn.dst = homes_[dst].stand_in;
    homes_[dst].is_dirty |= a.writes_dst;
  }
  bool is_done = is_spilled(dst) && rewrite_move(insn, out);  // becomes a load from the stack into the stand-in
  if (!is_done && is_spilled(src)) {
    open(src, a.reads_src, insn.span, out);
    insn.src = homes_[src].stand_in;
    homes_[src].is_dirty |= a.writes_src;
  }
  if (!is_done) out.push_back(insn);
  for (Reg reg : {dst, src}) {
    if (!is_spilled(reg)) continue;
    bool stays = next && uses(*next, reg);
    if (!stays || is_conditional_jump(*next)) save(reg, insn.span, out);
    if (!stays) homes_[reg].stand_in = kNoReg;
  }
}

void Spiller::open(Reg reg, bool is_read, source::Span span, std::vector<MachineInsn>& out) {
  if (homes_[reg].stand_in != kNoReg) return;
  Reg stand_in = function_.add_register();
  function_[stand_in].is_unspillable = true;
  homes_[reg].stand_in = stand_in;
  homes_[reg].is_dirty = false;
  if (!is_read) return;
  MachineInsn load{.code = kLoad, .object = homes_[reg].object};
  if (function_[reg].is_rematerialised) load = function_[reg].recipe;
  load.dst = stand_in;
  load.span = span;
  out.push_back(load);
}

void Spiller::save(Reg reg, source::Span span, std::vector<MachineInsn>& out) {
  Home& home = homes_[reg];
  if (home.is_dirty) out.push_back({.code = kStore, .src = home.stand_in, .object = home.object, .span = span});
  home.is_dirty = false;
}

}  // namespace

void spill(MachineFunction& function, const std::vector<Reg>& spilled, const std::vector<Range>& ranges) {
  Spiller(function, spilled, ranges).run();
}

// ---- Stack slots

using namespace ir;

namespace {

constexpr uint32_t kNoSlot = ~0u;

class SlotRanges {
 public:
  explicit SlotRanges(const Function& function)
      : function_(function),
        order_(reverse_post_order(function)),
        escapes_(function.slots.size()),
        ranges_(function.slots.size()) {}
  std::vector<Range> run();

 private:
  bool follow(ValueId value, uint32_t slot);
  void find_addresses();
  void find_escapes();
  void find_ranges();
  static void add(Range& range, Segment segment);

  const Function& function_;
  std::vector<BlockId> order_;
  std::vector<uint32_t> slot_of_;  // by value: the slot that it points into
  std::vector<bool> escapes_;      // by slot
  std::vector<Range> ranges_;      // by slot
};

std::vector<Range> SlotRanges::run() {
  find_addresses();
  find_escapes();
  find_ranges();
  for (uint32_t slot = 0; slot < ranges_.size(); ++slot)
    if (escapes_[slot]) ranges_[slot] = {{0, ~0u}};
  return std::move(ranges_);
}

// Records that `value` points into `slot`. If it may point into two slots, both escape.
bool SlotRanges::follow(ValueId value, uint32_t slot) {
  uint32_t& known = slot_of_[value.index];
  if (known == slot) return false;
  if (known != kNoSlot) {
    escapes_[known] = escapes_[slot] = true;
    return false;
  }
  known = slot;
  return true;
}

void SlotRanges::find_addresses() {
  slot_of_.assign(function_.values.size(), kNoSlot);
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId block : order_) {
      for (ValueId id : function_.blocks[block].instructions) {
        const Instruction& instruction = function_.values[id];
        if (instruction.op == Op::k_slot) changed |= follow(id, instruction.slot.index);
        if (instruction.op == Op::k_add || instruction.op == Op::k_sub) {
          for (ValueId operand : instruction.operands)
            if (slot_of_[operand.index] != kNoSlot) changed |= follow(id, slot_of_[operand.index]);
        }
        for (const ir::Target& target : instruction.targets) {
          for (size_t i = 0; i < target.arguments.size(); ++i) {
            uint32_t slot = slot_of_[target.arguments[i].index];
            if (slot != kNoSlot) changed |= follow(function_.blocks[target.block].parameters[i], slot);
          }
        }
      }
    }
  }
}

// Returns the operands through which the instruction accesses memory, arguments of calls included.
bool keeps_address_inside(const Instruction& instruction, size_t operand) {
  if (ir::accesses_memory(instruction.op)) return operand == 0;
  switch (instruction.op) {
    case Op::k_zero:
    case Op::k_copy:
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function:
    case Op::k_add:
    case Op::k_sub:
    case Op::k_branch: return true;
    default: return false;
  }
}

void SlotRanges::find_escapes() {
  for (BlockId block : order_) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& instruction = function_.values[id];
      for (size_t i = 0; i < instruction.operands.size(); ++i) {
        uint32_t slot = slot_of_[instruction.operands[i].index];
        if (slot != kNoSlot && !keeps_address_inside(instruction, i)) escapes_[slot] = true;
      }
    }
  }
}

// Within a block, a slot is live from the start if it is live in, else from its first use; to the end if it is live
// out, else to its last use.
void SlotRanges::find_ranges() {
  const SlotLiveness liveness(function_);
  std::vector<Segment> uses(function_.slots.size());  // in the block
  std::vector<uint32_t> used;                         // the slots with uses
  const auto extend = [&](uint32_t slot, Segment by) {
    Segment& use = uses[slot];
    if (use.end == 0) {
      use = by;
      used.push_back(slot);
    } else {
      use = {std::min(use.start, by.start), std::max(use.end, by.end)};
    }
  };
  uint32_t place = 0;
  for (BlockId block : order_) {
    const uint32_t start = place;
    for (const SlotId slot : liveness.at(block)) extend(slot.index, {start, start + 1});
    for (ValueId id : function_.blocks[block].instructions) {
      for_each_use(function_.values[id], [&](ValueId value) {
        const uint32_t slot = slot_of_[value.index];
        if (slot != kNoSlot) extend(slot, {place, place + 1});
      });
      ++place;
    }
    for (const ir::Target& target : terminator(function_, block).targets)
      for (const SlotId slot : liveness.at(target.block))
        extend(slot.index, {uses[slot.index].end != 0 ? uses[slot.index].start : start, place});
    for (const uint32_t slot : used) add(ranges_[slot], std::exchange(uses[slot], {}));
    used.clear();
  }
}

void SlotRanges::add(Range& range, Segment segment) {
  if (!range.empty() && range.back().end == segment.start) {
    range.back().end = segment.end;
  } else {
    range.push_back(segment);
  }
}

}  // namespace

std::vector<Range> slot_ranges(const Function& function) { return SlotRanges(function).run(); }

// ---- Stack layout.
//
// The stack has 512 bytes, so objects that are never live at the same time share bytes. For spilled registers this is
// exact: loads and stores are their only uses (allocate.h). The address of a slot can be in registers and arguments
// of calls; `slot_ranges` tracks it through sums and block parameters, and treats a slot as live everywhere if its
// address is stored to memory or escapes otherwise.

namespace {

// Eight bytes of the stack: the segments of the code in which they are taken, by start, with their ends.
using Taken = std::map<uint32_t, uint32_t>;

bool is_free(const Taken& taken, const Range& range) {
  return std::ranges::none_of(range, [&](const Segment& segment) {
    const auto next = taken.lower_bound(segment.start);
    return (next != taken.end() && next->first < segment.end) ||
           (next != taken.begin() && std::prev(next)->second > segment.start);
  });
}

// The stack below `base`, in units of eight bytes. It grows as needed.
class Units {
 public:
  // Takes the first `count` units that are free in the whole range; returns the number of the first.
  size_t take(size_t count, const Range& range) {
    size_t first = 0;
    for (size_t unit = 0; unit < first + count; ++unit)
      if (unit < taken_.size() && !is_free(taken_[unit], range)) first = unit + 1;
    if (taken_.size() < first + count) taken_.resize(first + count);
    for (size_t unit = first; unit < first + count; ++unit)
      for (const Segment& segment : range) taken_[unit].emplace(segment.start, segment.end);
    return first;
  }
  size_t size() const { return taken_.size(); }

 private:
  std::vector<Taken> taken_;
};

// First fit, largest first: places each object at the first position that no object with an overlapping live range
// occupies. Returns the number of bytes used below `base`.
uint32_t place_by_ranges(std::vector<StackObject>& objects, uint32_t first, const std::vector<Range>& ranges,
                         uint32_t base) {
  constexpr uint32_t kUnitBytes = 8;
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return objects[first + a].size_bytes > objects[first + b].size_bytes;
  });
  Units units;
  for (uint32_t item : order) {
    if (ranges[item].empty()) continue;
    StackObject& object = objects[first + item];
    const uint32_t count = (std::max(object.size_bytes, 1u) + kUnitBytes - 1) / kUnitBytes;
    const auto end = static_cast<uint32_t>(units.take(count, ranges[item])) + count;
    object.offset = -static_cast<int32_t>(base + end * kUnitBytes);
  }
  return static_cast<uint32_t>(units.size()) * kUnitBytes;
}

}  // namespace

void place_objects(const ir::Function& function, MachineFunction& machine) {
  uint32_t bytes = place_by_ranges(machine.objects, 0, slot_ranges(function), 0);
  uint32_t spilled = static_cast<uint32_t>(machine.objects.size()) - machine.slot_count;
  bytes +=
      place_by_ranges(machine.objects, machine.slot_count, live_ranges(machine, spilled, touch_spill_slots), bytes);
  machine.stack_bytes = bytes;
}

}  // namespace espy::bpf
