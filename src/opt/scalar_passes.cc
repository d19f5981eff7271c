
#include <limits>

#include "ir/analysis.h"
#include "ir/ir.h"
#include "opt/pipeline.h"

namespace espy::opt {

using ir::Condition;
using ir::Op;

namespace {

// Division by zero yields 0. INT64_MIN / -1, the only quotient that overflows, wraps as in the kernel.
int64_t signed_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b;
}

int64_t signed_remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

std::optional<int64_t> unary(Op op, int64_t a) {
  uint64_t bits = static_cast<uint64_t>(a);
  switch (op) {
    case Op::k_neg: return static_cast<int64_t>(-bits);
    case Op::k_not: return ~a;
    case Op::k_opaque: return a;
    case Op::k_zext8: return static_cast<uint8_t>(a);
    case Op::k_zext16: return static_cast<uint16_t>(a);
    case Op::k_zext32: return static_cast<uint32_t>(a);
    case Op::k_sext8: return static_cast<int8_t>(a);
    case Op::k_sext16: return static_cast<int16_t>(a);
    case Op::k_sext32: return static_cast<int32_t>(a);
    case Op::k_bswap16: return __builtin_bswap16(static_cast<uint16_t>(bits));
    case Op::k_bswap32: return __builtin_bswap32(static_cast<uint32_t>(bits));
    case Op::k_bswap64: return static_cast<int64_t>(__builtin_bswap64(bits));
    default: return {};
  }
}

}  // namespace

std::optional<int64_t> evaluate(Op op, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::k_add: return static_cast<int64_t>(x + y);
    case Op::k_sub: return static_cast<int64_t>(x - y);
    case Op::k_mul: return static_cast<int64_t>(x * y);
    case Op::k_udiv: return static_cast<int64_t>(y ? x / y : 0);
    case Op::k_umod: return static_cast<int64_t>(y ? x % y : 0);
    case Op::k_sdiv: return signed_quotient(a, b);
    case Op::k_smod: return signed_remainder(a, b);
    case Op::k_and: return a & b;
    case Op::k_or: return a | b;
    case Op::k_xor: return a ^ b;
    case Op::k_shl: return static_cast<int64_t>(x << (y & 63));
    case Op::k_shr: return static_cast<int64_t>(x >> (y & 63));
    case Op::k_sar: return a >> (y & 63);
    default: break;
  }
  if (is_comparison(op)) return evaluate(as_condition(op), a, b);
  return unary(op, a);
}

bool evaluate(Condition condition, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (condition) {
    case Condition::eq: return a == b;
    case Condition::ne: return a != b;
    case Condition::ult: return x < y;
    case Condition::ule: return x <= y;
    case Condition::ugt: return x > y;
    case Condition::uge: return x >= y;
    case Condition::slt: return a < b;
    case Condition::sle: return a <= b;
    case Condition::sgt: return a > b;
    case Condition::sge: return a >= b;
    case Condition::test: return (a & b) != 0;
  }
  UNREACHABLE("condition");
}

bool is_comparison(Op op) { return op >= Op::k_eq && op <= Op::k_sle; }

bool is_commutative(Op op) {
  switch (op) {
    case Op::k_add:
    case Op::k_mul:
    case Op::k_and:
    case Op::k_or:
    case Op::k_xor:
    case Op::k_eq:
    case Op::k_ne: return true;
    default: return false;
  }
}

// ---- fold_constants: constant folding, algebraic identities, cheaper forms, and fusion of compares into branches.
//
// One sweep in reverse post order, so that operands are folded before their uses (except in loops; the pipeline
// repeats). An instruction is rewritten in place, or its uses are replaced by another value. New constants are inserted
// before it.
//
// The kernel's verifier derives the bounds of a number from comparisons of its register. So sums are not regrouped
// across a value that a branch compares by order: `x + 1`, once compared, remains the base of `(x + 1) + 2`. Pointers
// remain operand 0 of `add`.

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

// ---- cse: common subexpression elimination.
//
// Dominator-scoped value numbering: visits blocks in preorder of the dominator tree; a hash table maps each computation
// to its leader, the first value that computes it. A leader that does not dominate the current block cannot dominate a
// later one in preorder, so it is overwritten and no scopes need to be undone.
//
// Covers pure operations, helpers and kfuncs, and loads from the context, which is read-only. A computation on a value
// that a branch compares by order is only merged within its block, since the kernel's verifier derives bounds from
// comparisons, and the later computation may depend on the one in between.

namespace {

using namespace ir;

class ValueNumbering {
 public:
  explicit ValueNumbering(Function& function) : function_(function), dominators_(function) {}
  bool run();

 private:
  bool takes_part(const Instruction& instruction) const;
  uint64_t hash(const Instruction& instruction) const;
  // Returns the leader if it dominates this block; else makes `id` the leader.
  ValueId leader(ValueId id, BlockId block);

  Function& function_;
  Dominators dominators_;
  std::vector<ValueId> table_;  // open addressing; its size is a power of two
  std::vector<BlockId> block_;  // by value
  std::vector<bool> is_checked_;
  std::vector<ValueId> replacement_;
  bool context_is_written_ = false;
};

bool ValueNumbering::run() {
  size_t size = 16;
  while (size < 2 * function_.values.size()) size *= 2;
  table_.resize(size);
  block_.resize(function_.values.size());
  is_checked_.resize(function_.values.size());
  replacement_.resize(function_.values.size());
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& each = function_.values[id];
      if (each.op == Op::k_branch && each.condition != Condition::eq && each.condition != Condition::ne)
        for (ValueId compared : each.operands) is_checked_[compared.index] = true;
      if (each.op >= Op::k_store && each.op <= Op::k_copy && !each.operands.empty())
        context_is_written_ |= function_.values[each.operands[0]].op == Op::k_context;
    }
  }
  bool changed = false;
  for (BlockId block : dominators_.preorder()) {
    for (ValueId id : function_.blocks[block].instructions) {
      Instruction& instruction = function_.values[id];
      for_each_use(instruction, [&](ValueId& used) { used = resolve(replacement_, used); });
      if (!takes_part(instruction)) continue;
      ValueId same = leader(id, block);
      if (same == id) continue;
      replacement_[id.index] = same;
      changed = true;
    }
    if (!changed) continue;
    // Removes replaced instructions at once, so that the next round sees no change.
    std::erase_if(function_.blocks[block].instructions, [&](ValueId id) { return replacement_[id.index].valid(); });
  }
  if (changed) replace_all_uses(function_, replacement_);
  return changed;
}

