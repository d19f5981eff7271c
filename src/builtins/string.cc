// Strings and bytes: str(), buf(), comparison, search, conversion of numbers to names, and pointer arithmetic.
//
// Values of unknown length are a difficulty in BPF, because the verifier must know the bounds of each access. So the
// type of a string or buffer has a capacity that is known at compile time (types::Type::count), taken from the `length`
// argument if it is a constant, else from max_strlen. A length that is computed at run time is clamped to the capacity,
// in code that the verifier can follow. Strings are NUL-padded to the capacity, so that they can be map keys and can be
// compared by words.
//
// str(), buf() and str_concat() implement `lower_into`, which writes to its destination (a record, a map value, scratch
// memory) without an intermediate copy. Layout of the values: program/layout.h; reads from user and kernel memory:
// lower/reads.cc.
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/strings.h"
#include "builtins/builtin_support.h"
#include "builtins/string_search.h"
#include "types/parts.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using spec::CallSite;
using syntax::ExprId;
using types::AddressSpace;
using types::Kind;
using types::TypeId;

constexpr uint32_t kMaxCompareBytes = 1024;

uint32_t max_string_bytes(const spec::Config& config) { return static_cast<uint32_t>(config.limits.max_strlen); }

// ---- str(p, length) -------------------------------------------------------------------------------------------------

// A string or array, which is read to its end; anything else is an address.
bool is_whole(const types::Type& type) { return type.kind == Kind::kString || type.kind == Kind::kArray; }

// Returns the capacity for all of a string or array, and a NUL.
uint32_t whole_capacity(const types::Type& type) {
  return type.kind == Kind::kArray ? type.count + 1 : std::max(types::capacity_with_nul(type), 1u);
}

// Returns that of a string, an array of characters, or the text at a pointer. A text of max_strlen bytes with its NUL
// fits and is whole, so there is room for one byte more, except at the default and above, where a text may only seem to
// be truncated.
uint32_t text_capacity(const types::Type& type, const spec::Config& config) {
  if (is_whole(type)) return whole_capacity(type);
  const uint32_t limit = max_string_bytes(config);
  return limit < spec::Config().limits.max_strlen ? limit + 1 : limit;
}

// The length argument if it is a constant, at most max_strlen.
std::optional<uint32_t> constant_length(Checker& checker, const CallSite& call) {
  const auto length = call.arguments.size() > 1 ? checker.integer(call.arguments[1]) : std::nullopt;
  if (!length) return std::nullopt;
  const source::Span span = checker.ast()[call.arguments[1]].span;
  const uint32_t limit = max_string_bytes(checker.config());
  if (*length < 0) {
    checker.error("negative-length", span, "a length cannot be negative");
    return std::nullopt;
  }
  if (*length > int64_t{limit})
    checker.warning("length-limit", span, "only " + std::to_string(limit) + " bytes are read, the value of max_strlen",
                    "set max_strlen to read more");
  return static_cast<uint32_t>(std::min<int64_t>(*length, limit));
}

// A length counts the NUL. A string that is cut by a length of the script does not show it.
TypeId check_str(Checker& checker, const CallSite& call) {
  const types::Type type = checker.types()[checker.type(call.arguments[0])];
  const uint32_t limit = max_string_bytes(checker.config());
  uint32_t capacity = text_capacity(type, checker.config());
  if (const auto length = constant_length(checker, call))
    capacity = std::max(is_whole(type) ? std::min(*length, capacity) : *length, 1u);
  const bool may_be_cut = is_whole(type) ? type.may_be_cut && capacity == type.count : capacity >= limit;
  return checker.types().string(capacity, may_be_cut);
}

// Emits the read of a string, at most `size` bytes including its NUL. Returns its length.
ValueId read_sized(Lowering& lowering, ValueId destination, ValueId size, uint32_t capacity_bytes,
                   const MemoryRef& source) {
  ir::Builder& ir = lowering.ir();
  const Helper helper =
      source.space == AddressSpace::kUser ? Helper::probe_read_user_str : Helper::probe_read_kernel_str;
  const ValueId size_or_error = lowering.call_reader(helper, destination, size, capacity_bytes, source.address);
  return lowering.select(
      Condition::sgt, size_or_error, ir.constant(0), [&] { return ir.binary(Op::k_sub, size_or_error, 1); },
      [&] { return ir.constant(0); });
}

// A struct that describes a text, and its memory.
struct DescribedText {
  types::SizedText layout;
  MemoryRef memory;
};

