// Spans as text, in one of three layouts. In tree and graph a line names the thread when it changes.
//
//   tree        > (fib 2)                columns   TIME, CPU, PID, COMM and the event, a line each
//                 > (fib 1)
//                 < 1  1.2us             graph     fib(n = 2) {
//               < 1  5.3us                           fib(n = 1); /* = 1 */
//                                                  } /* = 1 */
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "output/format.h"
#include "output/spans.h"

namespace espy::output {

// "812ns", "1.234us", "12.300ms": three decimals except for nanoseconds.
std::string duration_text(uint64_t ns);

class SpanText {
 public:
  explicit SpanText(const TextStyle& style) : style_(style) {}

  // Returns the text to write now. The graph layout holds a call back until it knows whether there are calls within it.
  std::string add(const SpanEvent& event);
  std::string flush();  // returns the call that was held back

 private:
  std::string header(const SpanEvent& event);
  std::string tree_line(const SpanEvent& event) const;
  std::string column_line(const SpanEvent& event);
  std::string graph_lines(const SpanEvent& event);
  std::string graph_line(const SpanEvent& event, const std::string& duration, const std::string& text) const;
  // "(a = 1, b = 2)", or one argument a line if one has several lines; starts at `column`.
  std::string value_text(const Value& value, size_t column) const;
  std::string arguments(const SpanEvent& event, size_t first, size_t column) const;
  std::string call(const SpanEvent& event, size_t column) const;
  std::string graph_call(const SpanEvent& event, size_t column) const;
  std::string values(const SpanEvent& event, size_t column) const;
  std::string counter(const SpanEvent& event) const;
  std::string outcome(const SpanEvent& event, size_t column) const;

  const TextStyle& style_;
  std::optional<std::pair<uint32_t, std::string>> thread_;  // of the last line: id, title
  std::optional<SpanEvent> kept_;
};

}  // namespace espy::output
