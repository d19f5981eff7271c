// JSON output: one object a line.
#include "output/json.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>
#include <unordered_set>

#include "base/clock.h"
#include "base/strings.h"
#include "output/histogram.h"
#include "output/quantity.h"
#include "output/sink.h"
#include "program/layout.h"

namespace espy::output {

namespace {

// JSON parsers may read numbers as doubles: a number that a double cannot represent is written as a string.
template <class Int>
std::string number(Int value) {
  const auto as_double = static_cast<double>(value);
  constexpr double kLimit =
      std::is_signed_v<Int> ? 0x1p63 : 0x1p64;  // a value that rounds up to it does not convert back
  const bool is_exact = as_double < kLimit && static_cast<Int>(as_double) == value;
  return is_exact ? std::to_string(value) : fmt::format("\"{}\"", value);
}

std::string list(const std::vector<Value>& items, const TextStyle& style, uint32_t depth) {
  JsonList out(",");
  const size_t count = style.max_items == 0 ? items.size() : std::min<size_t>(items.size(), style.max_items);
  for (size_t i = 0; i < count; ++i) out.add(json(items[i], style, depth));
  return out.array();
}

std::string record(const RecordValue& record, const TextStyle& style, uint32_t depth) {
  JsonList out;
  uint32_t shown = 0;
  const bool is_too_deep = style.max_depth != 0 && depth >= style.max_depth;
  for (size_t i = 0; i < record.items.size() && !is_too_deep; ++i) {
    if (!style.has_zeros && is_zero(record.items[i])) continue;
    if (style.max_items != 0 && shown == style.max_items) break;
    ++shown;
    out.add_member(record.names->members[i], json(record.items[i], style, depth + 1));
  }
  return out.object();
}

uint64_t last_of(uint32_t index, uint8_t bits) {
  const bool is_last = index + 1 == program::hist_bucket_count(bits);
  return is_last ? UINT64_MAX : program::hist_bucket_start(index + 1, bits) - 1;
}

std::string buckets(const HistValue& hist) {
  const BucketRange range = used_buckets(hist.buckets);
  JsonList out;
  for (size_t i = range.first; i <= range.last; ++i) {
    const auto index = static_cast<uint32_t>(i);
    if (i == 0) {
      out.add(fmt::format("{{\"max\": -1, \"count\": {}}}", hist.buckets[i]));
    } else {
      out.add(fmt::format("{{\"min\": {}, \"max\": {}, \"count\": {}}}",
                          number(program::hist_bucket_start(index, hist.bits)), number(last_of(index, hist.bits)),
                          hist.buckets[i]));
    }
  }
  return out.array();
}

std::string buckets(const LhistValue& hist) {
  const BucketRange range = used_buckets(hist.buckets);
  JsonList out;
  for (size_t i = range.first; i <= range.last; ++i) {
    if (i == 0) {
      out.add(fmt::format("{{\"max\": {}, \"count\": {}}}", number(hist.min - 1), hist.buckets[i]));
    } else if (i + 1 == hist.buckets.size()) {
      out.add(fmt::format("{{\"min\": {}, \"count\": {}}}", number(hist.max), hist.buckets[i]));
    } else {
      out.add(fmt::format("{{\"min\": {}, \"max\": {}, \"count\": {}}}", number(hist.end_of(i - 1)),
                          number(hist.end_of(i) - 1), hist.buckets[i]));
    }
  }
  return out.array();
}

std::string stats(const StatsValue& value) {
  const auto amount = [&](int64_t n) { return value.is_signed ? number(n) : number(static_cast<uint64_t>(n)); };
  if (value.only_average) return amount(average(value));
  return fmt::format("{{\"count\": {}, \"average\": {}, \"total\": {}}}", value.count, amount(average(value)),
                     amount(value.total));
}

std::string tseries(const TseriesValue& series) {
  JsonList out;
  const auto amount = [&](int64_t n) { return series.is_signed ? number(n) : number(static_cast<uint64_t>(n)); };
  for (const TseriesPoint& point : series.points) {
    const auto seconds = static_cast<time_t>(point.start_ns / kNsPerSecond);
    tm local = {};
    ::localtime_r(&seconds, &local);
    char date[32] = "";
    ::strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local);
    out.add(fmt::format("{{\"interval_start\":\"{}.{:09}\",\"value\":{}}}", date, point.start_ns % kNsPerSecond,
                        point.value ? amount(*point.value) : "null"));
  }
  return out.array();
}

// Whether a value is, or encloses, one for which the test holds.
template <class Test>
struct HasPart {
  bool operator()(const TupleValue& v) const { return any(v.items); }
  bool operator()(const ListValue& v) const { return any(v.items); }
  bool operator()(const RecordValue& v) const { return any(v.items); }
  template <class Part>
  bool operator()(const Part& v) const {
    return Test()(v);
  }

