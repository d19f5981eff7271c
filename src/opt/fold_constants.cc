// fold_constants: constant folding, algebraic identities, cheaper forms, and fusion of compares into branches.
//
// One sweep in reverse post order, so that operands are folded before their uses (except in loops; the pipeline
// repeats). An instruction is rewritten in place, or its uses are replaced by another value. New constants are inserted
// before it.
//
// The kernel's verifier derives the bounds of a number from comparisons of its register. So sums are not regrouped
// across a value that a branch compares by order: `x + 1`, once compared, remains the base of `(x + 1) + 2`. Pointers
// remain operand 0 of `add`.
#include <limits>

#include "ir/analysis.h"
#include "ir/conditions.h"
#include "opt/evaluate.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

// A width-changing operation: the number of low bits that it keeps, and how it extends them.
struct Extension {
  int bits = 0;  // 0: not an extension
  bool is_signed = false;
};

Extension extension_of(Op op) {
  switch (op) {
    case Op::k_zext8: return {8, false};
    case Op::k_zext16: return {16, false};
    case Op::k_zext32: return {32, false};
    case Op::k_sext8: return {8, true};
    case Op::k_sext16: return {16, true};
    case Op::k_sext32: return {32, true};
    default: return {};
  }
}

bool is_power_of_two(int64_t value) { return __builtin_popcountll(static_cast<uint64_t>(value)) == 1; }
int64_t log2_of(int64_t power) { return __builtin_ctzll(static_cast<uint64_t>(power)); }

class Folder {
 public:
  explicit Folder(Function& function) : function_(function) {}
  bool run();

 private:
  void instruction(ValueId id);
  void unary(ValueId id);
  void binary(ValueId id);
  bool constant_right(ValueId id, int64_t b);
  bool identity_right(ValueId id, int64_t b);
  bool strength(ValueId id, int64_t b);
  bool regroup(ValueId id, int64_t b);
  bool comparison_with_constant(ValueId id, int64_t b);
  bool same_operands(ValueId id);
  void extension(ValueId id, Extension extension);
  void address(ValueId id);
  void branch(ValueId id);
  bool fuse(Instruction& branch);

  Instruction& at(ValueId id) { return function_.values[id]; }
  Op op_of(ValueId id) { return at(id).op; }
  ValueId operand(ValueId id, size_t i) { return at(id).operands[i]; }
  std::optional<int64_t> constant_of(ValueId id) {
    return op_of(id) == Op::k_konst ? std::optional(at(id).imm) : std::nullopt;
  }
  bool is_checked(ValueId id) const { return id.index < is_checked_.size() && is_checked_[id.index]; }
  bool is_boolean(ValueId id) {
    std::optional<int64_t> constant = constant_of(id);
    return is_comparison(op_of(id)) || constant == 0 || constant == 1;
  }
  // The four kinds of simplification; each returns true.
  bool become_constant(ValueId id, int64_t value);
  bool become_value(ValueId id, ValueId value);
  bool become(ValueId id, Op op, ValueId a);
  bool become(ValueId id, Op op, ValueId a, int64_t b);
  bool become(ValueId id, Op op, ValueId a, ValueId b);

  ValueId constant(int64_t value, source::Span span) {
    out_.push_back(function_.values.add({.imm = value, .span = span}));
    return out_.back();
  }

  Function& function_;
  std::vector<ValueId> replacement_;
  std::vector<bool> is_checked_;  // by value: compared by order in a branch
  std::vector<ValueId> out_;      // the block's new instructions
  bool changed_ = false;
};

