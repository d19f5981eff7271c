// The BTF of a program (Documentation/bpf/btf.rst): the types that func_info and line_info need, so that the verifier
// knows callbacks as functions and quotes source lines in its log. Also the BTF of a map, if the kernel requires types.
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

// Describes a map whose key is an int32 and whose value is opaque.
struct MapBtf {
  std::string blob;
  uint32_t key_id = 0;
  uint32_t value_id = 0;
};

MapBtf make_map_btf(uint32_t value_bytes);
ProgramBtf make_program_btf(const program::BpfProgram& program, const source::Sources& sources);

}  // namespace espy::load
