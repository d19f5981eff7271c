// Values as text, for `%s` and print().
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/strings.h"
#include "output/append.h"
#include "output/bytes.h"
#include "output/divide.h"
#include "output/format.h"
#include "output/histogram.h"

namespace espy::output {

namespace {

bool is_shown_as_is(const std::string& text, const TextStyle& style) {
  return !style.is_for_terminal || (style.own_texts && style.own_texts->contains(text));
}

constexpr uint8_t kPerfMode = 1, kRawMode = 2, kBuildIdMode = 3;  // types::StackMode

std::string unnamed_text(const Frame& frame, uint8_t mode) {
  if (mode == kPerfMode || !frame.module_address) return fmt::format("{:#x}", frame.address);
  const std::string_view file = base_name(frame.module);
  return fmt::format("{}+{:#x}", file.starts_with('[') ? std::string(file) : fmt::format("[{}]", file),
                     *frame.module_address);
}

// "main+42", "main+42@/src/main.c:12", "[inlined] twice@/src/main.c:7", "[postgres]+0x1f4b", "0x55d1c0de".
std::string symbol_text(const Frame& frame, uint8_t mode) {
  if (frame.address == 0 && !frame.symbol.empty()) return frame.symbol;  // a mark
  const std::string name = frame.symbol.empty() ? unnamed_text(frame, mode)
                           : frame.is_inlined   ? "[inlined] " + frame.symbol
                                                : fmt::format("{}+{}", frame.symbol, frame.offset);
  const bool has_place = !frame.file.empty() && mode != kPerfMode;
  return !has_place ? name : fmt::format("{}@{}:{}", name, frame.file, frame.line);
}

void append_frame(std::string& out, const Frame& frame, const StackValue& stack, const TextStyle& style) {
  const auto to = std::back_inserter(out);
  switch (stack.mode) {
    case kPerfMode:
      fmt::format_to(to, "\t{:x} {}", frame.address, shown_name(symbol_text(frame, stack.mode), style));
      if (stack.is_user)
        fmt::format_to(to, " ({})", frame.module.empty() ? "[unknown]" : shown_name(frame.module, style));
      break;
    case kRawMode: fmt::format_to(to, "{:x}", frame.address); break;
    case kBuildIdMode:
      if (frame.build_id.empty()) {
        fmt::format_to(to, "        {:#x}", frame.address);
      } else {
        fmt::format_to(to, "        {} {:#x}", frame.build_id, frame.offset);
      }
      break;
    default: out.append("        ").append(shown_name(symbol_text(frame, stack.mode), style));
  }
  out += '\n';
}

std::string stack_text(const StackValue& stack, const TextStyle& style) {
  std::string out = "\n";
  if (stack.problem) out += fmt::format("        [{}]\n", *stack.problem);
  for (const auto& frame : stack.frames) append_frame(out, *frame, stack, style);
  return out;
}

// `number` is the total or the average.
std::string stats_text(const StatsValue& stats, int64_t number) {
  return stats.is_signed ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
}

// How the start of an interval is shown: with the fraction of a second that the interval needs.
struct ClockFormat {
  std::string_view heading;
  size_t digits;  // of the fraction
  uint64_t unit_ns;
};

ClockFormat clock_format(uint64_t interval_ns) {
  if (interval_ns % kNsPerSecond == 0) return {"hh:mm:ss", 0, kNsPerSecond};
  if (interval_ns % 1'000'000 == 0) return {"hh:mm:ss.ms", 3, 1'000'000};
  if (interval_ns % 1'000 == 0) return {"hh:mm:ss.us", 6, 1'000};
  return {"hh:mm:ss.ns", 9, 1};
}

// Local times that follow each other: most are in the minute of the one before.
class LocalClock {
 public:
  const tm& at(time_t seconds) {
    const time_t second = local_.tm_sec + (seconds - seconds_);
    if (is_known_ && second >= 0 && second < 60)
      local_.tm_sec = static_cast<int>(second);
    else
      ::localtime_r(&seconds, &local_);
    is_known_ = true;
    seconds_ = seconds;
    return local_;
  }