 private:
  static bool any(const std::vector<Value>& items) {
    return std::ranges::any_of(items, [](const Value& item) { return std::visit(HasPart(), item.node); });
  }
};
template <class Test>
bool has_part(const Value& value) {
  return std::visit(HasPart<Test>(), value.node);
}

// Tests derive from it, and add the values for which they may hold.
struct NoPart {
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

// Makes the texts of a key UTF-8 that no other text has, and texts of stacks.
class ExactTexts {
 public:
  explicit ExactTexts(const TextStyle& style) : style_(style) {}

  static bool are_needed(const Value& key) { return has_part<IsNeeded>(key); }

  void apply(Value& value) const {
    if (auto* tuple = std::get_if<TupleValue>(&value.node)) return apply(tuple->items);
    if (auto* list = std::get_if<ListValue>(&value.node)) return apply(list->items);
    if (auto* record = std::get_if<RecordValue>(&value.node)) return apply(record->items);
    if (auto* text = std::get_if<StringValue>(&value.node)) text->text = exact_utf8(text->text);
    if (auto* text = std::get_if<TextValue>(&value.node)) text->text = exact_utf8(text->text);
    if (const auto* stack = std::get_if<StackValue>(&value.node)) {
      TextStyle style = style_;
      style.is_for_terminal = true;
      value.node = TextValue{to_text({*stack}, style), true};
    }
  }

 private:
  struct IsNeeded : NoPart {
    using NoPart::operator();
    bool operator()(const StringValue& v) const { return is_special(v.text); }
    bool operator()(const TextValue& v) const { return is_special(v.text); }
    bool operator()(const StackValue&) const { return true; }
    static bool is_special(std::string_view text) {
      return std::ranges::any_of(text, [](char c) { return c == '\\' || static_cast<unsigned char>(c) >= 0x80; });
    }
  };

  void apply(std::vector<Value>& items) const {
    for (Value& item : items) apply(item);
  }

  const TextStyle& style_;
};

Value exact(Value value, const TextStyle& style) {
  ExactTexts(style).apply(value);
  return value;
}

}  // namespace

std::string json_text(const Value& value, const TextStyle& style) {
  return json_string(ExactTexts::are_needed(value) ? to_text(exact(value, style), style) : to_text(value, style));
}

namespace {

struct ToJson {
  const TextStyle& style;
  uint32_t depth;  // how many records enclose the value
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return number(v); }
  std::string operator()(uint64_t v) const { return number(v); }
  std::string operator()(const EnumValue& v) const { return number(v.number); }
  std::string operator()(const PointerValue& v) const { return number(v.address); }
  std::string operator()(const BufferValue& v) const {
    JsonList out(",");
    for (const char c : v.bytes) out.add(std::to_string(static_cast<unsigned char>(c)));
    return out.array();
  }
  std::string operator()(const ListValue& v) const { return list(v.items, style, depth); }
  std::string operator()(const TupleValue& v) const { return list(v.items, style, depth); }
  std::string operator()(const RecordValue& v) const { return record(v, style, depth); }
  std::string operator()(const HistValue& v) const { return buckets(v); }
  std::string operator()(const LhistValue& v) const { return buckets(v); }
  std::string operator()(const StatsValue& v) const { return stats(v); }
  std::string operator()(const TseriesValue& v) const { return tseries(v); }
  std::string operator()(const RecentValue& v) const {
    JsonList out(",");
    for (const Value& item : v.items) out.add(json(item, style, depth));
    return out.array();
  }
  template <class Text>
  std::string operator()(const Text& v) const {
    return json_text({v}, style);
  }
};

}  // namespace

