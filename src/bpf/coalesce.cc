// Copy coalescing: merges d and s of a copy d = s if they are never live at the same time.
#include <algorithm>
#include <numeric>

#include "bpf/allocate.h"
#include "bpf/live_ranges.h"

namespace espy::bpf {
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

}  // namespace espy::bpf
