#include "simulator/simulated_memory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/fatal.h"

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

namespace {
using program::MapKind;

constexpr uint64_t kNoExist = 1, kExist = 2;

std::vector<std::byte> bytes_of_number(uint32_t number) {
  std::vector<std::byte> out(sizeof(number));
  std::memcpy(out.data(), &number, sizeof(number));
  return out;
}

bool is_lru(MapKind kind) { return kind == MapKind::kLruHash || kind == MapKind::kLruPercpuHash; }
}  // namespace

SimMap::SimMap(program::BpfMap shape, uint32_t cpu_count, Memory& memory)
    : shape_(std::move(shape)), cpu_count_(cpu_count), memory_(memory) {
  if (shape_.kind == MapKind::kArray) {
    const size_t size_bytes = size_t{stride()} * shape_.max_entries;
    array_storage_.reset(static_cast<std::byte*>(std::calloc(size_bytes, 1)));
    if (!array_storage_) throw std::bad_alloc();
    array_ = {array_storage_.get(), size_bytes};
    std::memcpy(array_.data(), shape_.initial.data(), std::min<size_t>(shape_.initial.size(), shape_.value_size));
    for (uint32_t i = 0; i < shape_.max_entries; ++i)
      memory_.add_region(array_.subspan(size_t{i} * stride(), shape_.value_size), shape_.is_read_only);
  } else if (shape_.kind == MapKind::kPercpuArray) {
    for (uint32_t i = 0; i < shape_.max_entries; ++i) create(bytes_of_number(i));
  }
}

bool SimMap::is_per_cpu() const {
  return shape_.kind == MapKind::kPercpuArray || shape_.kind == MapKind::kPercpuHash ||
         shape_.kind == MapKind::kLruPercpuHash;
}

bool SimMap::is_array() const { return shape_.kind == MapKind::kArray || shape_.kind == MapKind::kPercpuArray; }

SimMap::Key SimMap::key_of(std::span<const std::byte> key) const { return {key.begin(), key.end()}; }

SimMap::Element& SimMap::create(Key key) {
  auto element = std::make_unique<Element>();
  element->values.resize(size_t{stride()} * copies());
  add_value_regions(element->values);
  if (is_lru(shape_.kind)) by_age_.push_back(key);
  return *(elements_[std::move(key)] = std::move(element));
}

void SimMap::add_value_regions(std::vector<std::byte>& values) {
  for (uint32_t cpu = 0; cpu < copies(); ++cpu)
    memory_.add_region(std::span(values).subspan(size_t{cpu} * stride(), shape_.value_size), shape_.is_read_only);
}

void SimMap::destroy(Elements::iterator at) {
  if (is_lru(shape_.kind)) by_age_.remove(at->first);
  removed_.push_back(std::move(at->second));
  elements_.erase(at);
}

void SimMap::bury_removed() {
  if (removed_.empty()) return;
  for (const auto& element : removed_)
    for (uint32_t cpu = 0; cpu < copies(); ++cpu)
      memory_.remove_region(element->values.data() + size_t{cpu} * stride());
  removed_.clear();
}

std::byte* SimMap::lookup(std::span<const std::byte> key, uint32_t cpu) {
  if (shape_.kind == MapKind::kArray) {
    uint32_t index = 0;
    std::memcpy(&index, key.data(), sizeof(index));
    return index < shape_.max_entries ? array_.data() + size_t{index} * stride() : nullptr;
  }
  const auto at = elements_.find(key);
  if (at == elements_.end()) return nullptr;
  return at->second->values.data() + (is_per_cpu() ? size_t{cpu} * stride() : 0);
}

int64_t SimMap::update(std::span<const std::byte> key, std::span<const std::byte> value, uint64_t flags, uint32_t cpu) {
  std::byte* old = lookup(key, cpu);
  if (old != nullptr && flags == kNoExist) return -EEXIST;
  if (old == nullptr) {
    if (flags == kExist) return -ENOENT;
    if (is_array()) return -E2BIG;
    if (elements_.size() >= shape_.max_entries) {
      if (!is_lru(shape_.kind)) return -E2BIG;
      destroy(elements_.find(by_age_.front()));
    }
    create(key_of(key));
    old = lookup(key, cpu);
  }
  std::memmove(old, value.data(), shape_.value_size);  // it may be the value of this key itself
  return 0;
}

int64_t SimMap::remove(std::span<const std::byte> key) {
  if (is_array()) return -EINVAL;
  const auto at = elements_.find(key);
  if (at == elements_.end()) return -ENOENT;
  destroy(at);
  return 0;
}

std::vector<std::vector<std::byte>> SimMap::keys() const {
  std::vector<Key> out;
  if (shape_.kind == MapKind::kArray)
    for (uint32_t i = 0; i < shape_.max_entries; ++i) out.push_back(bytes_of_number(i));
  for (const auto& [key, element] : elements_) out.push_back(key);
  std::ranges::sort(out);
  return out;
}

std::vector<std::byte> SimMap::all_cpus(std::span<const std::byte> key) {
  const std::byte* first = lookup(key, 0);
  if (first == nullptr) return {};
  return {first, first + (is_per_cpu() ? size_t{stride()} * cpu_count_ : shape_.value_size)};
}

void SimMap::set_all_cpus(std::span<const std::byte> key, std::span<const std::byte> value) {
  std::byte* first = lookup(key, 0);
  if (first == nullptr) {
    create(key_of(key));
    first = lookup(key, 0);
  }
  CHECK(value.size() >= (is_per_cpu() ? size_t{stride()} * cpu_count_ : shape_.value_size));
  std::memcpy(first, value.data(), is_per_cpu() ? size_t{stride()} * cpu_count_ : shape_.value_size);
}

// As the kernel keeps them: one stack in the place of a hash of its frames, of which it takes as many as a value holds.
int64_t SimMap::stack_id(std::span<const uint64_t> stack) {
  const auto kept_frames = stack.first(std::min<size_t>(stack.size(), shape_.value_size / sizeof(uint64_t)));
  std::vector<std::byte> value(shape_.value_size);
  std::memcpy(value.data(), kept_frames.data(), kept_frames.size_bytes());
  uint64_t hash = 0;
  for (const uint64_t address : kept_frames) hash = std::rotl(hash ^ address, 7) * 0x9e3779b97f4a7c15;
  const auto place = static_cast<uint32_t>((hash >> 32) % std::bit_ceil(shape_.max_entries));
  const std::byte* kept = lookup(bytes_of_number(place), 0);
  if (kept == nullptr) update(bytes_of_number(place), value, 0, 0);
  const bool is_kept = kept == nullptr || std::memcmp(kept, value.data(), value.size()) == 0;
  return is_kept ? int64_t{place} : -EEXIST;
}

std::byte* SimMap::task_value(uint64_t task, bool create_it) {
  const auto key = std::as_bytes(std::span(&task, 1));
  if (const auto at = elements_.find(key); at != elements_.end()) return at->second->values.data();
  return create_it ? create(key_of(key)).values.data() : nullptr;
}

}  // namespace espy::simulator
