#include "watch/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/strings.h"
#include "output/quantity.h"

namespace espy::watch {

namespace {

// ---- Columns

struct Range {
  uint32_t first, last;
};

// The blocks whose characters combine with the one before. Single ones elsewhere are taken for narrow.
constexpr Range kCombining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                                {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
                                {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
// The blocks of wide characters (East Asian Width W and F) and of pictures.
constexpr Range kWide[] = {{0x1100, 0x115f},  {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                           {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                           {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                           {0x20000, 0x3fffd}};

// The character that `bytes`, a whole one, encode.
uint32_t code_of(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  uint32_t code = first & (0xffu >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

size_t width_of(uint32_t code) {
  const auto holds = [code](const Range& range) { return code >= range.first && code <= range.last; };
  if (code < kCombining[0].first) return 1;
  return std::ranges::any_of(kCombining, holds) ? 0 : std::ranges::any_of(kWide, holds) ? 2 : 1;
}

// The part of a text that fits, and how many columns it takes.
struct Fitting {
  size_t bytes = 0, columns = 0;
};

Fitting fitting(std::string_view text, size_t columns) {
  Fitting out;
  while (out.bytes < text.size()) {
    const std::string_view rest = text.substr(out.bytes);
    const size_t size = std::max<size_t>(utf8_length(rest), 1);
    const size_t width = width_of(code_of(rest.substr(0, size)));
    if (out.columns + width > columns) break;
    out.bytes += size;
    out.columns += width;
  }
  return out;
}

// ---- Reading tables

using output::Value;

uint64_t sum(const std::vector<uint64_t>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

// The number that grows with a value: a count, a sum, or how many values were recorded.
std::optional<double> number_of(const Value& value) {
  if (const auto* v = std::get_if<int64_t>(&value.node)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<uint64_t>(&value.node)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<output::StatsValue>(&value.node)) return static_cast<double>(v->count);
  if (const auto* v = std::get_if<output::HistValue>(&value.node)) return static_cast<double>(sum(v->buckets));
  if (const auto* v = std::get_if<output::LhistValue>(&value.node)) return static_cast<double>(sum(v->buckets));
  return std::nullopt;
}

// The lines of a text, each without the blanks around it; empty ones are left out.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) out.push_back(printable_line(trim(line)));
  return out;
}

// A text of several lines, as a stack has, on one.
std::string on_one_line(std::string_view text) {
  return text.find('\n') == text.npos ? printable_line(text) : join(lines_of(text), " < ");
}

// The lines of a series are a picture, whose blanks count.
std::vector<std::string> picture_of(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out.push_back(printable_line(line));
  return out;
}

// Numbers of max() and min() are no counters, nor is a number that an assignment has made smaller.
bool is_counter(types::Kind kind, bool has_shrunk) {
  if (kind == types::Kind::kInt) return !has_shrunk;
  return kind != types::Kind::kMin && kind != types::Kind::kMax && kind != types::Kind::kEnum;
}

// The key's text, in which no text of a part can look like two parts.
std::string identity_of(const output::Value& key, const output::TextStyle& style) {
  const auto* tuple = std::get_if<output::TupleValue>(&key.node);
  if (tuple == nullptr) return output::key_text(key, style);
  std::string out;
  for (const output::Value& item : tuple->items) (out += output::to_text(item, style)) += '\0';
  return out;
}

// Whether a row takes several lines.
bool is_block(const Row& row) { return !row.bars.empty() || !row.lines.empty(); }

constexpr std::array<std::string_view, 3> kOrders = {"value", "key", "change"};

using Lines = std::vector<Line>;

// As much of a text as fits, with a mark where it was cut.
std::string fit(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  return columns == 0 ? "" : std::string(cut(text, columns - 1)) + ">";
}

// ---- Which rows, in which order

std::vector<const Row*> shown_rows(const Table& table, const View& view) {
  const std::string wanted = to_lower(view.filter);
  std::vector<const Row*> out;
  for (const Row& row : table.rows)
    if (wanted.empty() || to_lower(table.name + "[" + row.key_text + "]").find(wanted) != std::string::npos)
      out.push_back(&row);
  const bool is_scalars = table.name.empty();
  if (view.order == Order::kValue && !is_scalars) return out;
  std::sort(out.begin(), out.end(), [&](const Row* a, const Row* b) {
    if (is_scalars) return a->key_text < b->key_text;
    if (view.order == Order::kChange && a->change != b->change) return a->change > b->change;
    return view.order == Order::kKey ? output::compare_keys(a->key, b->key) < 0 : a < b;  // as they are in the table
  });
  return out;
}

// ---- Tables

// "12", "0.5", "1.2M": six columns at most.
std::string rate_text(double rate) {
  constexpr std::string_view kSuffixes = "KMGTPE";
  if (rate < 10 && rate != 0) return fmt::format("{:.1f}", rate);
  if (rate < 100'000) return fmt::format("{:.0f}", rate);
  size_t suffix = 0;
  for (rate /= 1000; rate >= 1000 && suffix + 1 < kSuffixes.size(); ++suffix) rate /= 1000;
  return fmt::format("{:.1f}{}", rate, kSuffixes[suffix]);
}

constexpr size_t kLeastValueColumns = 8;
constexpr size_t kMostCommonColumns = 20;  // a table with wider values has a column of its own
constexpr size_t kRateColumns = 9;

// The columns of all tables, which stand below each other.
struct Columns {
  size_t value = kLeastValueColumns;
  bool has_rates = false;
};

size_t value_columns(const std::vector<const Row*>& rows) {
  size_t out = 0;
  for (const Row* row : rows) out = std::max(out, columns_of(row->value_text));
  return out;
}

// A map, or the scalars, with the rows that the filter lets through.
struct Section {
  const Table* table;
  std::vector<const Row*> rows;
  bool is_table() const { return !is_block(*rows.front()); }
};

std::string count_text(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The title and the rows; at most `most` lines. Of a table that is cut, the title tells how much is shown.
Lines table_lines(const Section& section, const Columns& common, size_t most, size_t columns) {
  const Table& table = *section.table;
  const size_t shown = std::min(section.rows.size(), most - 1);
  const size_t own = value_columns(section.rows);
  const size_t width = own <= common.value ? common.value : std::min(own, std::max(kLeastValueColumns, columns / 2));
  std::string name = table.name.empty() ? "MAP" : table.name + table.note;
  const std::string cut_text = shown < section.rows.size() ? fmt::format("{} shown", shown) : "";
  if (!table.name.empty())
    name += fmt::format("  ({}{}{})", count_text(section.rows.size(), "key"), cut_text.empty() ? "" : ", ", cut_text);
  else if (!cut_text.empty())
    name += fmt::format("  ({}, {})", section.rows.size(), cut_text);
  std::string head = " " + right_aligned("VALUE", width);
  if (common.has_rates) head += right_aligned("PER SEC", kRateColumns);
  Lines out = {{fit(head + "  " + name, columns), LineStyle::kTitle}};
  for (size_t i = 0; i < shown; ++i) {
    const Row& row = *section.rows[i];
    std::string text = row.is_changed ? "*" : " ";
    text += right_aligned(row.value_text, width);
    if (common.has_rates) text += right_aligned(row.rate ? rate_text(*row.rate) : "", kRateColumns);
    out.push_back({fit(text + "  " + row.key_text, columns), row.is_changed ? LineStyle::kChanged : LineStyle::kPlain});
  }
  return out;
}

// ---- Histograms and series

Line block_title(const Row& row, const Table& table, size_t columns) {
  const std::string name = row.key_text.empty() ? table.name : fmt::format("{}[{}]", table.name, row.key_text);
  const std::string rate = row.rate ? fmt::format("  {}/s", rate_text(*row.rate)) : "";
  return {fit(fmt::format("{}{}{}{}", row.is_changed ? "*" : " ", name, table.note, rate), columns), LineStyle::kTitle};
}

size_t block_height(const Row& row) { return 1 + row.bars.size() + row.lines.size(); }

// What of a block is left out behind its first `kept` lines: the highest values.
std::string left_out_text(const Row& row, size_t kept) {
  const size_t bars = row.bars.size(), kept_bars = std::min(kept - 1, bars);
  if (kept_bars == bars) return fmt::format("... {}", count_text(block_height(row) - kept, "more line"));
  return fmt::format("... {}, to {}", count_text(bars - kept_bars, "more row"), row.bars.back().label);
}

// At most `most` lines. Of a block that is cut, the last line tells what is left out.
Lines block_of(const Row& row, const Table& table, size_t most, size_t columns) {
  constexpr size_t kCountColumns = 9;
  size_t label_columns = 16;
  for (const output::HistogramRow& bar : row.bars) label_columns = std::max(label_columns, bar.label.size());
  Lines out = {block_title(row, table, columns)};
  uint64_t largest = 1;
  for (const output::HistogramRow& bar : row.bars) largest = std::max(largest, bar.count);
  const size_t room = columns - std::min(columns, label_columns + kCountColumns + 2);
  for (const output::HistogramRow& bar : row.bars) {
    const auto width =
        static_cast<size_t>(static_cast<double>(bar.count) / static_cast<double>(largest) * static_cast<double>(room));
    const std::string text = left_aligned(bar.label, label_columns) +
                             right_aligned(std::to_string(bar.count), kCountColumns) + " |" + std::string(width, '@');
    out.push_back({fit(text, columns)});
  }
  for (const std::string& line : row.lines) out.push_back({fit(line, columns)});
  if (out.size() <= most) return out;
  const size_t kept = std::max<size_t>(most, 2) - 1;
  out.resize(kept);
  const std::string left_out = left_out_text(row, kept);
  if (most == 1)
    out[0].text = fit(out[0].text + "  " + left_out, columns);
  else
    out.push_back({fit(left_out, columns)});
  return out;
}

// How blocks stand side by side.
struct Grid {
  static constexpr size_t kGap = 2;
  size_t across = 1, width = 0;
};

Grid grid_of(const Section& section, size_t columns) {
  constexpr size_t kLeastColumns = 46;
  Grid out;
  // A series, and the lines of recent(), need the whole width.
  if (!section.rows.front()->bars.empty())
    out.across = std::max<size_t>((columns + Grid::kGap) / (kLeastColumns + Grid::kGap), 1);
  out.width = (columns - (out.across - 1) * Grid::kGap) / out.across;
  return out;
}

// The height of the blocks that begin with `first`, which stand side by side.
size_t height_across(const Section& section, const Grid& grid, size_t first) {
  size_t out = 0;
  for (size_t i = first; i < std::min(section.rows.size(), first + grid.across); ++i)
    out = std::max(out, block_height(*section.rows[i]));
  return out;
}

void append_across(const Section& section, const Grid& grid, size_t first, size_t most, size_t columns, Lines& out) {
  std::vector<Lines> blocks;
  for (size_t i = first; i < std::min(section.rows.size(), first + grid.across); ++i)
    blocks.push_back(block_of(*section.rows[i], *section.table, most, grid.width));
  const size_t height = std::min(height_across(section, grid, first), most);
  for (size_t y = 0; y < height; ++y) {
    std::string text;
    for (const Lines& block : blocks)
      text += left_aligned(y < block.size() ? block[y].text : "", grid.width + Grid::kGap);
    text = cut(text, columns);
    text.resize(text.find_last_not_of(' ') + 1);
    out.push_back({std::move(text), y == 0 ? LineStyle::kTitle : LineStyle::kPlain});
  }
}

// At most `most` lines.
Lines grid_lines(const Section& section, size_t most, size_t columns) {
  const Grid grid = grid_of(section, columns);
  Lines out;
  for (size_t first = 0; first < section.rows.size(); first += grid.across) {
    const size_t left = most - out.size();
    const size_t behind = section.rows.size() - std::min(section.rows.size(), first + grid.across);
    const bool fits = height_across(section, grid, first) + (behind > 0 ? 1 : 0) <= left;
    if (!fits && left == 1 && first + behind > 0) {  // no room for a title and for what follows it
      const size_t count = section.rows.size() - first;
      out.push_back(
          {fit(fmt::format("... {} of {}", count_text(count, first > 0 ? "more key" : "key"), section.table->name),
               columns)});
      return out;
    }
    append_across(section, grid, first, fits || behind == 0 ? left : left - 1, columns, out);
    if (fits) continue;
    if (behind > 0)
      out.push_back({fit(fmt::format("... {} of {}", count_text(behind, "more key"), section.table->name), columns)});
    return out;
  }
  return out;
}

// ---- Sections

size_t height_of(const Section& section, size_t columns) {
  if (section.is_table()) return 1 + section.rows.size();
  const Grid grid = grid_of(section, columns);
  size_t out = 0;
  for (size_t first = 0; first < section.rows.size(); first += grid.across) out += height_across(section, grid, first);
  return out;
}

// At most `most` lines, which is not 0.
Lines lines_of(const Section& section, const Columns& common, size_t most, size_t columns) {
  return section.is_table() ? table_lines(section, common, most, columns) : grid_lines(section, most, columns);
}

Columns common_columns(const std::vector<Section>& sections) {
  Columns out;
  for (const Section& section : sections) {
    if (!section.is_table()) continue;
    out.has_rates |= section.table->has_rates;
    if (const size_t width = value_columns(section.rows); width <= kMostCommonColumns)
      out.value = std::max(out.value, width);
  }
  return out;
}

// ---- The page

Line status_line(const PageContent& content, const View& view) {
  constexpr std::string_view kKeys[] = {"q quit, s sort, / filter, space pause, ? keys", "q quit, ? keys", "? keys"};
  std::string state;
  if (view.is_paused) state += " | paused";
  state += fmt::format(" | by {}", name_of(view.order));
  if (view.top) state += fmt::format(" | from line {}", *view.top + 1);
  if (view.is_typing || !view.filter.empty())
    state += fmt::format(" | /{}{}", printable_line(view.filter), view.is_typing ? "_" : "");
  const auto put = [&](std::string_view front, std::string_view keys) {
    return Line{left_aligned(fmt::format("{}{} | {}", front, state, keys), view.columns), LineStyle::kStatus};
  };
  if (view.is_typing) return put(content.status, "Enter keeps, Esc removes the filter");
  const size_t taken = columns_of(content.status) + columns_of(state) + 3;
  for (const std::string_view keys : kKeys)
    if (taken + keys.size() <= view.columns) return put(content.status, keys);
  const size_t fixed = columns_of(state) + 3 + kKeys[2].size();
  return put(fit(content.status, view.columns - std::min(view.columns, fixed)), kKeys[2]);
}

Lines keys_page(const View& view) {
  constexpr std::string_view kText[] = {
      "q                 quit, as Ctrl-C does",
      "s                 sort by value, by key, by change",
      "/                 filter by the name of the map and the key",
      "space             pause",
      "Up, Down          scroll by a line",
      "PgUp, PgDn        scroll by a page",
      "n or Tab, p       go to the next, to the previous map",
      "Home or Esc       show a part of each map again",
      "End               go to the end",
      "f                 show folded maps, or fold them",
      "?                 show the keys; any key goes back",
      "",
      "*                 marks changed values",
      ">                 marks truncated lines",
  };
  Lines out;
  for (const std::string_view line : kText) out.push_back({fit(line, view.columns)});
  return out;
}

void append_log(const PageContent& content, const View& view, size_t most, Lines& page) {
  const size_t count = std::min(content.log.size(), most);
  for (size_t i = content.log.size() - count; i < content.log.size(); ++i)
    page.push_back({fit(printable_line(content.log[i]), view.columns)});
}

// A page, before its maps are made lines.
struct Plan {
  Lines head;                     // the status, the losses and the scalars
  std::vector<Section> sections;  // that scroll
  Columns columns;
  std::string folded;  // the maps that are; "" if none is
  size_t room = 0;     // lines for the sections
  size_t log_rows = 0;
};

// Scratch maps are folded unless they are all that there is, or somebody looks for them.
bool is_folded(const Table& table, const PageContent& content, const View& view) {
  if (!table.is_scratch || view.shows_scratch || !view.filter.empty()) return false;
  return !std::ranges::all_of(content.tables, &Table::is_scratch);
}

std::string folded_text(const PageContent& content, const View& view) {
  std::string out;
  for (const Table& table : content.tables)
    if (is_folded(table, content, view))
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", table.name, count_text(table.rows.size(), "key"));
  return out.empty() ? "" : fmt::format("folded (f): {}", out);
}

// The scalars are shown above the rest. If they take more than half of the room, they also scroll with the rest.
void pin_scalars(const View& view, Plan& plan) {
  if (plan.sections.empty() || !plan.sections[0].table->name.empty() || plan.room == 0) return;
  const bool is_alone = plan.sections.size() == 1;
  const size_t height = height_of(plan.sections[0], view.columns);
  const size_t most = is_alone ? plan.room : std::max<size_t>(plan.room / 2, 1);
  const Lines lines = lines_of(plan.sections[0], plan.columns, most, view.columns);
  plan.head.insert(plan.head.end(), lines.begin(), lines.end());
  plan.room -= lines.size();
  if (height <= most || !view.top) plan.sections.erase(plan.sections.begin());
}

Plan plan_of(const PageContent& content, const View& view) {
  constexpr size_t kLogPart = 4;          // of the height
  constexpr size_t kLeastRoomToTell = 6;  // of the maps, for the line of the folded ones
  Plan plan;
  plan.head = {status_line(content, view)};
  if (!content.losses.empty()) plan.head.push_back({fit("lost: " + content.losses, view.columns), LineStyle::kWarning});
  plan.log_rows = std::min(content.log.size(), std::max<size_t>(view.rows / kLogPart, 1));
  const size_t taken = plan.head.size() + (plan.log_rows > 0 ? plan.log_rows + 1 : 0);
  plan.room = view.rows - std::min(view.rows, taken);
  for (const Table& table : content.tables) {
    if (is_folded(table, content, view)) continue;
    if (auto rows = shown_rows(table, view); !rows.empty()) plan.sections.push_back({&table, std::move(rows)});
  }
  plan.columns = common_columns(plan.sections);
  plan.folded = folded_text(content, view);
  if (plan.room < kLeastRoomToTell) plan.folded.clear();
  if (!plan.folded.empty()) --plan.room;
  pin_scalars(view, plan);
  return plan;
}

// Returns how many lines each section gets: small ones all that they need, the others equal parts of what remains.
std::vector<size_t> shares(const std::vector<size_t>& heights, size_t room) {
  std::vector<size_t> out(heights.size()), by_size(heights.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) { return heights[a] < heights[b]; });
  size_t left = heights.size();
  for (const size_t i : by_size) {
    out[i] = std::min(heights[i], room / left);
    room -= out[i];
    --left;
  }
  return out;
}

// A part of each section; of those for which there is no room, the names.
Lines overview(const Plan& plan, const View& view) {
  constexpr size_t kLeastLines = 4;  // of a section, if it has as many
  std::vector<size_t> heights;
  size_t needed = 0;
  for (const Section& section : plan.sections) {
    const size_t height = height_of(section, view.columns);
    const size_t least = std::min(height, kLeastLines);
    const size_t line_for_others = heights.size() + 1 < plan.sections.size() ? 1 : 0;
    if (!heights.empty() && needed + least + line_for_others > plan.room) break;
    needed += least;
    heights.push_back(height);
  }
  const size_t below = plan.sections.size() - heights.size();
  const size_t room = plan.room - std::min<size_t>(plan.room, below > 0 ? 1 : 0);
  const std::vector<size_t> counts = shares(heights, room);
  Lines out;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const Lines lines = lines_of(plan.sections[i], plan.columns, counts[i], view.columns);
    out.insert(out.end(), lines.begin(), lines.end());
  }
  if (below == 0) return out;
  std::string text = fmt::format("{} (n, PgDn):", count_text(below, "more map"));
  for (size_t i = heights.size(); i < plan.sections.size(); ++i) text += " " + plan.sections[i].table->name;
  out.push_back({fit(text, view.columns), LineStyle::kTitle});
  return out;
}

// What is in the window that begins with line `top` of all sections. A table whose title is above it shows the title
// in place of its first line there.
Lines scrolled(const Plan& plan, const View& view, size_t top) {
  Lines out;
  size_t start = 0;
  for (const Section& section : plan.sections) {
    const size_t height = height_of(section, view.columns);
    if (start + height > top && start < top + plan.room) {
      const Lines lines = lines_of(section, plan.columns, height, view.columns);
      const size_t first = top - std::min(top, start);
      const size_t count = std::min(height - first, plan.room - out.size());
      out.insert(out.end(), lines.begin() + static_cast<ptrdiff_t>(first),
                 lines.begin() + static_cast<ptrdiff_t>(first + count));
      if (first > 0 && count > 1 && section.is_table()) out.front() = lines.front();
    }
    start += height;
  }
  return out;
}

size_t height_of(const Plan& plan, const View& view) {
  size_t out = 0;
  for (const Section& section : plan.sections) out += height_of(section, view.columns);
  return out;
}

}  // namespace

// ---- Columns

size_t columns_of(std::string_view text) { return fitting(text, SIZE_MAX).columns; }

std::string_view cut(std::string_view text, size_t columns) { return text.substr(0, fitting(text, columns).bytes); }

std::string left_aligned(std::string_view text, size_t columns) {
  const Fitting shown = fitting(text, columns);
  return std::string(text.substr(0, shown.bytes)).append(columns - shown.columns, ' ');
}

std::string right_aligned(std::string_view text, size_t columns) {
  const Fitting shown = fitting(text, columns);
  return std::string(columns - shown.columns, ' ').append(text.substr(0, shown.bytes));
}

// ---- Reading tables

void Tables::compare(Row& row, const Before* before, const Before& now) const {
  row.is_changed = before_ns_ != 0 && (before == nullptr || before->state != now.state);
  if (before_ns_ == 0 || !now.number || seconds_ <= 0) return;
  const double change = *now.number - (before != nullptr && before->number ? *before->number : 0);
  row.change = std::abs(change);
  // A counter that was cleared begins at zero.
  row.rate = (change < 0 ? *now.number : change) / seconds_;
}

Row Tables::make_row(const output::MapView& view, output::MapEntry& entry, const Rows& before, Rows& now) const {
  Row row;
  const std::string key = view.is_scalar ? "" : identity_of(entry.key, style_);
  output::TextStyle shown = style_;
  shown.is_for_terminal = true;
  Before state{.state = {}, .number = number_of(entry.value)};
  const types::Unit unit = output::unit_for(view, style_);
  const auto show_histogram = [&](const auto& hist) {
    row.bars = output::labelled_rows(hist, unit);
    if (style_.has_percentiles) row.lines = {output::percentiles_text(hist, unit)};
  };
  if (const auto* hist = std::get_if<output::HistValue>(&entry.value.node)) {
    show_histogram(*hist);
  } else if (const auto* linear = std::get_if<output::LhistValue>(&entry.value.node)) {
    show_histogram(*linear);
  } else {
    state.state = output::to_text(entry.value, unit, style_);
    const bool is_picture = std::holds_alternative<output::TseriesValue>(entry.value.node);
    if (is_picture)
      row.lines = picture_of(state.state);
    else if (std::holds_alternative<output::RecentValue>(entry.value.node))
      row.lines = lines_of(state.state);
    else
      row.value_text = on_one_line(state.state);
  }
  if (!row.bars.empty()) state.state = fmt::format("{}", *state.number);
  const auto found = before.find(key);
  const Before* last = found == before.end() ? nullptr : &found->second;
  compare(row, last, state);
  if (!is_counter(view.kind, last != nullptr && last->number > state.number)) row.rate.reset();
  if (scratch_.contains(std::string(view.name))) row.rate.reset();
  if (!view.is_scalar) row.key_text = on_one_line(output::key_text(entry.key, shown));
  row.key = std::move(entry.key);
  if (!now.emplace(key, std::move(state)).second) row.rate.reset();  // of functions of one name in two programs
  return row;
}

std::vector<Table> Tables::read(std::vector<output::MapView> views, uint64_t now_ns) {
  std::vector<Table> out;
  Table scalars;
  std::unordered_map<std::string, Rows> now;
  seconds_ = static_cast<double>(now_ns - before_ns_) / 1e9;
  for (output::MapView& view : views) {
    Table table;
    table.name = printable_line(view.name);
    table.is_scratch = scratch_.contains(std::string(view.name));
    if (view.seen_share < 1) table.note = fmt::format(" (sampled {})", output::percent_text(view.seen_share));
    const Rows& before = before_[table.name];
    Rows& rows = now[table.name];
    for (auto entry = view.entries.rbegin(); entry != view.entries.rend(); ++entry)
      table.rows.push_back(make_row(view, *entry, before, rows));
    const auto has_rate = [](const Row& row) { return row.rate.has_value(); };
    table.has_rates = std::ranges::any_of(table.rows, has_rate);
    if (table.rows.empty()) continue;
    if (view.is_scalar && !is_block(table.rows.front())) {
      table.rows.front().key_text = table.name + table.note;
      scalars.has_rates |= table.has_rates;
      scalars.rows.push_back(std::move(table.rows.front()));
    } else {
      out.push_back(std::move(table));
    }
  }
  if (!scalars.rows.empty()) out.insert(out.begin(), std::move(scalars));
  before_ = std::move(now);
  before_ns_ = now_ns;
  return out;
}

// ---- The page

std::string_view name_of(Order order) { return kOrders[static_cast<size_t>(order)]; }

Order next(Order order) { return static_cast<Order>((static_cast<size_t>(order) + 1) % kOrders.size()); }

void scroll(const PageContent& content, View& view, Step step) {
  const bool is_back = step == Step::kLineUp || step == Step::kPageUp || step == Step::kPreviousMap;
  if (step == Step::kHome || (is_back && view.top.value_or(0) == 0)) return view.top.reset();
  const bool is_first = !view.top && step != Step::kEnd;
  view.top = view.top.value_or(0);
  const Plan plan = plan_of(content, view);
  std::vector<size_t> starts;
  size_t height = 0;
  for (const Section& section : plan.sections) {
    starts.push_back(height);
    height += height_of(section, view.columns);
  }
  if (height <= plan.room) return view.top.reset();
  const size_t last = height - plan.room, page = std::max<size_t>(plan.room, 2) - 1, top = std::min(*view.top, last);
  size_t to = top;
  switch (step) {
    case Step::kLineUp: to = top - std::min<size_t>(top, 1); break;
    case Step::kLineDown: to = top + 1; break;
    case Step::kPageUp: to = top - std::min(top, page); break;
    case Step::kPageDown: to = top + page; break;
    case Step::kHome: break;
    case Step::kEnd: to = last; break;
    case Step::kPreviousMap:
      to = 0;
      for (const size_t start : starts)
        if (start < top) to = start;
      break;
    case Step::kNextMap: {
      const auto next_start = std::ranges::upper_bound(starts, top);
      to = next_start == starts.end() ? last : *next_start;
      break;
    }
  }
  view.top = is_first ? 0 : std::min(to, last);
}

std::vector<Line> make_page(const PageContent& content, const View& view) {
  const Plan plan = plan_of(content, view);
  Lines page = plan.head;
  Lines body;
  if (view.shows_keys) {
    page.resize(1);
    body = keys_page(view);
  } else if (view.top) {
    const size_t height = height_of(plan, view);
    body = scrolled(plan, view, std::min(*view.top, height - std::min(height, plan.room)));
  } else {
    body = overview(plan, view);
  }
  if (body.empty() && page.size() <= 2 && !view.filter.empty())
    body.push_back({fit(fmt::format("no map or key has `{}`", printable_line(view.filter)), view.columns)});
  page.insert(page.end(), body.begin(), body.end());
  if (!plan.folded.empty() && !view.shows_keys) page.push_back({fit(plan.folded, view.columns)});
  if (plan.log_rows > 0 && !view.shows_keys) {
    page.resize(std::max(page.size(), view.rows - std::min(view.rows, plan.log_rows + 1)));
    page.push_back({left_aligned("OUTPUT", view.columns), LineStyle::kTitle});
    append_log(content, view, plan.log_rows, page);
  }
  page.resize(std::min(page.size(), view.rows));
  return page;
}

}  // namespace espy::watch
