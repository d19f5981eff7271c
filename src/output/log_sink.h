// The view of a live run: its last lines, and the values of its maps.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "output/forwarding_sink.h"
#include "output/spans.h"

namespace espy::output {

// ---- RecentLines: the last lines of the text output of a run, for its viewers. Bounded in lines and bytes.

class RecentLines {
 public:
  // Adds text, which may be a part of a line, or several. `kind`: as of Sink::text.
  void add(std::string_view kind, std::string_view text);
  // Adds a whole line.
  void add_line(std::string_view kind, std::string_view text);

  // The lines from number `first` on, as a JSON array of [number, kind, text]. Numbers begin with 0.
  std::string json_from(uint64_t first) const;
  uint64_t next_number() const { return next_; }
  // The last `most` lines, oldest first.
  std::vector<std::string> last(size_t most) const;

 private:
  struct Line {
    std::string kind;
    std::string text;
  };
  void push(std::string_view kind, std::string text);

  std::deque<Line> lines_;
  size_t bytes_ = 0;
  uint64_t next_ = 0;  // the number of the next line
  std::string partial_;
};

// ---- LogSink: passes all output on to the sink of the run, and keeps the lines of text for its viewers. Maps are
// shown by their values, not by their prints, which are not kept.

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
