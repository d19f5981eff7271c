// The page of a terminal that shows a run: a line of status, the maps, and the last lines of its output. Plain values
// in, lines of text out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watch/tables.h"

namespace espy::watch {

enum class Order : uint8_t { kValue, kKey, kChange };
std::string_view name_of(Order order);
Order next(Order order);

// What its user has chosen.
struct View {
  Order order = Order::kValue;
  std::string filter;      // only rows that have this text, in any case; empty: all
  bool is_typing = false;  // the filter is being typed
  bool is_paused = false;
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

// Returns up to `view.rows` lines. Where the maps do not fit, each gets a fair share.
std::vector<Line> make_page(const PageContent& content, const View& view);

}  // namespace espy::watch
