#include "types/parts.h"

#include <algorithm>

namespace espy::types {

namespace {

constexpr uint32_t kMostParts = 1 << 16;
constexpr uint32_t kMostDepth = 256;

TypeId innermost(const Types& types, TypeId type) {
  while (types[type].kind == Kind::kArray) type = types[type].element;
  return type;
}

}  // namespace

bool Parts::may_define(const Types& types, TypeId struct_type, std::span<const Member> members) {
  Extent extent;
  for (const Member& member : members) {
    const TypeId part = innermost(types, member.type);
    if (types[part].kind == Kind::kStruct && !types[part].complete) refused_.insert(part);
    const auto known = defined_.find(part);
    const Extent of_part = known == defined_.end() ? Extent{} : known->second;
    extent.count = std::min(extent.count + of_part.count, kMostParts + 1);
    extent.depth = std::max(extent.depth, of_part.depth + 1);
  }
  if (extent.count > kMostParts || extent.depth > kMostDepth) refused_.insert(struct_type);
  if (is_refused(struct_type)) return false;
  defined_.emplace(struct_type, extent);
  return true;
}

}  // namespace espy::types
