#include "check/type_rules.h"

#include <algorithm>

namespace espy::check {

using syntax::BinaryOp;
using syntax::UnaryOp;
using types::Kind;
using types::Type;
using types::Types;

namespace {

bool same_kind_numbers(const Type& a, const Type& b) { return is_int_like(a) && is_int_like(b); }

TypeId unify_integers(Types& types, TypeId a_id, TypeId b_id, bool* loses_sign) {
  const Type& a = types[a_id];
  const Type& b = types[b_id];
  if (a.kind == Kind::kBool && b.kind == Kind::kBool) return types.bool_type();
  const bool a_signed = a.kind != Kind::kBool && a.is_signed;
  const bool b_signed = b.kind != Kind::kBool && b.is_signed;
  const uint32_t a_size = std::min(a.size_bytes, 8u);
  const uint32_t b_size = std::min(b.size_bytes, 8u);
  if (a.kind == Kind::kBool || b.kind == Kind::kBool) {
    const bool is_signed = a_signed || b_signed;
    return types.int_type(std::max(a_size, b_size), is_signed);
  }
  if (a_signed == b_signed) return types.int_type(std::max(a_size, b_size), a_signed);
  const uint32_t unsigned_size = a_signed ? b_size : a_size;
  const uint32_t signed_size = a_signed ? a_size : b_size;
  if (unsigned_size == 8) {
    if (loses_sign) *loses_sign = true;
    return types.int64();
  }
  return types.int_type(std::max(unsigned_size * 2, signed_size), true);
}

std::optional<TypeId> unify_members(Types& types, TypeId a_id, TypeId b_id, bool* loses_sign) {
  const std::vector<types::Member> a = types[a_id].members;
  const std::vector<types::Member> b = types[b_id].members;
  if (a.size() != b.size()) return std::nullopt;
  std::vector<types::Member> out;
  const bool is_record = types[a_id].kind == Kind::kRecord;
  for (size_t i = 0; i < a.size(); ++i) {
    // The members of a record may be in another order.
    const auto other = is_record ? std::ranges::find(b, a[i].name, &types::Member::name) : b.begin() + i;
    if (other == b.end()) return std::nullopt;
    const auto element = unify(types, a[i].type, other->type, loses_sign);
    if (!element) return std::nullopt;
    out.push_back({.name = a[i].name, .type = *element});
  }
  if (is_record) return types.record(std::move(out));
  std::vector<TypeId> elements;
  for (const types::Member& member : out) elements.push_back(member.type);
  return types.tuple(elements);
}

std::optional<TypeId> unify_recent(Types& types, TypeId a_id, TypeId b_id, bool* loses_sign) {
  const uint32_t count = types[a_id].count;
  if (types[b_id].count != count) return std::nullopt;
  const auto element = unify(types, types[a_id].element, types[b_id].element, loses_sign);
  if (!element) return std::nullopt;
  return types.recent(*element, count);
}

std::optional<TypeId> unify_pointers(Types& types, TypeId a_id, TypeId b_id) {
  const TypeId a = types[a_id].element;
  const TypeId b = types[b_id].element;
  if (a == b) return a_id;
  if (types[a].kind == Kind::kVoid) return b_id;
  if (types[b].kind == Kind::kVoid) return a_id;
  if (is_alike(types, a, b)) return a_id;
  return std::nullopt;
}

// Compares two types; those of programs may be nested without an end.
class Comparison {
 public:
  explicit Comparison(Types& types) : types_(types) {}

  bool alike(TypeId a_id, TypeId b_id) {
    constexpr int kMaxDepth = 64;
    if (a_id == b_id) return true;
    if (types_[a_id].kind != types_[b_id].kind || depth_ == kMaxDepth) return false;
    ++depth_;
    const bool out = of_one_kind(a_id, b_id);
    --depth_;
    return out;
  }

 private:
  bool of_one_kind(TypeId a_id, TypeId b_id) {
    const Type a = types_[a_id];
    const Type b = types_[b_id];
    switch (a.kind) {
      case Kind::kStruct: return structs(a_id, b_id);
      case Kind::kPointer: return pointers(a_id, b_id);
      case Kind::kArray: return a.count == b.count && alike(a.element, b.element);
      case Kind::kEnum: return a.name == b.name && a.size_bytes == b.size_bytes;
      case Kind::kFunction: return true;
      case Kind::kInt: return a.char_like && b.char_like;  // of either sign
      default: return false;
    }
  }

