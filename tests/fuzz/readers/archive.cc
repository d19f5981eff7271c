// ZIP archives, and paths that lead into them.
#include "../reader.h"
#include "symbols/debug_file.h"
#include "symbols/elf_file.h"

namespace espy::fuzz {

void run_archive(std::string_view bytes) {
  using namespace symbols;
  const MemoryFile file(bytes);
  for (const std::string_view name : {"lib/x.so", "a", ""}) {
    if (const auto found = find_stored_file(file.path(), name)) use(found->name);
    if (const auto found = read_stored_file(file.path(), name)) use(found->bytes);
  }
  if (const auto by_place = StoredFiles::read(file.path()))
    for (const uint64_t offset : {uint64_t{0}, uint64_t{64}, uint64_t{bytes.size() / 2}, UINT64_MAX})
      if (const auto found = by_place->at(file.path(), offset)) use(found->name);
  if (const auto elf = ElfFile::open(file.path() + "!/lib/x.so", {})) use(elf->path());
  if (const auto path = split_archive_path(bytes.substr(0, 256))) use(path->name);
}

}  // namespace espy::fuzz
