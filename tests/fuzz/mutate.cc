#include "mutate.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/byte_reader.h"

namespace espy::fuzz {

namespace {

constexpr size_t kMaxBytes = 256 << 10;

struct Region {
  size_t begin = 0;
  size_t size = 0;
};

uint64_t any_number(Random& random, uint64_t old, size_t file_bytes) {
  constexpr uint64_t kEdges[] = {
      0,   1,   2,   3,   4,      7,      8,      15,      16,        31,         32,         63,        64,        100,
      127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, INT32_MAX, 0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX};
  switch (below(random, 6)) {
    case 0: return old + 1 + below(random, 16);
    case 1: return old - 1 - below(random, 16);
    case 2: return below(random, file_bytes + 16);
    case 3: return uint64_t{random()} << 32 | random();
    default: {
      const uint64_t edge = kEdges[below(random, std::size(kEdges))];
      return below(random, 4) == 0 ? -edge : edge;
    }
  }
}

void set_number(Random& random, std::string& bytes, size_t at, size_t size_bytes) {
  if (at + size_bytes > bytes.size()) return;
  const uint64_t number = any_number(random, load_le(bytes, at, size_bytes), bytes.size());
  std::memcpy(bytes.data() + at, &number, size_bytes);
}

// Returns a place worth changing: for an ELF file a header, a row of the section headers, or a section with content.
Region any_region(Random& random, const std::string& bytes) {
  const Region whole{0, bytes.size()};
  const auto header = load_struct<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || below(random, 8) == 0) return whole;
  const uint64_t row = header->e_shoff + uint64_t{below(random, header->e_shnum)} * sizeof(Elf64_Shdr);
  const auto section = load_struct<Elf64_Shdr>(bytes, row);
  if (!section) return whole;
  switch (below(random, 8)) {
    case 0: return {0, sizeof(Elf64_Ehdr)};
    case 1: return {row, sizeof(Elf64_Shdr)};
    default: break;
  }
  const bool is_inside = section->sh_offset < bytes.size() && section->sh_size <= bytes.size() - section->sh_offset;
  if (!is_inside || section->sh_size == 0 || section->sh_type == SHT_NOBITS) return {row, sizeof(Elf64_Shdr)};
  return {section->sh_offset, section->sh_size};
}

void change_run(Random& random, std::string& bytes, const std::string& other, size_t max_bytes) {
  const size_t at = below(random, bytes.size() + 1);
  const size_t count = std::min<size_t>(1 + below(random, below(random, 4) == 0 ? 4096 : 16), bytes.size() - at);
  const size_t from = below(random, other.size() + 1);
  switch (below(random, 6)) {
    case 0: bytes.erase(at, count); break;
    case 1: bytes.insert(at, other, from, 1 + below(random, 64)); break;
    case 2: bytes.replace(at, count, other, from, count); break;
    case 3: bytes.replace(at, count, count, static_cast<char>(random())); break;
    case 4: bytes = bytes.substr(0, at) + other.substr(from); break;
    default: {
      std::string run = bytes.substr(at, count);
      for (uint32_t n = below(random, 8); n > 0; --n) run += run.substr(0, max_bytes);
      bytes.insert(at, run);
    }
  }
}

}  // namespace

void ByteMutator::change(Random& random, std::string& bytes, size_t max_bytes) const {
  const Region region = any_region(random, bytes);
  const size_t at = region.begin + below(random, region.size);
  switch (below(random, 16)) {
    case 0:
    case 1:
    case 2:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(random, 8));
      break;
    case 3:
    case 4:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 5: bytes.resize(std::min(bytes.size(), at)); break;
    case 6:
    case 7: change_run(random, bytes, seeds_.empty() ? bytes : seeds_[below(random, seeds_.size())], max_bytes); break;
    default: {
      const size_t size = size_t{1} << below(random, 4);
      const bool is_aligned = below(random, 2) == 0;
      set_number(random, bytes, is_aligned ? region.begin + (at - region.begin) / size * size : at, size);
    }
  }
  if (bytes.size() > max_bytes) bytes.resize(max_bytes);
}

std::string ByteMutator::next(Random& random) const {
  std::string out = seeds_.empty() ? std::string() : seeds_[below(random, seeds_.size())];
  if (out.empty())
    for (uint32_t n = below(random, 64); n > 0; --n) out += static_cast<char>(random());
  for (uint32_t n = 1 + below(random, below(random, 4) == 0 ? 32 : 4); n > 0; --n) change(random, out, kMaxBytes);
  return out;
}

}  // namespace espy::fuzz
