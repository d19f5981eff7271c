// Diagnostics of the type inference.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "source/diagnostic.h"

namespace espy::check {

using source::Span;

// The state of one pass over all units. Passes repeat until no type changes; then a final one reports diagnostics.
struct Round {
  bool is_final = false;
  bool has_changed = false;  // the type of a variable or map changed, so that another round is needed
};

// Adds diagnostics in the final round only, when types no longer change. An action is checked once for each kind of
// probe it is attached to, so the same diagnostic at the same place is added once.
class Reporter {
 public:
  Reporter(const Round& round, source::Diagnostics& diagnostics) : round_(round), diagnostics_(diagnostics) {}

  void error(std::string_view id, Span span, std::string message, std::string hint = {});
  void warning(std::string_view id, Span span, std::string message, std::string hint = {});
  // The note is left out if its span is invalid.
  void error_with_note(std::string_view id, Span span, std::string message, std::string hint, source::Note note);

  // While it is muted, it adds and counts nothing.
  void mute(bool is_muted) { is_muted_ = is_muted; }

  // Errors found in all rounds, including those that were not added.
  size_t error_count() const { return error_count_; }

 private:
  bool is_new(std::string_view id, Span span);

  const Round& round_;
  source::Diagnostics& diagnostics_;
  // By source, begin, end, expansion and id.
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, std::string>> reported_;
  size_t error_count_ = 0;
  bool is_muted_ = false;
};

}  // namespace espy::check
