// LogSink: passes all output on to the sink of the run, and keeps the lines of text for those who view it. Maps are
// shown by their values, not by their prints, which are not kept.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "output/forwarding_sink.h"
#include "output/recent_lines.h"
#include "output/span_text.h"

namespace espy::output {

class LogSink final : public ForwardingSink {
 public:
  // The arguments must outlive the sink.
  LogSink(Sink& inner, RecentLines& lines, TextStyle style)
      : ForwardingSink(inner), lines_(lines), style_(std::move(style)) {}

  void text(std::string_view kind, std::string_view text) override;
  void text_line(std::string_view kind, std::string_view text) override;
  void value(const Value& value) override;
  void span(const SpanEvent& event) override;
  void helper_error(const HelperError& error) override;
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override;

 private:
  RecentLines& lines_;
  TextStyle style_;
  SpanText spans_{style_};
};

}  // namespace espy::output
