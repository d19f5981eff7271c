// Conditional compilation, before lexing.
//
// `#if`, `#ifdef` and the like may stand between any two lines, also inside a struct, so they are not part of the
// grammar. This pass reads the lines that begin with `#` and hides the inactive text and the directives themselves from
// the lexer. Active `#include` and `#define` lines stay visible: they are definitions of the script.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/lexer.h"

namespace espy::syntax {

struct Preprocessed {
  struct Problem {
    HiddenRange where;
    std::string_view id;
    std::string_view message;
  };
  std::vector<HiddenRange> hidden;  // sorted; each begins with `#` and ends before a newline
  std::vector<Problem> problems;
};

using MacroBodies = std::map<std::string, std::string, std::less<>>;

// `known`: the macros defined before the text.
Preprocessed preprocess(std::string_view text, MacroBodies known = {});

// A `#` line: from its `#` to its end, lines joined by a backslash included.
struct Directive {
  HiddenRange where;
  std::string_view word;  // "ifdef"
  std::string_view rest;  // without trailing comments
};
Directive read_directive(std::string_view text, uint32_t offset);

// The parts of a `#define`: NAME(parameters) body. The body is on one line and has no comments.
struct DefineText {
  std::string_view name;
  bool is_function_like = false;
  std::vector<std::string> parameters;
  std::string body;
};
DefineText read_define(std::string_view rest);

}  // namespace espy::syntax
