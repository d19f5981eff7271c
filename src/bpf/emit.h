// The back end: IR in, BPF instructions out.
//
// In: a verified ir::Module and what the CPU of the kernel understands. Out: `code`, `map_references`, `lines` and
// `functions` of every unit's program. The stages, a file each: order (which block follows which), select (IR to
// instructions on as many registers as they like), allocate (ten registers), frame (the stack), encode (bytes and
// jumps). Nothing here knows of scripts or of the kernel's maps; descriptors are patched in by `load`.
#pragma once

#include <vector>

#include "ir/ir.h"
#include "program/program.h"

namespace espy::bpf {

// What the kernel's BPF CPU can do.
struct Target {
  bool v3 = true;                  // 32-bit arithmetic and jumps
  bool v4 = true;                  // signed division, sign extension, long jumps
  bool has_store_release = false;  // needed only where the CPU reorders stores
};

// A function that cannot be loaded: its stack frame, or the frames of a chain of calls that ends in it, exceed what the
// kernel gives.
struct EmitProblem {
  program::ProgramId program;
  ir::FunctionId function;
  uint32_t stack_bytes = 0;
};

// `module` has passed ir::verify. Empty if all is well.
std::vector<EmitProblem> emit(const ir::Module& module, const Target& target, program::Program& program);

}  // namespace espy::bpf
