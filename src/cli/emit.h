// From IR to code, with what the kernel at hand allows.
#pragma once

#include <vector>

#include "bpf/emit.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "opt/pipeline.h"
#include "program/program.h"

namespace espy::cli {

// Fills in the code of `program`; gives what does not fit on the BPF stack. Loops become functions of their own where
// that helps the kernel's verifier and the stack has room for it; `after_pass` is called with the module that has them.
std::vector<bpf::EmitProblem> emit(const ir::Module& module, kernel::Kernel& kernel, program::Program& program,
                                   const opt::PassObserver& after_pass = {});

}  // namespace espy::cli
