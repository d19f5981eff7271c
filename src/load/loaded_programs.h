// The BPF programs loaded in the kernel: the targets of fentry:bpf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace espy::load {

// A function of a program. btf_id: in the program's BTF.
struct LoadedFunction {
  uint32_t program_id = 0;
  uint32_t btf_id = 0;
  std::string name;
};

// Returns the functions of all programs that have BTF and can be traced (tracing programs cannot), by program id.
std::vector<LoadedFunction> loaded_functions();

Result<OwnedFd> open_program(uint32_t id);

}  // namespace espy::load