// The argument is the struct or, in programs, a pointer to one: a reference to a std::string.
std::optional<DescribedText> described_text(Lowering& lowering, ExprId argument) {
  types::Types& types = lowering.types();
  if (const auto text = types::sized_text(types, lowering.type(argument))) {
    const Operand whole = lowering.value(argument);
    return DescribedText{*text, {whole.value, whole.space}};
  }
  const types::Type type = types[lowering.type(argument)];
  if (type.kind != Kind::kPointer || type.space != AddressSpace::kUser) return std::nullopt;
  types.complete_by_origin(type.element);
  const auto text = types::sized_text(types, type.element);
  if (!text) return std::nullopt;
  return DescribedText{*text, {lowering.scalar(argument), AddressSpace::kUser}};
}

// Reads the text at `source`, all of an array of characters if there is room. Returns its length.
ValueId read_to_end(Lowering& lowering, ValueId destination, uint32_t capacity, const MemoryRef& source,
                    const types::Type& type) {
  if (!is_whole(type) || capacity <= type.count)
    return lowering.read_string(destination, capacity, source.address, source.space, false);
  lowering.ir().store(1, destination, lowering.ir().constant(0), type.count);
  const TypeId all = lowering.types().char_array(type.count);
  return lowering.read_text(destination, {all, source.address, true, source.space, {}}, false);
}

// Counts a string that was read to a place with `capacity` bytes, and is longer, if max_strlen is the reason.
void count_truncated(Lowering& lowering, ExprId text, ValueId length, uint32_t capacity) {
  if (capacity < lowering.config().limits.max_strlen) return;
  lowering.count_truncated(text, length, Condition::uge, capacity - 1);
}

ValueId read_str(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t capacity_bytes) {
  const uint32_t capacity = std::min(capacity_bytes, lowering.types()[lowering.type(call.expr)].count);
  if (const auto text = described_text(lowering, call.arguments[0])) {
    const auto word = [&](uint32_t at) {
      return lowering.read_scalar(text->memory.address, at, 8, false, text->memory.space);
    };
    const ValueId length = bounded(lowering, word(text->layout.length_offset_bytes), capacity - 1);
    return read_sized(lowering, destination, lowering.ir().binary(Op::k_add, length, 1), capacity,
                      {word(text->layout.address_offset_bytes), AddressSpace::kUser});
  }
  ir::Builder& ir = lowering.ir();
  const MemoryRef source = referenced_memory(lowering, call.arguments[0]);
  const types::Type type = lowering.types()[lowering.type(call.arguments[0])];
  const bool is_computed = call.arguments.size() > 1 && !lowering.integer(call.arguments[1]);
  if (is_computed) {
    const ValueId length = lowering.scalar(call.arguments[1]);
    const ValueId size = lowering.select(
        Condition::ne, length, ir.constant(0), [&] { return bounded(lowering, length, capacity); },
        [&] { return ir.constant(1); });
    return read_sized(lowering, destination, size, capacity, source);
  }
  return read_to_end(lowering, destination, capacity, source, type);
}

ValueId lower_str_into(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t capacity_bytes) {
  const ValueId length = read_str(lowering, call, destination, capacity_bytes);
  const types::Type& result = lowering.types()[lowering.type(call.expr)];
  if (result.may_be_cut && !is_whole(lowering.types()[lowering.type(call.arguments[0])]))
    count_truncated(lowering, call.expr, length, std::min(capacity_bytes, result.count));
  return length;
}

// ---- buf(p, length) -------------------------------------------------------------------------------------------------

TypeId check_buf(Checker& checker, const CallSite& call) {
  const types::Type& type = checker.types()[checker.type(call.arguments[0])];
  const bool has_size = type.kind == Kind::kArray || type.kind == Kind::kString || type.kind == Kind::kBuffer;
  uint64_t capacity =
      has_size ? (type.kind == Kind::kBuffer ? type.count : type.size_bytes) : max_string_bytes(checker.config());
  if (call.arguments.size() > 1) {
    if (const auto length = constant_length(checker, call)) capacity = *length;
  } else if (!has_size) {
    checker.error("buffer-length", call.span, "the length of this buffer is not known", "give it: `buf(p, length)`");
  }
  return checker.types().buffer(static_cast<uint32_t>(std::max<uint64_t>(capacity, 1)));
}

