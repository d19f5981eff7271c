// Separate debug files of stripped files. Internal to symbols/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols {

// Returns the separate debug file, found by build id or by .gnu_debuglink. Fails with kRefusedFile if one may be there
// but would take too much.
Result<ElfImage> find_debug_file(const ElfImage& image, const std::vector<std::string>& debug_directories);

// Returns the image with the symbols that a file without .symtab lacks: that file, or else the content of
// .gnu_debugdata, which has no debug information. Its addresses are those of the file.
Result<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories);

// How much work the search for debug files may be in a run, in bytes of a checksum: any user can have large files that
// take no disk, and more of them. After the end was requested it may be less, as the end waits for it.
class SearchLimit {
 public:
  // Returns false if the work is too much.
  bool take(uint64_t bytes);

 private:
  uint64_t left_bytes_ = uint64_t{4} << 30;
  uint64_t left_at_end_bytes_ = 512 << 20;
};

// Returns the directory of a file, with a slash at its end. A path within the root of a process stays there.
std::string directory_of(const std::string& path);

}  // namespace espy::symbols
