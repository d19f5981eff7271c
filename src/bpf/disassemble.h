// Disassembler, in the notation of the kernel verifier's log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program/program.h"

namespace espy::bpf {

// Returns one line per instruction; kLdImm64 is one line. `comment` is called where the source line changes and returns
// the text to print above, or "".
using LineComment = std::function<std::string(source::Span)>;
std::string disassemble(const program::BpfProgram& code, const program::Program& program,
                        const LineComment& comment = {});

// Returns the instruction at `index`, without the name of its map.
std::string disassemble_one(const std::vector<program::BpfInsn>& code, uint32_t index);

}  // namespace espy::bpf
