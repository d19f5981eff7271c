#include "symbols/dwarf/location.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/limits.h"
#include "symbols/dwarf/passing.h"
#include "symbols/dwarf/types.h"

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

// ---- A location description is a program for a stack machine over registers and memory. Most have one operation
// (`DW_OP_fbreg -20`, `DW_OP_reg3`); optimised code has long ones, with pieces and typed values.
//
// It is translated operation by operation to the steps of a place. Two things are resolved on the way: the frame base,
// which is an expression of the function (mostly DW_OP_call_frame_cfa, an expression of the call frame information at
// the address), and the sizes of typed values.
//
// The value that an argument had at the entry of the function (DW_OP_entry_value) comes from the caller if it is no
// longer in a register here: one expression for each call site of the function in the file, over registers of the
// caller that are callee-saved or that the call frame information locates. The return address selects the call site
// (symbols/dwarf/passing.h).
//
// Not supported, with a reason in the result: branches; values that a caller would read from memory, which may have
// changed; pointers to values without memory; thread-local variables of libraries.

namespace {

using types::LocationOp;
using types::LocationPiece;
using types::ValueLocation;
using Op = types::LocationOp::Code;
using StackValue = ExpressionBuilder::StackValue;

constexpr const char* kOptimisedOut = "is optimised out here";
constexpr const char* kGone = "is not kept here (perhaps in the caller)";
constexpr int kMaxNesting = 16;
constexpr size_t kMaxOperations = 1 << 14;  // of one location: nested expressions multiply those of malformed files
constexpr int kMaxCallers = 2;              // of callers, one above the other
constexpr size_t kMaxCallSites = 64;        // of one function: a comparison each
constexpr size_t kOperationsPerLookUp = 4;  // of call frame information, as part of kMaxOperations
// Call frame information of a malformed file can take milliseconds for one address. As many look-ups are not timed.
constexpr size_t kFewLookUps = 64;
constexpr std::chrono::seconds kMaxLookUpTime(1);  // halved for each place of the file that took longer
constexpr int kMaxSlowPlaces = 20;

// Remembers what is looked up in the call frame information: libdw runs that of a function anew each time.
class FrameRules {
 public:
  using Expression = std::optional<File::Expression>;

  explicit FrameRules(File& file) : file_(file) {}

  // As in File. Valid for the life of this object.
  const Expression& frame_address(uint64_t address) {
    return look_up(address, kFrameAddress, [&] { return file_.frame_address(address); });
  }
  const Expression& callers_register(uint64_t address, int number) {
    return look_up(address, number, [&] { return file_.callers_register(address, number); });
  }
  size_t look_ups() const { return known_.size(); }
  // Whether the time of this object has passed, not only that of a TimeLimit around it.
  bool took_too_long() const { return limit_ && thread_cpu_time() >= end_; }

 private:
  static constexpr int kFrameAddress = -1;

  template <class Find>
  const Expression& look_up(uint64_t address, int what, Find find) {
    const auto [known, is_new] = known_.try_emplace({address, what});
    if (!is_new) return known->second;
    if (known_.size() > kFewLookUps && !limit_) begin_limit();
    TimeLimit::check();
    return known->second = find();
  }

  void begin_limit() {
    const std::chrono::nanoseconds most = kMaxLookUpTime;
    const auto left = most / (1 << std::min(file_.slow_places(), kMaxSlowPlaces));
    end_ = thread_cpu_time() + left;
    limit_.emplace(left);
  }

  File& file_;
  std::map<std::pair<uint64_t, int>, Expression> known_;
  std::optional<TimeLimit> limit_;
  std::chrono::nanoseconds end_ = {};  // as a thread_cpu_time()
};

class LocationTranslator {
 public:
  LocationTranslator(File& file, const kernel::Arch& arch, const Site& site)
      : file_(file), rules_(file), arch_(arch), site_(site), probed_{site.address, site.function} {}

  size_t steps() const { return operations_ + rules_.look_ups() * kOperationsPerLookUp; }
  bool took_too_long() const { return rules_.took_too_long(); }

