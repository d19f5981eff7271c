#include "kernel/arch/locations.h"

#include <algorithm>
#include <vector>

#include "kernel/arch/arch.h"
#include "types/parts.h"

namespace espy::kernel {
namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

constexpr uint32_t kWordBytes = 8;

uint32_t aligned(uint32_t offset_bytes, uint32_t align_bytes) {
  return (offset_bytes + align_bytes - 1) / align_bytes * align_bytes;
}

// ---- How rustc passes a value: up to two numbers, each in a register of its own; 8 bytes and fewer of anything else
// as one integer; the rest by reference (rustc_target, callconv/mod.rs, adjust_for_rust_abi). Versions of rustc differ
// in results of 9 to 16 bytes that are not two numbers. What follows is BackendRepr of rustc_abi, in layout.rs.

// A number within a value.
struct Number {
  enum class Kind : uint8_t { kUnsigned, kSigned, kPointer, kFloat };
  uint32_t offset_bytes = 0, size_bytes = 0, align_bytes = 1;
  Kind kind = Kind::kUnsigned;

  bool is_float() const { return kind == Kind::kFloat; }
};

struct Shape {
  enum class Kind : uint8_t { kNumbers, kMemory, kUnknown } kind = Kind::kNumbers;
  std::vector<Number> numbers = {};  // at most two; none: of no size

