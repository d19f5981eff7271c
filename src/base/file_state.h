// What tells a file from others, and from what it was at another time.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace espy {

// Equal for two paths of one file, different after the file was written to or replaced.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  uint64_t modified_ns = 0;  // since 1970
  auto operator<=>(const FileIdentity&) const = default;
};

// The same, with the time of the last change (st_ctim), which nobody can set. So espy also notices a file whose
// modification time was set back, and a new file with the inode number of a deleted file. A new mode, owner or name
// changes this time, too.
// Kernels before Linux 6.13 count it in ticks of up to 10 ms.
struct FileState {
  FileIdentity identity;
  uint64_t changed_ns = 0;  // since 1970
  auto operator<=>(const FileState&) const = default;
  bool is_known() const { return *this != FileState(); }
};

// What became of a file, as a clause about it: "was replaced" by another file, "was written to", or "was changed" in
// its mode, owner or names.
std::string_view what_became_of(const FileState& before, const FileState& now);

}  // namespace espy
