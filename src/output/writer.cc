#include <unistd.h>

#include "base/fd.h"
#include "output/sink.h"

namespace espy::output {

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

void Writer::batch_end() {
  if (before_output_) before_output_();  // a message on stderr may follow
  if (buffering_ == Buffering::kLine) flush();
}

}  // namespace espy::output
