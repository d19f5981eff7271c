// Machine code of programs: lengths of instructions, prologues of Go, where instructions lead, operands of USDT probes.
#include <cstdlib>

#include "../reader.h"
#include "kernel/arch/arch.h"
#include "symbols/elf_file.h"
#include "symbols/go_functions.h"

namespace espy::fuzz {

namespace {

void use_code(std::string_view bytes, const kernel::Arch& arch) {
  const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (arch.instruction_length(code) > code.size()) std::abort();
  if (symbols::after_stack_check(arch, code) > code.size()) std::abort();
  uint32_t before = 0;
  for (uint64_t at = 0; at < code.size();) {
    const uint32_t length = arch.instruction_length(code.subspan(at));
    if (length == 0) break;
    const auto instruction = code.subspan(at, length);
    kernel::flow_of(arch, code.subspan(at - before, before), instruction);
    arch.go.is_return(instruction);
    before = length;
    at += length;
  }
  const auto split = std::as_bytes(code).subspan(0, code.size() / 2);
  arch.can_be_stepped(split, std::as_bytes(code).subspan(split.size()));
  for (const std::string& each : symbols::split_usdt_arguments(bytes)) symbols::parse_usdt_operand(arch, each);
}

}  // namespace

void run_instructions(std::string_view bytes) {
  for (const uint16_t machine : kMachines) use_code(bytes, *kernel::find_arch(machine));
}

}  // namespace espy::fuzz
