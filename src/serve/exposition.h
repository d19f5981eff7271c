// Exposition: the text that a scraper of metrics reads, in the format OpenMetrics 1.0 or Prometheus' text format 0.0.4.
// They differ in the names of counters' families, and in the last line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espy::serve {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram, kSummary };
enum class ExpositionFormat : uint8_t { kOpenMetrics, kText };

// `text` as the value of a label or a line of help: control characters and what is not UTF-8 as `\xNN`, then escaped.
std::string escaped_label(std::string_view text);

// A label as it stands between the braces: NAME="VALUE".
std::string label(std::string_view name, std::string_view value);

// A number that is the bound of a bucket: "7.0", "1.8446744073709552e+19".
std::string bound_text(double value);

class Exposition {
 public:
  explicit Exposition(ExpositionFormat format) : format_(format) {}

  // Begins a family. `name` is without the suffix `_total`.
  void family(std::string_view name, MetricKind kind, std::string_view help);
  // Adds a sample of the family: `suffix` is "" for a gauge, "_total" for a counter, "_bucket", "_sum" or "_count".
  // `labels`: joined by commas, may be empty.
  void sample(std::string_view suffix, std::string_view labels, std::string_view value);
  void sample(std::string_view suffix, std::string_view labels, uint64_t value) {
    sample(suffix, labels, std::to_string(value));
  }
  // Returns the whole text. Ends the exposition.
  std::string finish();

 private:
  ExpositionFormat format_;
  std::string name_;
  std::string text_;
};

// Whether a scraper that sends this header Accept reads OpenMetrics.
ExpositionFormat format_for(std::string_view accept);
std::string_view content_type_of(ExpositionFormat format);

}  // namespace espy::serve
