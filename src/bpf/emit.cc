#include "bpf/emit.h"

#include <algorithm>

#include "bpf/allocate.h"
#include "bpf/encode.h"
#include "bpf/select.h"

namespace espy::bpf {
namespace {

// Returns the functions of the unit that are still called: the kernel rejects function info for unreachable code.
std::vector<ir::FunctionId> called_functions(const ir::Module& module, const ir::Unit& unit) {
  std::vector<ir::FunctionId> called = {unit.functions.front()};
  for (size_t i = 0; i < called.size(); ++i) {
    const ir::Function& function = module.functions[called[i]];
    for (const ir::Block& block : function.blocks) {
      for (ir::ValueId id : block.instructions) {
        const ir::FunctionId callee = function.values[id].function;
        if (callee.valid() && std::find(called.begin(), called.end(), callee) == called.end()) called.push_back(callee);
      }
    }
  }
  return called;
}

CodedFunction compile(const ir::Module& module, ir::FunctionId id, const Target& target) {
  const ir::Function& function = module.functions[id];
  CodedFunction out{id, &function, select(function, target)};
  allocate(out.machine);
  place_objects(function, out.machine);
  return out;
}

// The kernel limits the sum of the frames of a call chain, each rounded up.
class StackCheck {
 public:
  explicit StackCheck(const std::vector<CodedFunction>& functions) : functions_(functions), chains_(functions.size()) {}

  // Returns the bytes of the function's frame and of the deepest call chain below it.
  uint32_t chain_bytes(size_t index) {
    uint32_t& chain = chains_[index];
    if (chain != 0) return chain;
    constexpr uint32_t kRounding = 32;
    uint32_t own = std::max(functions_[index].machine.stack_bytes, 1u);
    own = (own + kRounding - 1) / kRounding * kRounding;
    chain = own;  // terminates on recursion, which the kernel rejects
    uint32_t deepest = 0;
    for (const MachineBlock& block : functions_[index].machine.blocks) {
      for (const MachineInsn& insn : block.insns)
        if (insn.function.valid()) deepest = std::max(deepest, chain_bytes(index_of(insn.function)));
    }
    return chains_[index] = own + deepest;
  }

 private:
  size_t index_of(ir::FunctionId id) const {
    auto found = std::find_if(functions_.begin(), functions_.end(), [&](const CodedFunction& f) { return f.id == id; });
    CHECK(found != functions_.end());
    return static_cast<size_t>(found - functions_.begin());
  }

  const std::vector<CodedFunction>& functions_;
  std::vector<uint32_t> chains_;
};

}  // namespace

std::vector<EmitProblem> emit(const ir::Module& module, const Target& target, program::Program& program) {
  std::vector<EmitProblem> problems;
  for (const ir::Unit& unit : module.units) {
    std::vector<CodedFunction> functions;
    for (ir::FunctionId id : called_functions(module, unit)) functions.push_back(compile(module, id, target));
    StackCheck check(functions);
    for (size_t i = 0; i < functions.size(); ++i) {
      uint32_t bytes = i == 0 ? check.chain_bytes(0) : functions[i].machine.stack_bytes;
      if (bytes > kStackLimitBytes) problems.push_back({unit.program, functions[i].id, bytes});
    }
    for (const ir::FunctionId id : encode(functions, target, program.programs[unit.program]))
      problems.push_back({unit.program, id});
  }
  return problems;
}

}  // namespace espy::bpf
