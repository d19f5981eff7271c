// The story: a location expression is a program for a stack machine over registers and memory. Most are one operation
// (`DW_OP_fbreg -20`, `DW_OP_reg3`); optimised code has long ones, of pieces, of computed values with types.
//
// They are translated step by step to places, with two things resolved on the way: the frame's base, which is an
// expression of the function (mostly DW_OP_call_frame_cfa, that is: an expression of the call frame information at this
// address), and the widths of typed values, which places do not have.
//
// What an argument was when the function was entered (DW_OP_entry_value) is its caller's to tell, once it is gone here:
// an expression for each call of the function in the file, over the caller's registers, which the function keeps or has
// saved where call frame information says. Which call it was, the return address tells (symbols/dwarf/calls.h).
//
// Left out: jumps; what a caller would have to read from memory, which may have changed since; pointers to what has no
// memory; thread-local variables of libraries. The reason is told in each case.
#include "symbols/dwarf/location.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "symbols/dwarf/abi.h"
#include "symbols/dwarf/calls.h"
#include "symbols/dwarf/types.h"

namespace espy::symbols::dwarf {

namespace {

using types::LocationOp;
using types::LocationPiece;
using types::ValueLocation;
using Op = types::LocationOp::Code;
using Operations = std::vector<LocationOp>;

constexpr const char* kOptimisedOut = "is optimised out here";
constexpr const char* kGone = "is not kept here (perhaps in the caller)";
constexpr int kMaxNesting = 16;
constexpr int kMaxCallers = 2;        // of callers, one above the other
constexpr size_t kMaxCallSites = 64;  // of one function: a comparison each

class Translator {
 public:
  Translator(File& file, const kernel::Arch& arch, const Site& site)
      : file_(file), arch_(arch), site_(site), probed_{site.address, site.function} {}

  // The whole place.
  Found place(Dwarf_Attribute* attribute, const Dwarf_Op* ops, size_t count) {
    attribute_ = attribute;
    for (size_t i = 0; i < count && why_.empty(); ++i) {
      if (ops[i].atom == DW_OP_piece) {
        finish_piece(static_cast<uint32_t>(ops[i].number));
      } else if (ops[i].atom == DW_OP_bit_piece && ops[i].number % 8 == 0 && ops[i].number2 == 0) {
        finish_piece(static_cast<uint32_t>(ops[i].number / 8));
      } else {
        step(ops[i]);
      }
    }
    if (!why_.empty()) return {std::nullopt, why_};
    if (place_.pieces.empty()) finish_piece(0);
    size_t unknown = 0;
    for (const LocationPiece& piece : place_.pieces) unknown += piece.kind == LocationPiece::Kind::kNothing;
    if (unknown == place_.pieces.size()) return {std::nullopt, kOptimisedOut};
    if (unknown > 0) return {std::move(place_), "is partly optimised out here"};
    const bool is_frame = is_in_frame(place_.pieces[0]);
    return {std::move(place_), "", false, is_frame};
  }

 private:
  // Relative to a register, and not what the caller put on the stack.
  bool is_in_frame(const LocationPiece& piece) const {
    const auto is_register = [](const LocationOp& step) { return step.op == Op::kRegister; };
    if (piece.kind != LocationPiece::Kind::kMemory || std::ranges::none_of(piece.steps, is_register)) return false;
    const bool is_callers = is_by_frame_address_ && site_.is_entry() && piece.steps.size() == 3 &&
                            is_register(piece.steps[0]) && piece.steps[0].operand == arch_.stack_pointer_offset &&
                            piece.steps[2].op == Op::kAdd && piece.steps[1].operand >= arch_.stack_argument_start_bytes;
    return !is_callers;
  }

  struct Slot {  // what is known at compile time of a value on the stack
    uint8_t size_bytes = 8;
    bool is_signed = true;
    bool is_generic = true;
  };

  // Whose registers an expression means: those of the probed function, or of one of its callers.
  struct Frame {
    uint64_t address = 0;  // of code; a caller's lies within the call
    Dwarf_Die function;
    const Frame* callee = nullptr;
    int depth() const { return callee == nullptr ? 0 : callee->depth() + 1; }
  };