// At most the bytes of a value in our memory, behind which are others. What follows an array of the kernel may belong
// to it.
ValueId lower_buf_into(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t capacity_bytes) {
  ir::Builder& ir = lowering.ir();
  const auto length = call.arguments.size() > 1 ? lowering.integer(call.arguments[1]) : std::nullopt;
  const MemoryRef source = referenced_memory(lowering, call.arguments[0]);
  const auto own = own_bytes(lowering.types()[lowering.type(call.arguments[0])]);
  uint32_t capacity = std::min(capacity_bytes, lowering.types()[lowering.type(call.expr)].count);
  if (own && source.space == AddressSpace::kBpf) capacity = std::min(capacity, *own);
  if (capacity == 0 || length == 0) return ir.constant(0);
  const bool is_computed = call.arguments.size() > 1 && !length;
  if (!is_computed) {
    lowering.read(destination, capacity, source.address, source.space);
    return ir.constant(capacity);
  }
  const ValueId wanted = lowering.scalar(call.arguments[1]);
  const ValueId size = bounded(lowering, wanted, capacity);
  if (capacity >= lowering.config().limits.max_strlen) lowering.count_truncated({}, wanted, Condition::ugt, capacity);
  const Helper helper = source.space == AddressSpace::kUser ? Helper::probe_read_user : Helper::probe_read_kernel;
  lowering.call_reader(helper, destination, size, capacity, source.address);
  return size;
}

// ---- in_memory(p)

Operand lower_in_memory(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const MemoryRef source = referenced_memory(lowering, call.arguments[0]);
  const Helper helper = source.space == AddressSpace::kUser ? Helper::probe_read_user : Helper::probe_read_kernel;
  const ValueId failed = ir.call(helper, {lowering.memory(8, "byte"), ir.constant(1), source.address});
  return lowering.scalar_operand(lowering.types().bool_type(), ir.binary(Op::k_eq, failed, ir.constant(0)));
}

// ---- Lengths

// The helper that copies strings finds their ends faster than instructions do.
Operand lower_strlen(Lowering& lowering, const CallSite& call) {
  const types::Type type = lowering.types()[lowering.type(call.arguments[0])];
  if (type.kind != Kind::kString) {
    const uint32_t capacity = text_capacity(type, lowering.config());
    const ValueId copy = lowering.memory(capacity, "strlen");
    const MemoryRef source = referenced_memory(lowering, call.arguments[0]);
    const ValueId length = read_to_end(lowering, copy, capacity, source, type);
    if (!is_whole(type)) count_truncated(lowering, {}, length, capacity);
    return lowering.scalar_operand(lowering.types().uint64(), length);
  }
  const Operand text = lowering.value(call.arguments[0]);
  ValueId length = text.length;
  if (!length.valid()) {
    const uint32_t capacity = lowering.types()[text.type].count;
    length = lowering.read_text(lowering.memory(capacity, "strlen"), text, false);
  }
  return lowering.scalar_operand(lowering.types().uint64(), length);
}

TypeId check_strcap(Checker& checker, const CallSite& call) {
  const types::Type& type = checker.types()[checker.type(call.arguments[0])];
  checker.fold(call.expr, int64_t{is_whole(type) ? type.count : max_string_bytes(checker.config())});
  return checker.types().uint64();
}

TypeId check_default_length(Checker& checker, const CallSite& call) {
  checker.fold(call.expr, static_cast<int64_t>(checker.config().limits.max_strlen));
  return checker.types().uint64();
}

// ---- Comparing

TypeId check_compare_size(Checker& checker, const CallSite& call) {
  const auto size = checker.integer(call.arguments[2]);
  if (size && (*size < 0 || *size > kMaxCompareBytes))
    checker.error("compare-length", checker.ast()[call.arguments[2]].span,
                  "the number of bytes to compare must be from 0 to 1024");
  return checker.types().uint64();
}

// Strings are zero-padded, so comparing words stops at the same byte as strncmp() in C.
Operand lower_strncmp(Lowering& lowering, const CallSite& call) {
  types::Types& types = lowering.types();
  const auto size = static_cast<uint32_t>(lowering.integer(call.arguments[2]).value_or(0));
  const uint32_t a = types::capacity_with_nul(types[lowering.type(call.arguments[0])]);
  const uint32_t b = types::capacity_with_nul(types[lowering.type(call.arguments[1])]);
  const uint32_t capacity = std::max({a, b, 1u});
  if (size < capacity)
    for (const ExprId text : call.arguments.first(2)) lowering.allow_truncation(text);
  const ValueId left = as_string(lowering, call.arguments[0], capacity);
  const ValueId right = as_string(lowering, call.arguments[1], capacity);
  return lowering.scalar_operand(types.uint64(), bytes_differ(lowering, left, right, std::min(size, capacity)));
}

ValueId copy_of_bytes(Lowering& lowering, ExprId expr, uint32_t size_bytes) {
  const MemoryRef source = referenced_memory(lowering, expr);
  const ValueId copy = lowering.memory(size_bytes, "bytes");
  lowering.zero(copy, size_bytes);
  const uint32_t available_bytes = own_bytes(lowering.types()[lowering.type(expr)]).value_or(size_bytes);
  lowering.read(copy, std::min(size_bytes, available_bytes), source.address, source.space);
  return copy;
}