  LocateResult translate(const Dwarf_Die& variable, Dwarf_Attribute* attribute, const Dwarf_Op* ops, size_t count) {
    attribute_ = attribute;
    operations_ = count;
    if (steps() > kMaxOperations) out_.fail(kMalformed);
    std::string_view why_partly = "is partly optimised out here";
    for (size_t i = 0; i < count && out_.why().empty(); ++i) {
      const bool ends_piece = i + 1 < count && ops[i].atom != DW_OP_piece && ops[i + 1].atom == DW_OP_piece;
      if (ops[i].atom == DW_OP_piece) {
        out_.finish_piece(static_cast<uint32_t>(ops[i].number));
      } else if (ops[i].atom == DW_OP_bit_piece && ops[i].number % 8 == 0 && ops[i].number2 == 0) {
        out_.finish_piece(static_cast<uint32_t>(ops[i].number / 8));
      } else {
        step(ops[i]);
      }
      if (ends_piece && out_.why() == kInVectorRegister) {
        out_.finish_unknown_piece(static_cast<uint32_t>(ops[++i].number));
        why_partly = kInVectorRegister;
      }
    }
    if (!out_.why().empty()) return {std::nullopt, out_.why()};
    if (out_.place().pieces.empty())
      out_.finish_piece(0);
    else
      add_missing_end(variable);
    size_t unknown = 0;
    for (const LocationPiece& piece : out_.place().pieces) unknown += piece.kind == LocationPiece::Kind::kNothing;
    if (unknown == out_.place().pieces.size())
      return {std::nullopt, std::string(why_partly == kInVectorRegister ? why_partly : kOptimisedOut)};
    if (unknown > 0) return {std::move(out_.place()), std::string(why_partly)};
    const LocationPiece& first = out_.place().pieces[0];
    const bool is_frame = is_in_frame(first), is_indirect = is_behind_address(first);
    const bool is_unset =
        std::ranges::any_of(out_.place().pieces, [&](const auto& piece) { return is_unset_at_entry(piece); });
    return {std::move(out_.place()), "", false, is_frame, is_indirect, is_unset};
  }

 private:
  // Pieces do not say what they leave out at the end of the variable.
  void add_missing_end(const Dwarf_Die& variable) {
    const std::optional<Dwarf_Die> type = type_of(variable);
    const uint64_t size_bytes = type ? size_of_members(*type) : 0;
    uint64_t described = 0;
    for (const LocationPiece& piece : out_.place().pieces) described += piece.size_bytes;
    if (described < size_bytes && size_bytes <= UINT32_MAX)
      out_.finish_piece(static_cast<uint32_t>(size_bytes - described));
  }

  static bool is_register(const LocationOp& step) { return step.op == Op::kRegister; }
  bool is_of_argument(const LocationOp& step) const {
    return is_register(step) && std::ranges::count(arch_.argument_offsets, static_cast<uint32_t>(step.operand)) > 0;
  }

  // Whether a piece is in memory at an address that is in the register of an argument, or in the frame.
  bool is_behind_address(const LocationPiece& piece) const {
    if (piece.kind != LocationPiece::Kind::kMemory || piece.steps.empty()) return false;
    return piece.steps.back().op == Op::kRead || (piece.steps.size() == 1 && is_of_argument(piece.steps[0]));
  }

  // Whether a piece is relative to a register and not an argument that the caller put on the stack, nor one whose
  // address it put into a register of arguments.
  bool is_in_frame(const LocationPiece& piece) const {
    if (piece.kind != LocationPiece::Kind::kMemory || std::ranges::none_of(piece.steps, is_register)) return false;
    if (std::ranges::all_of(piece.steps, [&](const auto& step) { return !is_register(step) || is_of_argument(step); }))
      return false;
    const bool is_callers = is_by_frame_address_ && site_.is_entry() && piece.steps.size() == 3 &&
                            is_register(piece.steps[0]) && piece.steps[0].operand == arch_.stack_pointer_offset &&
                            piece.steps[2].op == Op::kAdd && piece.steps[1].operand >= arch_.stack_argument_start_bytes;
    return !is_callers;
  }