bool ValueNumbering::takes_part(const Instruction& instruction) const {
  if (instruction.op == Op::k_load)
    return function_.values[instruction.operands[0]].op == Op::k_context && !context_is_written_;
  return effect_of(instruction) == Effect::pure && instruction.op != Op::k_opaque;
}

uint64_t ValueNumbering::hash(const Instruction& instruction) const {
  uint64_t h = static_cast<uint64_t>(instruction.op);
  auto mix = [&](uint64_t part) { h = (h ^ part) * 0x9e3779b97f4a7c15 + (h >> 29); };
  mix(static_cast<uint64_t>(instruction.imm));
  mix(instruction.map.index ^ uint64_t{instruction.slot.index} << 20 ^ uint64_t{instruction.function.index} << 40);
  mix(static_cast<uint64_t>(instruction.helper) << 8 | instruction.width);
  for (ValueId operand : instruction.operands) mix(operand.index);
  return h ^ (h >> 32);
}

ValueId ValueNumbering::leader(ValueId id, BlockId block) {
  const Instruction& instruction = function_.values[id];
  block_[id.index] = block;
  for (uint64_t at = hash(instruction);; ++at) {
    ValueId& entry = table_[at & (table_.size() - 1)];
    if (!entry.valid()) return entry = id;
    if (!is_same_operation(function_.values[entry], instruction)) continue;
    bool is_bound_to_block = false;
    for (ValueId operand : instruction.operands) is_bound_to_block |= is_checked_[operand.index];
    BlockId from = block_[entry.index];
    if (is_bound_to_block ? from == block : dominators_.dominates(from, block)) return entry;
    return entry = id;
  }
}

}  // namespace

bool cse(Function& function) { return ValueNumbering(function).run(); }

// ---- dce: dead code elimination.
//
// Marks the operands of the roots (writes and terminators), transitively; the arguments of a block parameter only when
// the parameter is marked, so that variables that are only carried around a loop disappear. Then removes all that is
// unmarked, and unreachable blocks.

namespace {

using namespace ir;

class Sweeper {
 public:
  explicit Sweeper(Function& function) : function_(function) {}
  bool run();

 private:
  bool drop_unreachable();
  void mark();
  bool sweep();
  void need(ValueId value) {
    if (is_needed_[value.index]) return;
    is_needed_[value.index] = true;
    work_.push_back(value);
  }

  Function& function_;
  std::vector<bool> is_needed_;
  std::vector<ValueId> work_;
};

bool Sweeper::run() {
  bool changed = drop_unreachable();
  mark();
  return sweep() || changed;
}

bool Sweeper::drop_unreachable() {
  std::vector<bool> keep(function_.blocks.size());
  std::vector<BlockId> order = reverse_post_order(function_);
  if (order.size() == keep.size()) return false;
  for (BlockId block : order) keep[block.index] = true;
  keep_blocks(function_, keep);
  return true;
}

void Sweeper::mark() {
  is_needed_.resize(function_.values.size());
  // For a parameter: its block and position. The block is invalid for other values.
  struct Place {
    BlockId block;
    uint32_t index = 0;
  };
  std::vector<Place> place(function_.values.size());
  for (BlockId block : function_.blocks.ids()) {
    const std::vector<ValueId>& parameters = function_.blocks[block].parameters;
    for (uint32_t i = 0; i < parameters.size(); ++i) place[parameters[i].index] = {block, i};
    for (ValueId id : function_.blocks[block].instructions) {
      Effect effect = effect_of(function_.values[id]);
      if (effect == Effect::write || effect == Effect::end) need(id);
    }
  }
  Predecessors predecessors(function_);
  while (!work_.empty()) {
    ValueId value = work_.back();
    work_.pop_back();
    for (ValueId operand : function_.values[value].operands) need(operand);
    auto [block, index] = place[value.index];
    if (!block.valid()) continue;
    for (BlockId from : predecessors[block])
      for (const Target& target : terminator(function_, from).targets)
        if (target.block == block) need(target.arguments[index]);
  }
}

bool Sweeper::sweep() {
  bool changed = false;
  for (BlockId block : function_.blocks.ids()) {
    std::vector<ValueId>& instructions = function_.blocks[block].instructions;
    changed |= std::erase_if(instructions, [&](ValueId id) { return !is_needed_[id.index]; }) != 0;
    for (Target& target : terminator(function_, block).targets) {
      const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
      size_t kept = 0;
      for (size_t i = 0; i < target.arguments.size(); ++i)
        if (is_needed_[parameters[i].index]) target.arguments[kept++] = target.arguments[i];
      target.arguments.resize(kept);
    }
  }
  for (Block& block : function_.blocks)
    changed |= std::erase_if(block.parameters, [&](ValueId id) { return !is_needed_[id.index]; }) != 0;
  return changed;
}

}  // namespace

bool dce(Function& function) { return Sweeper(function).run(); }

}  // namespace espy::opt
