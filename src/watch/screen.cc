#include "watch/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/strings.h"
#include "watch/watch.h"

namespace espy::watch {

namespace {

// ---- Keys

// Returns the length of the sequence at the front, which begins with an escape: "\033[1;5A", "\033OP", "\033x".
size_t sequence_bytes(std::string_view bytes) {
  if (bytes.size() < 2) return bytes.size();
  if (bytes[1] != '[' && bytes[1] != 'O') return 2;
  size_t end = 2;
  while (end < bytes.size() && (bytes[end] < 0x40 || bytes[end] > 0x7e)) ++end;
  return std::min(end + 1, bytes.size());
}

// The sequences that terminals in use send, with and without application keys.
Key::Kind kind_of(std::string_view sequence) {
  struct Sequence {
    std::string_view end;  // behind "\033[" or "\033O"
    Key::Kind kind;
  };
  constexpr Sequence kSequences[] = {{"A", Key::Kind::kUp},       {"B", Key::Kind::kDown},  {"H", Key::Kind::kHome},
                                     {"F", Key::Kind::kEnd},      {"1~", Key::Kind::kHome}, {"7~", Key::Kind::kHome},
                                     {"4~", Key::Kind::kEnd},     {"8~", Key::Kind::kEnd},  {"5~", Key::Kind::kPageUp},
                                     {"6~", Key::Kind::kPageDown}};
  if (sequence.size() < 3 || (sequence[1] != '[' && sequence[1] != 'O')) return Key::Kind::kOther;
  const auto* found = std::ranges::find(kSequences, sequence.substr(2), &Sequence::end);
  return found == std::end(kSequences) ? Key::Kind::kOther : found->kind;
}

Key key_of(std::string_view character) {
  switch (character[0]) {
    case '\t': return {Key::Kind::kTab};
    case '\n':
    case '\r': return {Key::Kind::kEnter};
    case '\b':
    case 0x7f: return {Key::Kind::kBackspace};
    default: break;
  }
  const std::string text(character);
  return printable_line(text) == text ? Key{Key::Kind::kText, text} : Key{};
}

// ---- The terminal

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

// ---- Output that waits

constexpr size_t kMaxKept = 10'000;
constexpr size_t kMaxKeptBytes = 4 << 20;

// ---- The screen

constexpr uint64_t kPauseFactor = 10;  // of the time that it took to read the maps: at most a tenth of a CPU

// Those of the terminal that end nothing. They are taken by a descriptor, so that no handler runs within other code.
sigset_t terminal_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGWINCH, SIGTSTP, SIGCONT}) sigaddset(&out, signal);
  return out;
}

std::string losses_text(const output::LossReport& losses) {
  std::string out;
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    if (losses.totals[kind] > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", losses.totals[kind],
                         output::name_of(static_cast<program::LossKind>(kind)).column);
  if (const size_t count = losses.file_changes.size(); count > 0)
    out += fmt::format("{}{} changed files", out.empty() ? "" : ", ", count);
  if (const size_t count = losses.others.size(); count > 0)
    out += fmt::format("{}{} other losses", out.empty() ? "" : ", ", count);
  if (losses.uncertain_addresses > 0)
    out += fmt::format("{}{} uncertain addresses", out.empty() ? "" : ", ", losses.uncertain_addresses);
  return out;
}

}  // namespace

// ---- Keys

std::vector<Key> keys_of(std::string_view bytes) {
  std::vector<Key> out;
  while (!bytes.empty()) {
    const bool is_escape = bytes[0] == '\033';
    const size_t size = is_escape ? sequence_bytes(bytes) : std::max<size_t>(utf8_length(bytes), 1);
    const std::string_view typed = bytes.substr(0, size);
    out.push_back(!is_escape ? key_of(typed) : Key{size == 1 ? Key::Kind::kEscape : kind_of(typed)});
    bytes.remove_prefix(size);
  }
  return out;
}

// ---- The terminal

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

// ---- Output that waits

void HeldSink::keep(size_t bytes, std::function<void(output::Sink&)> pass_on) {
  kept_.push_back({std::move(pass_on), bytes});
  bytes_ += bytes;
  while (kept_.size() > kMaxKept || bytes_ > kMaxKeptBytes) {
    bytes_ -= kept_.front().bytes;
    kept_.pop_front();
    ++left_out_;
  }
}

void HeldSink::keep_text(std::string_view kind, std::string text) {
  const size_t bytes = text.size();
  keep(bytes, [kind = std::string(kind), text = std::move(text)](output::Sink& sink) { sink.text(kind, text); });
}