  void fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  void finish_piece(uint32_t size_bytes) {
    piece_.size_bytes = size_bytes;
    if (piece_.kind != LocationPiece::Kind::kBytes) piece_.steps = std::move(steps_);
    const bool is_known = piece_.kind == LocationPiece::Kind::kBytes || !piece_.steps.empty();
    if (is_known && piece_.kind == LocationPiece::Kind::kNothing) piece_.kind = LocationPiece::Kind::kMemory;
    place_.pieces.push_back(std::move(piece_));
    piece_ = {};
    steps_.clear();
    stack_.clear();
  }

  // ---- Writing steps

  void push(Op op, int64_t operand) { push(op, operand, Slot{}); }
  void push(Op op, int64_t operand, Slot slot) {
    steps_.push_back({op, operand});
    stack_.push_back(slot);
  }

  Slot pop() {
    if (stack_.empty()) {
      fail("has a place that makes no sense");
      return {};
    }
    const Slot out = stack_.back();
    stack_.pop_back();
    return out;
  }

  void push_register(uint64_t number, int64_t offset) {
    if (number >= arch_.dwarf_offsets.size()) return fail(kInVectorRegister);
    if (frame_->callee == nullptr)
      push(Op::kRegister, arch_.dwarf_offsets[number]);
    else
      push_callers_register(number);
    add(offset);
  }

  // The callee has left it alone, or says where it has put it.
  void push_callers_register(uint64_t number) {
    const Frame* caller = std::exchange(frame_, frame_->callee);
    const auto found = file_.callers_register(frame_->address, static_cast<int>(number));
    if (arch_.dwarf_offsets[number] == arch_.stack_pointer_offset) {
      call_frame_address();
    } else if (!found || found->count == 0) {
      found || is_preserved_by_calls(number) ? push_register(number, 0) : fail(kGone);
    } else {
      const LocationPiece::Kind kind = std::exchange(piece_.kind, LocationPiece::Kind::kNothing);
      run(nullptr, found->ops, found->count);
      const bool is_value = piece_.kind == LocationPiece::Kind::kValue || found->ops[0].atom == DW_OP_regx;
      if (!is_value) read(8, {});
      piece_.kind = kind;
    }
    frame_ = caller;
  }

  // A constant to the top; to one that is added there already, if there is.
  void add(int64_t value) {
    if (value == 0) return;
    const size_t n = steps_.size();
    if (n >= 1 && steps_[n - 1].op == Op::kConstant) {
      steps_[n - 1].operand += value;
    } else if (n >= 2 && steps_[n - 1].op == Op::kAdd && steps_[n - 2].op == Op::kConstant) {
      steps_[n - 2].operand += value;
      if (steps_[n - 2].operand == 0) steps_.resize(n - 2);
    } else {
      steps_.push_back({Op::kConstant, value});
      steps_.push_back({Op::kAdd});
    }
  }

  void address(uint64_t linked) {
    push(Op::kConstant, static_cast<int64_t>(linked));
    if (!file_.is_position_independent()) return;
    steps_.push_back({Op::kLoadBias, static_cast<int64_t>(site_.address)});
    steps_.push_back({Op::kAdd});
  }

  void extend_to(Slot slot) {
    if (slot.size_bytes < 8) steps_.push_back({slot.is_signed ? Op::kExtendSign : Op::kExtendZero, slot.size_bytes});
  }

  void binary(Op op) {
    pop();
    const Slot left = pop();
    if (op == Op::kAdd && !steps_.empty() && steps_.back().op == Op::kConstant) {
      const int64_t value = steps_.back().operand;
      steps_.pop_back();
      add(value);
    } else {
      steps_.push_back({op});
    }
    stack_.push_back(left);
    if (!left.is_generic) extend_to(left);
  }

  // left < right; or right < left; or not that.
  void compare(bool is_swapped, bool is_negated) {
    pop();
    const Slot left = pop();
    if (is_swapped) steps_.push_back({Op::kSwap});
    steps_.push_back({left.is_signed ? Op::kLessSigned : Op::kLessUnsigned});
    if (is_negated) {
      steps_.push_back({Op::kConstant, 1});
      steps_.push_back({Op::kXor});
    }
    stack_.push_back({});
  }

  void unary(Op op, int64_t operand = 0) {
    const Slot slot = pop();
    steps_.push_back({op, operand});
    stack_.push_back(slot);
  }