 private:
  time_t seconds_ = 0;
  tm local_ = {};
  bool is_known_ = false;
};

void append_clock(std::string& out, uint64_t ns, const ClockFormat& format, LocalClock& clock) {
  const tm& local = clock.at(static_cast<time_t>(ns / kNsPerSecond));
  char separator = 0;
  for (const int number : {local.tm_hour, local.tm_min, local.tm_sec}) {
    if (separator != 0) out += separator;
    append_decimal(out, static_cast<uint64_t>(number), 2);
    separator = ':';
  }
  if (format.digits == 0) return;
  out += '.';
  append_decimal(out, ns % kNsPerSecond / format.unit_ns, format.digits);
}

constexpr size_t kGraphWidth = 53;  // with its two edges

// The column of a value between the minimum, on the left edge, and the maximum, on the right one.
size_t graph_place(uint64_t value, uint64_t min, uint64_t max) {
  const uint64_t range = max - min;
  const auto columns = static_cast<__uint128_t>(value - min) * (kGraphWidth - 1);
  return static_cast<size_t>(columns / range);
}

// A row for each interval, with a star at the value's position between minimum and maximum, and a dot at that of 0 if
// it is between them.
void append_tseries(std::string& out, const TseriesValue& series) {
  // Signed values are counted from the smallest one, which keeps their order.
  const uint64_t zero = series.is_signed ? uint64_t{1} << 63 : 0;
  const auto position = [&](int64_t value) { return static_cast<uint64_t>(value) + zero; };
  const auto append = [&](uint64_t value) {
    series.is_signed ? append_decimal(out, static_cast<int64_t>(value - zero)) : append_decimal(out, value);
  };
  uint64_t min = UINT64_MAX, max = 0;
  for (const TseriesPoint& point : series.points) {
    if (!point.value) continue;
    min = std::min(min, position(*point.value));
    max = std::max(max, position(*point.value));
  }
  if (min > max) return;
  if (min == max) {
    if (min > 0) --min;
    if (max < UINT64_MAX) ++max;
  }
  const ClockFormat format = clock_format(series.interval_ns);
  const size_t margin = format.digits == 0 ? 9 : format.digits + 10;
  const auto append_scale = [&] {
    out.append(margin, ' ');
    const size_t start = out.size();
    append(min);
    fill_up(out, start, kGraphWidth - 1);
    append(max);
    out += '\n';
  };
  append_scale();
  const size_t heading = out.size();
  out += format.heading;
  fill_up(out, heading, margin);
  out.append("|").append(kGraphWidth - 2, '_').append("|\n");
  std::string row(kGraphWidth, ' ');
  row.front() = row.back() = '|';
  if (min < zero && zero < max) row[graph_place(zero, min, max)] = '.';
  LocalClock clock;
  for (const TseriesPoint& point : series.points) {
    append_clock(out, point.start_ns, format, clock);
    out += ' ';
    const size_t graph = out.size();
    out.append(row).append(" ");
    if (point.value) out[graph + graph_place(position(*point.value), min, max)] = '*';
    point.value ? append(position(*point.value)) : void(out += '-');
    out += '\n';
  }
  out.append(margin, ' ').append("v").append(kGraphWidth - 2, '_').append("v\n");
  append_scale();
}

// Appends values to one string, as a dump of a large struct has thousands of them.
class ValueWriter {
 public:
  ValueWriter(std::string& out, const TextStyle& style, uint32_t indent) : out_(out), style_(style), indent_(indent) {}

  void without_parentheses(const TupleValue& v) { list("", v.items, ", ", ""); }

  void operator()(std::monostate) { out_ += "null"; }
  void operator()(bool v) { out_ += v ? "true" : "false"; }
  void operator()(int64_t v) { number(v); }
  void operator()(uint64_t v) { number(v); }
  void operator()(const EnumValue& v) { v.name.empty() ? number(v.number) : name(v.name); }
  void operator()(const PointerValue& v) { fmt::format_to(std::back_inserter(out_), "{:#x}", v.address); }
  void operator()(const StringValue& v) {
    name(v.text);
    if (v.is_truncated) out_ += style_.truncation_trailer;
  }
  void operator()(const BufferValue& v) { out_ += escaped(v.bytes); }
  void operator()(const TextValue& v) { v.is_formatted ? void(out_ += v.text) : name(v.text); }
  void operator()(const StackValue& v) { out_ += stack_text(v, style_); }
  void operator()(const ListValue& v) { list("[", v.items, ",", "]"); }
  void operator()(const TupleValue& v) { list("(", v.items, ", ", ")"); }
  void operator()(const RecordValue& v) {
    ++depth_;
    style_.is_c ? lines(v) : line(v);
    --depth_;
  }
  void operator()(const HistValue& v) { append_histogram(out_, v, 0, {.has_percentiles = style_.has_percentiles}); }
  void operator()(const LhistValue& v) { append_histogram(out_, v, {.has_percentiles = style_.has_percentiles}); }
  void operator()(const StatsValue& v) {
    out_ += v.only_average ? stats_text(v, average(v))
                           : fmt::format("{{ .count = {}, .average = {}, .total = {} }}", v.count,
                                         stats_text(v, average(v)), stats_text(v, v.total));
  }
  void operator()(const TseriesValue& v) { append_tseries(out_, v); }
  void operator()(const RecentValue& v) {
    if (is_outermost_) return lines_of(v);
    list("[", v.items, ",", "]");
  }

 private:
  void value(const Value& value) {
    is_outermost_ = false;
    std::visit(*this, value.node);
  }

  void lines_of(const RecentValue& recent) {
    for (size_t i = 0; i < recent.items.size(); ++i) {
      if (i > 0) out_ += '\n';
      value(recent.items[i]);
    }
  }

