#include "golden/support/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/strings.h"

namespace espy::golden {

namespace {

constexpr size_t kContextLines = 3;
// Above this many cells the table of common subsequences would take too much memory; then all lines between the common
// beginning and the common end are shown as changed.
constexpr size_t kMaxTableCells = 16'000'000;

using Lines = std::vector<std::string_view>;

struct Edit {
  char kind = ' ';  // ' ' in both, '-' in expected, '+' in actual
  std::string_view line;
};

// Lines with their newlines, so that a last line without one differs from a line with one.
Lines lines_of(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

// Appends the edits from `a` to `b` by a longest common subsequence.
void append_edits(std::span<const std::string_view> a, std::span<const std::string_view> b, std::vector<Edit>& out) {
  const size_t width = b.size() + 1;
  std::vector<uint32_t> common;  // [i * width + j]: lines in common of a from i on and b from j on
  if ((a.size() + 1) * width <= kMaxTableCells) {
    common.resize((a.size() + 1) * width);
    for (size_t i = a.size(); i-- > 0;)
      for (size_t j = b.size(); j-- > 0;)
        common[i * width + j] = a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                                             : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  }
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool can_compare = !common.empty() && i < a.size() && j < b.size();
    if (can_compare && a[i] == b[j]) {
      out.push_back({' ', a[i++]});
      ++j;
    } else if (i < a.size() && (!can_compare || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

std::vector<Edit> edits_of(const Lines& a, const Lines& b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (front + back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  std::vector<Edit> out;
  for (size_t i = 0; i < front; ++i) out.push_back({' ', a[i]});
  append_edits(std::span(a).subspan(front, a.size() - front - back),
               std::span(b).subspan(front, b.size() - front - back), out);
  for (size_t i = a.size() - back; i < a.size(); ++i) out.push_back({' ', a[i]});
  return out;
}

// "LINE,COUNT"; without lines, LINE is the one before them.
std::string range(size_t lines_before, size_t count) {
  return fmt::format("{},{}", count == 0 ? lines_before : lines_before + 1, count);
}

struct Position {
  size_t expected = 0, actual = 0;

  void advance(const Edit& edit) {
    if (edit.kind != '+') ++expected;
    if (edit.kind != '-') ++actual;
  }
};

std::string print_hunk(std::span<const Edit> hunk, Position begin) {
  Position end = begin;
  for (const Edit& edit : hunk) end.advance(edit);
  std::string out = fmt::format("@@ -{} +{} @@\n", range(begin.expected, end.expected - begin.expected),
                                range(begin.actual, end.actual - begin.actual));
  for (const Edit& edit : hunk) {
    out += fmt::format("{}{}", edit.kind, edit.line);
    if (!edit.line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
  }
  return out;
}

}  // namespace

std::string unified_diff(std::string_view expected, std::string_view actual) {
  if (expected == actual) return "";
  const std::vector<Edit> edits = edits_of(lines_of(expected), lines_of(actual));
  const auto next_change = [&](size_t from) {
    while (from < edits.size() && edits[from].kind == ' ') ++from;
    return from;
  };
  std::string out = "--- expected\n+++ actual\n";
  Position position;
  size_t done = 0;
  for (size_t change = next_change(0); change < edits.size();) {
    const size_t begin = std::max(done, change - std::min(change, kContextLines));
    size_t end = change;
    for (; change < edits.size() && change <= end + 2 * kContextLines; change = next_change(end)) end = change + 1;
    end = std::min(end + kContextLines, edits.size());
    for (; done < begin; ++done) position.advance(edits[done]);
    out += print_hunk(std::span(edits).subspan(begin, end - begin), position);
  }
  return out;
}

}  // namespace espy::golden
