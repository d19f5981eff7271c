// Terminal: the terminal of stdin and stdout as a screen, and as it was before.
//
// In: lines of text that have no control characters. Out: ANSI sequences that every terminal in use knows: the
// alternate screen, positions, clearing, and four styles. While the screen is shown, typed keys come one by one and are
// not echoed; signals of keys stay. However the process ends, also by SIGKILL, the terminal gets its settings back:
// another process waits for that.
#pragma once

#include <signal.h>
#include <termios.h>

#include <optional>
#include <span>
#include <string>

#include "base/janitor.h"
#include "base/result.h"
#include "watch/page.h"

namespace espy::watch {

// Whether stdin and stdout are a terminal that has such a screen: $TERM is set, and not `dumb`.
bool has_screen();

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

}  // namespace espy::watch