  void read(uint64_t size_bytes, Slot result) {
    if (size_bytes != 1 && size_bytes != 2 && size_bytes != 4 && size_bytes != 8)
      return fail("has a place that is read in an odd size");
    unary(Op::kRead, static_cast<int64_t>(size_bytes));
    if (stack_.empty()) return;
    stack_.back() = result;
    if (!result.is_generic && result.is_signed) extend_to(result);
  }

  // ---- Types of values

  std::optional<Slot> slot_of(const Dwarf_Op& op) {
    Dwarf_Die type;
    if (dwarf_getlocation_die(attribute_, &op, &type) != 0) return std::nullopt;
    const uint64_t encoding = number(type, DW_AT_encoding).value_or(0);
    const uint64_t size = number(type, DW_AT_byte_size).value_or(0);
    const bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    const bool is_integer = is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
                            encoding == DW_ATE_boolean || encoding == DW_ATE_UTF || encoding == DW_ATE_address;
    if (!is_integer || (size != 1 && size != 2 && size != 4 && size != 8)) return std::nullopt;
    return Slot{static_cast<uint8_t>(size), is_signed, false};
  }

  void convert(const Dwarf_Op& op) {
    if (op.number == 0) {
      if (!stack_.empty()) stack_.back() = {};
      return;
    }
    const std::optional<Slot> slot = slot_of(op);
    if (!slot || stack_.empty()) return fail("is computed with floating-point numbers");
    extend_to(*slot);
    stack_.back() = *slot;
  }

  void typed_constant(const Dwarf_Op& op) {
    Dwarf_Block block;
    const std::optional<Slot> slot = slot_of(op);
    if (!slot || dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0 || block.length > 8)
      return fail("is computed with floating-point numbers");
    uint64_t value = 0;
    for (size_t i = 0; i < block.length; ++i) value |= uint64_t{block.data[i]} << (8 * i);
    push(Op::kConstant, static_cast<int64_t>(value), *slot);
    extend_to(*slot);
  }

  // ---- What leads elsewhere

  // Another expression's operations, into this piece.
  void run(Dwarf_Attribute* attribute, const Dwarf_Op* ops, size_t count) {
    if (++nesting_ > kMaxNesting) fail("has a place that makes no sense");
    Dwarf_Attribute* outer = std::exchange(attribute_, attribute);
    for (size_t i = 0; i < count && why_.empty(); ++i) {
      const LocationPiece::Kind kind = piece_.kind;
      step(ops[i]);
      if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) piece_.kind = kind;  // here: its value
    }
    attribute_ = outer;
    --nesting_;
  }

  void call_frame_address() {
    const auto found = file_.frame_address(frame_->address);
    if (!found) return fail("has its place relative to a frame that nothing describes");
    is_by_frame_address_ = true;
    run(nullptr, found->ops, found->count);
  }

  void frame_base(int64_t offset) {
    std::optional<Dwarf_Attribute> base = attribute(frame_->function, DW_AT_frame_base);
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (!base || dwarf_getlocation_addr(&*base, frame_->address, &ops, &count, 1) != 1)
      return fail("has its place relative to a frame that nothing describes");
    run(&*base, ops, count);
    add(offset);
  }

  void entry_value(const Dwarf_Op& op) {
    Dwarf_Attribute nested;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_getlocation_attr(attribute_, &op, &nested) != 0 || dwarf_getlocation(&nested, &ops, &count) != 0)
      return fail(kGone);
    if (site_.is_entry() && frame_->callee == nullptr) return run(&nested, ops, count);
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
      return by_caller(ops[0].atom - DW_OP_reg0);
    fail(kGone);
  }

  // What a register was when the frame's function was entered.
  void by_caller(unsigned number) {
    const std::vector<Call>* calls = file_.calls().of(frame_->function);
    if (calls == nullptr || calls->empty() || frame_->depth() == kMaxCallers) return fail(kGone);
    if (calls->size() > kMaxCallSites) return fail("is known to the callers alone, and there are too many");
    std::vector<types::CallSite> known;
    for (const Call& call : *calls)
      if (auto steps = in_caller(call, number)) known.push_back({call.return_address, std::move(*steps)});
    if (known.empty()) return fail(kGone);
    constexpr int64_t kReturnAddressBytes = 8;  // below the frame's address
    call_frame_address();
    add(-kReturnAddressBytes);
    unary(Op::kReturnAddress);
    if (file_.is_position_independent()) {
      steps_.push_back({Op::kLoadBias, static_cast<int64_t>(site_.address)});
      steps_.push_back({Op::kSub});
    }
    steps_.push_back({Op::kByCaller, static_cast<int64_t>(piece_.callers.size())});
    piece_.callers.push_back(std::move(known));
  }

