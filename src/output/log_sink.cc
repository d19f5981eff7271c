#include "output/log_sink.h"

#include <fmt/format.h>

namespace espy::output {

void LogSink::text(std::string_view kind, std::string_view text) {
  inner().text(kind, text);
  lines_.add(kind, text);
}

void LogSink::text_line(std::string_view kind, std::string_view text) {
  inner().text_line(kind, text);
  lines_.add_line(kind, text);
}

void LogSink::value(const Value& value) {
  inner().value(value);
  lines_.add_line("print", to_text(value, style_));
}

void LogSink::span(const SpanEvent& event) {
  inner().span(event);
  lines_.add("span", spans_.add(event));
}

void LogSink::helper_error(const HelperError& error) {
  inner().helper_error(error);
  lines_.add_line("warnf", fmt::format("{}:{}: {} ({})", error.file, error.line, error.message, error.helper));
}

void LogSink::message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                      uint32_t column, uint32_t end_column) {
  inner().message(kind, text, file, line, column, end_column);
  lines_.add_line(kind, file.empty() ? std::string(text) : fmt::format("{}:{}: {}", file, line, text));
}

}  // namespace espy::output