std::string json(const Value& value, const TextStyle& style, uint32_t depth) {
  return std::visit(ToJson{style, depth}, value.node);
}

namespace {

// The key's text without blanks and parentheses, including those of its texts: "a,1". As in bpftrace.
std::string compact_key(const Value& value, const TextStyle& style) {
  std::string out = to_text(value, style);
  std::erase_if(out, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  return out;
}

// The key's text without the blanks and parentheses that show its structure. Texts stay as they are; those of a key of
// several parts have a backslash before commas and backslashes. Different keys are different.
class ExactKeyWriter {
 public:
  ExactKeyWriter(std::string& out, const TextStyle& style) : out_(out), style_(style) {}

  void operator()(const TupleValue& v) { list("", v.items, ""); }
  void operator()(const ListValue& v) { list("[", v.items, "]"); }
  void operator()(const RecordValue& v) {
    ++depth_;
    out_ += '{';
    for (size_t i = 0; i < v.items.size(); ++i) {
      out_.append(i > 0 ? "," : "").append(".").append(v.names->members[i]).append("=");
      std::visit(*this, v.items[i].node);
    }
    out_ += '}';
    --depth_;
  }
  template <class Other>
  void operator()(const Other& v) {
    for (const char c : to_text({v}, style_)) {
      if (depth_ > 0 && (c == ',' || c == '\\')) out_ += '\\';
      out_ += c;
    }
  }

 private:
  void list(std::string_view begin, const std::vector<Value>& items, std::string_view end) {
    ++depth_;
    out_ += begin;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ',';
      std::visit(*this, items[i].node);
    }
    out_ += end;
    --depth_;
  }

  std::string& out_;
  const TextStyle& style_;
  uint32_t depth_ = 0;  // how many values enclose the one that is written
};

std::string exact_key(const Value& value, const TextStyle& style) {
  std::string out;
  std::visit(ExactKeyWriter(out, style), value.node);
  return out;
}

// Whether the compact key lacks something of a text, or has a comma of one, or whether keys that differ have one text,
// as the functions of two programs.
struct IsLossy : NoPart {
  using NoPart::operator();
  bool operator()(const StringValue& v) const { return v.text.find_first_of(" (),") != v.text.npos; }
  bool operator()(const BufferValue& v) const { return v.bytes.find_first_of(" (),") != v.bytes.npos; }
  bool operator()(const TextValue&) const { return true; }
  bool operator()(const StackValue&) const { return true; }
};

// Whether keys that differ can have one text, as the functions of two programs.
struct MayRepeat : NoPart {
  using NoPart::operator();
  bool operator()(const TextValue&) const { return true; }
  bool operator()(const StackValue&) const { return true; }
};

// The keys of a map: compact ones, or, if two of them were equal, of which a reader of JSON would keep one, exact ones.
class KeyTexts {
 public:
  KeyTexts(const ShownEntries& entries, const TextStyle& style) : style_(style) {
    bool has_loss = false;
    for (const MapEntry& entry : entries) has_loss |= has_part<IsLossy>(entry.key);
    if (!has_loss) return;
    std::unordered_set<size_t> seen;  // hashes
    for (const MapEntry& entry : entries)
      is_exact_ |= !seen.insert(std::hash<std::string>()(text_of(entry.key, compact_key))).second;
  }