  // The steps that give what a call says of an argument; nothing where it says nothing of use.
  std::optional<Operations> in_caller(const Call& call, unsigned number) {
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
    Operations outer_steps = std::exchange(steps_, {});
    std::vector<Slot> outer_stack = std::exchange(stack_, {});
    const LocationPiece::Kind kind = piece_.kind;
    run(&*value, ops, count);
    std::optional<Operations> out;
    if (why_.empty() && stack_.size() == 1 && piece_.kind != LocationPiece::Kind::kBytes) out = std::move(steps_);
    frame_ = callee;
    steps_ = std::move(outer_steps);
    stack_ = std::move(outer_stack);
    piece_.kind = kind;
    why_.clear();
    return out;
  }

  void indexed_address(const Dwarf_Op& op, bool is_address) {
    Dwarf_Attribute found;
    Dwarf_Addr value = 0;
    if (dwarf_getlocation_attr(attribute_, &op, &found) != 0 || dwarf_formaddr(&found, &value) != 0)
      return fail("has a place that makes no sense");
    if (is_address) return address(value);
    push(Op::kConstant, static_cast<int64_t>(value));
  }

  // The top is an offset in what each thread has of the file. Where a library's lies only its loader knows.
  void thread_local_address() {
    const auto segment = file_.is_executable() ? file_.thread_local_segment() : std::nullopt;
    const auto start = segment ? thread_local_start(arch_.elf_machine, *segment) : std::nullopt;
    if (!start) return fail("is thread-local in a library");
    add(*start);
    push(Op::kThreadPointer, 0);
    binary(Op::kAdd);
  }

  void implicit_value(const Dwarf_Op& op) {
    Dwarf_Block block;
    if (dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0) return fail("has a place that makes no sense");
    piece_.kind = LocationPiece::Kind::kBytes;
    piece_.bytes.assign(reinterpret_cast<const char*>(block.data), block.length);
  }

  // ---- One operation

