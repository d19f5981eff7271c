// Which units share a BPF program, and how they are merged.
//
// The problem: each action is a program, but some are attached to the same hook. All system calls fire two raw
// tracepoints, so a script with actions on ten of them would run ten programs at each system call of the machine, some
// 70 ns each, nine or ten of which do nothing. And `kprobe:f { ... } kretprobe:f { ... }`, the usual way to time a
// call, would be two links, which the kernel runs one after the other; a call whose entry was missed would still be
// seen to return.
//
// The solution: such units become parts of one program. For system calls, the number is read once, and dismissed
// at once if no part has it: that is what the calls pay that are not traced. Then each part compares it with its own.
// For function calls, kernels from 6.10 (kprobes) and 6.13 (uprobes) run one program at entry and return, a session,
// and the kernel function bpf_session_is_return() distinguishes the two. The number of probes does not change; they
// refer to the same program.
//
// The kernel tracks the return of at most 64 nested calls of a thread, and does not report that it misses others. In a
// session, the entry sees the depth and counts the calls whose return will be missed. So a uretprobe alone is also a
// session, whose entry does nothing else.
//
// A session passes the same cookie at entry and return: the index of the entry's probe. Both units probe the same
// functions in the same order, so the index of the return's probe is a constant distance away.
//
// The order of the script holds on each hook: of units at one function either all form sessions or none.
//
// Limits: the merged program may exceed the verifier's limits or the stack. The caller then asks for separate programs.
//
// References: kernel commits "bpf: Add support for kprobe session attach" (6.10), "bpf: Add support for uprobe multi
// session attach" (6.13).
#pragma once

#include <cstdint>
#include <vector>

#include "lower/module_context.h"

namespace espy::lower {

// The units of one program, usually one.
struct Group {
  enum class Kind : uint8_t { kSingle, kSession, kByNumber };
  Kind kind = Kind::kSingle;
  std::vector<const check::Unit*> units;  // kSession: entry and return, or return alone
  uint32_t is_return_id = 0;              // kSession: BTF id of bpf_session_is_return()
  int64_t cookie_distance = 0;            // kSession: from the cookie to the index of the return's probe
};

// Groups all units that have an action, in their order. With `separate_programs`, each is a group of its own.
std::vector<Group> group_units(const ModuleContext& module, bool separate_programs);

// Merges the main functions of the parts, one for each unit; for a session, always entry and return. With kByNumber,
// the first part is the dismissal (UnitLowering::lower_dismissal), the parts' first slot, the number, becomes one, and
// the program returns at once after exit(); a part that calls exit() does not keep the parts after it from seeing the
// same event.
ir::Function merge(const ModuleContext& module, const Group& group, std::vector<ir::Function> parts);

}  // namespace espy::lower