bool Folder::run() {
  replacement_.resize(function_.values.size());
  is_checked_.resize(function_.values.size());
  for (const Block& block : function_.blocks) {
    const Instruction& end = function_.values[block.instructions.back()];
    if (end.op != Op::k_branch || end.condition == Condition::eq || end.condition == Condition::ne) continue;
    for (ValueId compared : end.operands) is_checked_[compared.index] = true;
  }
  for (BlockId block : reverse_post_order(function_)) {
    std::vector<ValueId> all = std::move(function_.blocks[block].instructions);
    out_.clear();
    out_.reserve(all.size() + 8);
    for (ValueId id : all) {
      for_each_use(at(id), [&](ValueId& used) { used = resolve(replacement_, used); });
      instruction(id);
      out_.push_back(id);
    }
    function_.blocks[block].instructions = out_;
  }
  if (changed_) replace_all_uses(function_, replacement_);
  return changed_;
}

void Folder::instruction(ValueId id) {
  Op op = op_of(id);
  if (op == Op::k_branch) return branch(id);
  if (op >= Op::k_load && op <= Op::k_store_release) return address(id);
  if (info(op).effect != Effect::pure) return;
  if (info(op).operands == 1) unary(id);
  if (info(op).operands == 2) binary(id);
}

bool Folder::become_constant(ValueId id, int64_t value) {
  at(id) = {.imm = value, .span = at(id).span};
  return changed_ = true;
}

bool Folder::become_value(ValueId id, ValueId value) {
  CHECK(id != value);
  replacement_.resize(function_.values.size());
  replacement_[id.index] = value;
  return changed_ = true;
}

bool Folder::become(ValueId id, Op op, ValueId a) {
  at(id) = {.op = op, .operands = {a}, .span = at(id).span};
  return changed_ = true;
}

bool Folder::become(ValueId id, Op op, ValueId a, int64_t b) { return become(id, op, a, constant(b, at(id).span)); }

bool Folder::become(ValueId id, Op op, ValueId a, ValueId b) {
  at(id) = {.op = op, .operands = {a, b}, .span = at(id).span};
  return changed_ = true;
}

void Folder::unary(ValueId id) {
  ValueId a = operand(id, 0);
  Op op = op_of(id);
  if (std::optional<int64_t> value = constant_of(a)) {
    if (std::optional<int64_t> result = evaluate(op, *value)) become_constant(id, *result);
    return;
  }
  bool undoes_itself = op == Op::k_neg || op == Op::k_not || op == Op::k_bswap64;
  if (undoes_itself && op_of(a) == op) {
    become_value(id, operand(a, 0));
    return;
  }
  if (Extension kind = extension_of(op); kind.bits) extension(id, kind);
}

// Removes extensions of values that are already extended, and inner extensions whose upper bits are not used.
void Folder::extension(ValueId id, Extension outer) {
  ValueId a = operand(id, 0);
  const Instruction& from = at(a);
  Extension inner = extension_of(from.op);
  if (from.op == Op::k_load && from.width < 8) inner = {from.width * 8, from.is_signed};
  if (is_comparison(from.op)) inner = {1, false};
  if (!inner.bits) return;
  // The value is unchanged if both extensions have the same signedness, or if the inner one is unsigned and narrower.
  bool keeps_value =
      inner.is_signed == outer.is_signed ? inner.bits <= outer.bits : !inner.is_signed && inner.bits < outer.bits;
  if (keeps_value) {
    become_value(id, a);
  } else if (extension_of(from.op).bits && outer.bits <= inner.bits) {
    become(id, op_of(id), from.operands[0]);
  }
}

void Folder::binary(ValueId id) {
  Op op = op_of(id);
  if (is_commutative(op) && constant_of(operand(id, 0)) && !constant_of(operand(id, 1))) {
    std::swap(at(id).operands[0], at(id).operands[1]);
    changed_ = true;
  }
  std::optional<int64_t> a = constant_of(operand(id, 0)), b = constant_of(operand(id, 1));
  if (a && b) {
    if (std::optional<int64_t> result = evaluate(op, *a, *b)) become_constant(id, *result);
  } else if (b) {
    constant_right(id, *b);
  } else if (operand(id, 0) == operand(id, 1)) {
    same_operands(id);
  } else if (a == 0 && (op == Op::k_shl || op == Op::k_shr || op == Op::k_sar || op == Op::k_udiv || op == Op::k_sdiv ||
                        op == Op::k_umod || op == Op::k_smod)) {
    become_constant(id, 0);
  } else if (a == 0 && op == Op::k_sub) {
    become(id, Op::k_neg, operand(id, 1));
  }
}

