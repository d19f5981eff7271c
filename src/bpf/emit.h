// bpf: the back end, which translates IR to BPF instructions.
//
// Takes a module that ir::verify accepts and a description of the target. Fills in `code`, `map_references`, `lines`
// and `functions` of every unit's program. Each stage is a file: block_layout, select (instructions on virtual
// registers), allocate (machine registers), stack_layout, encode (bytes and jumps). The back end is independent of
// scripts and of the kernel's maps; `load` inserts map descriptors.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"
#include "program/program.h"

namespace espy::bpf {

// Instruction set of the kernel's BPF.
struct Target {
  bool v3 = true;  // 32-bit arithmetic and jumps
  bool v4 = true;  // signed division, sign extension, long jumps
  // For the CPU below. Where it reorders stores, release order takes an instruction of its own (Linux 6.15), or an
  // atomic exchange, which is a full barrier.
  bool has_ordered_stores = true;
  bool has_store_release = false;
};

// A function whose stack frame, or chain of calls, exceeds the kernel's limit, or that is longer than jumps reach.
struct EmitProblem {
  program::ProgramId program;
  ir::FunctionId function;
  uint32_t stack_bytes = 0;  // 0: it is too long
};

// Emits the code of `module` into `program`. Requires that ir::verify accepts the module. Returns the functions that
// exceed a limit; empty on success.
std::vector<EmitProblem> emit(const ir::Module& module, const Target& target, program::Program& program);

}  // namespace espy::bpf