  // Whether the site is the first instruction, and a piece is where nothing but the function can have put it: below the
  // arguments that the caller left on the stack, or relative to the caller's frame pointer. Location lists of Clang 19
  // have such entries for arguments that are stored in the first instructions.
  bool is_unset_at_entry(const LocationPiece& piece) const {
    if (!site_.is_entry() || !is_in_frame(piece)) return false;
    if (piece.steps[0].op != Op::kRegister || piece.steps[0].operand != arch_.stack_pointer_offset) return true;
    const bool is_plain =
        piece.steps.size() == 3 && piece.steps[1].op == Op::kConstant && piece.steps[2].op == Op::kAdd;
    return is_plain ? piece.steps[1].operand < arch_.stack_argument_start_bytes
                    : piece.steps.size() == 1 && arch_.stack_argument_start_bytes > 0;
  }

  // The function whose registers an expression refers to: the probed one or one of its callers.
  struct Frame {
    uint64_t address = 0;  // of code; for a caller, within the call instruction
    Dwarf_Die function;
    const Frame* callee = nullptr;
    int depth() const { return callee == nullptr ? 0 : callee->depth() + 1; }
  };

  void push_register(uint64_t number, int64_t offset) {
    if (number >= arch_.dwarf_offsets.size()) return out_.fail(kInVectorRegister);
    if (frame_->callee == nullptr)
      out_.push(Op::kRegister, arch_.dwarf_offsets[number]);
    else
      push_callers_register(number);
    out_.add(offset);
  }

  // The callee has preserved the register, or its call frame information locates the saved value.
  void push_callers_register(uint64_t number) {
    const Frame* caller = std::exchange(frame_, frame_->callee);
    const auto& found = rules_.callers_register(frame_->address, static_cast<int>(number));
    if (arch_.dwarf_offsets[number] == arch_.stack_pointer_offset) {
      call_frame_address();
    } else if (!found || found->count == 0) {
      const bool is_preserved = std::ranges::find(arch_.callee_saved, number) != arch_.callee_saved.end();
      found || is_preserved ? push_register(number, 0) : out_.fail(kGone);
    } else {
      const LocationPiece::Kind kind = std::exchange(out_.piece().kind, LocationPiece::Kind::kNothing);
      run(nullptr, found->ops, found->count);
      const bool is_value = out_.piece().kind == LocationPiece::Kind::kValue || found->ops[0].atom == DW_OP_regx;
      if (!is_value) out_.read(8, {});
      out_.piece().kind = kind;
    }
    frame_ = caller;
  }

  void address(uint64_t linked) {
    out_.push(Op::kConstant, static_cast<int64_t>(linked));
    if (!file_.is_position_independent()) return;
    out_.append(Op::kLoadBias, static_cast<int64_t>(site_.address));
    out_.append(Op::kAdd);
  }

  // ---- Types of values

  std::optional<StackValue> type_of_value(const Dwarf_Op& op) {
    Dwarf_Die type;
    if (dwarf_getlocation_die(attribute_, &op, &type) != 0) return std::nullopt;
    const uint64_t encoding = number(type, DW_AT_encoding).value_or(0);
    const uint64_t size = number(type, DW_AT_byte_size).value_or(0);
    const bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    const bool is_integer = is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
                            encoding == DW_ATE_boolean || encoding == DW_ATE_UTF || encoding == DW_ATE_address;
    if (!is_integer || (size != 1 && size != 2 && size != 4 && size != 8)) return std::nullopt;
    return StackValue{static_cast<uint8_t>(size), is_signed, false};
  }

  void convert(const Dwarf_Op& op) {
    if (op.number == 0) {
      if (out_.top() != nullptr) *out_.top() = {};
      return;
    }
    const std::optional<StackValue> type = type_of_value(op);
    if (!type || out_.top() == nullptr) return out_.fail("is computed with floating-point numbers");
    out_.extend_to(*type);
    *out_.top() = *type;
  }

