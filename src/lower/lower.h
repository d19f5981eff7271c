// lower: from a checked script to IR, and to the maps, events and probes that accompany it. Cannot fail.
#pragma once

#include "check/checked.h"
#include "ir/ir.h"
#include "program/program.h"

namespace espy::lower {

struct Lowered {
  ir::Module ir;
  program::Program program;          // without code, which `bpf` adds
  bool has_merged_programs = false;  // true if some actions share a program
  bool has_copies = false;           // true if an `unroll` made copies that can be the iterations of a loop instead
};

struct Options {
  bool separate_programs = false;  // each action is a program of its own, even if several could share one
                                   // (lower.cc)
  bool loops_for_unroll = false;   // `unroll` makes loops, if the kernel has may_goto
};

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, const Options& options = {});

}  // namespace espy::lower
