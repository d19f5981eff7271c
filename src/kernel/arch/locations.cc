#include "kernel/arch/locations.h"

#include <algorithm>

namespace espy::kernel {
namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

void add_scalars(const types::Types& types, TypeId id, uint32_t offset_bytes, Scalars& out) {
  const types::Type& type = types[id];
  if (type.kind == Kind::kStruct) {
    for (const types::Member& member : type.members)
      add_scalars(types, member.type, offset_bytes + member.offset_bytes(), out);
  } else if (type.kind == Kind::kArray) {
    out = {{0, 0}, {1, 0}, {2, 0}};  // never a pair
  } else if (type.size_bytes > 0) {
    uint32_t& size = out[offset_bytes];
    size = std::max(size, type.size_bytes);
  }
}

LocationPiece in_register(uint32_t offset_bytes, uint32_t size_bytes) {
  return {LocationPiece::Kind::kValue, size_bytes, {{Op::kRegister, offset_bytes}}};
}

}  // namespace

std::optional<Scalars> scalar_pair(const types::Types& types, const PassedValue& value) {
  if (!value.is_rust || value.is_by_reference || types[value.type].kind != Kind::kStruct) return std::nullopt;
  Scalars out;
  add_scalars(types, value.type, 0, out);
  return out.size() == 2 ? std::optional(out) : std::nullopt;
}

ValueLocation in_register_pair(const Scalars& scalars, uint32_t first_register, uint32_t second_register,
                               uint32_t size_bytes) {
  const auto& [first_at, first_size] = *scalars.begin();
  const auto& [second_at, second_size] = *scalars.rbegin();
  ValueLocation out;
  const auto add = [&](LocationPiece piece) {
    if (piece.size_bytes > 0) out.pieces.push_back(std::move(piece));
  };
  add({LocationPiece::Kind::kNothing, first_at});
  add(in_register(first_register, first_size));
  add({LocationPiece::Kind::kNothing, second_at - first_at - first_size});
  add(in_register(second_register, second_size));
  add({LocationPiece::Kind::kNothing, size_bytes - second_at - second_size});
  return out;
}

ValueLocation in_registers(std::span<const uint32_t> registers, uint32_t size_bytes) {
  constexpr uint32_t kWordBytes = 8;
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
