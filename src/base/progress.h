// A line on a terminal with the progress of long work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace espy {

class Progress {
 public:
  using Clock = uint64_t (*)();  // nanoseconds

  // `fd`: a terminal, or any file if nothing is to be shown. Not shown either if `is_wanted` is false.
  Progress(int fd, bool is_wanted, Clock clock = nullptr);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_shown() const { return is_shown_; }

  // Work begins; `text` gives the progress. Ends earlier work.
  void begin(std::function<std::string()> text);
  // The work continues: writes the line if it takes more than a second by now, at most ten times a second.
  void tick();
  // Removes the line, as something else is written there; a later `tick` writes it again.
  void hide();
  void end();

 private:
  int fd_;
  bool is_shown_;
  Clock clock_;
  std::function<std::string()> text_;  // null: there is no work
  uint64_t next_ns_ = 0;               // when the line is written
  bool is_written_ = false;
};

}  // namespace espy
