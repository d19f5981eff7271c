// Which files a program maps when it starts: itself, its loader, and the libraries that they need, theirs included.
#pragma once

#include <string>
#include <vector>

namespace espy::symbols {

// Paths as the loader would find them, the program's own first; what is not found is left out. A script (#!) stands for
// its interpreter. Libraries that a program opens later (dlopen) are not known.
std::vector<std::string> needed_files(const std::string& path);

}  // namespace espy::symbols