  // Without a copy where nothing is escaped: a map has millions.
  void name(const std::string& text) { style_.is_for_terminal ? out_ += shown_name(text, style_) : out_ += text; }

  template <class Int>
  void number(Int value) {
    append_decimal(out_, value);
  }

  void list(std::string_view begin, const std::vector<Value>& items, std::string_view separator, std::string_view end) {
    out_ += begin;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += separator;
      if (style_.max_items != 0 && i == style_.max_items) {
        out_ += "...";
        break;
      }
      value(items[i]);
    }
    out_ += end;
  }

  // Calls `each` for the members to show, and `cut` if max_items omits some.
  template <class Each, class Cut>
  void members(const RecordValue& record, const Each& each, const Cut& cut) {
    uint32_t shown = 0;
    for (size_t i = 0; i < record.items.size(); ++i) {
      if (!style_.has_zeros && is_zero(record.items[i])) continue;
      if (style_.max_items != 0 && shown++ == style_.max_items) return cut();
      each(record.names->members[i], record.items[i]);
    }
  }

  bool is_too_deep() const { return style_.max_depth != 0 && depth_ > style_.max_depth; }

  // { .a = 1, .b = 2 }
  void line(const RecordValue& record) {
    if (is_too_deep()) return void(out_ += "{ ... }");
    bool is_first = true;
    const auto begin = [&] {
      out_ += is_first ? "{ " : ", ";
      is_first = false;
    };
    members(
        record,
        [&](const std::string& name, const Value& item) {
          begin();
          name_of(name);
          value(item);
        },
        [&] {
          begin();
          out_ += "...";
        });
    out_ += is_first ? "{}" : " }";
  }

  // (struct s){ and a line for each member.
  void lines(const RecordValue& record) {
    if (record.names && !record.names->type.empty()) {
      out_ += "(";
      name(record.names->type);
      out_ += ")";
    }
    if (is_too_deep()) return void(out_ += "{ ... }");
    bool is_empty = true;
    const auto begin = [&] {
      if (is_empty) out_ += "{";
      is_empty = false;
      new_line(depth_);
    };
    members(
        record,
        [&](const std::string& name, const Value& item) {
          begin();
          name_of(name);
          member(item);
          out_ += ",";
        },
        [&] {
          begin();
          out_ += "...";
        });
    if (is_empty) return void(out_ += "{}");
    new_line(depth_ - 1);
    out_ += "}";
  }

  // Quotes text that C has no literal for.
  void member(const Value& item) {
    const auto* text = std::get_if<StringValue>(&item.node);
    if (text == nullptr) return value(item);
    out_.append("\"").append(escaped(text->text)).append(text->is_truncated ? style_.truncation_trailer : "") += '"';
  }

  void name_of(const std::string& name) {
    if (name.empty()) return;
    out_ += ".";
    this->name(name);
    out_ += " = ";
  }

  void new_line(uint32_t depth) {
    constexpr uint32_t kStep = 2;
    out_ += '\n';
    out_.append(indent_ + size_t{kStep} * depth, ' ');
  }

  std::string& out_;
  const TextStyle& style_;
  uint32_t indent_;
  bool is_outermost_ = true;
  uint32_t depth_ = 0;  // of the record that is being written; the outermost is 1
};

struct IsZero {
  bool operator()(bool v) const { return !v; }
  bool operator()(int64_t v) const { return v == 0; }
  bool operator()(uint64_t v) const { return v == 0; }
  bool operator()(const EnumValue& v) const { return v.number == 0; }
  bool operator()(const PointerValue& v) const { return v.address == 0; }
  bool operator()(const StringValue& v) const { return v.text.empty(); }
  bool operator()(const ListValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  bool operator()(const TupleValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  bool operator()(const RecordValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

std::string shown_name(std::string name, const TextStyle& style) {
  return is_shown_as_is(name, style) ? std::move(name) : printable_line(exact_utf8(name));
}

std::string shown_memory(std::string text, const TextStyle& style) {
  return is_shown_as_is(text, style) ? std::move(text) : printable(text);
}

bool is_zero(const Value& value) { return std::visit(IsZero(), value.node); }

std::string to_text(const Value& value, const TextStyle& style, uint32_t indent) {
  std::string out;
  std::visit(ValueWriter(out, style, indent), value.node);
  return out;
}

void append_text(std::string& out, const Value& value, const TextStyle& style) {
  std::visit(ValueWriter(out, style, 0), value.node);
}

std::string key_text(const Value& key, const TextStyle& style) {
  std::string out;
  append_key_text(out, key, style);
  return out;
}

void append_key_text(std::string& out, const Value& key, const TextStyle& style) {
  if (const auto* tuple = std::get_if<TupleValue>(&key.node))
    ValueWriter(out, style, 0).without_parentheses(*tuple);
  else
    append_text(out, key, style);
}

}  // namespace espy::output