  bool structs(TypeId a_id, TypeId b_id) {
    for (const TypeId id : {a_id, b_id})
      if (!types_[id].complete) types_.complete_by_origin(id);
    const Type a = types_[a_id];
    const Type b = types_[b_id];
    if (a.name != b.name || a.is_union != b.is_union) return false;
    // A source file may only declare the struct.
    const bool are_of_programs = !types_.origin_name(a.origin).empty() && !types_.origin_name(b.origin).empty();
    if (!a.complete || !b.complete) return are_of_programs && !a.name.empty();
    return a.size_bytes == b.size_bytes &&
           std::ranges::equal(a.members, b.members, [&](const types::Member& x, const types::Member& y) {
             return x.name == y.name && x.offset_bits == y.offset_bits && x.bit_size == y.bit_size &&
                    alike(x.type, y.type);
           });
  }

  bool pointers(TypeId a_id, TypeId b_id) {
    while (types_[a_id].kind == Kind::kPointer && types_[b_id].kind == Kind::kPointer)
      a_id = types_[a_id].element, b_id = types_[b_id].element;
    const Type& a = types_[a_id];
    const Type& b = types_[b_id];
    if (a.kind == Kind::kStruct || b.kind == Kind::kStruct) return a.kind == b.kind && a.name == b.name;
    return alike(a_id, b_id);
  }

