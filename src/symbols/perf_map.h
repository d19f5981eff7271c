// /tmp/perf-PID.map, in which a JIT compiler lists its functions. Internal to symbols/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espy::symbols {

// Lines "START SIZE NAME", numbers in hex, with or without 0x, appended while the JIT runs. Of lines with the same
// start the last is valid, since a JIT reuses the memory of code it has dropped.
class PerfMap {
 public:
  struct Entry {
    uint64_t start = 0;
    uint64_t size = 0;
    std::string_view name;  // valid for the life of the PerfMap
  };

  explicit PerfMap(std::string text);
  PerfMap(const PerfMap&) = delete;  // the entries point into the text
  PerfMap& operator=(const PerfMap&) = delete;

  uint64_t memory_bytes() const { return text_.capacity() + entries_.capacity() * sizeof(Entry); }
  std::optional<Entry> at(uint64_t address) const;

 private:
  std::string text_;
  std::vector<Entry> entries_;  // sorted by start, without duplicates
};

}  // namespace espy::symbols
