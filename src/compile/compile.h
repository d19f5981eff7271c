// compile: from a checked script to a program with BPF code.
//
// Runs the middle and the back end: lower, optimize, outline loops where the kernel's verifier would need too long,
// emit. Deterministic: the same script, kernel features and options give the same program. Does not load anything.
#pragma once

#include <cstdint>
#include <functional>

#include "check/checked.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "opt/pipeline.h"
#include "program/program.h"
#include "source/diagnostic.h"

namespace espy::compile {

enum class Stage : uint8_t { kLower, kOptimize, kOutlineLoops, kEmit };

// What a stage has produced. Valid during the call of the observer only.
struct StageResult {
  Stage stage;
  const ir::Module& ir;
  const program::Program& program;  // has code after kEmit only
};

struct Options {
  bool separate_programs = false;  // a program for each action, even where actions could share one
  bool loops_for_unroll = false;   // a loop for each `unroll`, where the kernel's verifier bounds loops
  bool optimize = true;
  bool outline_loops = true;
  // Called after each stage; after kOutlineLoops for each call depth that is tried. A further compilation with other
  // options reports its stages again.
  std::function<void(const StageResult&)> observer = {};
  opt::PassObserver after_pass = {};  // called after each optimization pass that changes the module
};

struct Compiled {
  program::Program program;
  // Some actions share a program. If the kernel's verifier refuses it, separate programs may be accepted.
  bool has_merged_programs = false;
  // Some `unroll` made copies. If the program is beyond the verifier's limits, loops may not be.
  bool has_copies = false;
  // Errors: what does not fit on the BPF stack, or is too long for jumps. Then `program` cannot be loaded.
  source::Diagnostics diagnostics;
};

// Requires that `checked` has no errors. Merged programs that do not fit on the stack are replaced by separate ones.
// `unroll` becomes a loop if its copies have more branches than the verifier follows in a row.
Compiled compile(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel,
                 const Options& options = {});

// Reports that an action exceeds the limits of the kernel's verifier, or of its jumps.
void report_too_long(source::Diagnostics& diagnostics, source::Span span);

}  // namespace espy::compile
