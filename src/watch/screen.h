// Screen: --watch on a terminal. Reads the maps at each interval, and shows them with what its user has chosen by keys.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <termios.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/result.h"
#include "output/forwarding_sink.h"
#include "output/log_sink.h"
#include "output/spans.h"
#include "watch/page.h"
#include "watch/watch.h"

namespace espy::watch {

// Keys that are typed at a terminal.
struct Key {
  enum class Kind { kText, kEnter, kBackspace, kEscape, kTab, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kOther };
  Kind kind = Kind::kOther;
  std::string text = {};  // kText: a character
};

// Takes what one read gave. An escape that nothing follows is the key; others begin a sequence, which is kOther if it
// is of none of the keys above. Other bytes are skipped.
std::vector<Key> keys_of(std::string_view bytes);

// Whether stdin and stdout are a terminal that has a screen: $TERM is set, and not `dumb`.
bool has_screen();

// The terminal of stdin and stdout as a screen, and as it was before.
//
// In: lines of text that have no control characters. Out: ANSI sequences that every terminal in use knows: the
// alternate screen, positions, clearing, and four styles. While the screen is shown, typed keys come one by one and are
// not echoed; signals of keys stay. However the process ends, also by SIGKILL, the terminal gets its settings back:
// another process waits for that.
class Terminal {
 public:
  explicit Terminal(bool has_colors) : has_colors_(has_colors) {}
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Status enter();
  void leave();  // does nothing if the screen is not shown
  bool is_entered() const { return is_entered_; }

  struct Size {
    size_t columns = 80, rows = 24;
  };
  Size size() const;
  // Shows the lines from the top. Shows nothing if the terminal takes no output now, rather than waiting.
  Status show(std::span<const Line> lines);

 private:
  bool has_colors_;
  bool is_entered_ = false;
  termios before_ = {};
  std::optional<Janitor> janitor_;
};

// Keeps the output of a run while a screen hides where it would go, and passes it on afterwards.
class HeldSink final : public output::ForwardingSink {
 public:
  // `holds_text`, `holds_messages`: the screen hides where text, and where messages go. Maps that the script prints are
  // not kept: the screen shows them. `inner` must outlive the sink.
  HeldSink(output::Sink& inner, output::TextStyle style, bool holds_text, bool holds_messages)
      : output::ForwardingSink(inner),
        style_(std::move(style)),
        holds_text_(holds_text),
        holds_messages_(holds_messages) {}

  void hold() { is_holding_ = true; }
  // Passes on the kept output, or the last part if it was much.
  void release();

  void text(std::string_view kind, std::string_view text) override;
  void text_line(std::string_view kind, std::string_view text) override;
  void value(const output::Value& value) override;
  void span(const output::SpanEvent& event) override;
  void map(const output::MapView& map) override;
  void lost(uint64_t events) override;
  void cost(const output::CostReport& report) override;
  void explain(std::string_view text) override;
  void helper_error(const output::HelperError& error) override;
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override;

 private:
  struct Kept {
    std::function<void(output::Sink&)> pass_on;
    size_t bytes = 0;
  };
  bool holds_text() const { return is_holding_ && holds_text_; }
  bool holds_messages() const { return is_holding_ && holds_messages_; }
  void keep(size_t bytes, std::function<void(output::Sink&)> pass_on);
  void keep_text(std::string_view kind, std::string text);

  output::TextStyle style_;
  output::SpanText spans_{style_};
  bool holds_text_, holds_messages_;
  bool is_holding_ = false;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
  uint64_t left_out_ = 0;
};

class Screen final : public Watch {
 public:
  static Result<std::unique_ptr<Watch>> create(WatchOptions options, const program::Program& program,
                                               output::Sink& sink);
  ~Screen() override { stop(); }

  output::Sink& sink() override { return log_; }
  int fd() const override { return epoll_.get(); }
  void serve(runtime::LiveRun& run) override;
  void stop() override;
  void end(runtime::LiveRun&) override {}

 private:
  Screen(WatchOptions options, const program::Program& program, output::Sink& sink);
  Status start();
  Status add(int fd);
  Status begin();
  Status answer(runtime::LiveRun& run);
  void take_signals();
  void suspend();
  void take_keys();
  void take_key(const Key& key);
  void take_filter_key(const Key& key);
  void take_snapshot(runtime::LiveRun& run);
  std::string status_text() const;
  Status draw();

  WatchOptions options_;
  const program::Program& program_;
  output::RecentLines lines_;
  HeldSink held_;
  output::LogSink log_;
  Tables tables_;
  PageContent content_;
  View view_;
  Terminal terminal_;
  OwnedFd epoll_, timer_, signals_;
  sigset_t mask_before_ = {};
  bool has_begun_ = false, has_stopped_ = false;
  bool has_keys_ = true;  // false: stdin is at its end
  uint64_t started_ns_ = 0;
  uint64_t next_read_ns_ = 0;  // when the maps may be read again
};

}  // namespace espy::watch
