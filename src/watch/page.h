// The page of a terminal that shows a run: a line of status, the maps, and the last lines of its output. Plain values
// in, lines of text out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/histogram.h"
#include "runtime/live_run.h"

namespace espy::watch {

// ---- Text in the columns of a terminal

// Returns how many columns a text takes: two for wide characters, none for characters that combine with the one before.
// Bytes that are not UTF-8, and control characters, count as one; `printable_line` leaves none.
size_t columns_of(std::string_view text);

// Returns as much of the front of `text` as fits `columns`.
std::string_view cut(std::string_view text, size_t columns);

// Returns `text` with exactly `columns`: cut, or followed or preceded by blanks.
std::string left_aligned(std::string_view text, size_t columns);
std::string right_aligned(std::string_view text, size_t columns);

// ---- The maps of a run as rows of text, with the changes since the last reading

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
  std::vector<Row> rows = {};  // the largest value first
  bool is_scratch = false;     // a working map (check::scratch_maps): folded
};

class Tables {
 public:
  // `scratch`: the names of the maps that are folded.
  explicit Tables(output::TextStyle style, std::set<std::string> scratch = {})
      : style_(std::move(style)), scratch_(std::move(scratch)) {}

  // Takes the maps of a moment, `now_ns` by a monotonic clock, in the order of their names; empty ones are skipped.
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
  std::set<std::string> scratch_;
  std::unordered_map<std::string, Rows> before_;  // by the name of the map
  uint64_t before_ns_ = 0;                        // 0: there was no time before
  double seconds_ = 0;                            // since then
};

// ---- The page

enum class Order : uint8_t { kValue, kKey, kChange };
std::string_view name_of(Order order);
Order next(Order order);

// What its user has chosen.
struct View {
  Order order = Order::kValue;
  std::string filter;      // only rows that have this text, in any case; empty: all
  bool is_typing = false;  // the filter is being typed
  bool is_paused = false;
  bool shows_keys = false;     // what each key does, instead of the maps
  bool shows_scratch = false;  // also the tables that are folded
  std::optional<size_t> top;   // scrolled: the first line of all, as if there were room for them; none: a part of each
  size_t columns = 80, rows = 24;  // of the terminal
};

struct PageContent {
  std::string status;  // the clock and the like
  std::string losses;  // "12 lost records"; "" if nothing is lost
  std::vector<Table> tables;
  std::vector<std::string> log;  // the last lines of the script's output, oldest first
};

enum class LineStyle : uint8_t { kPlain, kTitle, kChanged, kStatus, kWarning };

struct Line {
  std::string text;  // fits the columns
  LineStyle style = LineStyle::kPlain;
};

// Returns up to `view.rows` lines. The status, the losses and the scalars come first, and stay while the maps scroll.
// If the maps do not fit, each gets a fair share, and a line says how much is hidden. Maps that would get less than a
// few lines come below, for scrolling.
std::vector<Line> make_page(const PageContent& content, const View& view);

// A step of scrolling. The first step forward from a part of each map, which kHome shows, leads to the first line of
// all.
enum class Step : uint8_t { kLineUp, kLineDown, kPageUp, kPageDown, kHome, kEnd, kPreviousMap, kNextMap };
void scroll(const PageContent& content, View& view, Step step);

}  // namespace espy::watch