  // Keys that differ, and have the same text nevertheless, have numbers: "main", "main#2". A function that is named
  // "main#2" is "main##2".
  std::string operator()(const Value& key) {
    std::string text = text_of(key, is_exact_ ? exact_key : compact_key);
    if (has_part<MayRepeat>(key)) double_number_sign(text);
    if (!is_exact_) return text;
    std::string out = text;
    for (size_t i = 2; !used_.insert(out).second; ++i) out = fmt::format("{}#{}", text, i);
    return out;
  }

 private:
  // Of texts that end in "#" and digits.
  static void double_number_sign(std::string& text) {
    const size_t last = text.find_last_not_of("0123456789");
    if (last != text.npos && last + 1 < text.size() && text[last] == '#') text.insert(last, "#");
  }

  std::string text_of(const Value& key, std::string (*write)(const Value&, const TextStyle&)) const {
    return ExactTexts::are_needed(key) ? write(exact(key, style_), style_) : write(key, style_);
  }

  const TextStyle& style_;
  bool is_exact_ = false;
  std::unordered_set<std::string> used_;
};

}  // namespace

JsonList span_arguments(const SpanEvent& event, const TextStyle& style) {
  JsonList out;
  for (const auto& [name, value] : event.arguments) out.add_member(name, json(value, style));
  return out;
}

namespace {

std::string_view type_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kEnter: return "span_enter";
    case SpanKind::kExit: return "span_exit";
    case SpanKind::kCounter: return "counter";
    case SpanKind::kInstant: break;
  }
  return "instant";
}

std::string span_data(const SpanEvent& event, const TextStyle& style) {
  std::string out = fmt::format(
      "{{\"time\": {}, \"cpu\": {}, \"pid\": {}, \"tid\": {}, \"comm\": {}, \"depth\": {}, \"name\": {}", event.time_ns,
      event.cpu, event.pid, event.tid, json_string(event.comm), event.depth, json_string(event.name));
  if (!event.text.empty()) out += ", \"text\": " + json_string(event.text);
  out += ", \"args\": " + span_arguments(event, style).object();
  if (event.kind == SpanKind::kExit && event.anomaly != SpanAnomaly::kNoBegin)
    out += fmt::format(", \"duration\": {}", event.duration_ns);
  if (event.anomaly != SpanAnomaly::kNone)
    out += fmt::format(", \"flaw\": {}", json_string(anomaly_text(event.anomaly)));
  return out + "}";
}

std::string_view type_of(const Value& value) {
  if (std::holds_alternative<HistValue>(value.node) || std::holds_alternative<LhistValue>(value.node)) return "hist";
  if (std::holds_alternative<StatsValue>(value.node)) return "stats";
  if (std::holds_alternative<TseriesValue>(value.node)) return "tseries";
  return "map";
}

std::string hits_json(const std::vector<ProbeHits>& probes) {
  JsonList out;
  for (const ProbeHits& probe : probes) out.add_member(probe.name, std::to_string(probe.hits));
  return out.object();
}

std::string losses_json(const Losses& losses, bool is_missed_known) {
  std::string out;
  for (size_t i = 0; i < kLossKinds; ++i) {
    const auto kind = static_cast<program::LossKind>(i);
    const bool is_known = kind != program::LossKind::kMissed || is_missed_known;
    out += fmt::format(", \"{}\": {}", name_of(kind).key, is_known ? std::to_string(losses[i]) : "null");
  }
  return out;
}

