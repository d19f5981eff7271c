// /tmp/perf-PID.map, in which a JIT compiler lists its functions. Internal to symbols/.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/untrusted_file.h"

namespace espy::symbols {

// Lines "START SIZE NAME", numbers in hex, with or without 0x, appended while the JIT runs. If lines have the same
// start, the last is valid, because a JIT reuses the memory of code it has dropped.
class PerfMap {
 public:
  struct Entry {
    uint64_t start = 0;
    uint64_t size = 0;
    std::string_view name;  // valid for the life of the PerfMap
  };

  PerfMap() = default;
  explicit PerfMap(std::string_view text);
  PerfMap(PerfMap&&) = default;  // not copied: the entries point into the names
  PerfMap& operator=(PerfMap&&) = default;

  // Reads a file to its end, or to a part with hardly any such lines. The rest of such a file is not read, because it
  // may be large and have cost its writer nothing.
  static Result<PerfMap> read(const UntrustedFile& file);

  uint64_t memory_bytes() const { return names_bytes_ + entries_.capacity() * sizeof(Entry); }
  std::optional<Entry> at(uint64_t address) const;

 private:
  size_t add(std::string_view lines);  // returns how many bytes it has kept of them
  void sort();

  std::deque<std::string> names_;  // the lines of each call of `add`; a deque, because they must stay where they are
  uint64_t names_bytes_ = 0;
  std::vector<Entry> entries_;  // after `sort` by start, without duplicates
};

}  // namespace espy::symbols
