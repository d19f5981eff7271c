// lower: from a checked script to IR, and to the maps, events and probes around it. Cannot fail.
#pragma once

#include "check/checked.h"
#include "ir/ir.h"
#include "program/program.h"

namespace espy::lower {

struct Lowered {
  ir::Module ir;
  program::Program program;          // without code: `bpf` adds that
  bool has_merged_programs = false;  // some actions have a program in common
};

// `apart`: each action is a program of its own, also where one program could do for several (lower/merge_programs.h).
Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, bool apart = false);

}  // namespace espy::lower
