#include "output/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"

namespace espy::output {

namespace {

constexpr uint64_t kIdleThreads = uint64_t{1} << 32;
// Frames that are farther apart are on different stacks, as those of signal handlers and coroutines.
constexpr uint64_t kStackBytes = 8 << 20;
constexpr size_t kMaxOpen = 65536;  // in a thread, as a script may begin spans and never end them

bool are_on_one_stack(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) < kStackBytes; }

bool are_of_one_call(const SpanPlace& begin, const SpanPlace& end) {
  return begin.is_entry && begin.function == end.function && begin.frame == end.frame;
}

}  // namespace

std::string_view anomaly_text(SpanAnomaly anomaly) {
  switch (anomaly) {
    case SpanAnomaly::kNoBegin: return "no begin";
    case SpanAnomaly::kNoEnd: return "no end";
    case SpanAnomaly::kInProgress: return "in progress";
    case SpanAnomaly::kNone: break;
  }
  return "";
}

// Threads that have ended in the middle of a span keep it open.
void CallTrees::forget_threads() {
  std::erase_if(threads_, [](const auto& entry) { return entry.second.open.empty(); });
  if (threads_.size() >= kMostThreads) {
    std::vector<uint64_t> times;
    for (const auto& [id, thread] : threads_) times.push_back(thread.last_ns);
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    for (auto entry = threads_.begin(); entry != threads_.end();) {
      Thread& thread = entry->second;
      if (thread.last_ns > *middle) {
        ++entry;
        continue;
      }
      end_all(thread, thread.last_ns);
      entry = threads_.erase(entry);
    }
  }
  next_forget_ = std::clamp(2 * threads_.size(), kManyThreads, kMostThreads + kManyThreads);
}

void CallTrees::end_all(Thread& thread, uint64_t now_ns, SpanAnomaly anomaly) {
  while (!thread.open.empty()) end_innermost(thread, {.time_ns = now_ns, .anomaly = anomaly});
}

void CallTrees::end_thread(const SpanEvent& last) {
  if (is_full()) return;
  Thread& thread = thread_of(last);
  end_all(thread, std::max(thread.last_ns, last.time_ns), SpanAnomaly::kInProgress);
}

// Ends the spans of a process whose thread id was reused by another one.
CallTrees::Thread& CallTrees::thread_of(const SpanEvent& event) {
  if (threads_.size() >= next_forget_) forget_threads();
  Thread& thread = threads_[event.tid != 0 ? event.tid : kIdleThreads + event.cpu];
  if (thread.pid != event.pid) {
    end_all(thread, thread.last_ns);
    thread.pid = event.pid;
  }
  return thread;
}

void CallTrees::show(const SpanEvent& event) {
  count_ += event.kind == SpanKind::kExit || event.kind == SpanKind::kInstant ? 1 : 0;
  show_(event);
}

void CallTrees::add(SpanEvent event, const SpanPlace& place) {
  if (is_full()) return;
  Thread& thread = thread_of(event);
  // An event may be reserved in the ring before an earlier one, by an interrupt after that one took its time.
  event.time_ns = thread.last_ns = std::max(thread.last_ns, event.time_ns);
  if (event.kind == SpanKind::kEnter) return enter(thread, std::move(event), place);
  if (event.kind == SpanKind::kExit) return exit(thread, std::move(event), place);
  event.depth = depth_of(thread);
  const bool is_filtered = !filter_.order.empty() || filter_.slower_than_ns != 0;
  const bool is_shown = !is_filtered || (!thread.open.empty() && thread.open.back().is_shown);
  if (is_shown && !is_too_deep(event)) show(event);
}

void CallTrees::enter(Thread& thread, SpanEvent event, const SpanPlace& place) {
  end_dead(thread, place, event.time_ns);
  end_lost(thread, event, place);
  if (place.is_entry) {
    if (has_entries_.size() <= place.function) has_entries_.resize(place.function + 1);
    has_entries_[place.function] = true;
  }
  if (thread.open.size() >= kMaxOpen) end_innermost(thread, {.time_ns = event.time_ns, .anomaly = SpanAnomaly::kNoEnd});
  event.depth = depth_of(thread);
  Open open{std::move(event), place};
  open.is_hidden = is_hidden(open.begin.time_ns);
  const size_t reached = depth_in_order(thread);
  open.is_in_order = reached < filter_.order.size() && filter_.order[reached] == open.begin.name;
  thread.open.push_back(std::move(open));
  if (filter_.slower_than_ns == 0 && is_in_order(thread)) show_begins(thread);
}

