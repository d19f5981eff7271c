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
};

// With `separate_programs`, each action is a program of its own, even if several could share one
// (lower/merge_programs.h).
Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel,
              bool separate_programs = false);

}  // namespace espy::lower
