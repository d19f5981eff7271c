// A BPF map of the simulator: an array or a hash, one value for all CPUs or one for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "simulator/memory.h"

namespace espy::simulator {

class SimMap {
 public:
  SimMap(program::BpfMap shape, uint32_t cpu_count, Memory& memory);

  const program::BpfMap& shape() const { return shape_; }
  bool is_per_cpu() const;
  bool is_array() const;
  // The value of `key` as a program on `cpu` sees it; null if there is none.
  std::byte* lookup(std::span<const std::byte> key, uint32_t cpu);
  // As the helper does it: 0 or a negative errno. Of a per-CPU map only `cpu`'s value is set, a new key's others are 0.
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
