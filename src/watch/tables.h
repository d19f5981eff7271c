// Tables: the maps of a run as rows of text, with what has changed since they were read before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/histogram.h"
#include "runtime/live_run.h"

namespace espy::watch {

// An element of a map. All text can be shown by a terminal as it is, and has no newlines.
struct Row {
  output::Value key;                       // for the order of keys
  std::string key_text;                    // "cat, 3"; of a scalar, "" or the name of the map
  std::string value_text;                  // "" if the value takes several lines
  std::vector<output::HistogramRow> bars;  // of a histogram
  std::vector<std::string> lines;          // of another value that takes several, and percentiles
  std::optional<double> rate;              // of a counter or of values recorded, a second
  double change = 0;                       // of the number since it was read before, without its sign
  bool is_changed = false;                 // is new, or has another value than before
};

struct Table {
  std::string name;  // "@reads"; "" for the scalars that are one line each
  std::string note;  // " (sampled 25%)"
  bool has_rates = false;
  std::vector<Row> rows;  // the largest value first
};

class Tables {
 public:
  explicit Tables(output::TextStyle style) : style_(std::move(style)) {}

  // Takes the maps of a moment, `now_ns` by a monotonic clock, in the order of their names; empty ones are left out.
  std::vector<Table> read(std::vector<output::MapView> views, uint64_t now_ns);

 private:
  struct Before {
    std::string state;  // of the value
    std::optional<double> number;
  };
  using Rows = std::unordered_map<std::string, Before>;  // by the text of the key

  Row make_row(const output::MapView& view, output::MapEntry& entry, const Rows& before, Rows& now) const;
  void compare(Row& row, const Before* before, const Before& now) const;

  output::TextStyle style_;
  std::unordered_map<std::string, Rows> before_;  // by the name of the map
  uint64_t before_ns_ = 0;                        // 0: there was no time before
  double seconds_ = 0;                            // since then
};

}  // namespace espy::watch