TypeId check_memcmp(Checker& checker, const CallSite& call) {
  check_compare_size(checker, call);
  return checker.types().int64();
}

Operand lower_memcmp(Lowering& lowering, const CallSite& call) {
  const auto size = static_cast<uint32_t>(lowering.integer(call.arguments[2]).value_or(0));
  const ValueId left = copy_of_bytes(lowering, call.arguments[0], size);
  const ValueId right = copy_of_bytes(lowering, call.arguments[1], size);
  ir::Builder& ir = lowering.ir();
  if (size == 0) return lowering.scalar_operand(lowering.types().int64(), ir.constant(0));
  const ValueId difference = lowering.select(
      Condition::eq, bytes_differ(lowering, left, right, size), ir.constant(0), [&] { return ir.constant(0); },
      [&] { return lower::first_difference(ir, left, right, size); });
  return lowering.scalar_operand(lowering.types().int64(), difference);
}

// ---- Search, by a kfunc of the kernel if it has that

TypeId check_strstr(Checker& checker, const CallSite& call) {
  if (!checker.kernel().has(kernel::Feature::kStringKfuncs)) {
    for (const ExprId argument : call.arguments.first(2)) {
      const uint32_t capacity = checker.types()[checker.type(argument)].count;
      if (capacity > kMaxSearchedBytes)
        checker.error("search-length", checker.ast()[argument].span,
                      "this string may have " + std::to_string(capacity) + " bytes; on this kernel, strings of up to " +
                          std::to_string(kMaxSearchedBytes) + " bytes can be searched",
                      "read less of it: str(p, " + std::to_string(kMaxSearchedBytes) + ")");
    }
  }
  return checker.types().int64();
}

TypeId check_strcontains(Checker& checker, const CallSite& call) {
  check_strstr(checker, call);
  return checker.types().bool_type();
}

// The string in our memory, with a NUL.
Operand terminated(Lowering& lowering, const Operand& text) {
  const types::Type& type = lowering.types()[text.type];
  if (!type.may_lack_nul) return lowering.in_our_memory(text);
  return lowering.convert(text, lowering.types().string(types::capacity_with_nul(type)));
}

// Emits the offset of the first needle in the haystack; a negative number if there is none.
ValueId call_strstr(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const auto search =
      lowering.kernel().has(kernel::Feature::kStringKfuncs) ? lowering.kernel().kfunc_id("bpf_strstr") : std::nullopt;
  const Operand haystack = terminated(lowering, lowering.value(call.arguments[0]));
  if (!search) {
    if (const auto text = lowering.text(call.arguments[1])) return StringSearch(lowering, haystack).find(*text);
    return StringSearch(lowering, haystack).find(terminated(lowering, lowering.value(call.arguments[1])));
  }
  const Operand needle = terminated(lowering, lowering.value(call.arguments[1]));
  return ir.unary(Op::k_sext32, ir.kfunc(*search, {haystack.value, needle.value}));
}

Operand lower_strstr(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ValueId found = call_strstr(lowering, call);
  const ValueId index = lowering.select(
      Condition::slt, found, ir.constant(0), [&] { return ir.constant(-1); }, [&] { return found; });
  return lowering.scalar_operand(lowering.types().int64(), index);
}

Operand lower_strcontains(Lowering& lowering, const CallSite& call) {
  const ValueId found = call_strstr(lowering, call);
  return lowering.scalar_operand(lowering.types().bool_type(),
                                 lowering.ir().binary(Op::k_sle, lowering.ir().constant(0), found));
}

// ---- str_concat

TypeId check_concat(Checker& checker, const CallSite& call) {
  const types::Type& a = checker.types()[checker.type(call.arguments[0])];
  const types::Type& b = checker.types()[checker.type(call.arguments[1])];
  const uint32_t capacity = types::capacity_with_nul(a) + types::capacity_with_nul(b);
  return checker.types().string(std::max(capacity, 2u) - 1, a.may_be_cut || b.may_be_cut);
}

ValueId lower_concat_into(Lowering& lowering, const CallSite& call, ValueId destination, uint32_t) {
  ir::Builder& ir = lowering.ir();
  const Operand a = lowering.value(call.arguments[0]);
  Operand b = lowering.value(call.arguments[1]);
  if (lowering.types()[b.type].may_lack_nul) b = terminated(lowering, b);
  const ValueId first = lowering.read_text(destination, a, false);
  const ValueId at = bounded(lowering, first, types::capacity_with_nul(lowering.types()[a.type]) - 1);
  const ValueId second = lowering.read_text(ir.binary(Op::k_add, destination, at), b, false);
  return ir.binary(Op::k_add, at, second);
}

