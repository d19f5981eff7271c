// Spilling: moves registers to the stack. Each use goes through a new register that is live for that instruction or for
// a run of adjacent ones.
//
// What an ordered comparison says about that register has to hold for the value on the stack, too, which may be the
// index that was checked. Before Linux 6.9 (8ecfc371d829) the verifier does not relate the two, so the register is
// stored again where the comparison leads.
#include <map>
#include <utility>

#include "bpf/allocate.h"

namespace espy::bpf {
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

}  // namespace espy::bpf
