#include "runtime/file_keys.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace espy::runtime {

namespace {

using program::UnwindFileKey;
using program::UnwindKeyQuery;

// A file that is mapped, of which no byte may be read.
class Mapped {
 public:
  explicit Mapped(int fd) {
    struct stat status = {};
    if (::fstat(fd, &status) != 0) return;
    // The block of a file in huge pages is such a page, which is mapped and unmapped only as a whole.
    constexpr uint64_t kMostBytes = uint64_t{16} << 30;
    const auto block_bytes = static_cast<uint64_t>(std::max<blksize_t>(status.st_blksize, 1));
    const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    if (block_bytes > kMostBytes) return;
    size_bytes_ = (block_bytes + page_bytes - 1) / page_bytes * page_bytes;
    address_ = ::mmap(nullptr, size_bytes_, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  }
  ~Mapped() {
    if (is_valid()) ::munmap(address_, size_bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  bool is_valid() const { return address_ != MAP_FAILED; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(address_); }

 private:
  void* address_ = MAP_FAILED;
  size_t size_bytes_ = 0;
};

}  // namespace

FileKeys::FileKeys(load::Machine& machine, const program::Program& program) : machine_(machine) {
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == program::kUnwindKeyName) query_ = id;
  for (const program::ProgramId id : program.programs.ids())
    if (program.programs[id].name == program::kUnwindKeyName) program_ = id;
}

std::optional<UnwindFileKey> FileKeys::key_of(const UntrustedFile& file) {
  const Mapped mapped(file.fd.get());
  if (!mapped.is_valid() || !program_.valid()) return std::nullopt;
  UnwindKeyQuery query{.address = mapped.address()};
  const std::span<std::byte> memory = machine_.memory(query_);
  std::memcpy(memory.data(), &query, sizeof(query));
  if (!machine_.run(program_)) return std::nullopt;
  std::memcpy(&query, memory.data(), sizeof(query));
  if (query.is_known == 0) return std::nullopt;
  return query.key;
}

std::optional<UnwindFileKey> FileKeys::key_now(const UntrustedFile& file) {
  const auto opened = open_untrusted(descriptor_path(file.fd), UINT64_MAX);
  return opened ? key_of(*opened) : std::nullopt;
}

}  // namespace espy::runtime
