// TextFallbackSink: a sink of a format that has no place for most of the output. What it does not override is shown as
// text on standard error.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "output/forwarding_sink.h"

namespace espy::output {

struct TextFallback {
  TextFallback(const TextStyle& style, bool quiet)
      : fallback_out(STDERR_FILENO, Buffering::kNone),
        fallback(find_sink("text")->create(fallback_out, style, quiet)) {}

  std::string shown(std::string_view text) const {
    return fallback_out.is_terminal() ? printable(text) : std::string(text);
  }

  Writer fallback_out;
  std::unique_ptr<Sink> fallback;
};

class TextFallbackSink : private TextFallback, public ForwardingSink {
 public:
  TextFallbackSink(const TextStyle& style, bool quiet) : TextFallback(style, quiet), ForwardingSink(*fallback) {}

  void text(std::string_view kind, std::string_view text) override { ForwardingSink::text(kind, shown(text)); }
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    ForwardingSink::message(kind, shown(text), file, line, column, end_column);
  }
  // Formats override text() for both.
  void text_line(std::string_view kind, std::string_view text) override { this->text(kind, std::string(text) + "\n"); }
  void end() override {}
};

}  // namespace espy::output