void HeldSink::release() {
  if (!is_holding_) return;
  is_holding_ = false;
  if (holds_text_)
    if (std::string rest = spans_.flush(); !rest.empty()) keep_text("span", std::move(rest));
  if (left_out_ > 0)
    inner().message(
        "runtime_error",
        output::counted(left_out_, "output record(s) skipped while the screen was shown (-o FILE keeps them)"), "", 0,
        0, 0);
  for (const Kept& kept : kept_) kept.pass_on(inner());
  kept_.clear();
  bytes_ = left_out_ = 0;
}

void HeldSink::text(std::string_view kind, std::string_view text) {
  if (!holds_text()) return inner().text(kind, text);
  keep_text(kind, std::string(text));
}

void HeldSink::text_line(std::string_view kind, std::string_view text) {
  if (!holds_text()) return inner().text_line(kind, text);
  keep(text.size(),
       [kind = std::string(kind), text = std::string(text)](output::Sink& sink) { sink.text_line(kind, text); });
}

void HeldSink::value(const output::Value& value) {
  if (!holds_text()) return inner().value(value);
  keep_text("print", output::to_text(value, style_) + "\n");
}

void HeldSink::span(const output::SpanEvent& event) {
  if (!holds_text()) return inner().span(event);
  keep_text("span", spans_.add(event));
}

void HeldSink::map(const output::MapView& map) {
  if (!holds_text()) inner().map(map);
}

void HeldSink::lost(uint64_t events) {
  if (!holds_messages()) return inner().lost(events);
  keep(sizeof(events), [events](output::Sink& sink) { sink.lost(events); });
}

void HeldSink::cost(const output::CostReport& report) {
  if (!holds_messages()) return inner().cost(report);
  keep(sizeof(report), [report](output::Sink& sink) { sink.cost(report); });
}

void HeldSink::explain(std::string_view text) {
  if (!holds_messages()) return inner().explain(text);
  keep(text.size(), [text = std::string(text)](output::Sink& sink) { sink.explain(text); });
}

void HeldSink::helper_error(const output::HelperError& error) {
  if (!holds_messages()) return inner().helper_error(error);
  keep(error.excerpt.size(),
       [error, helper = std::string(error.helper), message = std::string(error.message), file = std::string(error.file),
        excerpt = std::string(error.excerpt)](output::Sink& sink) {
         output::HelperError copy = error;
         copy.helper = helper;
         copy.message = message;
         copy.file = file;
         copy.excerpt = excerpt;
         sink.helper_error(copy);
       });
}

void HeldSink::message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                       uint32_t column, uint32_t end_column) {
  if (!holds_messages()) return inner().message(kind, text, file, line, column, end_column);
  keep(text.size(), [kind = std::string(kind), text = std::string(text), file = std::string(file), line, column,
                     end_column](output::Sink& sink) { sink.message(kind, text, file, line, column, end_column); });
}

// ---- The screen

Screen::Screen(WatchOptions options, const program::Program& program, output::Sink& sink)
    : options_(std::move(options)),
      program_(program),
      held_(sink, options_.style, options_.is_text_hidden, options_.are_messages_hidden),
      log_(held_, lines_, options_.style),
      tables_(options_.style, options_.scratch_maps),
      terminal_(options_.has_colors) {}

Result<std::unique_ptr<Watch>> Screen::create(WatchOptions options, const program::Program& program,
                                              output::Sink& sink) {
  std::unique_ptr<Screen> out(new Screen(std::move(options), program, sink));
  TRY_STATUS(out->start());
  return std::unique_ptr<Watch>(std::move(out));
}

Status Screen::add(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("cannot wait for the terminal", errno);
  return {};
}

Status Screen::start() {
  epoll_ = OwnedFd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = TRY(make_timer(1, options_.interval_ns));  // the first page comes at once
  return add(timer_.get());
}