  void typed_constant(const Dwarf_Op& op) {
    Dwarf_Block block;
    const std::optional<StackValue> type = type_of_value(op);
    if (!type || dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0 || block.length > 8)
      return out_.fail("is computed with floating-point numbers");
    uint64_t value = 0;
    for (size_t i = 0; i < block.length; ++i) value |= uint64_t{block.data[i]} << (8 * i);
    out_.push(Op::kConstant, static_cast<int64_t>(value), *type);
    out_.extend_to(*type);
  }

  // ---- Operations that refer to other expressions

  // Appends another expression to this piece.
  void run(Dwarf_Attribute* attribute, const Dwarf_Op* ops, size_t count) {
    operations_ += count;
    if (++nesting_ > kMaxNesting || steps() > kMaxOperations) out_.fail(kMalformed);
    Dwarf_Attribute* outer = std::exchange(attribute_, attribute);
    for (size_t i = 0; i < count && out_.why().empty(); ++i) {
      const LocationPiece::Kind kind = out_.piece().kind;
      step(ops[i]);
      if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) out_.piece().kind = kind;  // here: the value in it
    }
    attribute_ = outer;
    --nesting_;
  }

  void call_frame_address() {
    const auto& found = rules_.frame_address(frame_->address);
    if (!found) return out_.fail("has its place relative to a frame that nothing describes");
    is_by_frame_address_ = true;
    run(nullptr, found->ops, found->count);
  }

  void frame_base(int64_t offset) {
    std::optional<Dwarf_Attribute> base = attribute(frame_->function, DW_AT_frame_base);
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (!base || dwarf_getlocation_addr(&*base, frame_->address, &ops, &count, 1) != 1)
      return out_.fail("has its place relative to a frame that nothing describes");
    run(&*base, ops, count);
    out_.add(offset);
  }

