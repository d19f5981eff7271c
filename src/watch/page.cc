#include "watch/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/printable.h"
#include "base/strings.h"
#include "watch/columns.h"

namespace espy::watch {

namespace {

constexpr std::array<std::string_view, 3> kOrders = {"value", "key", "change"};

using Lines = std::vector<Line>;

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

std::string title_of(const Table& table, size_t count) {
  return fmt::format("{}{}  ({} key{})", table.name, table.note, count, count == 1 ? "" : "s");
}

constexpr size_t kRateColumns = 9;

Line row_line(const Row& row, const Table& table, size_t value_columns, size_t columns) {
  std::string text = row.is_changed ? "*" : " ";
  text += right_aligned(row.value_text, value_columns);
  if (table.has_rates) text += right_aligned(row.rate ? rate_text(*row.rate) : "", kRateColumns);
  text += "  " + row.key_text;
  return {std::string(cut(text, columns)), row.is_changed ? LineStyle::kChanged : LineStyle::kPlain};
}

// The title and `rows`; at most `most` lines.
Lines table_lines(const Table& table, std::vector<const Row*> rows, size_t most, size_t columns) {
  constexpr size_t kLeastColumns = 8;
  const size_t total = rows.size();
  rows.resize(std::min(rows.size(), most));
  size_t value_columns = kLeastColumns;
  for (const Row* row : rows)
    value_columns = std::clamp(columns_of(row->value_text), value_columns, std::max(kLeastColumns, columns / 2));
  std::string head = " " + right_aligned("VALUE", value_columns);
  if (table.has_rates) head += right_aligned("PER SEC", kRateColumns);
  head += "  " + (table.name.empty() ? "MAP" : title_of(table, total));
  Lines out = {{std::string(cut(head, columns)), LineStyle::kTitle}};
  for (const Row* row : rows) out.push_back(row_line(*row, table, value_columns, columns));
  return out;
}

// ---- Histograms and series

Line block_title(const Row& row, const Table& table, size_t columns) {
  const std::string name = row.key_text.empty() ? table.name : fmt::format("{}[{}]", table.name, row.key_text);
  const std::string rate = row.rate ? fmt::format("  {}/s", rate_text(*row.rate)) : "";
  const std::string text = fmt::format("{}{}{}{}", row.is_changed ? "*" : " ", name, table.note, rate);
  return {std::string(cut(text, columns)), LineStyle::kTitle};
}

Lines block_of(const Row& row, const Table& table, size_t columns) {
  constexpr size_t kCountColumns = 9;
  size_t label_columns = 16;
  for (const output::HistogramRow& bar : row.bars) label_columns = std::max(label_columns, bar.label.size());
  Lines out = {block_title(row, table, columns)};
  uint64_t most = 1;
  for (const output::HistogramRow& bar : row.bars) most = std::max(most, bar.count);
  const size_t room = columns - std::min(columns, label_columns + kCountColumns + 2);
  for (const output::HistogramRow& bar : row.bars) {
    const auto width =
        static_cast<size_t>(static_cast<double>(bar.count) / static_cast<double>(most) * static_cast<double>(room));
    const std::string text = left_aligned(bar.label, label_columns) +
                             right_aligned(std::to_string(bar.count), kCountColumns) + " |" + std::string(width, '@');
    out.push_back({std::string(cut(text, columns))});
  }
  for (const std::string& line : row.lines) out.push_back({std::string(cut(line, columns))});
  return out;
}

bool is_block(const Row& row) { return !row.bars.empty() || !row.lines.empty(); }

// Puts blocks side by side, as many as the width allows.
Lines grid_lines(const Table& table, const std::vector<const Row*>& rows, size_t most, size_t columns) {
  constexpr size_t kLeastColumns = 46, kGap = 2;
  // A series, and the lines of recent(), need the whole width.
  const bool is_narrow = !rows.empty() && !rows.front()->bars.empty();
  const size_t across = is_narrow ? std::max<size_t>((columns + kGap) / (kLeastColumns + kGap), 1) : 1;
  const size_t width = (columns - (across - 1) * kGap) / across;
  Lines out;
  for (size_t first = 0; first < rows.size() && out.size() < most; first += across) {
    std::vector<Lines> blocks;
    size_t height = 0;
    for (size_t i = first; i < std::min(rows.size(), first + across); ++i) {
      blocks.push_back(block_of(*rows[i], table, width));
      height = std::max(height, blocks.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string text;
      for (const Lines& block : blocks) text += left_aligned(y < block.size() ? block[y].text : "", width + kGap);
      out.push_back({std::string(cut(text, columns)), y == 0 ? LineStyle::kTitle : LineStyle::kPlain});
    }
  }
  return out;
}

Lines section_of(const Table& table, const View& view) {
  std::vector<const Row*> rows = shown_rows(table, view);
  if (rows.empty()) return {};
  return is_block(*rows.front()) ? grid_lines(table, rows, view.rows, view.columns)
                                 : table_lines(table, std::move(rows), view.rows, view.columns);
}

// ---- The page

// Returns how many lines each section gets: small ones all that they need, the others equal parts of what remains.
std::vector<size_t> shares(const std::vector<Lines>& sections, size_t room) {
  std::vector<size_t> out(sections.size()), by_size(sections.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::sort(by_size.begin(), by_size.end(),
            [&](size_t a, size_t b) { return sections[a].size() < sections[b].size(); });
  size_t left = sections.size();
  for (const size_t i : by_size) {
    out[i] = std::min(sections[i].size(), room / left);
    room -= out[i];
    --left;
  }
  return out;
}

Line status_line(const PageContent& content, const View& view) {
  constexpr std::string_view kKeys = "q quit, s sort, / filter, space pause";
  std::string text = content.status;
  if (view.is_paused) text += " | paused";
  text += fmt::format(" | by {}", name_of(view.order));
  if (view.is_typing || !view.filter.empty())
    text += fmt::format(" | /{}{}", printable_line(view.filter), view.is_typing ? "_" : "");
  text += fmt::format(" | {}", view.is_typing ? "Enter keeps, Esc removes the filter" : kKeys);
  return {left_aligned(text, view.columns), LineStyle::kStatus};
}

void append_log(const PageContent& content, const View& view, size_t most, Lines& page) {
  const size_t count = std::min(content.log.size(), most);
  for (size_t i = content.log.size() - count; i < content.log.size(); ++i)
    page.push_back({std::string(cut(printable_line(content.log[i]), view.columns))});
}

}  // namespace

std::string_view name_of(Order order) { return kOrders[static_cast<size_t>(order)]; }

Order next(Order order) { return static_cast<Order>((static_cast<size_t>(order) + 1) % kOrders.size()); }

std::vector<Line> make_page(const PageContent& content, const View& view) {
  constexpr size_t kLogPart = 4;  // of the height
  Lines page = {status_line(content, view)};
  if (!content.losses.empty())
    page.push_back({std::string(cut("lost: " + content.losses, view.columns)), LineStyle::kWarning});
  const size_t log_rows = std::min(content.log.size(), std::max<size_t>(view.rows / kLogPart, 1));
  const size_t taken = page.size() + (log_rows > 0 ? log_rows + 1 : 0);
  std::vector<Lines> sections;
  for (const Table& table : content.tables)
    if (Lines section = section_of(table, view); !section.empty()) sections.push_back(std::move(section));
  const std::vector<size_t> counts = shares(sections, view.rows - std::min(view.rows, taken));
  for (size_t i = 0; i < sections.size(); ++i)
    page.insert(page.end(), sections[i].begin(), sections[i].begin() + static_cast<ptrdiff_t>(counts[i]));
  if (log_rows > 0) {
    page.resize(std::max(page.size(), view.rows - std::min(view.rows, log_rows + 1)));
    page.push_back({left_aligned("OUTPUT", view.columns), LineStyle::kTitle});
    append_log(content, view, log_rows, page);
  }
  page.resize(std::min(page.size(), view.rows));
  return page;
}

}  // namespace espy::watch
