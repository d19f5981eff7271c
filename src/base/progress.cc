#include "base/progress.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/end_request.h"
#include "base/files.h"
#include "base/strings.h"

namespace espy {

namespace {

constexpr uint64_t kDelayNs = 1'000'000'000;
constexpr uint64_t kIntervalNs = 100'000'000;
constexpr size_t kMaxBytes = 78;  // so that it is one line on nearly all terminals

bool is_good_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(int fd, bool is_wanted, Clock clock)
    : fd_(fd),
      is_shown_(is_wanted && is_good_terminal(fd)),
      clock_(clock != nullptr ? clock : static_cast<Clock>(monotonic_ns)) {}

void Progress::begin(std::function<std::string()> text) {
  end();
  if (!is_shown_) return;
  text_ = std::move(text);
  next_ns_ = clock_() + kDelayNs;
}

void Progress::tick() {
  if (!text_) return;
  const uint64_t now_ns = clock_();
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kIntervalNs;
  const std::string text = printable_line(text_()).substr(0, kMaxBytes);
  is_written_ = write_all(fd_, "\r" + text + "\033[K\r").has_value();
}

void Progress::hide() {
  if (!is_written_) return;
  is_written_ = false;
  [[maybe_unused]] const Status written = write_all(fd_, "\r\033[K");
}

void Progress::end() {
  hide();
  text_ = nullptr;
}

}  // namespace espy
