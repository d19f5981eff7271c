// The world of a simulated program: memory, maps, and who runs where and when.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "recording/recording.h"

namespace espy::simulator {

// ---- What a simulated program may touch.
//
// Two kinds of memory. Regions are ours: contexts, map values. A program reaches them by plain loads and stores, and an
// access that is not wholly inside one region is a fault: what the kernel's verifier would have refused. Foreign memory
// belongs to the simulated kernel and processes. Its pieces are at invented addresses, programs reach it by helpers,
// and an empty address reads as an error, not a fault.

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
  // Reads foreign memory or, like the helpers of the kernel, a region. False where a byte is missing.
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

// ---- The world around a simulated program: who runs, on which CPU, at what time, with which stack. All of it
// scripted.

constexpr uint64_t kStartNs = 1'000'000'000;  // of the clock, nanoseconds since boot
constexpr uint64_t kStepNs = 1'000'000;       // what passes between two events

struct Task {
  std::string comm = "golden";
  uint32_t pid = 1234;
  uint32_t tid = 1234;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t ppid = 1;
  uint64_t cgroup = 1;
};

struct World {
  Memory memory;
  Task task;
  uint32_t cpu = 0;
  uint64_t now_ns = kStartNs;
  std::optional<int64_t> wall_clock_offset_ns;  // load::Machine::wall_clock_offset_ns
  uint64_t random = 1;
  uint64_t cookie = 0;
  bool is_return = false;              // in a session
  uint64_t current_task = 0;           // address of a task_struct in foreign memory; 0: none was made
  std::vector<uint64_t> kernel_stack;  // innermost first
  std::vector<uint64_t> user_stack;
  uint64_t step_ns = kStepNs;  // what passes in a run of a program
  // The facts come from a recording. A program that needs a missing fact is stopped.
  bool is_recorded = false;
  const recording::FrameNames* frame_names = nullptr;
  bool has_task = true;  // of a recording: `task` is known
  bool has_kernel_stack = false, has_user_stack = false;
  // What programs did to the world, a line each: "signal 9", "override -1".
  std::vector<std::string> deeds;
};

// ---- A BPF map of the simulator: an array or a hash, one value for all CPUs or one for each.

class SimMap {
 public:
  SimMap(program::BpfMap shape, uint32_t cpu_count, Memory& memory);

  const program::BpfMap& shape() const { return shape_; }
  bool is_per_cpu() const;
  bool is_array() const;
  // The value of `key` as a program on `cpu` sees it; null if there is none.
  std::byte* lookup(std::span<const std::byte> key, uint32_t cpu);
  // As the helper does it: 0 or a negative errno. In a per-CPU map, only the value of `cpu` is set. The other values of
  // a new key are 0.
  int64_t update(std::span<const std::byte> key, std::span<const std::byte> value, uint64_t flags, uint32_t cpu);
  int64_t remove(std::span<const std::byte> key);
  size_t size() const { return elements_.size(); }
  // All keys; the first value of each (per-CPU: of `cpu`). Keys in order of their bytes.
  std::vector<std::vector<std::byte>> keys() const;

  // As user space sees it: all CPUs' values, each padded to 8 bytes.
  std::vector<std::byte> all_cpus(std::span<const std::byte> key);
  void set_all_cpus(std::span<const std::byte> key, std::span<const std::byte> value);
  std::span<std::byte> array_bytes() { return array_; }

  // A removed value stays readable until the program that may hold its address has ended.
  void bury_removed();

  // Stack traces: the id of `stack`, added if it is new; -EEXIST if another stack has its place.
  int64_t stack_id(std::span<const uint64_t> stack);
  // Task storage: the value of `task`.
  std::byte* task_value(uint64_t task, bool create);

 private:
  using Key = std::vector<std::byte>;
  struct Element {
    std::vector<std::byte> values;  // all CPUs'
  };
  // Finds keys by their bytes, without a copy.
  static std::string_view text_of(std::span<const std::byte> key) {
    return {reinterpret_cast<const char*>(key.data()), key.size()};
  }
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::span<const std::byte> key) const { return std::hash<std::string_view>()(text_of(key)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const std::byte> a, std::span<const std::byte> b) const {
      return text_of(a) == text_of(b);
    }
  };
  using Elements = std::unordered_map<Key, std::unique_ptr<Element>, Hash, Equal>;
  uint32_t stride() const { return (shape_.value_size + 7) & ~7U; }
  uint32_t copies() const { return is_per_cpu() ? cpu_count_ : 1; }
  Element& create(Key key);
  void destroy(Elements::iterator at);
  void add_value_regions(std::vector<std::byte>& values);
  Key key_of(std::span<const std::byte> key) const;

  program::BpfMap shape_;
  uint32_t cpu_count_;
  Memory& memory_;
  std::span<std::byte> array_;  // kArray: what user space may map
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> array_storage_;  // by calloc(3): large and rarely touched
  Elements elements_;
  std::vector<std::unique_ptr<Element>> removed_;
  std::list<Key> by_age_;  // LRU: oldest first
};

}  // namespace espy::simulator
