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