bool Folder::same_operands(ValueId id) {
  switch (op_of(id)) {
    case Op::k_sub:
    case Op::k_xor:
    case Op::k_ne:
    case Op::k_ult:
    case Op::k_slt: return become_constant(id, 0);
    case Op::k_eq:
    case Op::k_ule:
    case Op::k_sle: return become_constant(id, 1);
    case Op::k_and:
    case Op::k_or: return become_value(id, operand(id, 0));
    default: return false;
  }
}

bool Folder::constant_right(ValueId id, int64_t b) {
  return identity_right(id, b) || strength(id, b) || regroup(id, b) || comparison_with_constant(id, b);
}

bool Folder::identity_right(ValueId id, int64_t b) {
  ValueId a = operand(id, 0);
  switch (op_of(id)) {
    case Op::k_add:
    case Op::k_sub:
    case Op::k_xor:
      if (b == -1 && op_of(id) == Op::k_xor) return become(id, Op::k_not, a);
      return b == 0 && become_value(id, a);
    case Op::k_or: return b == 0 ? become_value(id, a) : b == -1 && become_constant(id, -1);
    case Op::k_and: return b == 0 ? become_constant(id, 0) : b == -1 && become_value(id, a);
    case Op::k_mul: return b == 0 ? become_constant(id, 0) : b == 1 && become_value(id, a);
    case Op::k_udiv:
    case Op::k_sdiv: return b == 0 ? become_constant(id, 0) : b == 1 && become_value(id, a);
    case Op::k_umod: return (b == 0 || b == 1) && become_constant(id, 0);
    case Op::k_smod: return (b == 0 || b == 1 || b == -1) && become_constant(id, 0);
    case Op::k_shl:
    case Op::k_shr:
    case Op::k_sar: return (b & 63) == 0 && become_value(id, a);
    case Op::k_ult: return b == 0 && become_constant(id, 0);
    case Op::k_ule: return b == -1 && become_constant(id, 1);
    default: return false;
  }
}

bool Folder::strength(ValueId id, int64_t b) {
  ValueId a = operand(id, 0);
  switch (op_of(id)) {
    case Op::k_sub: return b != std::numeric_limits<int64_t>::min() && become(id, Op::k_add, a, -b);
    case Op::k_mul:
      if (b == -1) return become(id, Op::k_neg, a);
      return is_power_of_two(b) && become(id, Op::k_shl, a, log2_of(b));
    case Op::k_udiv: return is_power_of_two(b) && become(id, Op::k_shr, a, log2_of(b));
    case Op::k_umod: return is_power_of_two(b) && become(id, Op::k_and, a, *evaluate(Op::k_sub, b, 1));
    case Op::k_sdiv: return b == -1 && become(id, Op::k_neg, a);
    default: return false;
  }
}

// (x op c1) op c2
bool Folder::regroup(ValueId id, int64_t b) {
  ValueId a = operand(id, 0);
  Op op = op_of(id);
  if (op_of(a) != op || is_checked(a) || info(op).operands != 2) return false;
  std::optional<int64_t> inner = constant_of(operand(a, 1));
  if (!inner) return false;
  ValueId x = operand(a, 0);
  switch (op) {
    case Op::k_add: {
      int64_t sum = *evaluate(op, *inner, b);
      // Pointer offsets must stay small: the kernel's verifier rejects large ones even for intermediate pointers.
      return sum == static_cast<int32_t>(sum) && become(id, op, x, sum);
    }
    case Op::k_and:
    case Op::k_or:
    case Op::k_xor:
    case Op::k_mul: return become(id, op, x, *evaluate(op, *inner, b));
    case Op::k_shl:
    case Op::k_shr: {
      int64_t count = (*inner & 63) + (b & 63);
      return count < 64 ? become(id, op, x, count) : become_constant(id, 0);
    }
    default: return false;
  }
}

