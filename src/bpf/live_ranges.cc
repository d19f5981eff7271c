#include "bpf/live_ranges.h"

#include <algorithm>

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

}  // namespace espy::bpf
