// Completion: probes where an attach point is written, members after a dot, maps, variables, builtins and keywords.
#pragma once

#include <cstdint>

#include "lsp/document.h"
#include "lsp/names.h"

namespace espy::lsp {

// Returns the CompletionList for an offset of the document.
Json complete(const Services& services, ProbeNames& probes, const Document& document, uint32_t offset);

}  // namespace espy::lsp
