// Spilling: moves registers to the stack. Each use goes through a new register that is live for that instruction or for
// a run of adjacent ones.
#include <utility>

#include "bpf/allocate.h"

namespace espy::bpf {
namespace {

constexpr uint8_t kLoad = kLdx | kModeMem | kDouble, kStore = kStx | kModeMem | kDouble,
                  kStoreImm = kSt | kModeMem | kDouble;

class Spiller {
 public:
  Spiller(MachineFunction& function, const std::vector<Reg>& spilled) : function_(function) {
    homes_.resize(function.register_end());
    for (Reg reg : spilled) {
      homes_[reg].is_spilled = true;
      if (function[reg].is_rematerialised) continue;
      homes_[reg].object = static_cast<uint32_t>(function.objects.size());
      function.objects.emplace_back();
    }
  }

  void run() {
    for (MachineBlock& block : function_.blocks) {
      std::vector<MachineInsn> insns = std::move(block.insns);
      block.insns.clear();
      for (size_t i = 0; i < insns.size(); ++i) rewrite(insns, i, block.insns);
    }
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
  void rewrite(const std::vector<MachineInsn>& insns, size_t index, std::vector<MachineInsn>& out);
  void open(Reg reg, bool is_read, source::Span span, std::vector<MachineInsn>& out);
  void save(Reg reg, source::Span span, std::vector<MachineInsn>& out);

  MachineFunction& function_;
  std::vector<Home> homes_;
};

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

void spill(MachineFunction& function, const std::vector<Reg>& spilled) { Spiller(function, spilled).run(); }

}  // namespace espy::bpf
