// The files that a program maps when it starts: itself, the dynamic loader, and the libraries they depend on.
#pragma once

#include <string>
#include <vector>

namespace espy::symbols {

// Returns their paths as the loader finds them, the program first; files that are not found are omitted. For a script
// (#!) the program is its interpreter. Libraries opened later with dlopen are not included.
std::vector<std::string> needed_files(const std::string& path);

}  // namespace espy::symbols
