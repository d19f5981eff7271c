// Errors and warnings about a script: the problem, its place, and a hint.
//
// Every stage adds to one `Diagnostics` and prints nothing; `render` turns them into text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/source.h"

namespace espy::source {

enum class Severity : uint8_t { kError, kWarning, kNote };

struct Note {
  Span span;
  std::string message;
};

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string_view id;  // a literal, kebab-case, stable between versions: "unknown-function"
  Span span;            // may be invalid: then only the message is shown
  std::string message;
  std::string hint = {};  // what to do: "did you mean `strftime`?"
  std::vector<Note> notes = {};
};

class Diagnostics {
 public:
  // Returns the new diagnostic, to which notes can be added; valid until the next call.
  Diagnostic& error(std::string_view id, Span span, std::string message, std::string hint = {});
  Diagnostic& warning(std::string_view id, Span span, std::string message, std::string hint = {});

  bool has_errors() const;
  const std::vector<Diagnostic>& all() const { return all_; }
  void add(Diagnostic diagnostic) { all_.push_back(std::move(diagnostic)); }

 private:
  std::vector<Diagnostic> all_;
};

// Returns the diagnostics as text, each ended by a newline:
//
//   exits.bt:3:16: error: no function named `strftme` [unknown-function]
//     3 |   printf("%s", strftme("%H", nsecs));
//       |                ^~~~~~~ did you mean `strftime`?
//
// Notes follow in the same form. Text from a macro shows the chain of calls, outermost last; text from an import the
// chain of imports. A long line is cut around the span, with `...` at each cut. Control characters are shown as `\xNN`.
// Shows the first twenty errors, the first twenty warnings, and the number of the others.
struct RenderStyle {
  bool is_colored = false;
  bool has_warnings = true;
};
std::string render(const Diagnostics& diagnostics, const Sources& sources, const RenderStyle& style = {});
std::string render(const Diagnostic& diagnostic, const Sources& sources, const RenderStyle& style = {});
// Returns a line "note: expanded from ..." for each macro call that the span results from; empty if there is none.
std::string expansion_chain(Span span, const Sources& sources);
// Returns the source line with the span underlined, then its chain of macro calls.
std::string excerpt(Span span, const Sources& sources);

}  // namespace espy::source
