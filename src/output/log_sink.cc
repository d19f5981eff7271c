#include "output/log_sink.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "output/json.h"

namespace espy::output {

namespace {

constexpr size_t kMaxLines = 1000;
constexpr size_t kMaxBytes = 256 << 10;
constexpr size_t kMaxLineBytes = 4000;

}  // namespace

void RecentLines::add(std::string_view kind, std::string_view text) {
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    partial_ += text.substr(0, end);
    push(kind, std::move(partial_));
    partial_.clear();
    text.remove_prefix(end + 1);
  }
  if (partial_.size() < kMaxLineBytes) partial_ += text;
}

void RecentLines::add_line(std::string_view kind, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  push(kind, std::string(text));
}

void RecentLines::push(std::string_view kind, std::string text) {
  if (text.size() > kMaxLineBytes) text.resize(kMaxLineBytes);
  bytes_ += text.size();
  lines_.push_back({std::string(kind), std::move(text)});
  ++next_;
  while (lines_.size() > kMaxLines || bytes_ > kMaxBytes) {
    bytes_ -= lines_.front().text.size();
    lines_.pop_front();
  }
}

std::vector<std::string> RecentLines::last(size_t most) const {
  std::vector<std::string> out;
  for (size_t i = lines_.size() - std::min(most, lines_.size()); i < lines_.size(); ++i) out.push_back(lines_[i].text);
  return out;
}

std::string RecentLines::json_from(uint64_t first) const {
  const uint64_t oldest = next_ - lines_.size();
  JsonList out(",");
  for (uint64_t number = std::max(first, oldest); number < next_; ++number) {
    const Line& line = lines_[number - oldest];
    out.add(fmt::format("[{},{},{}]", number, json_string(line.kind), json_string(line.text)));
  }
  return out.array();
}

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