  Types& types_;
  int depth_ = 0;
};

}  // namespace

bool is_alike(Types& types, TypeId a, TypeId b) { return Comparison(types).alike(a, b); }

TypeId smallest_signed(Types& types, int64_t value) {
  for (const uint32_t size : {1u, 2u, 4u}) {
    const int64_t limit = int64_t{1} << (size * 8 - 1);
    if (value >= -limit && value < limit) return types.int_type(size, true);
  }
  return types.int64();
}

TypeId literal_type(Types& types, uint64_t value) {
  return value > INT64_MAX ? types.uint64() : smallest_signed(types, static_cast<int64_t>(value));
}

bool fits(const Type& type, int64_t value, bool is_unsigned) {
  if (type.kind == Kind::kBool) return true;
  const uint32_t bits = std::min(type.size_bytes, 8u) * 8;
  if (type.is_signed) {
    if (is_unsigned && value < 0) return false;
    if (bits == 64) return true;
    const int64_t limit = int64_t{1} << (bits - 1);
    return value >= -limit && value < limit;
  }
  if (!is_unsigned && value < 0) return false;
  return bits == 64 || (static_cast<uint64_t>(value) >> bits) == 0;
}

bool is_int_like(const Type& type) {
  return type.kind == Kind::kInt || type.kind == Kind::kBool || type.kind == Kind::kEnum;
}

bool is_truthy(const Type& type) {
  return is_int_like(type) || type.kind == Kind::kPointer || type.kind == Kind::kString;
}

// Whether one is a pointer and the other an integer of its size. What is a pointer where there is debug information is
// a number where there is none, such as `retval`, and scripts work with both.
bool is_address_and_number(const Type& a, const Type& b) {
  const auto is_number = [](const Type& type) { return type.kind == Kind::kInt && type.size_bytes == 8; };
  return (a.kind == Kind::kPointer && is_number(b)) || (b.kind == Kind::kPointer && is_number(a));
}

std::optional<TypeId> unify(Types& types, TypeId a_id, TypeId b_id, bool* loses_sign) {
  if (a_id == b_id || !b_id) return a_id;
  if (!a_id) return b_id;
  const Type& a = types[a_id];
  const Type& b = types[b_id];
  if (same_kind_numbers(a, b)) return unify_integers(types, a_id, b_id, loses_sign);
  if (is_address_and_number(a, b)) return a.kind == Kind::kInt ? a_id : b_id;
  if (a.kind != b.kind) return std::nullopt;
  switch (a.kind) {
    case Kind::kString:
      if (a.may_lack_nul != b.may_lack_nul && a.count == b.count) return a.may_lack_nul ? a_id : b_id;
      if (a.count == b.count) return a.may_be_cut ? a_id : b_id;
      return a.count > b.count ? a_id : b_id;
    case Kind::kBuffer: return a.count >= b.count ? a_id : b_id;
    case Kind::kTuple:
    case Kind::kRecord: return unify_members(types, a_id, b_id, loses_sign);
    case Kind::kPointer: return unify_pointers(types, a_id, b_id);
    case Kind::kArray:
    case Kind::kStruct:  // from kernel and user memory: the first one decides the address space of its pointers
      if (is_alike(types, a_id, b_id)) return a_id;
      return std::nullopt;
    case Kind::kKernelStack:
    case Kind::kUserStack:
      return std::nullopt;  // stacks of each mode and depth have a map of their own, which their ids index
    case Kind::kSum:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg:
    case Kind::kStats:
      if (a.is_signed != b.is_signed && loses_sign) *loses_sign = true;
      return a.is_signed ? a_id : b_id;
    case Kind::kRecent: return unify_recent(types, a_id, b_id, loses_sign);
    default: return std::nullopt;
  }
}

TypeId reduced_type(Types& types, TypeId aggregation) {
  const Type& type = types[aggregation];
  switch (type.kind) {
    case Kind::kCount: return types.int64();
    case Kind::kSum:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg: return types.int_type(8, type.is_signed);
    default: return {};
  }
}

bool converts(Types& types, TypeId from_id, TypeId to_id) {
  if (from_id == to_id) return true;
  const Type& from = types[from_id];
  const Type& to = types[to_id];
  if (is_int_like(from) && to.kind == Kind::kInt)
    return from.size_bytes < to.size_bytes || (from.size_bytes == to.size_bytes && from.is_signed == to.is_signed) ||
           from.kind == Kind::kBool;
  if (is_address_and_number(from, to)) return to.kind == Kind::kInt;
  const Kind kind = to.kind;
  const TypeId from_element = from.element, to_element = to.element;
  const auto both = unify(types, from_id, to_id);
  if (!both) return false;
  switch (kind) {
    case Kind::kString: return types[*both].count == types[to_id].count;
    case Kind::kPointer: return types[from_element].kind == Kind::kVoid || is_alike(types, from_element, to_element);
    case Kind::kStruct:
    case Kind::kArray: return true;
    default: return *both == to_id;
  }
}

Slot Slot::of_type(TypeId type) {
  Slot out;
  out.type = out.firm = type;
  out.is_declared = true;
  return out;
}

namespace {

// The integer of a literal that is not negative; nullopt for other values.
std::optional<int64_t> positive_literal(const Types& types, const Given& given) {
  const auto integer = constant_as<int64_t>(given.constant);
  if (!given.is_literal || !integer || types[given.type].kind != Kind::kInt) return std::nullopt;
  return *integer >= 0 || !types[given.type].is_signed ? integer : std::nullopt;
}

bool has_named_members(Kind kind) { return kind == Kind::kTuple || kind == Kind::kRecord; }

// The members of a tuple or record, as values.
std::vector<Given> members_of(const Types& types, const Given& given) {
  if (!given.members.empty()) return given.members;
  std::vector<Given> out;
  for (const types::Member& member : types[given.type].members) out.push_back({member.type});
  return out;
}

// The place in `names` of each member of `given`: in records, the names decide. nullopt if they are others.
std::optional<std::vector<size_t>> places_of_members(const Type& held, const Type& given) {
  if (held.kind != given.kind || held.members.size() != given.members.size()) return std::nullopt;
  std::vector<size_t> out;
  for (size_t i = 0; i < given.members.size(); ++i) {
    const auto found = held.kind == Kind::kRecord
                           ? std::ranges::find(held.members, given.members[i].name, &types::Member::name)
                           : held.members.begin() + static_cast<ptrdiff_t>(i);
    if (found == held.members.end()) return std::nullopt;
    out.push_back(static_cast<size_t>(found - held.members.begin()));
  }
  return out;
}

}  // namespace

bool Slot::add_to_declared(Types& types, const Given& given) {
  const TypeId value = given.type;
  loses_sign = false;
  const auto integer = constant_as<int64_t>(given.constant);
  const bool are_integers = types[value].kind == Kind::kInt && is_int_like(types[type]);
  if (integer && are_integers) return fits(types[type], *integer, !types[value].is_signed);
  if (positive_literal(types, given) == 0 && types[type].kind == Kind::kPointer) return true;
  if (has_named_members(types[type].kind)) {
    const auto places = places_of_members(types[type], types[value]);
    if (!places) return false;
    const std::vector<Given> values = members_of(types, given);
    for (size_t i = 0; i < values.size(); ++i) {
      Slot member = of_type(types[type].members[(*places)[i]].type);
      if (!member.add(types, values[i])) return false;
      loses_sign |= member.loses_sign;
    }
    return true;
  }
  if (are_integers && types[type].kind == Kind::kInt && types[value].size_bytes == types[type].size_bytes) {
    loses_sign = types[value].is_signed != types[type].is_signed;
    return true;
  }
  if (!converts(types, value, type) && !is_open_stack(types, value)) return false;
  refine(types, value);
  return true;
}

// Each member of a tuple or record has a slot of its own, so that literals in it adapt to other values.
bool Slot::add_members(Types& types, const Given& given) {
  const TypeId shape = type ? type : given.type;
  const auto places = places_of_members(types[shape], types[given.type]);
  if (!places) return false;
  const std::vector<Given> values = members_of(types, given);
  if (members.empty()) {
    members.resize(values.size());
    if (type)
      for (size_t i = 0; i < members.size(); ++i) members[i].type = members[i].firm = types[type].members[i].type;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Slot& member = members[(*places)[i]];
    if (types[values[i].type].kind == Kind::kVoid || !member.add(types, values[i])) return false;
    loses_sign |= member.loses_sign;
  }
  std::vector<types::Member> all = types[shape].members;
  std::vector<TypeId> elements;
  for (size_t i = 0; i < all.size(); ++i) elements.push_back(members[i].type);
  if (types[shape].kind == Kind::kTuple) {
    type = types.tuple(elements);
  } else {
    std::vector<types::Member> named;
    for (size_t i = 0; i < all.size(); ++i) named.push_back({.name = all[i].name, .type = elements[i]});
    type = types.record(std::move(named));
  }
  firm = type;
  return true;
}

bool Slot::add(Types& types, const Given& given) {
  TypeId value = given.type;
  if (!value || types[value].kind == Kind::kVoid) return !value;
  if (is_declared) return add_to_declared(types, given);
  if (has_named_members(types[value].kind)) return !has_literal && add_members(types, given);
  const auto integer = positive_literal(types, given);
  const bool is_positive = integer.has_value();
  // A pointer that is compared with numbers is an address.
  if (is_positive && firm && types[firm].kind == Kind::kPointer) {
    if (*integer == 0) return true;
    firm = types.uint64();
  }
  const bool was_aggregation = type && !firm && is_aggregation(types[type]);
  if (was_aggregation && types[type].kind != types[value].kind) return false;
  if (given.is_literal && is_aggregation(types[value])) {
    if (firm && types[firm].kind != types[value].kind) return false;
    if (!type || (!firm && types[value].is_signed)) type = value;
    return true;
  }
  if (is_positive) {
    if (firm && !is_int_like(types[firm])) return false;
    has_literal = true;
    literal_max = std::max(literal_max, static_cast<uint64_t>(*integer));
  } else {
    const bool is_address = types[value].kind == Kind::kPointer;
    if (has_literal && !is_int_like(types[value]) && !is_address) return false;
    if (has_literal && is_address && literal_max == 0) has_literal = false;
    if (has_literal && is_address) value = types.uint64();
    const auto both = unify(types, firm, value, &loses_sign);
    if (!both) return false;
    firm = *both;
  }
  settle(types);
  return true;
}

// The first value settles what a declaration leaves open: the address space of a pointer, the mode and depth of a
// stack, and whether a string may be truncated or lack a NUL.
void Slot::refine(const Types& types, TypeId value) {
  const Type& said = types[type];
  const Type& given = types[value];
  const bool is_same_string = said.kind == Kind::kString && given.kind == Kind::kString && said.count == given.count &&
                              (given.may_lack_nul || (given.may_be_cut && !said.may_lack_nul));
  const auto points_to_struct = [&](const Type& each) {
    return each.kind == Kind::kPointer && types[each.element].kind == Kind::kStruct;
  };
  const bool is_same_pointer = said.kind == Kind::kPointer && !is_refined &&
                               (said.element == given.element || (points_to_struct(said) && points_to_struct(given)));
  const bool is_same_struct = said.kind == Kind::kStruct && !is_refined;
  const bool is_stack = is_open_stack(types, value);
  if (!is_same_string && !is_same_pointer && !is_same_struct && !is_stack) return;
  type = value;
  is_refined = true;
}

bool Slot::is_open_stack(const Types& types, TypeId value) const {
  const Kind kind = types[type].kind;
  return !is_refined && kind == types[value].kind && (kind == Kind::kKernelStack || kind == Kind::kUserStack);
}

void Slot::settle(Types& types) {
  if (!has_literal) {
    type = firm;
    return;
  }
  if (!firm) {
    type = literal_type(types, literal_max);
    return;
  }
  if (types[firm].kind == Kind::kBool || types[firm].kind == Kind::kEnum) {
    type = unify_integers(types, firm, literal_type(types, literal_max), nullptr);
    return;
  }
  const bool is_signed = types[firm].is_signed;
  uint32_t size = std::min(types[firm].size_bytes, 8u);
  while (size < 8 && !fits(types[types.int_type(size, is_signed)], static_cast<int64_t>(literal_max), true)) size *= 2;
  type = types.int_type(size, is_signed);
}

// ---- Arithmetic on constants

namespace {

__extension__ using Wide = __int128;  // holds the sum and difference of any two 64-bit numbers

int compare(Number a, Number b) {
  // A negative number is less than every unsigned one.
  const bool a_negative = !a.is_unsigned && a.bits < 0;
  const bool b_negative = !b.is_unsigned && b.bits < 0;
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  if (a_negative) return a.bits < b.bits ? -1 : a.bits > b.bits;
  return a.as_unsigned() < b.as_unsigned() ? -1 : a.as_unsigned() > b.as_unsigned();
}

// nullopt if the exact result does not fit 64 bits.
std::optional<Number> narrow(Wide value) {
  if (value >= INT64_MIN && value <= INT64_MAX) return Number{static_cast<int64_t>(value), false};
  if (value > 0 && value <= UINT64_MAX) return Number{static_cast<int64_t>(static_cast<uint64_t>(value)), true};
  return std::nullopt;
}

Wide widen(Number a) { return a.is_unsigned ? static_cast<Wide>(a.as_unsigned()) : a.bits; }

std::optional<Number> shift(BinaryOp op, Number a, Number b) {
  const unsigned count = static_cast<unsigned>(b.bits) & 63;
  if (op == BinaryOp::kShiftLeft) return Number{static_cast<int64_t>(a.as_unsigned() << count), a.is_unsigned};
  if (a.is_unsigned) return Number{static_cast<int64_t>(a.as_unsigned() >> count), true};
  return Number{a.bits >> count, false};
}

}  // namespace

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }
bool is_logical(BinaryOp op) { return op == BinaryOp::kLogicalAnd || op == BinaryOp::kLogicalOr; }

