// The algorithm is that of Knuth, Morris and Pratt: a step either advances in the haystack, or falls back to a shorter
// beginning of the needle, so that twice as many steps as the haystack has bytes are enough. A table has for each
// number of matched bytes the length of their longest border, which is both a beginning and an end of them; the search
// falls back to it. The table of a constant needle is a constant.
//
// The verifier follows every iteration (kernels before 5.17 have no other loops), so a step has only the branch that
// leaves the loop: all else is computed without branches, and indexes are masked rather than compared. What is indexed
// is in scratch memory, since kernels before 5.12 allow no variable offsets on the stack.
//
// A short constant is instead compared at each position, by words that are not aligned; that is cheaper for both.
#include "builtins/string_search.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace espy::builtins {

namespace {

using ir::BlockId;
using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Operand;

constexpr uint32_t kBorderBytes = 4;
constexpr uint32_t kScratchBytes = 128;  // objects of this size are not on the stack
constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kShortBytes = 64;  // of a constant that is compared as a whole at each position

// Returns the lengths of the longest proper border of each beginning of `text`, the empty one first.
std::vector<uint32_t> borders_of(const std::string& text) {
  std::vector<uint32_t> out(text.size() + 1);
  uint32_t matched = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[i] != text[matched]) matched = out[matched];
    if (text[i] == text[matched]) ++matched;
    out[i + 1] = matched;
  }
  return out;
}

}  // namespace

StringSearch::StringSearch(lower::Lowering& lowering, Operand haystack)
    : lowering_(lowering), ir_(lowering.ir()), haystack_(haystack), capacity_(lowering.types()[haystack_.type].count) {}

// `extra_bytes` after the string can be read and have any content.
StringSearch::Bytes StringSearch::copy_of(const Operand& text, uint32_t extra_bytes) {
  const uint32_t size = std::bit_ceil(std::max(lowering_.types()[text.type].count, kScratchBytes));
  const Bytes out{lowering_.memory(size + extra_bytes, "searched"), size - 1};
  lowering_.read_text(out.address, text, false);
  return out;
}

ValueId StringSearch::byte_at(const Bytes& bytes, ValueId index) {
  return ir_.load(1, ir_.binary(Op::k_add, bytes.address, ir_.binary(Op::k_and, index, bytes.mask)));
}

ValueId StringSearch::address_of_border(const Needle& needle, ValueId index) {
  const ValueId masked = ir_.binary(Op::k_and, index, needle.text.mask);
  return ir_.binary(Op::k_add, needle.borders, ir_.binary(Op::k_mul, masked, kBorderBytes));
}

// 1 if the number, which is not negative, is 0.
ValueId StringSearch::is_zero(ValueId number) { return ir_.binary(Op::k_shr, ir_.binary(Op::k_sub, number, 1), 63); }

// Compares a byte with the next one of the needle. `advance` is 1 if the byte is done with, else 0.
StringSearch::Step StringSearch::step(const Needle& needle, ValueId byte, ValueId matched) {
  const ValueId is_same = is_zero(ir_.binary(Op::k_xor, byte, byte_at(needle.text, matched)));
  const ValueId border = ir_.load(4, address_of_border(needle, matched));
  const ValueId longer = ir_.binary(Op::k_add, matched, 1);
  const ValueId change = ir_.binary(Op::k_and, ir_.binary(Op::k_xor, border, longer), ir_.unary(Op::k_neg, is_same));
  return {ir_.binary(Op::k_or, is_same, is_zero(matched)), ir_.binary(Op::k_xor, border, change)};
}

ValueId StringSearch::find(const std::string& text) {
  const std::string needle = text.substr(0, text.find('\0'));
  if (needle.empty()) return ir_.constant(0);
  if (needle.size() >= capacity_) return ir_.constant(-1);
  if (needle.size() <= kShortBytes) return search_short(needle);
  const auto size = static_cast<uint32_t>(std::bit_ceil(needle.size() + 1));
  std::string padded = needle;
  padded.resize(size);
  std::vector<uint32_t> borders = borders_of(needle);
  borders.resize(size);
  std::string table(borders.size() * kBorderBytes, '\0');
  std::memcpy(table.data(), borders.data(), table.size());
  return search({{lowering_.constant_bytes(padded), size - 1},
                 lowering_.constant_bytes(table),
                 ir_.constant(static_cast<int64_t>(needle.size()))});
}

ValueId StringSearch::find(const Operand& operand) {
  const uint32_t capacity = lowering_.types()[operand.type].count;
  Needle needle{copy_of(operand), {}, {}};
  needle.borders = lowering_.memory((needle.text.mask + 1) * kBorderBytes, "borders");
  const auto is_empty = [&] { return ir_.constant(0); };
  return lowering_.select(Condition::eq, ir_.load(1, needle.text.address), ir_.constant(0), is_empty, [&] {
    needle.length = write_borders(needle, capacity);
    return search(needle);
  });
}

