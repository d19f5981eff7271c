// Where the names of a script are defined and used: definition, references, renaming, symbols, types of variables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lsp/document.h"
#include "lsp/json.h"

namespace espy::lsp {

// The scheme of documents that the server makes: "espy-btf:///struct task_struct.c".
constexpr std::string_view kTypeScheme = "espy-btf:///";

// Returns the Location of the definition of what is at the offset; null if there is none.
Json definition(const Document& document, uint32_t offset);
// Returns the text of a document of kTypeScheme: the C definition of a type, in the kernel that `analysis` was made
// for.
std::string type_document(const Analysis& analysis, std::string_view uri);
// Returns the Locations of all uses of the variable, map, function or macro at the offset.
Json references(const Document& document, uint32_t offset);
// Returns the WorkspaceEdit that gives it another name; fails if that is not possible.
Result<Json> rename(const Document& document, uint32_t offset, const std::string& new_name);
// Returns the DocumentSymbols: actions, functions, macros.
Json symbols(const Document& document);
// Returns the InlayHints: the types of variables and maps where they are assigned first.
Json inlay_hints(const Document& document);

}  // namespace espy::lsp
