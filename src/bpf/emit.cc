#include "bpf/emit.h"

#include "bpf/allocate.h"
#include "bpf/encode.h"
#include "bpf/frame.h"
#include "bpf/select.h"

namespace espy::bpf {
namespace {

CodedFunction compile(const ir::Module& module, ir::FunctionId id, const Target& target) {
  const ir::Function& function = module.functions[id];
  CodedFunction out{id, &function, select(function, target)};
  allocate(out.machine);
  place_objects(function, out.machine);
  return out;
}

}  // namespace

std::vector<EmitProblem> emit(const ir::Module& module, const Target& target, program::Program& program) {
  std::vector<EmitProblem> problems;
  for (const ir::Unit& unit : module.units) {
    std::vector<CodedFunction> functions;
    for (ir::FunctionId id : unit.functions) {
      functions.push_back(compile(module, id, target));
      uint32_t stack_bytes = functions.back().machine.stack_bytes;
      if (stack_bytes > kStackLimitBytes) problems.push_back({unit.program, id, stack_bytes});
    }
    encode(functions, target, program.programs[unit.program]);
  }
  return problems;
}

}  // namespace espy::bpf
