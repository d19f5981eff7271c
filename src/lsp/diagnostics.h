// Diagnostics, and the corrections that their hints propose.
#pragma once

#include "lsp/document.h"
#include "lsp/json.h"

namespace espy::lsp {

// Returns the Diagnostics of the document. What is wrong in an imported file is shown at the import.
Json diagnostics(const Document& document);
// Returns the CodeActions for diagnostics that the editor has: `did you mean X?` replaces what is underlined by X.
Json code_actions(const Document& document, const Json& diagnostics);

}  // namespace espy::lsp
