// Where the symbols of a stripped file went. Inside this room only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbols/elf_image.h"

namespace espy::symbols {

// The image that completes the symbols of a file without .symtab: a separate debug file found by build id or by
// .gnu_debuglink, else what .gnu_debugdata holds. Its addresses are those of the file itself.
std::optional<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories);

}  // namespace espy::symbols
