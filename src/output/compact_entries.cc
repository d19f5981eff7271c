#include "output/compact_entries.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/byte_reader.h"
#include "output/value.h"

namespace espy::output {

namespace {

using types::Kind;
using types::Type;
using types::TypeId;
using types::Types;
using Bytes = std::span<const std::byte>;

bool is_ordered_by_bytes(const Types& types, TypeId id) {
  const Type& type = types[id];
  switch (type.kind) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kEnum:
    case Kind::kPointer:
    case Kind::kString: return true;
    case Kind::kTuple:
      return std::ranges::all_of(type.members, [&](const types::Member& member) {
        return member.bit_size == 0 && is_ordered_by_bytes(types, member.type);
      });
    default: return false;
  }
}

// A number that is the greater the later the value comes. Integers, unsigned ones too, are in the order of int64_t.
uint64_t number_order(const Type& type, Bytes bytes) {
  if (type.kind == Kind::kBool) return load_le(bytes, 0, 1) != 0;
  if (type.kind == Kind::kPointer) return load_le(bytes);
  const uint32_t unused_bits = 64 - 8 * std::min(type.size_bytes, 8U);
  const uint64_t bits = load_le(bytes, 0, type.size_bytes);
  if (!type.is_signed || unused_bits == 0 || unused_bits == 64) return bits ^ kSignBit;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused_bits) >> unused_bits) ^ kSignBit;
}

std::string_view text_of(const Type& type, Bytes bytes) {
  const size_t most = std::min<size_t>(type.count, bytes.size());
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), most);
  return all.substr(0, all.find('\0'));
}

Bytes member_of(const Types& types, const types::Member& member, Bytes bytes) {
  const size_t offset = std::min<size_t>(member.offset_bytes(), bytes.size());
  return bytes.subspan(offset, std::min<size_t>(types[member.type].size_bytes, bytes.size() - offset));
}

// What decides about most pairs of keys: a number, or the first characters of a text, of a tuple those of its first
// item.
uint64_t first_order(const Types& types, TypeId id, Bytes bytes) {
  const Type& type = types[id];
  if (type.kind == Kind::kTuple) {
    if (type.members.empty()) return 0;
    const types::Member& first = type.members.front();
    return first_order(types, first.type, member_of(types, first, bytes));
  }
  if (type.kind != Kind::kString) return number_order(type, bytes);
  return text_order(text_of(type, bytes));
}

int compare(const Types& types, TypeId id, Bytes a, Bytes b) {
  const Type& type = types[id];
  if (type.kind == Kind::kString) return text_of(type, a).compare(text_of(type, b));
  if (type.kind == Kind::kTuple) {
    for (const types::Member& member : type.members)
      if (const int order = compare(types, member.type, member_of(types, member, a), member_of(types, member, b));
          order != 0)
        return order;
    return 0;
  }
  const uint64_t order_a = number_order(type, a), order_b = number_order(type, b);
  return order_a < order_b ? -1 : int{order_a > order_b};
}

}  // namespace

bool CompactEntries::fits(const Types& types, TypeId key, TypeId value) {
  switch (types[value].kind) {
    case Kind::kInt:
    case Kind::kCount:
    case Kind::kSum:
    case Kind::kMin:
    case Kind::kMax: return is_ordered_by_bytes(types, key);
    default: return false;
  }
}

CompactEntries::CompactEntries(const DecodeContext& context, TypeId key)
    : context_(&context), key_(key), size_bytes_(context.types[key].size_bytes) {}

void CompactEntries::add(Bytes key, const Value& value) {
  const auto* number = std::get_if<int64_t>(&value.node);
  is_signed_ = number != nullptr;
  numbers_.push_back(number != nullptr ? static_cast<uint64_t>(*number) : std::get<uint64_t>(value.node));
  keys_.insert(keys_.end(), key.begin(), key.begin() + std::min<ptrdiff_t>(std::ssize(key), size_bytes_));
  keys_.resize(numbers_.size() * size_bytes_);
}

void CompactEntries::sort() {
  const Types& types = context_->types;
  std::vector<Order> items(size());
  for (uint32_t i = 0; i < items.size(); ++i)
    items[i] = {is_signed_ ? numbers_[i] ^ kSignBit : numbers_[i], first_order(types, key_, key_bytes(i)), i};
  sort_by_numbers(items, [&](uint32_t a, uint32_t b) { return compare(types, key_, key_bytes(a), key_bytes(b)) < 0; });
  order_.resize(items.size());
  std::ranges::transform(items, order_.begin(), &Order::index);
}

MapEntry CompactEntries::at(size_t index) const {
  const uint32_t at = order_[index];
  const uint64_t bits = numbers_[at];
  return {decode(*context_, key_, key_bytes(at)), is_signed_ ? Value{static_cast<int64_t>(bits)} : Value{bits}};
}

}  // namespace espy::output
