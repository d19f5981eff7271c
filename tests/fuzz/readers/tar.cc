// Snapshots of kernels: tar, compressed or not.
#include <cstdlib>
#include <filesystem>

#include "../reader.h"
#include "kernel/snapshot.h"

namespace espy::fuzz {

void run_tar(std::string_view bytes) {
  constexpr uint64_t kLimitBytes = 1 << 20;
  const MemoryFile file(bytes);
  std::string directory = std::filesystem::temp_directory_path() / "espy-fuzz-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) std::abort();
  if (const Status done = kernel::unpack_tar(file.path(), directory, kLimitBytes); !done) use(done.error().message);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace espy::fuzz
