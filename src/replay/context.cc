#include "replay/context.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace espy::replay {

namespace {

using recording::FieldKind;
using recording::FieldRole;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kMaxRecordBytes = 64 << 10;

bool is_in_context(const recording::Field& field) {
  constexpr FieldRole kRoles[] = {FieldRole::kArgs, FieldRole::kArgument, FieldRole::kResult, FieldRole::kLocal,
                                  FieldRole::kValue};
  return std::ranges::find(kRoles, field.role) != std::end(kRoles) && field.kind != FieldKind::kNothing;
}

}  // namespace

ContextShape context_shape(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types) {
  ContextShape out;
  for (const recording::Field& field : layout.fields) {
    const bool has_size = field.kind == FieldKind::kChars || field.kind == FieldKind::kBytes;
    const types::TypeId type = kernel.recorded_type(types, field.type);
    const uint32_t size = !has_size ? kWordBytes : type.valid() ? types[type].size_bytes : 0;
    const bool is_placed = is_in_context(field) && size <= kMaxRecordBytes / 2 - out.size_bytes;
    out.places.push_back(is_placed ? std::optional(out.size_bytes) : std::nullopt);
    out.sizes.push_back(size);
    if (is_placed) out.size_bytes += (size + kWordBytes - 1) / kWordBytes * kWordBytes;
  }
  return out;
}

std::span<std::byte> Context::fill(const recording::Event& event) {
  record_.assign(shape_.size_bytes, std::byte{0});
  for (size_t i = 0; i < layout_.fields.size(); ++i) {
    if (!shape_.places[i]) continue;
    const uint32_t place = *shape_.places[i];
    const recording::Value& value = event.values[i];
    switch (layout_.fields[i].kind) {
      case FieldKind::kNumber: std::memcpy(record_.data() + place, &value.number, sizeof(value.number)); break;
      case FieldKind::kText: append_text(place, value.text); break;
      default:
        std::memcpy(record_.data() + place, value.text.data(), std::min<size_t>(value.text.size(), shape_.sizes[i]));
    }
  }
  record_.resize((record_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  return record_;
}

void Context::append_text(uint32_t place, std::string_view text) {
  const size_t where = record_.size();
  const size_t size = std::min<size_t>(text.size(), UINT16_MAX - 1);
  if (where + size >= kMaxRecordBytes) return;
  const auto locator = static_cast<uint32_t>((size + 1) << 16 | where);
  std::memcpy(record_.data() + place, &locator, sizeof(locator));
  record_.resize(where + size + 1);
  std::memcpy(record_.data() + where, text.data(), size);
}

}  // namespace espy::replay