void CallTrees::exit(Thread& thread, SpanEvent event, const SpanPlace& place) {
  const size_t begin = find_begin(thread, place);
  if (begin == kNone) {
    end_dead(thread, place, event.time_ns);
    event.depth = depth_of(thread);
    event.anomaly = SpanAnomaly::kNoBegin;
    const bool is_wanted = filter_.order.empty() && filter_.slower_than_ns == 0;
    if (is_wanted && !is_too_deep(event)) show(event);
    return;
  }
  while (thread.open.size() > begin + 1)
    end_innermost(thread, {.time_ns = event.time_ns, .cpu = event.cpu, .anomaly = SpanAnomaly::kNoEnd});
  end_innermost(thread, std::move(event));
}

// After lost records, ends may be missing. A second begin of a kernel function then ends the first: recursion is rare
// there.
void CallTrees::end_lost(Thread& thread, const SpanEvent& event, const SpanPlace& place) {
  if (!has_losses_ || place.frame != 0) return;
  const auto is_same = [&](const Open& open) {
    return open.place.function == place.function && open.begin.name == event.name;
  };
  while (std::ranges::any_of(thread.open, is_same))
    end_innermost(thread, {.time_ns = event.time_ns, .anomaly = SpanAnomaly::kNoEnd});
}

// Ends the calls whose frame is that of a new call, or below it.
void CallTrees::end_dead(Thread& thread, const SpanPlace& place, uint64_t now_ns) {
  if (place.frame == 0) return;
  const auto is_dead = [&](const SpanPlace& open) {
    if (open.frame == 0 || !are_on_one_stack(open.frame, place.frame)) return false;
    return open.frame < place.frame || (open.frame == place.frame && place.is_entry && !is_tail_call(place));
  };
  size_t dead = 0;  // how many of the innermost calls
  for (size_t i = thread.open.size(); i-- > 0;)
    if (is_dead(thread.open[i].place)) dead = thread.open.size() - i;
  for (; dead > 0; --dead) end_innermost(thread, {.time_ns = now_ns, .anomaly = SpanAnomaly::kNoEnd});
}

size_t CallTrees::find_begin(const Thread& thread, const SpanPlace& place) const {
  if (thread.open.empty()) return kNone;
  if (place.is_return) {
    for (size_t i = thread.open.size(); i-- > 0;)
      if (are_of_one_call(thread.open[i].place, place)) return i;
    if (place.function < has_entries_.size() && has_entries_[place.function]) return kNone;
  }
  return thread.open.size() - 1;
}

// `end`: the event, or what is known of an end that was not seen.
void CallTrees::end_innermost(Thread& thread, SpanEvent end) {
  const Open& open = thread.open.back();
  end.kind = SpanKind::kExit;
  end.duration_ns = end.time_ns - std::min(end.time_ns, open.begin.time_ns);
  const bool is_slow = filter_.slower_than_ns != 0 && end.duration_ns > filter_.slower_than_ns;
  if (is_slow && is_in_order(thread)) show_begins(thread);
  const SpanEvent& begin = open.begin;
  end.pid = begin.pid;
  end.tid = begin.tid;
  end.depth = begin.depth;
  end.name = begin.name;
  if (end.comm.empty()) end.comm = begin.comm;
  if (!end.is_seen()) end.text = begin.text;
  if (open.is_shown) show(end);
  thread.open.pop_back();
}

// Shows the begins that are not shown yet, outermost first.
void CallTrees::show_begins(Thread& thread) {
  const bool has_order = !filter_.order.empty();
  size_t first = thread.open.size();
  while (first > 0 && !thread.open[first - 1].is_shown) --first;
  if (has_order || hidden_to_ns_ != 0) first = 0;  // some spans are never shown
  for (size_t i = first; i < thread.open.size(); ++i) {
    Open& open = thread.open[i];
    if (open.is_shown || open.is_hidden || is_too_deep(open.begin) || (has_order && !open.is_in_order)) continue;
    open.is_shown = true;
    show(open.begin);
  }
}

size_t CallTrees::depth_in_order(const Thread& thread) {
  return static_cast<size_t>(std::ranges::count(thread.open, true, &Open::is_in_order));
}

uint32_t CallTrees::depth_of(const Thread& thread) const {
  if (!filter_.order.empty()) return static_cast<uint32_t>(depth_in_order(thread));
  const bool may_be_hidden = hidden_to_ns_ != 0;
  const auto hidden = may_be_hidden ? std::ranges::count(thread.open, true, &Open::is_hidden) : 0;
  return static_cast<uint32_t>(thread.open.size()) - static_cast<uint32_t>(hidden);
}

void CallTrees::close(uint64_t now_ns) {
  for (auto& [id, thread] : threads_) end_all(thread, std::max(now_ns, thread.last_ns));
  threads_.clear();
}

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
