// outline_calls: a helper that a long program calls again and again gets a function that calls it.
//
// The kernel puts a few instructions in the place of a call of some helpers, lookups in maps above all. For each of
// them it moves all instructions that follow and corrects all jumps, so that the time to load a program is quadratic in
// its length: seconds for a thousand keys that the script names. The calls of one helper with one map become calls of a
// function, in which the kernel finds the helper once:
//
//     v3 = call map_lookup_elem v1, v2    =>    v3 = call_function lookup v2
//
// A call of a function costs a nanosecond or two, so that programs with fewer calls stay as they are.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis.h"
#include "ir/builder.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

using Callee = std::pair<Helper, MapId>;  // of the same function

// Nullopt if the kernel calls the helper, or if its map is not known.
std::optional<Callee> callee_of(const Function& function, const Instruction& call) {
  if (call.op != Op::k_call) return std::nullopt;
  if (call.helper == Helper::get_smp_processor_id) return Callee{call.helper, {}};
  if (call.helper != Helper::map_lookup_elem) return std::nullopt;
  const Instruction& map = function.values[call.operands[0]];
  if (map.op != Op::k_map) return std::nullopt;
  return Callee{call.helper, map.map};
}

// The calls by what they call; none if the program ends by calling another one, which excludes functions before 5.10.
std::map<Callee, std::vector<ValueId>> calls_of(const Function& function) {
  std::map<Callee, std::vector<ValueId>> out;
  for (const Block& block : function.blocks) {
    for (const ValueId id : block.instructions) {
      const Instruction& each = function.values[id];
      if (each.op == Op::k_call && each.helper == Helper::tail_call) return {};
      if (const auto callee = callee_of(function, each)) out[*callee].push_back(id);
    }
  }
  return out;
}

Function function_for(const Callee& callee) {
  Function out;
  Builder to(out);
  to.enter(to.add_block("entry"));
  if (callee.first == Helper::map_lookup_elem) {
    out.name = "lookup";
    out.parameter_count = 1;
    to.ret(to.call(callee.first, {to.map(callee.second), to.param(0)}));
  } else {
    out.name = "cpu";
    to.ret(to.call(callee.first, {}));
  }
  return out;
}

void redirect(Function& function, const std::vector<ValueId>& calls, FunctionId to) {
  for (const ValueId id : calls) {
    const Instruction& call = function.values[id];
    const bool is_lookup = call.helper == Helper::map_lookup_elem;
    Instruction redirected{.op = Op::k_call_function, .is_nullable = is_lookup, .function = to, .span = call.span};
    if (is_lookup) redirected.operands = {call.operands[1]};
    function.values[id] = std::move(redirected);
  }
}

}  // namespace

bool outline_calls(Module& module, size_t max_calls) {
  bool changed = false;
  for (Unit& unit : module.units) {
    const FunctionId main = unit.functions[0];
    bool has_redirected = false;
    for (const auto& [callee, calls] : calls_of(module.functions[main])) {
      if (calls.size() <= max_calls) continue;
      Function added = function_for(callee);
      const FunctionId id = module.functions.add(std::move(added));
      unit.functions.push_back(id);
      redirect(module.functions[main], calls, id);
      has_redirected = true;
    }
    if (has_redirected) dce(module.functions[main]);
    changed |= has_redirected;
  }
  return changed;
}

}  // namespace espy::opt
