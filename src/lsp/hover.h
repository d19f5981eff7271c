// Hover and signature help, with the texts that they show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lsp/document.h"
#include "lsp/script_analysis.h"

namespace espy::lsp {

// ---- Texts about what a script names, in Markdown.

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

// ---- Hover and signature help.

// Returns the Hover for an offset of the document; null if there is nothing to say.
Json hover(const Services& services, const Document& document, uint32_t offset);
// Returns the SignatureHelp for the call that the offset is in; null if it is in none.
Json signature_help(const Services& services, const Document& document, uint32_t offset);

}  // namespace espy::lsp
