#include "watch/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace espy::watch {

namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[2J";  // the alternate screen, no cursor, empty
constexpr std::string_view kLeave = "\033[0m\033[?25h\033[?1049l";
constexpr size_t kMaxSide = 2000;

// Characters as they are typed, without echo.
termios single_keys(termios settings) {
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  return settings;
}

// In the other process, which has no open files. The shell may have settings of its own by then: they stay.
void restore(const std::string& path, const termios& before) {
  const OwnedFd tty(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  termios now = {};
  if (!tty.valid() || ::tcgetattr(tty.get(), &now) != 0) return;
  const termios own = single_keys(before);
  if (now.c_lflag == own.c_lflag) ::tcsetattr(tty.get(), TCSANOW, &before);
  [[maybe_unused]] const ssize_t put = ::write(tty.get(), kLeave.data(), kLeave.size());
}

std::string_view sequence_of(LineStyle style, bool has_colors) {
  switch (style) {
    case LineStyle::kPlain: return "";
    case LineStyle::kTitle: return "\033[1m";
    case LineStyle::kChanged: return has_colors ? "\033[1;36m" : "\033[1m";
    case LineStyle::kStatus: return "\033[7m";
    case LineStyle::kWarning: return has_colors ? "\033[1;31m" : "\033[1m";
  }
  return "";
}

}  // namespace

bool has_screen() {
  const char* term = ::getenv("TERM");
  return term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0 && ::isatty(STDIN_FILENO) == 1 &&
         ::isatty(STDOUT_FILENO) == 1;
}

Status Terminal::enter() {
  if (is_entered_) return {};
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) return fail_errno("cannot read the settings of the terminal", errno);
  if (!janitor_) {
    char path[256];
    if (::ttyname_r(STDOUT_FILENO, path, sizeof(path)) != 0) path[0] = '\0';
    const auto nothing = []() -> Result<std::string> { return std::string(); };
    const auto clean = [name = std::string(path), before = before_](const std::string&) { restore(name, before); };
    janitor_.emplace(TRY(Janitor::start(nothing, clean)));
  }
  const termios keys = single_keys(before_);
  if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) != 0)
    return fail_errno("cannot change the settings of the terminal", errno);
  is_entered_ = true;
  return write_all(STDOUT_FILENO, kEnter);
}

void Terminal::leave() {
  if (!is_entered_) return;
  is_entered_ = false;
  [[maybe_unused]] const Status written = write_all(STDOUT_FILENO, kLeave);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

Terminal::Size Terminal::size() const {
  winsize window = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {std::min<size_t>(window.ws_col, kMaxSide), std::min<size_t>(window.ws_row, kMaxSide)};
}

Status Terminal::show(std::span<const Line> lines) {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return {};
  // A line is cleared before it is written: behind a full one the cursor is still on its last column.
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view style = sequence_of(lines[i].style, has_colors_);
    text += fmt::format("\033[{};1H\033[K{}{}{}", i + 1, style, lines[i].text, style.empty() ? "" : "\033[0m");
  }
  if (lines.size() < size().rows) text += fmt::format("\033[{};1H\033[J", lines.size() + 1);
  return write_all(STDOUT_FILENO, text);
}

}  // namespace espy::watch