// Once the run waits for events: what `begin` prints, and how many probes are attached, come before the screen.
Status Screen::begin() {
  has_begun_ = true;
  started_ns_ = monotonic_ns();
  const sigset_t taken = terminal_signals();
  ::sigprocmask(SIG_BLOCK, &taken, &mask_before_);
  signals_ = OwnedFd(::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  TRY_STATUS(add(signals_.get()));
  TRY_STATUS(add(STDIN_FILENO));
  held_.hold();
  return terminal_.enter();
}

void Screen::stop() {
  if (!has_begun_ || has_stopped_) return;
  has_stopped_ = true;
  terminal_.leave();
  const sigset_t taken = terminal_signals();
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (const int signal : {SIGWINCH, SIGTSTP, SIGCONT})
    if (sigismember(&mask_before_, signal) == 0) sigdelset(&mask, signal);
  // A signal that came meanwhile is of no use any more, and would stop the process here.
  timespec none = {};
  while (::sigtimedwait(&taken, nullptr, &none) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  held_.release();
}

void Screen::serve(runtime::LiveRun& run) {
  if (has_stopped_) return;
  const Status answered = catch_out_of_memory([&] { return answer(run); });
  if (answered) return;
  stop();
  log_.message("runtime_error", answered.error().message + ": --watch shows nothing from here on", "", 0, 0, 0);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, timer_.get(), nullptr);
  if (has_keys_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
}

Status Screen::answer(runtime::LiveRun& run) {
  if (!has_begun_) TRY_STATUS(begin());
  take_signals();
  take_keys();
  if (is_end_requested()) return {};
  if (take_tick(timer_.get()) && !view_.is_paused && monotonic_ns() >= next_read_ns_) take_snapshot(run);
  return draw();
}

void Screen::take_signals() {
  signalfd_siginfo taken = {};
  while (::read(signals_.get(), &taken, sizeof(taken)) == sizeof(taken)) {
    if (taken.ssi_signo == SIGTSTP) suspend();
    if (taken.ssi_signo == SIGCONT) {  // after SIGSTOP the shell may have changed everything
      terminal_.leave();
      if (!terminal_.enter()) has_keys_ = false;
    }
  }
}

// Stops the process as the signal would have done, with the terminal as it was.
void Screen::suspend() {
  terminal_.leave();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // stops here until SIGCONT
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void Screen::take_keys() {
  if (!has_keys_) return;
  epoll_event ready[4];
  const int count = ::epoll_wait(epoll_.get(), ready, 4, 0);
  const bool is_typed = std::any_of(ready, ready + std::max(count, 0),
                                    [](const epoll_event& event) { return event.data.fd == STDIN_FILENO; });
  if (!is_typed) return;
  char bytes[256];
  const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    has_keys_ = false;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
    return;
  }
  for (const Key& key : keys_of({bytes, static_cast<size_t>(got)}))
    view_.is_typing ? take_filter_key(key) : take_key(key);
}

void Screen::take_key(const Key& key) {
  if (key.text == "q") ::raise(SIGINT);  // ends the run as Ctrl-C does
  if (view_.shows_keys) {                // any key goes back
    view_.shows_keys = false;
    return;
  }
  switch (key.kind) {
    case Key::Kind::kUp: return scroll(content_, view_, Step::kLineUp);
    case Key::Kind::kDown: return scroll(content_, view_, Step::kLineDown);
    case Key::Kind::kPageUp: return scroll(content_, view_, Step::kPageUp);
    case Key::Kind::kPageDown: return scroll(content_, view_, Step::kPageDown);
    case Key::Kind::kEscape:
    case Key::Kind::kHome: return scroll(content_, view_, Step::kHome);
    case Key::Kind::kEnd: return scroll(content_, view_, Step::kEnd);
    case Key::Kind::kTab: return scroll(content_, view_, Step::kNextMap);
    default: break;
  }
  if (key.text == "n") scroll(content_, view_, Step::kNextMap);
  if (key.text == "p") scroll(content_, view_, Step::kPreviousMap);
  if (key.text == "f") view_.shows_scratch = !view_.shows_scratch;
  if (key.text == "?") view_.shows_keys = true;
  if (key.text == "s") view_.order = next(view_.order);
  if (key.text == "/") view_.is_typing = true;
  if (key.text == " ") view_.is_paused = !view_.is_paused;
}

void Screen::take_filter_key(const Key& key) {
  constexpr size_t kMaxBytes = 200;
  switch (key.kind) {
    case Key::Kind::kText:
      if (view_.filter.size() < kMaxBytes) view_.filter += key.text;
      break;
    case Key::Kind::kBackspace:
      while (!view_.filter.empty() && (view_.filter.back() & 0xc0) == 0x80) view_.filter.pop_back();
      if (!view_.filter.empty()) view_.filter.pop_back();
      break;
    case Key::Kind::kEscape: view_.filter.clear(); [[fallthrough]];
    case Key::Kind::kEnter: view_.is_typing = false; break;
    default: break;
  }
}

void Screen::take_snapshot(runtime::LiveRun& run) {
  const uint64_t begin_ns = monotonic_ns();
  content_.tables = tables_.read(read_maps(run, program_), begin_ns);
  content_.losses = losses_text(run.losses());
  const uint64_t end_ns = monotonic_ns();
  const uint64_t pause_ns = (end_ns - begin_ns) * kPauseFactor;
  next_read_ns_ = pause_ns > options_.interval_ns ? end_ns + pause_ns : 0;
  content_.status = status_text();
}

std::string Screen::status_text() const {
  const uint64_t seconds = (monotonic_ns() - started_ns_) / kNsPerSecond;
  return fmt::format("{} | {} | {}:{:02}", printable_line(options_.script), clock_text(), seconds / 60, seconds % 60);
}

Status Screen::draw() {
  const Terminal::Size size = terminal_.size();
  view_.columns = size.columns;
  view_.rows = size.rows;
  content_.log = lines_.last(view_.rows);
  return terminal_.show(make_page(content_, view_));
}

}  // namespace espy::watch
