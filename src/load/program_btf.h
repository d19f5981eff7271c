// The BTF that a program carries: just enough types for the verifier to accept func_info and line_info, so that its log
// quotes the user's own lines and callbacks are known as functions. (Documentation/bpf/btf.rst has the format.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "source/source.h"

namespace espy::load {

struct FuncInfoRecord {  // struct bpf_func_info
  uint32_t insn = 0;
  uint32_t type_id = 0;
};

struct LineInfoRecord {  // struct bpf_line_info
  uint32_t insn = 0;
  uint32_t file_name_offset = 0;
  uint32_t line_offset = 0;
  uint32_t line_column = 0;  // line << 10 | column
};

struct ProgramBtf {
  std::string blob;
  std::vector<FuncInfoRecord> functions;
  std::vector<LineInfoRecord> lines;
};

ProgramBtf make_program_btf(const program::BpfProgram& program, const source::Sources& sources);

}  // namespace espy::load
