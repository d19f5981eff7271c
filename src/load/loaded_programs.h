// BPF programs that are loaded now, by anybody: what fentry:bpf can stand on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace espy::load {

// A function of a program. Its id is of the program's own BTF.
struct LoadedFunction {
  uint32_t program_id = 0;
  uint32_t btf_id = 0;
  std::string name;
};

// The functions of all programs that carry BTF and may be traced; tracing programs may not. In order of program ids.
std::vector<LoadedFunction> loaded_functions();

Result<OwnedFd> open_program(uint32_t id);

}  // namespace espy::load
