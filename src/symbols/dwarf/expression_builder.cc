#include "symbols/dwarf/expression_builder.h"

#include <algorithm>

namespace espy::symbols::dwarf {

using types::LocationPiece;

namespace {

// As the arithmetic of DWARF (5, 2.5.1), which is modulo the size of an address.
int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

void ExpressionBuilder::fail(std::string why) {
  if (why_.empty()) why_ = std::move(why);
}

void ExpressionBuilder::finish_piece(uint32_t size_bytes) {
  piece_.size_bytes = size_bytes;
  if (piece_.kind != LocationPiece::Kind::kBytes) piece_.steps = std::move(steps_);
  const bool is_known = piece_.kind == LocationPiece::Kind::kBytes || !piece_.steps.empty();
  if (is_known && piece_.kind == LocationPiece::Kind::kNothing) piece_.kind = LocationPiece::Kind::kMemory;
  place_.pieces.push_back(std::move(piece_));
  piece_ = {};
  steps_.clear();
  stack_.clear();
}

void ExpressionBuilder::finish_unknown_piece(uint32_t size_bytes) {
  why_.clear();
  steps_.clear();
  piece_ = {};
  finish_piece(size_bytes);
}

void ExpressionBuilder::push(Op op, int64_t operand, StackValue value) {
  append(op, operand);
  stack_.push_back(value);
}

ExpressionBuilder::StackValue ExpressionBuilder::pop() {
  if (stack_.empty()) {
    fail(kMalformed);
    return {};
  }
  const StackValue out = stack_.back();
  stack_.pop_back();
  return out;
}

void ExpressionBuilder::add(int64_t value) {
  if (value == 0) return;
  const size_t n = steps_.size();
  if (n >= 1 && steps_[n - 1].op == Op::kConstant) {
    steps_[n - 1].operand = wrapping_sum(steps_[n - 1].operand, value);
  } else if (n >= 2 && steps_[n - 1].op == Op::kAdd && steps_[n - 2].op == Op::kConstant) {
    steps_[n - 2].operand = wrapping_sum(steps_[n - 2].operand, value);
    if (steps_[n - 2].operand == 0) steps_.resize(n - 2);
  } else {
    append(Op::kConstant, value);
    append(Op::kAdd);
  }
}

void ExpressionBuilder::extend_to(StackValue value) {
  if (value.size_bytes < 8) append(value.is_signed ? Op::kExtendSign : Op::kExtendZero, value.size_bytes);
}

void ExpressionBuilder::unary(Op op, int64_t operand) {
  const StackValue value = pop();
  append(op, operand);
  stack_.push_back(value);
}

void ExpressionBuilder::binary(Op op) {
  pop();
  const StackValue left = pop();
  if (op == Op::kAdd && !steps_.empty() && steps_.back().op == Op::kConstant) {
    const int64_t value = steps_.back().operand;
    steps_.pop_back();
    add(value);
  } else {
    append(op);
  }
  stack_.push_back(left);
  if (!left.is_generic) extend_to(left);
}

void ExpressionBuilder::compare(bool is_swapped, bool is_negated) {
  pop();
  const StackValue left = pop();
  if (is_swapped) append(Op::kSwap);
  append(left.is_signed ? Op::kLessSigned : Op::kLessUnsigned);
  if (is_negated) {
    append(Op::kConstant, 1);
    append(Op::kXor);
  }
  stack_.push_back({});
}

void ExpressionBuilder::read(uint64_t size_bytes, StackValue result) {
  if (size_bytes != 1 && size_bytes != 2 && size_bytes != 4 && size_bytes != 8)
    return fail("has a place that is read in an odd size");
  unary(Op::kRead, static_cast<int64_t>(size_bytes));
  if (stack_.empty()) return;
  stack_.back() = result;
  if (!result.is_generic && result.is_signed) extend_to(result);
}

void ExpressionBuilder::pick(size_t below_top) {
  if (below_top >= stack_.size()) return fail(kMalformed);
  push(Op::kPick, static_cast<int64_t>(below_top), stack_[stack_.size() - 1 - below_top]);
}

void ExpressionBuilder::drop() {
  pop();
  append(Op::kDrop);
}

void ExpressionBuilder::swap() {
  if (stack_.size() < 2) return fail(kMalformed);
  std::swap(stack_[stack_.size() - 1], stack_[stack_.size() - 2]);
  append(Op::kSwap);
}

void ExpressionBuilder::rotate() {
  if (stack_.size() < 3) return fail(kMalformed);
  std::rotate(stack_.end() - 3, stack_.end() - 1, stack_.end());
  append(Op::kRotate);
}

}  // namespace espy::symbols::dwarf
