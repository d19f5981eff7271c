// Builds a place (types/value_location.h) from the operations of a location description. Internal to dwarf/.
//
// Tracks the size and the signedness of each value on the stack, which the steps of a place do not have. After an error
// `why` is the reason and the place is meaningless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "types/value_location.h"

namespace espy::symbols::dwarf {

class ExpressionBuilder {
 public:
  using Op = types::LocationOp::Code;
  using Steps = std::vector<types::LocationOp>;

  struct StackValue {
    uint8_t size_bytes = 8;
    bool is_signed = true;
    bool is_generic = true;  // of DWARF's generic type, the size of an address
  };

  // The first reason counts.
  void fail(std::string why);
  const std::string& why() const { return why_; }

  // The piece that the steps so far belong to.
  types::LocationPiece& piece() { return piece_; }
  void finish_piece(uint32_t size_bytes);
  // Leaves the piece without a place, and takes back why.
  void finish_unknown_piece(uint32_t size_bytes);
  types::ValueLocation& place() { return place_; }

  // The type of the value on top; null if the stack is empty.
  StackValue* top() { return stack_.empty() ? nullptr : &stack_.back(); }

  void push(Op op, int64_t operand) { push(op, operand, StackValue{}); }
  void push(Op op, int64_t operand, StackValue value);
  // Appends a step that does not change the types on the stack.
  void append(Op op, int64_t operand = 0) { steps_.push_back({op, operand}); }
  // Adds a constant to the top. Folds it into one that was added just before.
  void add(int64_t value);
  // Extends the top to 64 bits from the size of `value`.
  void extend_to(StackValue value);
  void unary(Op op, int64_t operand = 0);
  void binary(Op op);
  // Pushes left < right; with `is_swapped` right < left; with `is_negated` the opposite.
  void compare(bool is_swapped, bool is_negated);
  // Replaces an address by the `size_bytes` bytes of memory there.
  void read(uint64_t size_bytes, StackValue result);
  void pick(size_t below_top);
  void drop();
  void swap();
  void rotate();

  // Runs `write` with an empty stack and returns the steps that it adds; nullopt if it fails or does not leave one
  // value. The expression around it is unchanged.
  template <class Write>
  std::optional<Steps> build_nested(Write write) {
    Steps outer_steps = std::exchange(steps_, {});
    std::vector<StackValue> outer_stack = std::exchange(stack_, {});
    const types::LocationPiece::Kind kind = piece_.kind;
    write();
    std::optional<Steps> out;
    if (why_.empty() && stack_.size() == 1 && piece_.kind != types::LocationPiece::Kind::kBytes)
      out = std::move(steps_);
    steps_ = std::move(outer_steps);
    stack_ = std::move(outer_stack);
    piece_.kind = kind;
    why_.clear();
    return out;
  }

 private:
  StackValue pop();

  types::ValueLocation place_;
  types::LocationPiece piece_;
  Steps steps_;
  std::vector<StackValue> stack_;
  std::string why_;
};

constexpr const char* kMalformed = "has a place that makes no sense";

}  // namespace espy::symbols::dwarf