// ---- Parts of strings, and their bytes changed: loops over bytes
//
// The verifier follows every iteration, so that a step has only the branch that leaves the loop: all else is computed
// without branches.

// A string in scratch memory, where it can be read and written at any offset: kernels before 5.12 allow no variable
// offsets on the stack. Offsets are masked to be within it.
class ByteString {
 public:
  ByteString(Lowering& lowering, uint32_t capacity_bytes, std::string_view name)
      : lowering_(lowering), size_(std::bit_ceil(std::max(capacity_bytes, kScratchBytes))) {
    address_ = lowering.memory(size_, name);
    lowering.zero(address_, size_);
  }

  ValueId address() const { return address_; }
  ValueId load(ValueId index) const { return lowering_.ir().load(1, at(index)); }
  void store(ValueId index, ValueId byte) const { lowering_.ir().store(1, at(index), byte); }

 private:
  static constexpr uint32_t kScratchBytes = 128;  // objects of this size are not on the stack

  ValueId at(ValueId index) const {
    ir::Builder& ir = lowering_.ir();
    return ir.binary(Op::k_add, address_, ir.binary(Op::k_and, index, int64_t{size_ - 1}));
  }

  Lowering& lowering_;
  uint32_t size_;
  ValueId address_;
};

// The text of an argument, and a place for as many bytes.
struct TextCopy {
  ByteString text, out;
  uint32_t capacity_bytes;
  ValueId length;
};

TextCopy copy_text(Lowering& lowering, ExprId argument) {
  const Operand text = terminated(lowering, lowering.value(argument));
  const uint32_t capacity = std::max(lowering.types()[text.type].count, 1u);
  TextCopy copy{{lowering, capacity, "text"}, {lowering, capacity, "part"}, capacity, {}};
  copy.length = lowering.read_text(copy.text.address(), text, false);
  return copy;
}

Operand finish(Lowering& lowering, const CallSite& call, const TextCopy& copy) {
  return {lowering.type(call.expr), copy.out.address(), true};
}

TypeId check_part(Checker& checker, const CallSite& call) {
  return checker.types().string(
      std::max(types::capacity_with_nul(checker.types()[checker.type(call.arguments[0])]), 1u));
}

ValueId is_negative(ir::Builder& ir, ValueId number) { return ir.binary(Op::k_shr, number, 63); }
// 1 if a number, which is not negative, is 0.
ValueId is_zero(ir::Builder& ir, ValueId number) { return is_negative(ir, ir.binary(Op::k_sub, number, 1)); }

Operand lower_lower_case(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TextCopy copy = copy_text(lowering, call.arguments[0]);
  ir.count_up(copy.capacity_bytes, [&](ValueId index, ir::BlockId done) {
    const ValueId byte = copy.text.load(index);
    const ir::BlockId more = ir.add_block("more");
    ir.branch(Condition::eq, byte, 0, done, more);
    ir.enter(more);
    const ValueId is_outside = is_negative(
        ir, ir.binary(Op::k_or, ir.binary(Op::k_sub, byte, 'A'), ir.binary(Op::k_sub, ir.constant('Z'), byte)));
    copy.out.store(index, ir.binary(Op::k_or, byte, ir.binary(Op::k_shl, ir.binary(Op::k_xor, is_outside, 1), 5)));
  });
  return finish(lowering, call, copy);
}

// A start or length that is negative is a large number without a sign: nothing starts there, or all of the rest.
Operand lower_substr(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TextCopy copy = copy_text(lowering, call.arguments[0]);
  const ValueId given = lowering.scalar(call.arguments[1]);
  const ValueId start = lowering.select(
      Condition::ult, given, copy.length, [&] { return given; }, [&] { return copy.length; });
  const ValueId wanted = call.arguments.size() > 2
                             ? bounded(lowering, lowering.scalar(call.arguments[2]), copy.capacity_bytes)
                             : ir.constant(copy.capacity_bytes);
  ir.count_up(copy.capacity_bytes, [&](ValueId index, ir::BlockId done) {
    const ValueId byte = copy.text.load(ir.binary(Op::k_add, start, index));
    const ir::BlockId more = ir.add_block("more");
    const ValueId is_past = ir.binary(Op::k_xor, is_negative(ir, ir.binary(Op::k_sub, index, wanted)), 1);
    ir.branch(Condition::ne, ir.binary(Op::k_or, is_zero(ir, byte), is_past), 0, done, more);
    ir.enter(more);
    copy.out.store(index, byte);
  });
  return finish(lowering, call, copy);
}

