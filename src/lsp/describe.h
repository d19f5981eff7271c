// Texts about what a script names, in Markdown.
#pragma once

#include <string>
#include <string_view>

#include "lsp/analysis.h"

namespace espy::lsp {

// A block of code of the language.
std::string code_block(std::string_view code);
// Signature, description and example of a row of the reference.
std::string describe(const spec::Builtin& builtin);
std::string describe(const spec::Provider& provider);
// "@bytes[string[16],int64]: sum_t"
std::string declaration_of(const check::CheckedMap& map, const types::Types& types);
// "fn name($a : uint64) : bool"; of a macro "macro name($a, @b, c)".
std::string head_of(const Analysis& analysis, source::Span whole);
// The C definition of a struct, union or enum of the kernel, as a block of code, cut if it is long; "" if it has none.
std::string definition_of(const Analysis& analysis, const std::string& name);

}  // namespace espy::lsp
