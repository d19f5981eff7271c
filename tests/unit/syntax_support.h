// What the tests of the syntax room share: parse a text, and say what came out as one line.
#pragma once

#include <string>

#include "syntax/format_script.h"
#include "syntax/parser.h"

namespace espy::syntax {

struct Parsed {
  source::Sources sources;
  source::SourceId id;
  source::Diagnostics diagnostics;
  Ast ast;

  explicit Parsed(std::string text) : id(sources.add("t.bt", std::move(text))), ast(parse(sources, id, diagnostics)) {}
  std::string errors() const { return source::render(diagnostics, sources); }
  std::string tree() const { return dump(ast, sources); }
  std::string formatted() const { return format(ast, sources, id); }
};

// The dump with all white space between nodes made one space.
inline std::string flat(const std::string& dump) {
  std::string out;
  for (const char c : dump) {
    if (c != '\n' && c != ' ') {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace espy::syntax