TypeId check_split(Checker& checker, const CallSite& call) {
  const auto separator = checker.text(call.arguments[1]);
  if (separator && separator->size() != 1)
    checker.error("wrong-argument", checker.ast()[call.arguments[1]].span, "the separator must be one character");
  return check_part(checker, call);
}

// Each byte is written behind the part so far: a zero, which is none, if it is not of the wanted part.
Operand lower_split(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TextCopy copy = copy_text(lowering, call.arguments[0]);
  const std::string separator = lowering.text(call.arguments[1]).value_or(",");
  const ValueId wanted = ir.binary(Op::k_and, lowering.scalar(call.arguments[2]), INT64_MAX);
  const ir::SlotId seen = ir.add_variable("seen"), used = ir.add_variable("used");
  const auto read = [&](ir::SlotId slot) { return ir.load(8, ir.slot(slot)); };
  ir.store(8, ir.slot(seen), ir.constant(0));
  ir.store(8, ir.slot(used), ir.constant(0));
  ir.count_up(copy.capacity_bytes, [&](ValueId index, ir::BlockId done) {
    const ValueId byte = copy.text.load(index);
    const ir::BlockId more = ir.add_block("more");
    ir.branch(Condition::eq, byte, 0, done, more);
    ir.enter(more);
    const ValueId separators = read(seen), length = read(used);
    const ValueId is_separator =
        is_zero(ir, ir.binary(Op::k_xor, byte, int64_t{static_cast<unsigned char>(separator[0])}));
    const ValueId is_part = ir.binary(Op::k_and, is_zero(ir, ir.binary(Op::k_xor, separators, wanted)),
                                      ir.binary(Op::k_xor, is_separator, 1));
    copy.out.store(length, ir.binary(Op::k_and, byte, ir.unary(Op::k_neg, is_part)));
    ir.store(8, ir.slot(used), ir.binary(Op::k_add, length, is_part));
    ir.store(8, ir.slot(seen), ir.binary(Op::k_add, separators, is_separator));
  });
  return finish(lowering, call, copy);
}

// ---- Names of numbers: tables in .rodata, so that the result is an ordinary string

constexpr uint32_t kErrorBytes = 64;
constexpr uint32_t kSignalBytes = 16;
constexpr uint32_t kSyscallBytes = 32;
constexpr int kErrorCount = EHWPOISON + 1;
constexpr uint32_t kSyscallCount = 512;

TypeId check_strerror(Checker& checker, const CallSite&) { return checker.types().string(kErrorBytes); }
TypeId check_signal_name(Checker& checker, const CallSite&) { return checker.types().string(kSignalBytes); }
TypeId check_syscall_name(Checker& checker, const CallSite&) { return checker.types().string(kSyscallBytes); }

// Accepts both signs, because kernel functions return -ENOENT.
Operand lower_strerror(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  std::vector<std::string> names;
  for (int number = 0; number < kErrorCount; ++number) {
    const char* text = ::strerrordesc_np(number);
    names.emplace_back(text ? text : "");
  }
  const ValueId error = lowering.scalar(call.arguments[0]);
  const ValueId positive = lowering.select(
      Condition::slt, error, ir.constant(0), [&] { return ir.unary(Op::k_neg, error); }, [&] { return error; });
  return name_in_table(lowering, positive, names, "Unknown error", kErrorBytes);
}

Operand lower_signal_name(Lowering& lowering, const CallSite& call) {
  std::vector<std::string> names;
  for (int number = 0; number < NSIG; ++number) {
    const char* text = ::sigabbrev_np(number);
    names.push_back(text && number > 0 ? std::string("SIG") + text : "");
  }
  return name_in_table(lowering, lowering.scalar(call.arguments[0]), names, "unknown", kSignalBytes);
}

Operand lower_syscall_name(Lowering& lowering, const CallSite& call) {
  std::vector<std::string> names;
  for (uint32_t number = 0; number < kSyscallCount; ++number)
    names.push_back(lowering.kernel().syscall_name(number).value_or(""));
  while (!names.empty() && names.back().empty()) names.pop_back();
  return name_in_table(lowering, lowering.scalar(call.arguments[0]), names, "unknown", kSyscallBytes);
}

// ---- Bytes and pointers

TypeId check_bswap(Checker& checker, const CallSite& call) {
  const types::Type& type = checker.types()[checker.type(call.arguments[0])];
  return checker.types().int_type(type.kind == Kind::kInt ? type.size_bytes : 8, false);
}

Operand lower_bswap(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TypeId type = lowering.type(call.expr);
  const ValueId value = lowering.scalar(call.arguments[0]);
  switch (lowering.types()[type].size_bytes) {
    case 2: return {type, ir.unary(Op::k_bswap16, value)};
    case 4: return {type, ir.unary(Op::k_bswap32, value)};
    case 8: return {type, ir.unary(Op::k_bswap64, value)};
    default: return {type, value};
  }
}

