#include "simulator/memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace espy::simulator {

namespace {
constexpr uint64_t kGapBytes = 1 << 12;  // between things in foreign memory: running off one end hits nothing

uint64_t number_of(const std::byte* address) { return reinterpret_cast<uint64_t>(address); }
}  // namespace

void Memory::add_region(std::span<std::byte> bytes, bool is_read_only) {
  if (!bytes.empty()) regions_[number_of(bytes.data())] = Region{bytes, is_read_only};
}

void Memory::remove_region(const std::byte* start) {
  const auto at = regions_.find(number_of(start));
  if (at == regions_.end()) return;
  for (const Region*& recent : recent_)
    if (recent == &at->second) recent = nullptr;
  regions_.erase(at);
}

std::byte* Memory::search(uint64_t address, uint64_t size_bytes, Access access) const {
  auto at = regions_.upper_bound(address);
  if (at == regions_.begin()) return nullptr;
  const Region& region = (--at)->second;
  if (!region.has(address, size_bytes)) return nullptr;
  if (region.is_read_only && access == Access::kWrite) return nullptr;
  recent_[place_of(address)] = &region;
  return region.bytes.data() + (address - at->first);
}

void Memory::put_foreign(uint64_t address, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) foreign_[address + i] = bytes[i];
}

void Memory::put_foreign(uint64_t address, std::string_view bytes) {
  put_foreign(address, std::as_bytes(std::span(bytes)));
}

uint64_t Memory::add_kernel(std::string_view bytes) {
  const uint64_t address = next_kernel_;
  put_foreign(address, bytes);
  next_kernel_ += (bytes.size() + 2 * kGapBytes - 1) / kGapBytes * kGapBytes;
  return address;
}

uint64_t Memory::add_user(std::string_view bytes) {
  const uint64_t address = next_user_;
  put_foreign(address, bytes);
  next_user_ += (bytes.size() + 2 * kGapBytes - 1) / kGapBytes * kGapBytes;
  return address;
}

bool Memory::read_anywhere(uint64_t address, std::span<std::byte> out) const {
  if (const std::byte* own = find(address, out.size(), Access::kRead)) {
    std::memcpy(out.data(), own, out.size());
    return true;
  }
  auto at = foreign_.find(address);
  for (size_t i = 0; i < out.size(); ++i, ++at) {
    if (at == foreign_.end() || at->first != address + i) return false;
    out[i] = at->second;
  }
  return true;
}

size_t Memory::read_lent(uint64_t address, std::span<std::byte> out, bool is_text) const {
  for (const Lent& piece : lent_) {
    if (address < piece.address || address - piece.address > piece.bytes.size()) continue;
    const std::string_view rest = piece.bytes.substr(address - piece.address);
    const size_t end = is_text ? rest.find('\0') : rest.npos;
    const size_t size = std::min({rest.size(), out.size(), end == rest.npos ? end : end + 1});
    std::memcpy(out.data(), rest.data(), size);
    if (size == out.size() || (size > 0 && end == size - 1)) return size;
    if (!piece.has_nul || (!is_text && size + 1 < out.size())) continue;
    out[size] = std::byte{0};
    return size + 1;
  }
  return 0;
}

bool Memory::write_foreign(uint64_t address, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (!foreign_.contains(address + i)) return false;
  put_foreign(address, bytes);
  return true;
}

}  // namespace espy::simulator
