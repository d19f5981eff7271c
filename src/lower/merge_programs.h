// Which units become one BPF program, and how.
//
// The problem: each action is a program, but some hang on the same hook. All system calls go through two raw
// tracepoints, so a script with actions on ten of them would run ten programs at every system call of the machine, some
// 70 ns each, to find that nine or ten are not meant. And `kprobe:f { ... } kretprobe:f { ... }`, which everybody
// writes to time a call, would be two links, which the kernel serves one after the other; a call whose entry was missed
// would be seen to return all the same.
//
// The trick: such units become the parts of one program. System calls: the number is looked up once, each part looks
// whether it is its own, and what is left is a comparison for each that is not. Calls of functions: kernels from 6.10
// (kprobes) and 6.13 (uprobes) fire one program at both edges of a call, a session, and a kernel function,
// bpf_session_is_return(), tells it at which. Whoever looks at the probes sees as many as before; they have the same
// program.
//
// Of a thread the kernel keeps 64 calls whose return is to be seen, and tells nobody of others. In a session the entry
// sees how many there are, and counts what will be missed: so a uretprobe by itself is a session, too, whose entry does
// nothing else.
//
// A session gives both edges the same cookie, the entry's probe. Both units probe the very same places in the same
// order, so the return's probe is a constant distance away.
//
// Left out: parts that are too much for the verifier together, or for the stack. The caller then asks for programs
// apart (cli/run.cc).
//
// Read on: kernel commits "bpf: Add support for kprobe session attach" (6.10), "bpf: Add support for uprobe multi
// session attach" (6.13).
#pragma once

#include <vector>

#include "lower/module_context.h"

namespace espy::lower {

// The units of one program: nearly always a single one.
struct Group {
  enum class Kind : uint8_t { kSingle, kSession, kByNumber };
  Kind kind = Kind::kSingle;
  std::vector<const check::Unit*> units;  // kSession: entry and return, or return alone
  uint32_t is_return_id = 0;              // kSession: BTF id of bpf_session_is_return()
  int64_t cookie_distance = 0;            // kSession: from the cookie to the index of the return's probe
};

// All units with an action, in their order. `apart`: each by itself.
std::vector<Group> group_units(const ModuleContext& module, bool apart);

// One main function of the parts, which are main functions, one for each unit; of a session always two. What parts by
// number have in common is their first slot, the number.
ir::Function merge(const Group& group, std::vector<ir::Function> parts);

}  // namespace espy::lower
