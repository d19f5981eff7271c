// Hover and signature help.
#pragma once

#include <cstdint>

#include "lsp/document.h"
#include "lsp/json.h"

namespace espy::lsp {

// Returns the Hover for an offset of the document; null if there is nothing to say.
Json hover(const Services& services, const Document& document, uint32_t offset);
// Returns the SignatureHelp for the call that the offset is in; null if it is in none.
Json signature_help(const Services& services, const Document& document, uint32_t offset);

}  // namespace espy::lsp
