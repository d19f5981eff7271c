#include "ir/ir.h"

#include "base/fatal.h"

namespace espy::ir {

Condition as_condition(Op comparison) {
  switch (comparison) {
    case Op::k_eq: return Condition::eq;
    case Op::k_ne: return Condition::ne;
    case Op::k_ult: return Condition::ult;
    case Op::k_ule: return Condition::ule;
    case Op::k_slt: return Condition::slt;
    case Op::k_sle: return Condition::sle;
    default: UNREACHABLE("no comparison");
  }
}

std::optional<Condition> negation(Condition condition) {
  switch (condition) {
    case Condition::eq: return Condition::ne;
    case Condition::ne: return Condition::eq;
    case Condition::ult: return Condition::uge;
    case Condition::ule: return Condition::ugt;
    case Condition::ugt: return Condition::ule;
    case Condition::uge: return Condition::ult;
    case Condition::slt: return Condition::sge;
    case Condition::sle: return Condition::sgt;
    case Condition::sgt: return Condition::sle;
    case Condition::sge: return Condition::slt;
    case Condition::test: return {};
  }
  UNREACHABLE("condition");
}

Condition mirrored(Condition condition) {
  switch (condition) {
    case Condition::ult: return Condition::ugt;
    case Condition::ule: return Condition::uge;
    case Condition::ugt: return Condition::ult;
    case Condition::uge: return Condition::ule;
    case Condition::slt: return Condition::sgt;
    case Condition::sle: return Condition::sge;
    case Condition::sgt: return Condition::slt;
    case Condition::sge: return Condition::sle;
    default: return condition;
  }
}

}  // namespace espy::ir
