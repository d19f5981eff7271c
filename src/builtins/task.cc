// Who runs: the task in whose context the probe fired.
#include <algorithm>

#include "builtins/all.h"
#include "check/checker.h"
#include "lower/lowering.h"

namespace espy::builtins {

namespace {

using ir::Helper;
using ir::Op;
using lower::Lowering;
using lower::Operand;
using spec::BuiltinKind;
using spec::CallSite;
using types::TypeId;

constexpr uint32_t kCommBytes = 16;  // TASK_COMM_LEN

// bpf_get_current_pid_tgid(): tgid << 32 | tid. The language's pid is the kernel's tgid.
Operand high_half(Lowering& lowering, Helper helper) {
  ir::Builder& ir = lowering.ir();
  return lowering.scalar_operand(lowering.types().int_type(4, false), ir.binary(Op::k_shr, ir.call(helper, {}), 32));
}

Operand low_half(Lowering& lowering, Helper helper) {
  ir::Builder& ir = lowering.ir();
  return lowering.scalar_operand(lowering.types().int_type(4, false), ir.unary(Op::k_zext32, ir.call(helper, {})));
}

Operand lower_pid(Lowering& lowering, const CallSite&) { return high_half(lowering, Helper::get_current_pid_tgid); }
Operand lower_tid(Lowering& lowering, const CallSite&) { return low_half(lowering, Helper::get_current_pid_tgid); }
Operand lower_uid(Lowering& lowering, const CallSite&) { return low_half(lowering, Helper::get_current_uid_gid); }
Operand lower_gid(Lowering& lowering, const CallSite&) { return high_half(lowering, Helper::get_current_uid_gid); }

// ---- comm: task_struct.comm, NUL-padded by the kernel ---------------------------------------------------------------

TypeId check_comm(check::Checker& checker, const CallSite&) { return checker.types().string(kCommBytes); }

ir::ValueId lower_comm_into(Lowering& lowering, const CallSite&, ir::ValueId destination, uint32_t capacity_bytes) {
  ir::Builder& ir = lowering.ir();
  ir.call(Helper::get_current_comm, {destination, ir.constant(std::min(capacity_bytes, kCommBytes))});
  return {};
}

Operand lower_comm(Lowering& lowering, const CallSite& call) {
  Operand out;
  out.type = lowering.types().string(kCommBytes);
  out.value = lowering.memory(kCommBytes, "comm");
  out.is_address = true;
  lower_comm_into(lowering, call, out.value, kCommBytes);
  return out;
}

Operand lower_cpu(Lowering& lowering, const CallSite&) {
  return lowering.scalar_operand(lowering.types().int_type(4, false), lowering.cpu());
}

Operand lower_rand(Lowering& lowering, const CallSite&) {
  return lowering.scalar_operand(lowering.types().int_type(4, false), lowering.ir().call(Helper::get_prandom_u32, {}));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "uint32 pid", .doc = "The process id.", .kind = BuiltinKind::kVariable, .lower = lower_pid},
    {.sig = "uint32 tid", .doc = "The thread id.", .kind = BuiltinKind::kVariable, .lower = lower_tid},
    {.sig = "uint32 uid", .doc = "The user id.", .kind = BuiltinKind::kVariable, .lower = lower_uid},
    {.sig = "uint32 gid", .doc = "The group id.", .kind = BuiltinKind::kVariable, .lower = lower_gid},
    {.sig = "any comm",
     .doc = "The name of the thread, at most 15 bytes.",
     .kind = BuiltinKind::kVariable,
     .check = check_comm,
     .lower = lower_comm,
     .lower_into = lower_comm_into},
    {.sig = "uint32 cpu",
     .doc = "The CPU that the probe fired on.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_cpu},
    {.sig = "uint32 rand", .doc = "A random number.", .kind = BuiltinKind::kVariable, .lower = lower_rand},
};

}  // namespace

std::span<const spec::Builtin> task_builtins() { return kRows; }

}  // namespace espy::builtins
