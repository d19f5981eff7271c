// User errors and warnings: what is wrong, where, and what would help.
//
// Every stage adds to one `Diagnostics`; nobody prints. `render` is the only place that draws ^~~~.
#pragma once

#include <string>
#include <string_view>
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
  std::string_view id;  // stable, kebab-case, a literal: "unknown-function"
  Span span;            // may be invalid: then only the sentence is shown
  std::string message;
  std::string hint = {};  // shown after the underline: "did you mean `strftime`?"
  std::vector<Note> notes = {};
};

class Diagnostics {
 public:
  // Returns the new diagnostic, so that notes can be added to it.
  Diagnostic& error(std::string_view id, Span span, std::string message, std::string hint = {});
  Diagnostic& warning(std::string_view id, Span span, std::string message, std::string hint = {});

  bool has_errors() const;
  const std::vector<Diagnostic>& all() const { return all_; }
  void add(Diagnostic diagnostic) { all_.push_back(std::move(diagnostic)); }

 private:
  std::vector<Diagnostic> all_;
};

// What the user reads, one diagnostic after the other, each ended by a newline:
//
//   exits.bt:3:16: error: no function named `strftme` [unknown-function]
//     3 |   printf("%s", strftme("%H", nsecs));
//       |                ^~~~~~~ did you mean `strftime`?
//
// Notes follow in the same form; text from a macro shows the chain of calls, outermost last, and text from an import
// the chain of imports. Of a long line only what is around the span is shown, with `...` where it was cut.
std::string render(const Diagnostics& diagnostics, const Sources& sources, bool color = false);
std::string render(const Diagnostic& diagnostic, const Sources& sources, bool color = false);
// "note: expanded from ..." for each macro call that the span came through; nothing where it came through none.
std::string expansion_chain(Span span, const Sources& sources);
// The user's line with the span underlined, then the chain of macro calls that it came through.
std::string excerpt(Span span, const Sources& sources);

}  // namespace espy::source