std::optional<Number> fold_binary(BinaryOp op, Number a, Number b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  switch (op) {
    case BinaryOp::kLogicalOr: return Number{a.bits || b.bits};
    case BinaryOp::kLogicalAnd: return Number{a.bits && b.bits};
    case BinaryOp::kBitOr: return Number{a.bits | b.bits, is_unsigned};
    case BinaryOp::kBitXor: return Number{a.bits ^ b.bits, is_unsigned};
    case BinaryOp::kBitAnd: return Number{a.bits & b.bits, is_unsigned && (a.bits & b.bits) < 0};
    case BinaryOp::kEqual: return Number{compare(a, b) == 0};
    case BinaryOp::kNotEqual: return Number{compare(a, b) != 0};
    case BinaryOp::kLess: return Number{compare(a, b) < 0};
    case BinaryOp::kLessEqual: return Number{compare(a, b) <= 0};
    case BinaryOp::kGreater: return Number{compare(a, b) > 0};
    case BinaryOp::kGreaterEqual: return Number{compare(a, b) >= 0};
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight: return shift(op, a, b);
    case BinaryOp::kAdd: return narrow(widen(a) + widen(b));
    case BinaryOp::kSubtract: return narrow(widen(a) - widen(b));
    case BinaryOp::kMultiply: {
      Wide product = 0;
      if (__builtin_mul_overflow(widen(a), widen(b), &product)) return std::nullopt;
      return narrow(product);
    }
    case BinaryOp::kDivide: return b.bits == 0 ? std::nullopt : narrow(widen(a) / widen(b));
    case BinaryOp::kModulo: return b.bits == 0 ? std::nullopt : narrow(widen(a) % widen(b));
    case BinaryOp::kMatch: break;
  }
  return std::nullopt;
}

std::optional<Number> fold_unary(UnaryOp op, Number a) {
  switch (op) {
    case UnaryOp::kNot: return Number{a.bits == 0};
    case UnaryOp::kBitNot: return Number{~a.bits, a.is_unsigned};
    case UnaryOp::kNegate: return narrow(-widen(a));
    default: return std::nullopt;
  }
}

int64_t truncate(const types::Type& type, int64_t bits) {
  if (type.kind == types::Kind::kBool) return bits != 0;
  if (type.size_bytes >= 8 || type.size_bytes == 0) return bits;
  const unsigned shift = 64 - type.size_bytes * 8;
  const uint64_t moved = static_cast<uint64_t>(bits) << shift;
  return type.is_signed ? static_cast<int64_t>(moved) >> shift : static_cast<int64_t>(moved >> shift);
}

}  // namespace espy::check
