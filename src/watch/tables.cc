#include "watch/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/printable.h"
#include "base/strings.h"
#include "output/quantity.h"

namespace espy::watch {

namespace {

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

bool is_on_one_line(const Row& row) { return row.bars.empty() && row.lines.empty(); }

}  // namespace

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
    if (view.is_scalar && is_on_one_line(table.rows.front())) {
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

}  // namespace espy::watch