  void entry_value(const Dwarf_Op& op) {
    Dwarf_Attribute nested;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_getlocation_attr(attribute_, &op, &nested) != 0 || dwarf_getlocation(&nested, &ops, &count) != 0)
      return out_.fail(kGone);
    if (site_.is_entry() && frame_->callee == nullptr) return run(&nested, ops, count);
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
      return value_from_caller(ops[0].atom - DW_OP_reg0);
    out_.fail(kGone);
  }

  // Pushes the value that a register had at the entry of the function of the frame.
  void value_from_caller(unsigned number) {
    const std::vector<Call>* calls = file_.calls().calls_to(frame_->function);
    if (calls == nullptr || calls->empty() || frame_->depth() == kMaxCallers) return out_.fail(kGone);
    if (calls->size() > kMaxCallSites) return out_.fail("is known only to the callers, and there are too many");
    std::vector<types::CallSite> known;
    for (const Call& call : *calls)
      if (auto steps = in_caller(call, number)) known.push_back({call.return_address, std::move(*steps)});
    if (known.empty()) return out_.fail(kGone);
    push_return_address();
    if (file_.is_position_independent()) {
      out_.append(Op::kLoadBias, static_cast<int64_t>(site_.address));
      out_.append(Op::kSub);
    }
    out_.append(Op::kByCaller, static_cast<int64_t>(out_.piece().callers.size()));
    out_.piece().callers.push_back(std::move(known));
  }

  // Pushes the address that the frame's function returns to.
  void push_return_address() {
    call_frame_address();
    out_.add(-int64_t{arch_.return_address_bytes});
    arch_.return_address_bytes > 0 ? read_return_address() : read_link();
    out_.binary(Op::kReturnAddress);
  }

  // The address is where the stack pointer, on the top, pointed at the function's entry.
  void read_return_address() {
    out_.pick(0);
    out_.read(8, {});
  }

  void read_link() {
    const uint32_t link = arch_.unwind.return_address;
    const auto& saved = rules_.callers_register(frame_->address, static_cast<int>(link));
    if (!saved || saved->count == 0) {
      push_register(link, 0);
    } else {
      run(nullptr, saved->ops, saved->count);
      out_.read(8, {});
    }
    out_.push(Op::kConstant, static_cast<int64_t>(arch_.code_address_mask));
    out_.binary(Op::kAnd);
  }

  // Returns the steps that compute an argument from the registers of a caller; nullopt if that is not possible.
  std::optional<ExpressionBuilder::Steps> in_caller(const Call& call, unsigned number) {
    std::optional<Dwarf_Attribute> value = Calls::argument(call, number);
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (!value || dwarf_getlocation(&*value, &ops, &count) != 0 || count == 0) return std::nullopt;
    const auto reads = [](const Dwarf_Op& op) {
      return op.atom == DW_OP_deref || op.atom == DW_OP_deref_size || op.atom == DW_OP_deref_type ||
             op.atom == DW_OP_GNU_deref_type;
    };
    if (std::any_of(ops, ops + count, reads)) return std::nullopt;
    const Frame caller{call.return_address - 1, call.caller.die, frame_};
    const Frame* callee = std::exchange(frame_, &caller);
    auto out = out_.build_nested([&] { run(&*value, ops, count); });
    frame_ = callee;
    return out;
  }

  void indexed_address(const Dwarf_Op& op, bool is_address) {
    Dwarf_Attribute found;
    Dwarf_Addr value = 0;
    if (dwarf_getlocation_attr(attribute_, &op, &found) != 0 || dwarf_formaddr(&found, &value) != 0)
      return out_.fail(kMalformed);
    if (is_address) return address(value);
    out_.push(Op::kConstant, static_cast<int64_t>(value));
  }

  // The top is an offset in the thread-local block of the file. Only the loader knows where that of a library is.
  void thread_local_address() {
    const auto segment = file_.is_executable() ? file_.thread_local_segment() : std::nullopt;
    if (!segment) return out_.fail("is thread-local in a library");
    out_.add(arch_.thread_local_start(segment->p_memsz, std::max<uint64_t>(segment->p_align, 1)));
    out_.push(Op::kThreadPointer, 0);
    out_.binary(Op::kAdd);
  }

  void implicit_value(const Dwarf_Op& op) {
    Dwarf_Block block;
    if (dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0) return out_.fail(kMalformed);
    out_.piece().kind = LocationPiece::Kind::kBytes;
    out_.piece().bytes.assign(reinterpret_cast<const char*>(block.data), block.length);
  }

  // ---- One operation

  void step(const Dwarf_Op& op) {
    const auto signed_number = static_cast<int64_t>(op.number);
    if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) return out_.push(Op::kConstant, op.atom - DW_OP_lit0);
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) return push_register(op.atom - DW_OP_breg0, signed_number);
    if ((op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) || op.atom == DW_OP_regx) {
      out_.piece().kind = LocationPiece::Kind::kValue;
      return push_register(op.atom == DW_OP_regx ? op.number : op.atom - DW_OP_reg0, 0);
    }
    switch (op.atom) {
      case DW_OP_nop: return;
      case DW_OP_stack_value: out_.piece().kind = LocationPiece::Kind::kValue; return;
      case DW_OP_implicit_value: return implicit_value(op);
      case DW_OP_addr: return address(op.number);
      case DW_OP_addrx:
      case DW_OP_GNU_addr_index: return indexed_address(op, true);
      case DW_OP_constx:
      case DW_OP_GNU_const_index: return indexed_address(op, false);
      case DW_OP_fbreg: return frame_base(signed_number);
      case DW_OP_call_frame_cfa: return call_frame_address();
      case DW_OP_bregx: return push_register(op.number, static_cast<int64_t>(op.number2));
      case DW_OP_entry_value:
      case DW_OP_GNU_entry_value: return entry_value(op);
      case DW_OP_GNU_parameter_ref:
        return out_.fail("is optimised out: the function is a copy made for certain callers");
      case DW_OP_implicit_pointer:
      case DW_OP_GNU_implicit_pointer: return out_.fail(kPointsToNothing);
      case DW_OP_form_tls_address:
      case DW_OP_GNU_push_tls_address: return thread_local_address();
      case DW_OP_const1u:
      case DW_OP_const1s:
      case DW_OP_const2u:
      case DW_OP_const2s:
      case DW_OP_const4u:
      case DW_OP_const4s:
      case DW_OP_const8u:
      case DW_OP_const8s:
      case DW_OP_constu:
      case DW_OP_consts: return out_.push(Op::kConstant, signed_number);
      case DW_OP_const_type:
      case DW_OP_GNU_const_type: return typed_constant(op);
      case DW_OP_convert:
      case DW_OP_GNU_convert:
      case DW_OP_reinterpret:
      case DW_OP_GNU_reinterpret: return convert(op);
      default: return operate(op);
    }
  }

  void typed_source(const Dwarf_Op& op, bool is_register) {
    const std::optional<StackValue> type = type_of_value(op);
    if (!type) return out_.fail("is computed with floating-point numbers");
    if (!is_register) return out_.read(op.number, *type);
    push_register(op.number, 0);
    if (out_.top() == nullptr) return;
    out_.extend_to(*type);
    *out_.top() = *type;
  }

  void operate(const Dwarf_Op& op) {
    const bool is_signed = out_.top() == nullptr || out_.top()->is_signed;
    const bool is_generic = out_.top() == nullptr || out_.top()->is_generic;
    switch (op.atom) {
      case DW_OP_regval_type:
      case DW_OP_GNU_regval_type: return typed_source(op, true);
      case DW_OP_deref_type:
      case DW_OP_GNU_deref_type: return typed_source(op, false);
      case DW_OP_deref: return out_.read(8, {});
      case DW_OP_deref_size: return out_.read(op.number, {});
      case DW_OP_dup: return out_.pick(0);
      case DW_OP_over: return out_.pick(1);
      case DW_OP_pick: return out_.pick(op.number);
      case DW_OP_drop: return out_.drop();
      case DW_OP_swap: return out_.swap();
      case DW_OP_rot: return out_.rotate();
      case DW_OP_plus: return out_.binary(Op::kAdd);
      case DW_OP_plus_uconst:
        if (out_.top() == nullptr) return out_.fail(kMalformed);
        return out_.add(static_cast<int64_t>(op.number));
      case DW_OP_minus: return out_.binary(Op::kSub);
      case DW_OP_mul: return out_.binary(Op::kMul);
      case DW_OP_div: return out_.binary(is_signed ? Op::kDivSigned : Op::kDivUnsigned);
      case DW_OP_mod:
        if (!is_generic && is_signed) return out_.fail("is computed in a way that espy does not know");
        return out_.binary(Op::kMod);
      case DW_OP_and: return out_.binary(Op::kAnd);
      case DW_OP_or: return out_.binary(Op::kOr);
      case DW_OP_xor: return out_.binary(Op::kXor);
      case DW_OP_shl: return out_.binary(Op::kShl);
      case DW_OP_shr: return out_.binary(Op::kShr);
      case DW_OP_shra: return out_.binary(Op::kSar);
      case DW_OP_neg: return out_.unary(Op::kNeg);
      case DW_OP_not: return out_.unary(Op::kNot);
      case DW_OP_eq: return out_.binary(Op::kEqual);
      case DW_OP_ne: return out_.binary(Op::kNotEqual);
      case DW_OP_lt: return out_.compare(false, false);
      case DW_OP_gt: return out_.compare(true, false);
      case DW_OP_ge: return out_.compare(false, true);
      case DW_OP_le: return out_.compare(true, true);
      default: return out_.fail(fmt::format("has a place that espy cannot follow (operation {:#x})", op.atom));
    }
  }

  File& file_;
  FrameRules rules_;
  const kernel::Arch& arch_;
  const Site& site_;
  Frame probed_;
  const Frame* frame_ = &probed_;
  Dwarf_Attribute* attribute_ = nullptr;
  ExpressionBuilder out_;
  bool is_by_frame_address_ = false;
  int nesting_ = 0;
  size_t operations_ = 0;
};

