#include "bpf/machine_code.h"

namespace espy::bpf {

bool is_call(const MachineInsn& insn) { return insn.code == (kJmp | kCall); }

bool is_conditional_jump(const MachineInsn& insn) { return insn.target != kNoBlock; }

bool is_ordered_comparison(const MachineInsn& insn) {
  if (!is_conditional_jump(insn)) return false;
  const uint8_t operation = operation_of(insn.code);
  return operation != kJeq && operation != kJne && operation != kJset && operation != kJcond;
}

bool is_move(const MachineInsn& insn) { return insn.code == (kAlu64 | kMov | kReg) && insn.offset == 0; }

bool is_compare_exchange(const MachineInsn& insn) {
  return class_of(insn.code) == kStx && mode_of(insn.code) == kModeAtomic && insn.imm == kCmpxchg;
}

namespace {

Access access_of_store(const MachineInsn& insn) {
  Access out;
  out.reads_dst = insn.object == kNoObject;
  out.reads_src = class_of(insn.code) == kStx;
  bool is_atomic = out.reads_src && mode_of(insn.code) == kModeAtomic;
  out.writes_src = is_atomic && (insn.imm & kFetch) != 0 && insn.imm != kCmpxchg;
  return out;
}

}  // namespace

Access access(const MachineInsn& insn) {
  bool has_register = (insn.code & kReg) != 0;
  switch (class_of(insn.code)) {
    case kLd: return {.writes_dst = true};
    case kLdx: return {.writes_dst = true, .reads_src = insn.object == kNoObject};
    case kSt:
    case kStx: return access_of_store(insn);
    case kAlu32:
    case kAlu64: {
      uint8_t operation = operation_of(insn.code);
      if (operation == kEnd || operation == kNeg) return {.reads_dst = true, .writes_dst = true};
      return {.reads_dst = operation != kMov, .writes_dst = true, .reads_src = has_register};
    }
    default: {
      uint8_t operation = operation_of(insn.code);
      if (operation == kJa || operation == kCall || operation == kExit || operation == kJcond) return {};
      return {.reads_dst = true, .reads_src = has_register};
    }
  }
}

}  // namespace espy::bpf
