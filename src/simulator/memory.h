// What a simulated program may touch.
//
// Two kinds of memory. Regions are ours: contexts, map values. A program reaches them by plain loads and stores, and an
// access that is not wholly inside one region is a fault: what the kernel's verifier would have refused. Foreign memory
// is the simulated kernel's and processes': pieces of it lie at invented addresses, programs reach it by helpers, and
// an address where nothing lies reads as an error, not a fault.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace espy::simulator {

enum class Access : uint8_t { kRead, kWrite };

class Memory {
 public:
  void add_region(std::span<std::byte> bytes, bool is_read_only = false);
  void remove_region(const std::byte* start);
  // The bytes at `address` if they all lie in one region that allows `access`; else null.
  std::byte* find(uint64_t address, uint64_t size_bytes, Access access) const {
    const Region* recent = recent_[place_of(address)];
    const bool is_inside = recent != nullptr && recent->has(address, size_bytes);
    return is_inside && !(recent->is_read_only && access == Access::kWrite)
               ? recent->bytes.data() + (address - recent->start())
               : search(address, size_bytes, access);
  }

  // Puts `bytes` at `address` of foreign memory.
  void put_foreign(uint64_t address, std::span<const std::byte> bytes);
  void put_foreign(uint64_t address, std::string_view bytes);
  // Puts them where nothing lies yet, in kernel or user space; returns the address.
  uint64_t add_kernel(std::string_view bytes);
  uint64_t add_user(std::string_view bytes);
  // Reads foreign memory, or, as the kernel's helpers can, a region. False where a byte is missing.
  bool read_anywhere(uint64_t address, std::span<std::byte> out) const;
  // Foreign memory that its owner lends until the next call.
  struct Lent {
    uint64_t address = 0;
    std::string_view bytes;
    bool has_nul = false;  // a NUL follows, which is not in `bytes`
  };
  void lend(std::span<const Lent> pieces) { lent_ = pieces; }
  // Fills `out` from lent memory; a text only up to its NUL. Returns the bytes copied; 0 if they are not there.
  size_t read_lent(uint64_t address, std::span<std::byte> out, bool is_text) const;
  bool write_foreign(uint64_t address, std::span<const std::byte> bytes);
  // Whether anything of foreign memory lies at `address`.
  bool is_foreign(uint64_t address) const { return foreign_.contains(address); }

 private:
  struct Region {
    std::span<std::byte> bytes;
    bool is_read_only = false;

    uint64_t start() const { return reinterpret_cast<uint64_t>(bytes.data()); }
    bool has(uint64_t address, uint64_t size_bytes) const {
      const uint64_t offset = address - start();
      return offset <= bytes.size() && size_bytes <= bytes.size() - offset;
    }
  };
  // Accesses repeat: the region that was found last in each 64 bytes of addresses, modulo the size of the table.
  static constexpr size_t kRecentRegions = 64;
  static size_t place_of(uint64_t address) { return address / 64 % kRecentRegions; }
  std::byte* search(uint64_t address, uint64_t size_bytes, Access access) const;

  std::map<uint64_t, Region> regions_;  // by start
  mutable std::array<const Region*, kRecentRegions> recent_ = {};
  std::map<uint64_t, std::byte> foreign_;
  std::span<const Lent> lent_;
  uint64_t next_kernel_ = 0xffff'8880'0000'0000;
  uint64_t next_user_ = 0x7f00'0000'0000;
};

// A region that goes with its owner.
class ScopedRegion {
 public:
  ScopedRegion(Memory& memory, std::span<std::byte> bytes, bool is_read_only = false)
      : memory_(memory), start_(bytes.data()) {
    memory_.add_region(bytes, is_read_only);
  }
  ScopedRegion(const ScopedRegion&) = delete;
  ScopedRegion& operator=(const ScopedRegion&) = delete;
  ~ScopedRegion() { memory_.remove_region(start_); }

 private:
  Memory& memory_;
  const std::byte* start_;
};

}  // namespace espy::simulator