LocateResult constant_location(Dwarf_Attribute& value) {
  LocationPiece piece;
  Dwarf_Block block;
  if (const char* text = dwarf_whatform(&value) == DW_FORM_string || dwarf_whatform(&value) == DW_FORM_strp
                             ? dwarf_formstring(&value)
                             : nullptr) {
    piece.kind = LocationPiece::Kind::kBytes;
    piece.bytes = std::string(text) + '\0';
  } else if (dwarf_formblock(&value, &block) == 0) {
    piece.kind = LocationPiece::Kind::kBytes;
    piece.bytes.assign(reinterpret_cast<const char*>(block.data), block.length);
  } else if (const std::optional<int64_t> number = integer(value)) {
    piece.kind = LocationPiece::Kind::kValue;
    piece.steps = {{Op::kConstant, *number}};
  } else {
    return {std::nullopt, kOptimisedOut};
  }
  return {ValueLocation{{std::move(piece)}}};
}

bool is_list(Dwarf_Attribute& location) {
  const unsigned form = dwarf_whatform(&location);
  return form == DW_FORM_sec_offset || form == DW_FORM_loclistx || form == DW_FORM_data4 || form == DW_FORM_data8;
}

// Finds an expression in a list that is made of values at the entry of the function alone, which holds there, too.
bool find_value_at_entry(Dwarf_Attribute& list, Dwarf_Op*& ops, size_t& count) {
  Dwarf_Addr base = 0, low = 0, high = 0;
  ptrdiff_t offset = 0;
  const auto is_of_entry = [](const Dwarf_Op& op) {
    return op.atom == DW_OP_entry_value || op.atom == DW_OP_GNU_entry_value || op.atom == DW_OP_stack_value;
  };
  while ((offset = dwarf_getlocations(&list, offset, &base, &low, &high, &ops, &count)) > 0)
    if (count > 0 && std::all_of(ops, ops + count, is_of_entry)) return true;
  return false;
}

}  // namespace