std::string loss_report_json(const LossReport& loss_report) {
  JsonList actions(","), skipped_probes(",");
  for (const ActionReport& action : loss_report.actions)
    actions.add(fmt::format("{{\"probes\": {}{}{}}}", hits_json(action.probes),
                            losses_json(action.losses, action.is_missed_known),
                            action.is_slice_estimated ? ", \"over_budget_is_estimated\": true" : ""));
  for (const SkippedProbe& each : loss_report.skipped_probes)
    skipped_probes.add(
        fmt::format("{{\"name\": {}, \"reason\": {}}}", json_string(each.name), json_string(each.reason)));
  std::string trees;
  if (const auto& counts = loss_report.trees)
    trees =
        fmt::format(", \"trees\": {{\"begun\": {}, \"shown\": {}, \"dropped\": {}, \"left\": {}, \"in_progress\": {}}}",
                    counts->begun, counts->shown, counts->dropped, counts->left, in_progress(*counts));
  const auto sentences = [](std::string_view key, const std::vector<std::string>& texts) {
    JsonList out;
    for (const std::string& text : texts) out.add(json_string(text));
    return out.empty() ? "" : fmt::format(", \"{}\": {}", key, out.array());
  };
  std::string uncertain;
  if (loss_report.uncertain_addresses > 0)
    uncertain = fmt::format(", \"uncertain_addresses\": {}", loss_report.uncertain_addresses);
  return fmt::format("{{\"exact\": {}{}, \"actions\": {}{}, \"left_out\": {}{}}}",
                     loss_report.inexact().empty() ? "true" : "false", losses_json(loss_report.totals, true),
                     actions.array(), trees, skipped_probes.array(),
                     sentences("recording", loss_report.gaps) + sentences("changed_files", loss_report.file_changes) +
                         sentences("incomplete", loss_report.others) + uncertain);
}

std::string number_or_null(const std::optional<double>& number) {
  return number ? fmt::format("{:.1f}", *number) : "null";
}

std::string cost_json(const CostReport& report) {
  JsonList programs;
  for (const ProgramCost& cost : report.programs)
    programs.add(
        fmt::format("{{\"probes\": {}, \"events_per_second\": {:.1f}, \"runs_per_second\": {:.1f}, \"ns_per_run\": {}, "
                    "\"hook_ns\": {}, \"cpus\": {:.6f}, \"map_bytes\": {}}}",
                    hits_json(cost.probes), cost.events, cost.runs, number_or_null(cost.ns_per_run),
                    number_or_null(cost.hook_ns), cost.cpus, cost.map_bytes));
  const CostMeasuring& measuring = report.measuring;
  return fmt::format(
      "{{\"seconds\": {:.3f}, \"cpus\": {:.6f}, \"map_bytes\": {}, \"tracer_cpus\": {:.6f}, \"tracer_bytes\": {}, "
      "\"programs\": {}, \"measuring\": {{\"by\": \"{}\", \"windows\": {}, \"seconds\": {:.3f}, \"ns_per_run\": "
      "{:.1f}, \"cpus\": {:.6f}}}}}",
      report.seconds, report.cpus(), report.map_bytes, report.tracer_cpus, report.tracer_bytes, programs.array(),
      measuring.is_by_kernel ? "kernel" : "program", measuring.windows, measuring.seconds, measuring.ns_per_run,
      measuring.cpus);
}

class JsonSink final : public Sink {
 public:
  JsonSink(Writer& out, TextStyle style, Quiet quiet)
      : out_(out), style_(std::move(style)), is_quiet_(quiet == Quiet::kYes) {}

  void attached(uint64_t probe_count) override {
    if (is_quiet_) return;
    line("attached_probes", fmt::format("{{\"probes\": {}}}", probe_count),
         fmt::format("\"count\": {}, ", probe_count));
  }
  void text(std::string_view kind, std::string_view text) override {
    if (kind != text_kind_) {
      text_kind_ = kind;
      text_begin_.clear();
      append_begin(text_begin_, kind);
    }
    line_ += text_begin_;
    append_json_string(line_, text);
    end_line();
  }
  void text_line(std::string_view kind, std::string_view text) override { this->text(kind, text); }
  void value(const Value& value) override { line("value", json(value, style_)); }
  void span(const SpanEvent& event) override { line(type_of(event.kind), span_data(event, style_)); }

