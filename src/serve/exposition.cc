#include "serve/exposition.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"

namespace espy::serve {

namespace {

constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram", "summary"};  // by MetricKind

}  // namespace

std::string escaped_label(std::string_view text) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escaped_label(value));
}

std::string bound_text(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value > -kExact && value < kExact) return fmt::format("{:.1f}", value);
  return fmt::format("{:.17g}", value);
}

void Exposition::family(std::string_view name, MetricKind kind, std::string_view help) {
  name_ = name;
  const bool has_suffix = kind == MetricKind::kCounter && format_ == ExpositionFormat::kText;
  const std::string shown = has_suffix ? name_ + "_total" : name_;
  text_ +=
      fmt::format("# HELP {} {}\n# TYPE {} {}\n", shown, escaped_label(help), shown, kKinds[static_cast<size_t>(kind)]);
}

void Exposition::sample(std::string_view suffix, std::string_view labels, std::string_view value) {
  text_.append(name_).append(suffix);
  if (!labels.empty()) text_.append("{").append(labels).append("}");
  text_.append(" ").append(value).append("\n");
}

std::string Exposition::finish() {
  if (format_ == ExpositionFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

ExpositionFormat format_for(std::string_view accept) {
  const bool is_open = accept.find("application/openmetrics-text") != accept.npos;
  return is_open ? ExpositionFormat::kOpenMetrics : ExpositionFormat::kText;
}

std::string_view content_type_of(ExpositionFormat format) {
  return format == ExpositionFormat::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                  : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace espy::serve
