// Macros whose bodies use `#` or `##`. Such a body means nothing until the arguments stand in it, so it is put
// together as text, as the C standard (6.10.3) has it; every other macro is a tree that is copied (expand.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/c_ast.h"

namespace espy::check {

using DefinesByName = std::map<std::string, const syntax::CDefine*, std::less<>>;

// Whether the body of `define` needs this, or names one of `others` that does.
bool needs_paste(const syntax::CDefine& define, const DefinesByName& others);

// The arguments of "NAME(a, b(c, d))" as typed: "a" and "b(c, d)". None for "NAME()".
std::vector<std::string_view> argument_texts(std::string_view call);

// The body of `define` with `arguments`, one a parameter, put in: `#x` is the argument's text as a string literal,
// `a##x` is one word, string literals side by side are one.
std::string paste(const syntax::CDefine& define, const std::vector<std::string_view>& arguments);

}  // namespace espy::check
