#include "ir/ir.h"

#include <array>

#include "base/fatal.h"
#include "ir/ir_text.h"

namespace espy::ir {

// ---- The rows of ops.def and helpers.def as arrays

namespace {

// The keywords of ops.def.
// NOLINTBEGIN(readability-identifier-naming)
constexpr int V = -1;
constexpr Effect pure = Effect::pure, read = Effect::read, write = Effect::write, end = Effect::end;
// NOLINTEND(readability-identifier-naming)

constexpr OpInfo kOps[] = {
#define OP(name, operands, result, effect) {#name, operands, result != 0, effect},
#include "ir/ops.def"
#undef OP
};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kCount));

constexpr HelperInfo kHelpers[] = {
#define HELPER(name, number, arguments, effect) {#name, Helper::name, arguments, effect},
#include "ir/helpers.def"
#undef HELPER
};

constexpr std::string_view kConditions[] = {"eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge", "test"};

// Maps the kernel's helper numbers, which are sparse, to row + 1.
constexpr size_t kHelperNumbers = 256;
constexpr auto kHelperRows = [] {
  std::array<uint8_t, kHelperNumbers> rows{};
  for (size_t i = 0; i < std::size(kHelpers); ++i)
    rows[static_cast<size_t>(kHelpers[i].helper)] = static_cast<uint8_t>(i + 1);
  return rows;
}();
constexpr HelperInfo kUnknownHelper = {"?", Helper{0}, 0, Effect::write};

}  // namespace

const OpInfo& info(Op op) {
  CHECK(op < Op::kCount);
  return kOps[static_cast<size_t>(op)];
}

const HelperInfo& info(Helper helper) {
  size_t number = static_cast<size_t>(helper);
  size_t row = number < kHelperNumbers ? kHelperRows[number] : 0;
  return row ? kHelpers[row - 1] : kUnknownHelper;
}

std::string_view name(Condition condition) {
  CHECK(static_cast<size_t>(condition) < std::size(kConditions));
  return kConditions[static_cast<size_t>(condition)];
}

std::optional<Op> find_op(std::string_view name) {
  for (size_t i = 0; i < std::size(kOps); ++i)
    if (kOps[i].name == name) return static_cast<Op>(i);
  return {};
}

std::optional<Helper> find_helper(std::string_view name) {
  for (const HelperInfo& row : kHelpers)
    if (row.name == name) return row.helper;
  return {};
}

std::optional<Condition> find_condition(std::string_view name) {
  for (size_t i = 0; i < std::size(kConditions); ++i)
    if (kConditions[i] == name) return static_cast<Condition>(i);
  return {};
}

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