// A boolean compared with 0 or 1 is the boolean or its negation.
bool Folder::comparison_with_constant(ValueId id, int64_t b) {
  ValueId a = operand(id, 0);
  Op op = op_of(id);
  bool is_equality = op == Op::k_eq || op == Op::k_ne;
  bool is_flip = op == Op::k_xor && b == 1;
  if ((!is_equality && !is_flip) || !is_comparison(op_of(a)) || (b != 0 && b != 1)) return false;
  if (is_equality && (op == Op::k_ne) == (b == 0)) return become_value(id, a);
  ValueId x = operand(a, 0), y = operand(a, 1);
  switch (op_of(a)) {
    case Op::k_eq: return become(id, Op::k_ne, x, y);
    case Op::k_ne: return become(id, Op::k_eq, x, y);
    case Op::k_ult: return become(id, Op::k_ule, y, x);
    case Op::k_ule: return become(id, Op::k_ult, y, x);
    case Op::k_slt: return become(id, Op::k_sle, y, x);
    default: return become(id, Op::k_slt, y, x);
  }
}

// [(p + c) + offset] is [p + (c + offset)] if the sum fits the instruction.
void Folder::address(ValueId id) {
  ValueId base = operand(id, 0);
  if (op_of(base) != Op::k_add || is_checked(base)) return;
  std::optional<int64_t> step = constant_of(operand(base, 1));
  if (!step || *step != static_cast<int32_t>(*step)) return;
  int64_t offset = *step + at(id).imm;
  if (offset != static_cast<int16_t>(offset)) return;
  at(id).imm = offset;
  at(id).operands[0] = operand(base, 0);
  changed_ = true;
}

void Folder::branch(ValueId id) {
  while (fuse(at(id))) changed_ = true;
  Instruction& branch = at(id);
  ValueId a = branch.operands[0], b = branch.operands[1];
  std::optional<bool> outcome;
  if (constant_of(a) && constant_of(b)) {
    outcome = evaluate(branch.condition, *constant_of(a), *constant_of(b));
  } else if (a == b && branch.condition != Condition::test) {
    outcome = evaluate(branch.condition, 0, 0);
  } else if (branch.condition == Condition::test && constant_of(b) == 0) {
    outcome = false;
  }
  if (!outcome) return;
  at(id) = {.op = Op::k_jump, .targets = {branch.targets[*outcome ? 0 : 1]}, .span = branch.span};
  changed_ = true;
}

// One step towards a branch with a fused compare and the constant on the right.
bool Folder::fuse(Instruction& branch) {
  ValueId a = branch.operands[0], b = branch.operands[1];
  if (constant_of(a) && !constant_of(b)) {
    std::swap(branch.operands[0], branch.operands[1]);
    branch.condition = mirrored(branch.condition);
    return true;
  }
  bool is_equality = branch.condition == Condition::eq || branch.condition == Condition::ne;
  std::optional<int64_t> constant = constant_of(b);
  if (!is_equality || !constant || (*constant & ~int64_t{1})) return false;
  bool wants_true = (branch.condition == Condition::ne) == (constant == 0);
  const Instruction& from = at(a);
  if (is_comparison(from.op)) {
    branch.condition = as_condition(from.op);
    branch.operands = from.operands;
  } else if (from.op == Op::k_and && constant == 0) {
    branch.condition = Condition::test;
    branch.operands = from.operands;
  } else {
    return false;
  }
  if (!wants_true) std::swap(branch.targets[0], branch.targets[1]);
  return true;
}

}  // namespace

bool fold_constants(Function& function) { return Folder(function).run(); }

}  // namespace espy::opt
