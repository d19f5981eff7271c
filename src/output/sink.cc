// The output formats, a line each: the row that the format's file defines. The first one is the default.
#include "output/sink.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"

namespace espy::output {

#define FOR_EACH_SINK(row)                                                                                      \
  row(kTextSink) row(kJsonSink) row(kTraceSink) row(kFoldedSink) row(kTreeSink) row(kFlameSink) row(kPprofSink) \
      row(kSpeedscopeSink) row(kOtlpSink)

#define DECLARE_ROW(row) extern const SinkRow row;
FOR_EACH_SINK(DECLARE_ROW)
#undef DECLARE_ROW

const std::vector<SinkRow>& sinks() {
#define LIST_ROW(row) row,
  static const std::vector<SinkRow> rows = {FOR_EACH_SINK(LIST_ROW)};
#undef LIST_ROW
  return rows;
}

const SinkRow* find_sink(std::string_view name) {
  for (const SinkRow& row : sinks())
    if (row.name == name) return &row;
  return nullptr;
}

std::string sinks_doc() {
  std::string out;
  for (const SinkRow& row : sinks())
    out += fmt::format("{}{}{}: {}", out.empty() ? "" : "; ", row.name, out.empty() ? " (default)" : "", row.doc);
  return out;
}

std::string sinks_with_lines() {
  std::string out;
  for (const SinkRow& row : sinks())
    if (row.has_lines) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return out;
}

namespace {
constexpr size_t kFullBytes = 64 * 1024;
}

Writer::Writer(int fd, Buffering buffering) : fd_(fd), buffering_(buffering) {
  if (buffering != Buffering::kNone) buffer_.reserve(kFullBytes);
}

Writer::~Writer() { flush(); }

TextStyle for_terminal(TextStyle style, const Writer& out) {
  style.is_for_terminal = out.is_terminal();
  return style;
}

bool Writer::is_terminal() const { return ::isatty(fd_) == 1; }

void Writer::write(std::string_view bytes) {
  buffer_ += bytes;
  wrote();
}

void Writer::wrote() {
  if (buffering_ == Buffering::kNone || buffer_.size() >= kFullBytes) flush();
}

void Writer::flush() {
  if (!buffer_.empty() && before_output_) before_output_();
  if (!buffer_.empty() && status_) status_ = write_all(fd_, buffer_);
  buffer_.clear();
}

void Writer::move_to(int fd) {
  flush();
  fd_ = fd;
}

void Writer::batch_end() {
  if (before_output_) before_output_();  // a message on stderr may follow
  if (buffering_ == Buffering::kLine) flush();
}

}  // namespace espy::output
