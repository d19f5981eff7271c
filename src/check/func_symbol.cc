#include "check/func_symbol.h"

namespace espy::check {

using types::Kind;

namespace {

// The kinds of programs in which the kernel tells the address of the function (bpf_get_func_ip of bpf-helpers(7)).
bool knows_function(program::ProgramKind kind) {
  using program::ProgramKind;
  return kind == ProgramKind::kKprobe || kind == ProgramKind::kFentry || kind == ProgramKind::kFexit;
}

}  // namespace

bool use_func_as_symbol(Facts& facts, ExprId value, TypeId wanted) {
  if (!value || !facts.ast().get<syntax::Name>(value)) return false;
  if (facts.type_of(facts.type(value)).kind != Kind::kFunctionName) return false;
  const spec::ProbeContext& context = facts.unit().context;
  const bool is_user = context.pointers == types::AddressSpace::kUser;
  const Kind kind = facts.type_of(wanted).kind;
  if (kind != (is_user ? Kind::kUserSymbol : Kind::kKernelSymbol)) return false;
  if (!is_user && !knows_function(context.kind)) return false;
  facts.fact(value).type = wanted;
  return true;
}

bool becomes_symbol(const Facts& facts, TypeId held, TypeId given) {
  const Kind kind = facts.type_of(given).kind;
  return facts.type_of(held).kind == Kind::kFunctionName && (kind == Kind::kKernelSymbol || kind == Kind::kUserSymbol);
}

}  // namespace espy::check
