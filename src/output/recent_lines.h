// RecentLines: the last lines of a run's text output, for those who view it. Bounded in lines and bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace espy::output {

class RecentLines {
 public:
  // Adds text, which may be a part of a line, or several. `kind`: as of Sink::text.
  void add(std::string_view kind, std::string_view text);
  // Adds a whole line.
  void add_line(std::string_view kind, std::string_view text);

  // The lines from number `first` on, as a JSON array of [number, kind, text]. Numbers begin with 0.
  std::string json_from(uint64_t first) const;
  uint64_t next_number() const { return next_; }
  // The last `most` lines, oldest first.
  std::vector<std::string> last(size_t most) const;

 private:
  struct Line {
    std::string kind;
    std::string text;
  };
  void push(std::string_view kind, std::string text);

  std::deque<Line> lines_;
  size_t bytes_ = 0;
  uint64_t next_ = 0;  // the number of the next line
  std::string partial_;
};

}  // namespace espy::output
