// Macros whose bodies use `#` or `##`. Such a body can be parsed only with the arguments in it, so it is substituted as
// text (C17, 6.10.3); other macros are copied as trees (expand.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/c_ast.h"

namespace espy::check {

using DefinesByName = std::map<std::string, const syntax::CDefine*, std::less<>>;

// True if the body of `define` uses `#` or `##`, or names one of `others` that does.
bool needs_paste(const syntax::CDefine& define, const DefinesByName& others);

// The texts of the arguments of "NAME(a, b(c, d))": "a" and "b(c, d)". Empty for "NAME()".
std::vector<std::string_view> argument_texts(std::string_view call);

// The body of `define` with `arguments`, one for each parameter, substituted: `#x` becomes a string literal, `a##x` one
// word, adjacent string literals one literal.
std::string paste(const syntax::CDefine& define, const std::vector<std::string_view>& arguments);

}  // namespace espy::check
