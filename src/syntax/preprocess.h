// Conditional compilation, before there are tokens.
//
// `#if` and its kin may stand between any two lines, even inside a struct, so no grammar rule can take them. This pass
// reads only lines that begin with `#`, decides which parts of the text count, and hides the rest, and the directives
// themselves, from the lexer. `#include` and `#define` that count stay visible: they are definitions of the script.
#pragma once

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

// `known`: what is defined before the text begins.
Preprocessed preprocess(std::string_view text, MacroBodies known = {});

// A `#` line: from its `#` to its end, lines joined by a backslash included.
struct Directive {
  HiddenRange where;
  std::string_view word;  // "ifdef"
  std::string_view rest;  // as typed, without comments at its end
};
Directive read_directive(std::string_view text, uint32_t offset);

// `#define` split: NAME(parameters) body, the body on one line and without comments.
struct DefineText {
  std::string_view name;
  bool is_function_like = false;
  std::vector<std::string> parameters;
  std::string body;
};
DefineText read_define(std::string_view rest);

}  // namespace espy::syntax