template <AddressSpace kSpace>
TypeId check_space(Checker& checker, const CallSite& call) {
  const types::Type& type = checker.types()[checker.type(call.arguments[0])];
  const TypeId target = type.kind == Kind::kPointer ? type.element : checker.types().void_type();
  return checker.types().pointer(target, kSpace);
}

Operand lower_space(Lowering& lowering, const CallSite& call) {
  return lowering.scalar_operand(lowering.type(call.expr), lowering.value(call.arguments[0]).value);
}

// As IS_ERR() of the kernel: the last 4095 addresses are negated error numbers.
Operand lower_is_err(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  constexpr int64_t kLastError = 4095;
  const ValueId is_error = ir.binary(Op::k_ule, ir.constant(-kLastError), lowering.scalar(call.arguments[0]));
  return lowering.scalar_operand(lowering.types().bool_type(), is_error);
}

// ---- container_of(p, struct T, member)

// `path` may name a nested member: `container_of(p, struct T, a.b)`. Returns nullopt if there is no such member.
std::optional<uint32_t> offset_of(kernel::Kernel& kernel, types::Types& types, TypeId outer, std::string_view path) {
  uint32_t offset_bytes = 0;
  for (const std::string_view name : split(path, '.')) {
    kernel.complete(types, outer);
    const auto found = types::find_member(types, outer, name);
    if (!found) return std::nullopt;
    offset_bytes += found->offset_bits / 8;
    outer = found->type;
  }
  return offset_bytes;
}

TypeId check_container(Checker& checker, const CallSite& call) {
  types::Types& types = checker.types();
  const TypeId outer = checker.type(call.arguments[1]);
  const auto name = checker.text(call.arguments[2]);
  if (name && !offset_of(checker.kernel(), types, outer, *name)) {
    checker.error("unknown-member", checker.ast()[call.arguments[2]].span,
                  "`" + to_string(types, outer) + "` has no member `" + *name + "`");
  }
  const types::Type& pointer = types[checker.type(call.arguments[0])];
  return types.pointer(outer, pointer.kind == Kind::kPointer ? pointer.space : AddressSpace::kKernel);
}