  void step(const Dwarf_Op& op) {
    const auto signed_number = static_cast<int64_t>(op.number);
    if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) return push(Op::kConstant, op.atom - DW_OP_lit0);
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) return push_register(op.atom - DW_OP_breg0, signed_number);
    if ((op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) || op.atom == DW_OP_regx) {
      piece_.kind = LocationPiece::Kind::kValue;
      return push_register(op.atom == DW_OP_regx ? op.number : op.atom - DW_OP_reg0, 0);
    }
    switch (op.atom) {
      case DW_OP_nop: return;
      case DW_OP_stack_value: piece_.kind = LocationPiece::Kind::kValue; return;
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
      case DW_OP_GNU_parameter_ref: return fail("is optimised out: the function is a copy made for certain callers");
      case DW_OP_implicit_pointer:
      case DW_OP_GNU_implicit_pointer: return fail("points to a value that is nowhere in memory");
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
      case DW_OP_consts: return push(Op::kConstant, signed_number);
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
    const std::optional<Slot> slot = slot_of(op);
    if (!slot) return fail("is computed with floating-point numbers");
    if (!is_register) return read(op.number, *slot);
    push_register(op.number, 0);
    if (stack_.empty()) return;
    extend_to(*slot);
    stack_.back() = *slot;
  }

  void pick(size_t below) {
    if (below >= stack_.size()) return fail("has a place that makes no sense");
    push(Op::kPick, static_cast<int64_t>(below), stack_[stack_.size() - 1 - below]);
  }

  void operate(const Dwarf_Op& op) {
    const bool is_signed = stack_.empty() || stack_.back().is_signed;
    const bool is_generic = stack_.empty() || stack_.back().is_generic;
    switch (op.atom) {
      case DW_OP_regval_type:
      case DW_OP_GNU_regval_type: return typed_source(op, true);
      case DW_OP_deref_type:
      case DW_OP_GNU_deref_type: return typed_source(op, false);
      case DW_OP_deref: return read(8, {});
      case DW_OP_deref_size: return read(op.number, {});
      case DW_OP_dup: return pick(0);
      case DW_OP_over: return pick(1);
      case DW_OP_pick: return pick(op.number);
      case DW_OP_drop: pop(); return steps_.push_back({Op::kDrop});
      case DW_OP_swap:
        if (stack_.size() < 2) return fail("has a place that makes no sense");
        std::swap(stack_[stack_.size() - 1], stack_[stack_.size() - 2]);
        return steps_.push_back({Op::kSwap});
      case DW_OP_rot:
        if (stack_.size() < 3) return fail("has a place that makes no sense");
        std::rotate(stack_.end() - 3, stack_.end() - 1, stack_.end());
        return steps_.push_back({Op::kRotate});
      case DW_OP_plus: return binary(Op::kAdd);
      case DW_OP_plus_uconst:
        if (stack_.empty()) return fail("has a place that makes no sense");
        return add(static_cast<int64_t>(op.number));
      case DW_OP_minus: return binary(Op::kSub);
      case DW_OP_mul: return binary(Op::kMul);
      case DW_OP_div: return binary(is_signed ? Op::kDivSigned : Op::kDivUnsigned);
      case DW_OP_mod:
        if (!is_generic && is_signed) return fail("is computed in a way that espy does not know");
        return binary(Op::kMod);
      case DW_OP_and: return binary(Op::kAnd);
      case DW_OP_or: return binary(Op::kOr);
      case DW_OP_xor: return binary(Op::kXor);
      case DW_OP_shl: return binary(Op::kShl);
      case DW_OP_shr: return binary(Op::kShr);
      case DW_OP_shra: return binary(Op::kSar);
      case DW_OP_neg: return unary(Op::kNeg);
      case DW_OP_not: return unary(Op::kNot);
      case DW_OP_eq: return binary(Op::kEqual);
      case DW_OP_ne: return binary(Op::kNotEqual);
      case DW_OP_lt: return compare(false, false);
      case DW_OP_gt: return compare(true, false);
      case DW_OP_ge: return compare(false, true);
      case DW_OP_le: return compare(true, true);
      default: return fail(fmt::format("has a place that espy cannot follow (operation {:#x})", op.atom));
    }
  }

  File& file_;
  const kernel::Arch& arch_;
  const Site& site_;
  Frame probed_;
  const Frame* frame_ = &probed_;
  Dwarf_Attribute* attribute_ = nullptr;
  ValueLocation place_;
  LocationPiece piece_;
  Operations steps_;
  std::vector<Slot> stack_;
  std::string why_;
  bool is_by_frame_address_ = false;
  int nesting_ = 0;
};

Found constant_location(Dwarf_Attribute& value) {
  LocationPiece piece;
  Dwarf_Block block;
  Dwarf_Sword number = 0;
  if (const char* text = dwarf_whatform(&value) == DW_FORM_string || dwarf_whatform(&value) == DW_FORM_strp
                             ? dwarf_formstring(&value)
                             : nullptr) {
    piece.kind = LocationPiece::Kind::kBytes;
    piece.bytes = std::string(text) + '\0';
  } else if (dwarf_formblock(&value, &block) == 0) {
    piece.kind = LocationPiece::Kind::kBytes;
    piece.bytes.assign(reinterpret_cast<const char*>(block.data), block.length);
  } else if (dwarf_formsdata(&value, &number) == 0) {
    piece.kind = LocationPiece::Kind::kValue;
    piece.steps = {{Op::kConstant, number}};
  } else {
    return {std::nullopt, kOptimisedOut};
  }
  return {ValueLocation{{std::move(piece)}}};
}

bool is_list(Dwarf_Attribute& location) {
  const unsigned form = dwarf_whatform(&location);
  return form == DW_FORM_sec_offset || form == DW_FORM_loclistx || form == DW_FORM_data4 || form == DW_FORM_data8;
}

}  // namespace

Found locate(File& file, const kernel::Arch& arch, const Dwarf_Die& variable, const Site& site) {
  std::optional<Dwarf_Attribute> location = attribute(variable, DW_AT_location);
  if (!location) {
    std::optional<Dwarf_Attribute> value = attribute(variable, DW_AT_const_value);
    return value ? constant_location(*value) : Found{std::nullopt, kOptimisedOut};
  }
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  const bool from_list = is_list(*location);
  if (dwarf_getlocation_addr(&*location, site.address, &ops, &count, 1) != 1 || count == 0)
    return {std::nullopt, from_list ? "is not kept here" : kOptimisedOut, from_list};
  Found out = Translator(file, arch, site).place(&*location, ops, count);
  out.is_list = from_list;
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
