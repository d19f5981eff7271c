// From DWARF location descriptions to places (types/value_location.h). Internal to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols/dwarf/dwarf_file.h"
#include "types/value_location.h"

namespace espy::symbols::dwarf {

// ---- Builds a place (types/value_location.h) from the operations of a location description. Internal to dwarf/.
//
// Tracks the size and the signedness of each value on the stack, which the steps of a place do not have. After an error
// `why` is the reason and the place is meaningless.

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

// ---- Translation of DWARF location descriptions to places (types/value_location.h). Internal to dwarf/.

// The address of a probe and the function that contains it.
struct Site {
  uint64_t address = 0;
  Dwarf_Die function;
  uint64_t entry = 0;  // of the function
  bool is_entry() const { return address == entry; }
};

using kernel::kInVectorRegister;

// For a pointer that the compiler has removed: only the value of its target is known.
constexpr const char* kPointsToNothing = "points to a value that is nowhere in memory";

// A place, or the reason why there is none, such as "is optimised out here". Both if only some pieces have a location.
struct LocateResult {
  std::optional<types::ValueLocation> place;
  std::string why = {};
  bool is_list = false;      // from a location list, which is valid at each address, unless `is_unset`
  bool is_frame = false;     // in the stack frame, so only valid after the prologue has stored it
  bool is_indirect = false;  // for an argument: its address is passed
  bool is_unset = false;     // the site is the entry, and only the function itself can store it there
  size_t steps = 0;          // that were taken to find it
};

// Returns the place of a variable or parameter at `site`, from DW_AT_location or DW_AT_const_value. At the entry of a
// function, a location list that does not begin there may give it by the values at the entry (DW_OP_entry_value).
LocateResult locate(File& file, const kernel::Arch& arch, const Dwarf_Die& variable, const Site& site);

// Returns the addresses for which a variable has a location description, which may still not be readable.
std::vector<Range> described_ranges(const Dwarf_Die& variable);

}  // namespace espy::symbols::dwarf