// Searches the needle in itself, from its second byte on. Returns its length.
ValueId StringSearch::write_borders(const Needle& needle, uint32_t capacity_bytes) {
  ir_.store(8, needle.borders, ir_.constant(0));  // of no byte and of one
  const BlockId head = ir_.add_block("border"), body = ir_.add_block("compare"), again = ir_.add_block("again");
  const BlockId done = ir_.add_block("borders");
  const ValueId count = ir_.add_block_parameter(head), at = ir_.add_block_parameter(head);
  const ValueId matched = ir_.add_block_parameter(head);
  ir_.jump(head, {ir_.constant(0), ir_.constant(1), ir_.constant(0)});
  ir_.enter(head);
  const ValueId byte = byte_at(needle.text, at);
  ir_.branch(Condition::eq, byte, 0, done, body);
  ir_.enter(body);
  const Step next = step(needle, byte, matched);
  // If this byte is not done with, the entry is written again.
  ir_.store(4, address_of_border(needle, ir_.binary(Op::k_add, at, 1)), next.matched);
  const ValueId counted = ir_.binary(Op::k_add, count, 1);
  ir_.branch(Condition::ult, counted, 2 * int64_t{capacity_bytes}, again, done);
  ir_.enter(again);
  ir_.jump(head, {counted, ir_.binary(Op::k_add, at, next.advance), next.matched});
  ir_.enter(done);
  return at;
}

ValueId StringSearch::search(const Needle& needle) {
  const BlockId head = ir_.add_block("search"), go_on = ir_.add_block("search_on"), again = ir_.add_block("again");
  const BlockId stop = ir_.add_block("stop"), done = ir_.add_block("searched");
  const BlockId found = ir_.add_block("found"), absent = ir_.add_block("absent");
  const ValueId count = ir_.add_block_parameter(head), at = ir_.add_block_parameter(head);
  const ValueId matched = ir_.add_block_parameter(head);
  const ValueId result = ir_.add_block_parameter(done);
  const Bytes haystack = copy_of(haystack_);
  ir_.jump(head, {ir_.constant(0), ir_.constant(0), ir_.constant(0)});
  ir_.enter(head);
  const ValueId byte = byte_at(haystack, at);
  const Step next = step(needle, byte, matched);
  const ValueId end = ir_.binary(Op::k_add, at, next.advance);
  const ValueId is_complete = is_zero(ir_.binary(Op::k_xor, next.matched, needle.length));
  ir_.branch(Condition::ne, ir_.binary(Op::k_or, is_complete, is_zero(byte)), 0, stop, go_on);
  ir_.enter(go_on);
  const ValueId counted = ir_.binary(Op::k_add, count, 1);
  ir_.branch(Condition::ult, counted, 2 * int64_t{capacity_}, again, absent);
  ir_.enter(again);
  ir_.jump(head, {counted, end, next.matched});
  ir_.enter(stop);
  ir_.branch(Condition::ne, is_complete, 0, found, absent);
  ir_.enter(found);
  ir_.jump(done, {ir_.binary(Op::k_sub, end, needle.length)});
  ir_.enter(absent);
  ir_.jump(done, {ir_.constant(-1)});
  ir_.enter(done);
  return result;
}

// Zero if the bytes at the address begin with `text`.
ValueId StringSearch::difference(ValueId address, const std::string& text) {
  ValueId out = ir_.constant(0);
  for (size_t at = 0; at < text.size(); at += kWordBytes) {
    const size_t size = std::min<size_t>(text.size() - at, kWordBytes);
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, size);
    const auto width = static_cast<uint8_t>(std::bit_ceil(size));
    ValueId loaded = ir_.load(width, address, static_cast<int64_t>(at));
    if (size < width) loaded = ir_.binary(Op::k_and, loaded, static_cast<int64_t>((uint64_t{1} << (8 * size)) - 1));
    out = ir_.binary(Op::k_or, out, ir_.binary(Op::k_xor, loaded, static_cast<int64_t>(word)));
  }
  return out;
}

ValueId StringSearch::search_short(const std::string& needle) {
  const Bytes haystack = copy_of(haystack_, kShortBytes + kWordBytes);
  const ValueId result = lowering_.memory(kScratchBytes, "found");
  ir_.store(8, result, ir_.constant(-1));
  const BlockId searched = ir_.add_block("searched");
  ir_.count_up(capacity_, [&](ValueId index, BlockId done) {
    const BlockId found = ir_.add_block("found"), differs = ir_.add_block("differs"), more = ir_.add_block("more");
    const ValueId address = ir_.binary(Op::k_add, haystack.address, ir_.binary(Op::k_and, index, haystack.mask));
    ir_.branch(Condition::eq, difference(address, needle), 0, found, differs);
    ir_.enter(found);
    ir_.store(8, result, index);
    ir_.jump(searched);
    ir_.enter(differs);
    ir_.branch(Condition::eq, ir_.load(1, address), 0, done, more);
    ir_.enter(more);
  });
  ir_.jump(searched);
  ir_.enter(searched);
  // Loaded from a map, it is any number for the verifier, which then follows the rest of the program once.
  return ir_.load(8, result);
}

}  // namespace espy::builtins
