// lower: from a checked script to IR, and to the maps, events and probes around it. Cannot fail.
#pragma once

#include "check/checked.h"
#include "ir/ir.h"
#include "program/program.h"

namespace espy::lower {

struct Lowered {
  ir::Module ir;
  program::Program program;  // without code: `bpf` adds that
};

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel,
              const source::Sources& sources);

}  // namespace espy::lower
