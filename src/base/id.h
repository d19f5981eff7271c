// Typed 32-bit ids and the tables they index.
//
// Data about the tree, the types and the IR is kept in tables keyed by ids rather than behind pointers. An id is half
// the size of a pointer, prints as a number, and has the type of its table.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/fatal.h"

namespace espy {

// `Tag` only makes types distinct: `using ExprId = Id<struct ExprTag>;`
template <class Tag>
struct Id {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t index = kNone;

  constexpr bool valid() const { return index != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  constexpr auto operator<=>(const Id&) const = default;
};

// A growing array indexed by `IdType`. `add` invalidates references.
template <class IdType, class T>
class Table {
 public:
  IdType add(T value) {
    items_.push_back(std::move(value));
    return IdType{static_cast<uint32_t>(items_.size() - 1)};
  }
  T& operator[](IdType id) {
    CHECK(id.index < items_.size());
    return items_[id.index];
  }
  const T& operator[](IdType id) const {
    CHECK(id.index < items_.size());
    return items_[id.index];
  }
  bool contains(IdType id) const { return id.index < items_.size(); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  // The id that the next `add` returns.
  IdType next_id() const { return IdType{static_cast<uint32_t>(items_.size())}; }
  // All ids of the table, in order.
  std::vector<IdType> ids() const {
    std::vector<IdType> out(items_.size());
    for (uint32_t i = 0; i < out.size(); ++i) out[i] = IdType{i};
    return out;
  }

 private:
  std::vector<T> items_;
};

}  // namespace espy

template <class Tag>
struct std::hash<espy::Id<Tag>> {
  size_t operator()(espy::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.index); }
};