LocateResult locate(File& file, const kernel::Arch& arch, const Dwarf_Die& variable, const Site& site) {
  std::optional<Dwarf_Attribute> location = attribute(variable, DW_AT_location);
  if (!location) {
    std::optional<Dwarf_Attribute> value = attribute(variable, DW_AT_const_value);
    return value ? constant_location(*value) : LocateResult{std::nullopt, kOptimisedOut};
  }
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  const bool from_list = is_list(*location);
  const bool is_described = dwarf_getlocation_addr(&*location, site.address, &ops, &count, 1) == 1 && count > 0;
  if (!is_described && !(from_list && site.is_entry() && find_value_at_entry(*location, ops, count)))
    return {std::nullopt, from_list ? "is not kept here" : kOptimisedOut, from_list};
  LocationTranslator translator(file, arch, site);
  LocateResult out;
  try {
    out = translator.translate(variable, &*location, ops, count);
  } catch (const TookTooLong&) {
    if (!translator.took_too_long()) throw;
    ++file.slow_places();
    out = {std::nullopt, kMalformed};
  }
  out.is_list = from_list && !out.is_unset;
  out.steps = translator.steps();
  return out;
}

std::vector<Range> described_ranges(const Dwarf_Die& variable) {
  std::optional<Dwarf_Attribute> location = attribute(variable, DW_AT_location);
  std::vector<Range> out;
  if (!location) {
    if (attribute(variable, DW_AT_const_value)) out.push_back({0, UINT64_MAX});
    return out;
  }
  if (!is_list(*location)) return {{0, UINT64_MAX}};
  Dwarf_Addr base = 0, low = 0, high = 0;
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_getlocations(&*location, offset, &base, &low, &high, &ops, &count)) > 0)
    if (count > 0) out.push_back({low, high});
  return out;
}

}  // namespace espy::symbols::dwarf
