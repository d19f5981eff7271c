// .dwo files: the parts of debug information that the linker does not copy (DWARF 5, 7.3.2). Internal to dwarf/.
//
// libdw searches them itself, at paths that a program names and that may lead to a FIFO, and maps them. So espy reads
// them, as it reads other files of others, and libdw finds copies in a directory that belongs to espy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

// Returns a relocatable ELF file with sections by their names.
std::string make_elf(const std::vector<std::pair<std::string, std::string>>& sections, uint16_t machine);

// Returns the sections of a .dwo file as an ELF file; "" if it cannot be read.
std::string read_split_file(const std::string& path);

// Whether an ELF file in memory has the split unit with that id.
bool has_split_unit(std::string elf, uint64_t unit_id);

// A directory in which libdw finds a .dwo file for the time of a call.
class SplitDirectory {
 public:
  static Result<SplitDirectory> make();

  const std::string& path() const { return directory_.path(); }
  // Calls `read` while libdw finds `elf` under the name of a .dwo file. An absolute name requires CAP_SYS_CHROOT.
  // Returns what `read` returns; false if it was not called, as for a name with "..".
  bool show(const std::string& elf, const std::string& name, const std::function<bool()>& read) const;
  // Calls `read` while libdw finds no .dwo file; it does not search for that of the same unit again. Requires
  // CAP_SYS_CHROOT; otherwise does nothing.
  void hide(const std::function<bool()>& read) const;

 private:
  explicit SplitDirectory(ScratchDirectory directory) : directory_(std::move(directory)) {}

  ScratchDirectory directory_;
};

}  // namespace espy::symbols::dwarf