  void map(const MapView& map) override {
    const ShownEntries entries = shown_entries(map);
    if (entries.empty()) return;
    const auto value_of = [&](const MapEntry& entry) { return json(divided(entry.value, map.divisor), style_); };
    begin_line(type_of(entries.at(0).value),
               map.seen_share < 1 ? fmt::format("\"sampled\": {:.4f}, ", map.seen_share) : "");
    line_ += '{';
    append_json_string(line_, map.name);
    line_ += ": ";
    if (map.is_scalar) {
      line_ += value_of(entries.at(0));
    } else {
      KeyTexts key_of(entries, style_);
      std::string_view separator = "{";
      for (const MapEntry& entry : entries) {
        line_ += separator;
        append_json_string(line_, key_of(entry.key));
        line_.append(": ").append(value_of(entry));
        separator = ", ";
        if (line_.size() >= kMostLineBytes) write_line();
      }
      line_ += '}';
    }
    line_ += '}';
    end_line();
  }

  void lost(uint64_t events) override {
    line("lost_events", fmt::format("{{\"events\": {}}}", events), fmt::format("\"count\": {}, ", events));
  }
  void total_lost(uint64_t) override {}
  void loss_report(const LossReport& loss_report) override { line("ledger", loss_report_json(loss_report)); }
  void cost(const CostReport& report) override {
    line("cost", cost_json(report));
    out_.batch_end();
  }

  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line_number,
               uint32_t column, uint32_t) override {
    std::string out = fmt::format("{{\"type\": {}, \"msg\": {}", json_string(kind), json_string(text));
    if (!file.empty())
      out += fmt::format(", \"filename\": {}, \"line\": {}, \"col\": {}", json_string(file), line_number, column);
    out_.write(out + "}\n");
  }

  void explain(std::string_view) override {}

  void helper_error(const HelperError& error) override {
    out_.write(
        fmt::format("{{\"type\": \"helper_error\", \"msg\": {}, \"helper\": {}, \"retcode\": {}, \"filename\": {}, "
                    "\"line\": {}, \"col\": {}}}\n",
                    json_string(error.message), json_string(error.helper), error.code, json_string(error.file),
                    error.line, error.column));
  }

  void end() override {}

  void tests_begin(size_t) override {}
  void test_begin(std::string_view) override {}
  void test_end(const TestResult& result) override {
    line("test_result",
         fmt::format("{{{}: {{\"duration\": {}, \"passed\": {}, \"output\": {}}}}}", json_string(result.name),
                     result.duration_ns, result.has_passed, json_string(result.output)));
  }
  void tests_end(const std::vector<TestResult>&) override {}
  void benchmarks_begin() override {}
  void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) override {
    line("benchmark_result",
         fmt::format("{{{}: {{\"average\": {}, \"iters\": {}}}}}", json_string(name), average_ns, iterations));
  }

 private:
  static constexpr size_t kMostLineBytes = 64 * 1024;  // that are kept, not written

  void line(std::string_view type, std::string_view data, std::string_view before_data = "") {
    begin_line(type, before_data);
    line_ += data;
    end_line();
  }

  static void append_begin(std::string& out, std::string_view type, std::string_view before_data = "") {
    out += "{\"type\": ";
    append_json_string(out, type);
    out.append(", ").append(before_data).append("\"data\": ");
  }

  void begin_line(std::string_view type, std::string_view before_data = "") { append_begin(line_, type, before_data); }

  void end_line() {
    line_ += "}\n";
    write_line();
  }

  void write_line() { out_.wrote(); }

  Writer& out_;
  std::string& line_ = out_.buffer();
  TextStyle style_;
  bool is_quiet_;
  std::string text_kind_, text_begin_;  // of the last text: its kind, and how the line of such a text begins
};

std::unique_ptr<Sink> make_json_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<JsonSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kJsonSink = {
    .name = "json", .doc = "one JSON object a line", .has_lines = true, .create = make_json_sink};

}  // namespace espy::output
