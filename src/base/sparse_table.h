// SparseTable: additional data for a few elements of another table whose ids are near each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/id.h"

namespace espy {

// Elements that were never written read as `T{}`. Takes memory for written elements and their neighbours, in pages that
// do not move: references stay valid.
template <class IdType, class T>
class SparseTable {
 public:
  SparseTable() = default;
  SparseTable(const SparseTable& other) : first_page_(other.first_page_) {
    for (const std::unique_ptr<Page>& page : other.pages_)
      pages_.push_back(page == nullptr ? nullptr : std::make_unique<Page>(*page));
  }
  SparseTable(SparseTable&&) noexcept = default;
  SparseTable& operator=(SparseTable other) noexcept {
    std::swap(first_page_, other.first_page_);
    std::swap(pages_, other.pages_);
    return *this;
  }

  T& operator[](IdType id) {
    CHECK(id.valid());
    std::unique_ptr<Page>& page = page_of(id.index / kPageElements);
    if (page == nullptr) page = std::make_unique<Page>();
    return (*page)[id.index % kPageElements];
  }
  const T& operator[](IdType id) const {
    static const T nothing{};
    const uint32_t number = id.index / kPageElements;
    if (number < first_page_ || number - first_page_ >= pages_.size()) return nothing;
    const std::unique_ptr<Page>& page = pages_[number - first_page_];
    return page == nullptr ? nothing : (*page)[id.index % kPageElements];
  }
  // Returns the ids of the elements that were written, and of some others, in order.
  std::vector<IdType> ids() const {
    std::vector<IdType> out;
    for (size_t i = 0; i < pages_.size(); ++i) {
      if (pages_[i] == nullptr) continue;
      const auto first = static_cast<uint32_t>(first_page_ + i) * kPageElements;
      for (uint32_t k = 0; k < kPageElements; ++k) out.push_back(IdType{first + k});
    }
    return out;
  }

 private:
  static constexpr uint32_t kPageElements = 32;
  using Page = std::array<T, kPageElements>;

  // Makes room for the page with that number.
  std::unique_ptr<Page>& page_of(uint32_t number) {
    if (pages_.empty()) first_page_ = number;
    if (number < first_page_) {
      std::vector<std::unique_ptr<Page>> pages(first_page_ - number + pages_.size());
      std::ranges::move(pages_, pages.begin() + static_cast<std::ptrdiff_t>(first_page_ - number));
      pages_ = std::move(pages);
      first_page_ = number;
    }
    if (number - first_page_ >= pages_.size()) pages_.resize(number - first_page_ + 1);
    return pages_[number - first_page_];
  }

  uint32_t first_page_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace espy