  bool is_number() const { return kind == Kind::kNumbers && numbers.size() == 1; }
};

const Shape kInMemory = {Shape::Kind::kMemory};
const Shape kNotKnown = {Shape::Kind::kUnknown};

Shape shape_of(const types::Types& types, TypeId id);

Shape moved(Shape shape, uint32_t offset_bytes) {
  for (Number& number : shape.numbers) number.offset_bytes += offset_bytes;
  return shape;
}

// Whether two numbers are where a pair of them would be, and fill the type.
bool is_laid_out_as_pair(const Number& first, const Number& second, uint32_t size_bytes) {
  const uint32_t align = std::max(first.align_bytes, second.align_bytes);
  return first.offset_bytes == 0 && second.offset_bytes == aligned(first.size_bytes, second.align_bytes) &&
         size_bytes == aligned(second.offset_bytes + second.size_bytes, align);
}

Shape pair_of(Number one, Number other, uint32_t size_bytes) {
  if (other.offset_bytes < one.offset_bytes) std::swap(one, other);
  if (!is_laid_out_as_pair(one, other, size_bytes)) return kInMemory;
  return {Shape::Kind::kNumbers, {one, other}};
}

// The shapes of the fields that have a size.
std::vector<Shape> fields_of(const types::Types& types, const types::Type& type) {
  std::vector<Shape> out;
  for (const types::Member& member : type.members)
    if (types[member.type].size_bytes > 0) out.push_back(moved(shape_of(types, member.type), member.offset_bytes()));
  return out;
}

// A struct around one field is as that field is; repr(C), which debug information does not tell, makes it memory.
Shape shape_of_struct(const types::Types& types, const types::Type& type) {
  const std::vector<Shape> fields = fields_of(types, type);
  if (std::ranges::any_of(fields, [](const Shape& each) { return each.kind == Shape::Kind::kUnknown; }))
    return kNotKnown;
  if (fields.size() == 2 && fields[0].is_number() && fields[1].is_number())
    return pair_of(fields[0].numbers[0], fields[1].numbers[0], type.size_bytes);
  if (fields.size() != 1 || fields[0].kind == Shape::Kind::kMemory) return kInMemory;
  const Shape& field = fields[0];
  if (!field.is_number()) return field;
  const Number& number = field.numbers[0];
  if (number.size_bytes != type.size_bytes) return kInMemory;
  return number.is_float() || number.size_bytes > kWordBytes ? kNotKnown : field;
}

// An enum of variants with data has a tag of its own, or a niche: a number of the one variant with data that has other
// values for the other variants.
Shape shape_of_enum(const types::Types& types, const types::Type& type) {
  const types::Member& tag = type.members[0];
  const Number tag_number = {tag.offset_bytes(), types[tag.type].size_bytes, types[tag.type].align_bytes};
  std::vector<Shape> variants;
  for (const types::Member& member : type.members) {
    if (&member == &tag || types[member.type].size_bytes == 0) continue;
    const types::Type& variant = types[member.type];
    std::vector<Shape> fields = fields_of(types, variant);
    if (fields.empty()) continue;
    // The data of a variant without its padding, which has the size of the whole enum.
    Shape data = kInMemory;
    if (fields.size() == 1) data = fields[0];
    if (fields.size() == 2 && fields[0].is_number() && fields[1].is_number())
      data = pair_of(fields[0].numbers[0], fields[1].numbers[0], type.size_bytes);
    variants.push_back(moved(std::move(data), member.offset_bytes()));
  }
  const auto is_unknown = [](const Shape& each) { return each.kind == Shape::Kind::kUnknown; };
  if (std::ranges::any_of(variants, is_unknown)) return kNotKnown;
  if (variants.empty()) return {Shape::Kind::kNumbers, {tag_number}};
  const auto holds_tag = [&](const Number& number) {
    return tag_number.offset_bytes >= number.offset_bytes &&
           tag_number.offset_bytes < number.offset_bytes + number.size_bytes;
  };
  const Shape& first = variants.front();
  const bool is_niche = std::ranges::any_of(first.numbers, holds_tag) || first.kind == Shape::Kind::kMemory;
  if (is_niche && variants.size() == 1) return first;
  // With a tag: a pair if all data is one number of one kind at one place. Older versions of rustc do not take a
  // pointer and an integer, or integers with and without sign, for one kind.
  const auto is_at_first = [&](const Shape& each) {
    return each.is_number() && each.numbers[0].offset_bytes == first.numbers[0].offset_bytes &&
           each.numbers[0].size_bytes == first.numbers[0].size_bytes &&
           each.numbers[0].is_float() == first.numbers[0].is_float();
  };
  const auto is_of_first_kind = [&](const Shape& each) { return each.numbers[0].kind == first.numbers[0].kind; };
  if (!first.is_number() || !std::ranges::all_of(variants, is_at_first) || holds_tag(first.numbers[0]))
    return kInMemory;
  if (!std::ranges::all_of(variants, is_of_first_kind)) return kNotKnown;
  return pair_of(tag_number, first.numbers[0], type.size_bytes);
}

Number::Kind kind_of(const types::Type& type) {
  if (is_float(type)) return Number::Kind::kFloat;
  if (type.kind == Kind::kPointer) return Number::Kind::kPointer;
  return type.is_signed ? Number::Kind::kSigned : Number::Kind::kUnsigned;
}

Shape shape_of(const types::Types& types, TypeId id) {
  const types::Type& type = types[id];
  if (type.size_bytes == 0) return {};
  switch (type.kind) {
    case Kind::kArray: return type.count == 1 ? kNotKnown : kInMemory;
    case Kind::kStruct:
      if (!type.complete || type.is_union) return kNotKnown;
      return types::variants_of(types, type) != nullptr ? shape_of_enum(types, type) : shape_of_struct(types, type);
    default: return {Shape::Kind::kNumbers, {{0, type.size_bytes, std::max(type.align_bytes, 1u), kind_of(type)}}};
  }
}

LocationPiece in_register(uint32_t offset_bytes, uint32_t size_bytes) {
  return {LocationPiece::Kind::kValue, size_bytes, {{Op::kRegister, offset_bytes}}};
}

// Returns the location of a value whose numbers are at the places; between them, nothing is known.
ValueLocation assembled(std::span<const Number> numbers, std::vector<LocationPiece> places, uint32_t size_bytes) {
  ValueLocation out;
  uint32_t done = 0;
  const auto leave_out = [&](uint32_t until) {
    if (until > done) out.pieces.push_back({LocationPiece::Kind::kNothing, until - done});
    done = std::max(done, until);
  };
  for (size_t i = 0; i < numbers.size(); ++i) {
    leave_out(numbers[i].offset_bytes);
    done += places[i].size_bytes = numbers[i].size_bytes;
    out.pieces.push_back(std::move(places[i]));
  }
  leave_out(size_bytes);
  if (out.pieces.empty()) out.pieces.push_back({});
  return out;
}

// Returns the numbers that a value which is not by reference is passed as; nullopt if that is not known.
std::optional<std::vector<Number>> rust_numbers(const types::Types& types, TypeId id) {
  const uint32_t size = types[id].size_bytes;
  Shape shape = shape_of(types, id);
  if (shape.kind == Shape::Kind::kUnknown) return std::nullopt;
  if (shape.kind == Shape::Kind::kMemory)
    return size <= kWordBytes ? std::optional(std::vector<Number>{{0, size}}) : std::nullopt;
  std::vector<Number>& out = shape.numbers;
  if (out.size() == 1 && !out[0].is_float() && out[0].size_bytes == 2 * kWordBytes) {
    out[0].size_bytes = kWordBytes;  // u128 takes two registers
    out.push_back({kWordBytes, kWordBytes});
  }
  const auto is_wide = [](const Number& each) { return each.size_bytes > kWordBytes; };
  return std::ranges::any_of(out, is_wide) ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

ValueLocation Places::on_stack(uint32_t size_bytes, uint32_t align_bytes) {
  if (align_bytes > kWordBytes) {
    const uint32_t start = arch_.stack_argument_start_bytes;
    stack_at_ = start + aligned(stack_at_ - start, align_bytes);
  }
  ValueLocation out = at_register(arch_.stack_pointer_offset, stack_at_);
  stack_at_ += aligned(size_bytes, kWordBytes);
  return out;
}

ValueLocation Places::by_address() {
  if (integers_left() > 0) return at_register(arch_.argument_offsets[integers++], 0);
  ValueLocation out = on_stack(kWordBytes, kWordBytes);
  out.pieces[0].steps.push_back({Op::kRead, kWordBytes});
  return out;
}

bool is_known_in_rust(const types::Types& types, const PassedValue& value) {
  // Two numbers are passed in registers, also if one of them is a u128.
  return value.is_by_reference ? shape_of(types, value.type).kind == Shape::Kind::kMemory
                               : rust_numbers(types, value.type).has_value();
}

std::optional<ValueLocation> Places::next_of_rust(const types::Types& types, const PassedValue& value) {
  if (value.is_by_reference) return by_address();
  const std::vector<Number> numbers = rust_numbers(types, value.type).value_or(std::vector<Number>());
  std::vector<LocationPiece> places;
  bool has_vector = false;
  for (const Number& number : numbers) {
    const bool is_vector = number.is_float() && vectors_left() > 0;
    has_vector |= is_vector;
    if (is_vector) {
      ++vectors;
      places.push_back({});
    } else if (!number.is_float() && integers_left() > 0) {
      places.push_back(in_register(arch_.argument_offsets[integers++], number.size_bytes));
    } else {
      places.push_back(on_stack(kWordBytes, kWordBytes).pieces[0]);
    }
  }
  if (has_vector) return std::nullopt;
  return assembled(numbers, std::move(places), types[value.type].size_bytes);
}

ResultPlace rust_result(const types::Types& types, TypeId type, std::span<const uint32_t> registers) {
  const std::vector<Number> numbers = rust_numbers(types, type).value_or(std::vector<Number>());
  if (std::ranges::any_of(numbers, &Number::is_float)) return {std::nullopt, kInVectorRegister};
  std::vector<LocationPiece> places;
  for (size_t i = 0; i < numbers.size(); ++i) places.push_back(in_register(registers[i], numbers[i].size_bytes));
  return {assembled(numbers, std::move(places), types[type].size_bytes)};
}

ValueLocation in_registers(std::span<const uint32_t> registers, uint32_t size_bytes) {
  ValueLocation out;
  uint32_t done = 0;
  for (const uint32_t each : registers) {
    if (done >= size_bytes) break;
    const uint32_t taken = std::min(size_bytes - done, kWordBytes);
    out.pieces.push_back(in_register(each, taken));
    done += taken;
  }
  return out;
}

ValueLocation at_register(uint32_t register_offset_bytes, int64_t displacement) {
  LocationPiece piece{LocationPiece::Kind::kMemory, 0, {{Op::kRegister, register_offset_bytes}}};
  if (displacement != 0) {
    piece.steps.push_back({Op::kConstant, displacement});
    piece.steps.push_back({Op::kAdd});
  }
  return {{std::move(piece)}};
}

}  // namespace espy::kernel
