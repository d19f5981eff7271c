// What a JIT tells about its code: /tmp/perf-PID.map. Inside this room only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espy::symbols {

// Lines "START SIZE NAME", hex without 0x, appended while the JIT runs. Where it puts new code over old, the later
// line is right.
class PerfMap {
 public:
  struct Entry {
    uint64_t start = 0;
    uint64_t size = 0;
    std::string_view name;  // into the text; lives as long as the PerfMap
  };

  explicit PerfMap(std::string text);
  PerfMap(const PerfMap&) = delete;  // the entries point into this very text
  PerfMap& operator=(const PerfMap&) = delete;

  std::optional<Entry> at(uint64_t address) const;

 private:
  std::string text_;
  std::vector<Entry> entries_;  // by start, no two the same
};

}  // namespace espy::symbols