Operand lower_container(Lowering& lowering, const CallSite& call) {
  const TypeId outer = lowering.type(call.arguments[1]);
  const std::string path = *lowering.text(call.arguments[2]);
  const uint32_t distance = offset_of(lowering.kernel(), lowering.types(), outer, path).value_or(0);
  const ValueId member = lowering.value(call.arguments[0]).value;
  return {lowering.type(call.expr), lowering.ir().binary(Op::k_sub, member, distance)};
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any str(pointer p, int length = max_strlen)",
     .doc =
         "The NUL-terminated string at `p`, at most `length` bytes with its NUL. Also the contents of a Go `string`, "
         "a Rust `&str` or a `std::string_view`. `str($1)` is a parameter of the command line, unchanged.",
     .check = check_str,
     .lower_into = lower_str_into,
     .reads_text_at = true,
     .example = "tracepoint:syscalls:sys_enter_openat { printf(\"%s\\n\", str(args.filename)); exit(); }"},
    {.sig = "any buf(any p, int length = size)",
     .doc = "`length` bytes at `p`, which may contain zeros. For an array, the default is its size.",
     .check = check_buf,
     .lower_into = lower_buf_into,
     .example = "tracepoint:syscalls:sys_enter_write { printf(\"%r\\n\", buf(args.buf, 8)); exit(); }"},
    {.sig = "bool in_memory(any p)",
     .doc = "Whether the byte at `p` can be read now. A page that the process has not touched yet, or that was swapped "
            "out, is not in memory.",
     .lower = lower_in_memory,
     .example = "tracepoint:syscalls:sys_enter_openat { print(in_memory(args.filename)); exit(); }"},
    {.sig = "uint64 strlen(text s)",
     .doc = "The length in bytes of a string, of the text in an array of `int8`, or of that at a pointer to `int8`.",
     .lower = lower_strlen,
     .example = "begin { print(strlen(comm)); }"},
    {.sig = "uint64 strcap(text s)",
     .doc = "The capacity of a string in bytes, including its NUL; the size of an array of `int8`; `max_strlen` for a "
            "pointer.",
     .check = check_strcap,
     .example = "begin { print(strcap(comm)); }"},
    {.sig = "uint64 default_str_length()",
     .doc = "The value of `max_strlen`.",
     .kind = spec::BuiltinKind::kVariable,
     .check = check_default_length,
     .example = "begin { print(default_str_length()); }"},
    {.sig = "uint64 strncmp(string a, string b, literal int n)",
     .doc = "0 if the first `n` bytes of two strings are equal, else nonzero.",
     .check = check_compare_size,
     .lower = lower_strncmp,
     .example = "begin { if (strncmp(comm, \"es\", 2) == 0) { print(\"it is us\"); } }"},
    {.sig = "int64 memcmp(any a, any b, literal int n)",
     .doc =
         "0 if the first `n` bytes at two addresses are equal; negative if the first byte that differs is less at `a`, "
         "else positive.",
     .check = check_memcmp,
     .lower = lower_memcmp,
     .example = "begin { print(memcmp(\"abc\", \"abd\", 2)); }"},
    {.sig = "int64 strstr(string haystack, string needle)",
     .doc = "The offset of the first `needle` in `haystack`; -1 if there is none.",
     .check = check_strstr,
     .lower = lower_strstr,
     .example = "begin { print(strstr(\"haystack\", \"stack\")); }"},
    {.sig = "bool strcontains(string haystack, string needle)",
     .doc = "True if `haystack` contains `needle`.",
     .check = check_strcontains,
     .lower = lower_strcontains,
     .example = "begin { print(strcontains(\"haystack\", \"needle\")); }"},
    {.sig = "any str_concat(string a, string b)",
     .doc = "The concatenation of two strings.",
     .check = check_concat,
     .lower_into = lower_concat_into,
     .example = "begin { print(str_concat(\"a\", \"b\")); }"},
    {.sig = "any str_lower(string s)",
     .doc = "The string with small letters for the letters A to Z. `str_lower(comm) ~ \"nginx*\"` ignores case.",
     .check = check_part,
     .lower = lower_lower_case,
     .example = "begin { print(str_lower(\"GET /Index\")); }"},
    {.sig = "any substr(string s, int start, int length = rest)",
     .doc = "At most `length` bytes of the string, from byte `start` on. Empty if the string ends before.",
     .check = check_part,
     .lower = lower_substr,
     .example = "begin { print(substr(\"espresso\", 2, 5)); }"},
    {.sig = "any split(string s, literal string separator, int index)",
     .doc = "Part `index`, from 0 on, of a string whose parts are separated by a character. Empty if there are fewer.",
     .check = check_split,
     .lower = lower_split,
     .example = "begin { print(split(\"/usr/bin/env\", \"/\", 2)); }"},
    {.sig = "any strerror(int error)",
     .doc = "The description of an error number of either sign: `No such file or directory`.",
     .check = check_strerror,
     .lower = lower_strerror,
     .example = "begin { print(strerror(2)); }"},
    {.sig = "any signal_name(int signal)",
     .doc = "The name of a signal number: `SIGTERM`.",
     .check = check_signal_name,
     .lower = lower_signal_name,
     .example = "begin { print(signal_name(9)); }"},
    {.sig = "any syscall_name(int number)",
     .doc = "The name of a system call number: `openat`.",
     .check = check_syscall_name,
     .lower = lower_syscall_name,
     .example = "tracepoint:raw_syscalls:sys_enter { @[syscall_name(args.id)] = count(); exit(); }"},
    {.sig = "any bswap(int n)",
     .doc = "The integer with its bytes in reverse order; the type gives their number.",
     .check = check_bswap,
     .lower = lower_bswap,
     .example = "begin { printf(\"%x\\n\", bswap((uint32)0x12345678)); }"},
    {.sig = "any kptr(pointer p)",
     .doc = "The pointer, as one to kernel memory.",
     .check = check_space<AddressSpace::kKernel>,
     .lower = lower_space,
     .example = "begin { $task = kptr(curtask); print($task->comm); }"},
    {.sig = "any uptr(pointer p)",
     .doc = "The pointer, as one to the memory of the current process.",
     .check = check_space<AddressSpace::kUser>,
     .lower = lower_space,
     .example = "tracepoint:syscalls:sys_enter_openat { print(str(uptr(args.filename))); exit(); }"},
    {.sig = "any container_of(pointer p, type T, literal word member)",
     .doc = "The address of the `T` whose `member` is at `p`.",
     .check = check_container,
     .lower = lower_container,
     .example = "begin { $p = (uint64)&curtask->prio; print(container_of($p, struct task_struct, prio)->comm); }"},
    {.sig = "bool is_err(pointer p)",
     .doc = "True if the pointer is an error number that a kernel function returned (IS_ERR).",
     .lower = lower_is_err,
     .example = "begin { print(is_err((int8 *)-2)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kString = {.title = "Strings and memory", .rows = kRows};

}  // namespace espy::builtins
