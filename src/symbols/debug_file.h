// Separate debug files of stripped files. Internal to symbols/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbols/elf_image.h"

namespace espy::symbols {

// Returns the image with the symbols that a file without .symtab lacks: a separate debug file found by build id or by
// .gnu_debuglink, or else the content of .gnu_debugdata. Its addresses are those of the file.
std::optional<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories);

// Returns the directory of a file, with a slash at its end. A path within the root of a process stays there.
std::string directory_of(const std::string& path);

}  // namespace espy::symbols
