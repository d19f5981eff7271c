#include "output/span_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/strings.h"

namespace espy::output {

namespace {

constexpr uint32_t kStep = 2;           // columns for each level
constexpr uint32_t kMaxIndented = 100;  // levels; deeper ones are not indented further
constexpr size_t kColumnsWidth = 50;    // of TIME, CPU, PID and COMM
constexpr size_t kCallColumns = 21;     // of CPU and duration

std::string indent_of(uint32_t depth) { return std::string(size_t{kStep} * std::min(depth, kMaxIndented), ' '); }

// A mark for the magnitude of a duration, as ftrace's function_graph has it.
char mark_of(uint64_t ns) {
  constexpr std::pair<uint64_t, char> kMarks[] = {{1'000'000'000, '$'}, {100'000'000, '@'}, {10'000'000, '*'},
                                                  {1'000'000, '#'},     {100'000, '!'},     {10'000, '+'}};
  for (const auto& [slower_than_ns, mark] : kMarks)
    if (ns > slower_than_ns) return mark;
  return ' ';
}

}  // namespace

std::string duration_text(uint64_t ns) {
  if (ns < 1000) return fmt::format("{}ns", ns);
  constexpr std::pair<uint64_t, std::string_view> kUnits[] = {{kNsPerSecond, "s"}, {1'000'000, "ms"}, {1000, "us"}};
  for (const auto& [unit, name] : kUnits)
    if (ns >= unit) return fmt::format("{}.{:03}{}", ns / unit, ns % unit * 1000 / unit, name);
  return {};
}

std::string SpanText::header(const SpanEvent& event) {
  const std::string comm = printable_line(event.comm);
  const std::string title = event.pid == event.tid ? fmt::format("{} {}", comm, event.pid)
                                                   : fmt::format("{} {}/{}", comm, event.pid, event.tid);
  std::pair<uint32_t, std::string> thread(event.tid, title);
  if (thread_ == thread) return {};
  thread_ = std::move(thread);
  return fmt::format("[{}]\n", title);
}

// Text is quoted and escaped, as in C; what follows the quote tells that it is longer.
std::string SpanText::value_text(const Value& value, size_t column) const {
  const auto* text = std::get_if<StringValue>(&value.node);
  if (text == nullptr) return printable(to_text(value, style_, static_cast<uint32_t>(column)));
  return fmt::format("\"{}\"{}", escape(text->text), text->is_truncated ? style_.truncation_trailer : "");
}

std::string SpanText::arguments(const SpanEvent& event, size_t first, size_t column) const {
  if (first >= event.arguments.size()) return {};
  std::vector<std::string> texts;
  bool has_lines = false;
  for (size_t i = first; i < event.arguments.size(); ++i) {
    const auto& [name, value] = event.arguments[i];
    const std::string text = value_text(value, column + kStep);
    texts.push_back(fmt::format("{} = {}", printable_line(name), text));
    has_lines |= text.find('\n') != std::string::npos;
  }
  std::string out = "(";
  const std::string line = "\n" + std::string(column + kStep, ' ');
  for (size_t i = 0; i < texts.size(); ++i) {
    if (has_lines) out += line;
    out += texts[i];
    if (i + 1 < texts.size()) out += has_lines ? "," : ", ";
  }
  if (has_lines) out += "\n" + std::string(column, ' ');
  return out + ")";
}

// The text of the script may contain what a traced program says, so it is escaped.
std::string SpanText::call(const SpanEvent& event, size_t column) const {
  return printable_line(event.text) + values(event, column);
}

// As in C, with "()" for a call without arguments.
std::string SpanText::graph_call(const SpanEvent& event, size_t column) const {
  const std::string text = call(event, column);
  return text == event.name && text.find(' ') == text.npos ? text + "()" : text;
}

// " = 3" if there is only a return value, otherwise the arguments in parentheses: one may be named as that value is.
std::string SpanText::values(const SpanEvent& event, size_t column) const {
  const bool is_return = event.kind != SpanKind::kEnter && event.arguments.size() == event.shown_arguments + 1 &&
                         event.arguments.back().first == "retval";
  if (is_return) return " = " + value_text(event.arguments.back().second, column);
  return arguments(event, event.shown_arguments, column);
}

std::string SpanText::counter(const SpanEvent& event) const {
  return fmt::format("{} = {}", printable_line(event.name), to_text(event.arguments[0].second, style_));
}

// The text of an exit: result, duration, anomaly.
std::string SpanText::outcome(const SpanEvent& event, size_t column) const {
  std::string out = printable_line(event.text.empty() ? event.name : event.text) + values(event, column);
  if (event.anomaly != SpanAnomaly::kNoBegin) out += "  " + duration_text(event.duration_ns);
  if (event.anomaly != SpanAnomaly::kNone) out += fmt::format("  ({})", anomaly_text(event.anomaly));
  return out;
}

std::string SpanText::tree_line(const SpanEvent& event) const {
  const std::string indent = indent_of(event.depth);
  const size_t column = indent.size() + 2;
  switch (event.kind) {
    case SpanKind::kEnter: return fmt::format("{}> {}\n", indent, call(event, column));
    case SpanKind::kInstant: return fmt::format("{}* {}\n", indent, call(event, column));
    case SpanKind::kCounter: return fmt::format("{}# {}\n", indent, counter(event));
    case SpanKind::kExit: break;
  }
  return fmt::format("{}< {}\n", indent, outcome(event, column));
}

std::string SpanText::column_line(const SpanEvent& event) {
  if (!event.is_seen()) return {};  // not an event
  std::string out;
  if (!thread_) out = fmt::format("{:>17} {:>4} {:>8} {:<16} {}\n", "TIME", "CPU", "PID", "COMM", "FUNCTION/ARGS");
  thread_.emplace();
  const std::string time = fmt::format("{}.{:09}", event.time_ns / kNsPerSecond, event.time_ns % kNsPerSecond);
  out += fmt::format("{:>17} {:>4} {:>8} {:<16} ", time, event.cpu, event.pid, printable_line(event.comm));
  switch (event.kind) {
    case SpanKind::kCounter: out += counter(event); break;
    case SpanKind::kExit: out += outcome(event, kColumnsWidth); break;
    default: out += call(event, kColumnsWidth); break;
  }
  return out + "\n";
}

std::string SpanText::graph_line(const SpanEvent& event, const std::string& duration, const std::string& text) const {
  return fmt::format("{:>3}) {:>12} |  {}{}\n", event.cpu, duration, indent_of(event.depth), text);
}

std::string SpanText::graph_lines(const SpanEvent& event) {
  const size_t column = kCallColumns + indent_of(event.depth).size();
  const bool is_leaf = kept_ && event.kind == SpanKind::kExit && kept_->tid == event.tid &&
                       kept_->depth == event.depth && event.anomaly != SpanAnomaly::kNoBegin;
  const std::optional<SpanEvent> leaf = is_leaf ? std::exchange(kept_, std::nullopt) : std::nullopt;
  std::string out = flush() + header(event);
  switch (event.kind) {
    case SpanKind::kEnter: kept_ = event; return out;
    case SpanKind::kInstant: return out + graph_line(event, "", fmt::format("/* {} */", call(event, column)));
    case SpanKind::kCounter: return out + graph_line(event, "", fmt::format("/* {} */", counter(event)));
    case SpanKind::kExit: break;
  }
  std::string remark = !event.is_seen() || event.text == event.name ? "" : printable_line(event.text);
  remark += event.is_seen() ? values(event, column) : "";
  if (remark.starts_with(' ')) remark.erase(0, 1);
  if (event.anomaly == SpanAnomaly::kNoBegin) remark = fmt::format("{} {}", printable_line(event.name), remark);
  if (event.anomaly != SpanAnomaly::kNone)
    remark += fmt::format("{}{}", remark.empty() ? "" : ", ", anomaly_text(event.anomaly));
  if (!remark.empty()) remark = fmt::format(" /* {} */", remark);
  const std::string duration =
      event.anomaly == SpanAnomaly::kNoBegin
          ? ""
          : fmt::format("{} {:>10}", mark_of(event.duration_ns), duration_text(event.duration_ns));
  return out + graph_line(event, duration, (leaf ? graph_call(*leaf, column) + ";" : "}") + remark);
}

std::string SpanText::flush() {
  if (!kept_) return {};
  const SpanEvent event = *std::exchange(kept_, std::nullopt);
  const size_t column = kCallColumns + indent_of(event.depth).size();
  return graph_line(event, "", graph_call(event, column) + " {");
}

std::string SpanText::add(const SpanEvent& event) {
  switch (style_.span_layout) {
    case SpanLayout::kColumns: return column_line(event);
    case SpanLayout::kGraph: return graph_lines(event);
    case SpanLayout::kTree: break;
  }
  std::string out = header(event);
  return out + tree_line(event);
}

}  // namespace espy::output
