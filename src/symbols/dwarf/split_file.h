// Split debug information: .dwo files, and packages of them (.dwp). Internal to dwarf/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "base/untrusted_file.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

// ---- A DWARF package (.dwp): the .dwo files of a program in one. Before 0.191, libdw reads only single .dwo files.
// They are made from the package one by one, when a unit is needed. Internal to dwarf/.

class Package {
 public:
  // Fails if the file is not a package.
  static Result<Package> open(const std::string& path);

  // Returns the .dwo file of a unit; "" if the package does not have the unit.
  std::string unit(uint64_t unit_id) const;
  const UntrustedFile& file() const { return image_.file(); }

 private:
  // A part of a section of the package.
  struct Piece {
    std::string_view section;  // "abbrev": of .debug_abbrev.dwo
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  explicit Package(ElfImage image) : image_(std::move(image)) {}
  void read_index();
  std::vector<Piece> pieces_of(uint32_t row) const;
  std::string bytes_of(const Piece& piece) const;
  std::string file_of(const std::vector<Piece>& pieces) const;

  ElfImage image_;
  // The index, in the bytes of the file:
  uint32_t version_ = 0;  // 2 for DWARF 4, 5
  uint32_t columns_ = 0;
  std::string_view kinds_, offsets_, sizes_;
  std::unordered_map<uint64_t, uint32_t> rows_;  // of units, by their ids
};

// ---- .dwo files: the parts of debug information that the linker does not copy (DWARF 5, 7.3.2). Internal to dwarf/.
//
// libdw searches them itself, at paths that a program names and that may lead to a FIFO, and maps them. So espy reads
// them like other files of others, and libdw finds copies in a directory that belongs to espy.

// Returns a relocatable ELF file with sections by their names.
std::string make_elf(const std::vector<std::pair<std::string, std::string>>& sections, uint16_t machine);

// Returns how much of the disk a file takes: less than its size if it has holes.
uint64_t disk_bytes_of(const UntrustedFile& file);
// Returns how much of that the sections of debug information of an ELF file take, at most.
uint64_t debug_bytes_of(const UntrustedFile& file);

// Returns the ids of the split units of an ELF file in memory, sorted.
std::vector<uint64_t> split_units(std::string& elf);

// A .dwo file, or one that is made of a package.
struct SplitFile {
  std::vector<uint64_t> units = {};  // their ids, sorted
  std::string copy = {};             // a path; "" if there is none, or not any more
  uint64_t debug_bytes = 0;          // debug_bytes_of() it, until they are counted
};

// The .dwo files of a program, and the directory in which libdw finds one for the time of a call.
//
// All units of a program can refer to one file, by many paths, and files of zeros take no disk. So a file is read once,
// and the disk space of the files limits the read and copied bytes.
class SplitFiles {
 public:
  static Result<SplitFiles> make();

  const std::string& directory() const { return directory_; }
  // Allows for the bytes that are read from a file and made from it. Requires a call for the program itself.
  void allow_for(const UntrustedFile& file);
  // Returns the file at the path if it has that unit, otherwise null.
  SplitFile* find(const std::string& path, uint64_t unit_id);
  // Returns the file that `make` returns; nullopt if it does not have that unit.
  std::optional<SplitFile> add(uint64_t unit_id, const std::function<std::string()>& make);
  // Calls `read` while libdw finds the file under the name of a .dwo file. An absolute name requires CAP_SYS_CHROOT.
  // Returns what `read` returns; false if it was not called, as for a name with "..".
  bool show(SplitFile& file, const std::string& name, const std::function<bool()>& read) const;
  // Calls `read` while libdw finds no .dwo file; it does not search for the file of the same unit again. Requires
  // CAP_SYS_CHROOT; otherwise does nothing.
  void hide(const std::function<bool()>& read) const;
  uint64_t debug_bytes() const { return debug_bytes_; }  // of all files that find() has returned
  bool has_refused() const { return has_refused_; }      // a file, because it would take too much

 private:
  explicit SplitFiles(ScratchDirectory scratch);
  bool take(uint64_t bytes);
  SplitFile copy_of(uint64_t file_bytes, const std::function<std::string()>& make);

  ScratchDirectory scratch_;
  std::string directory_;                                          // searched by libdw; a subdirectory of `scratch_`
  std::map<std::pair<uint64_t, uint64_t>, SplitFile> known_ = {};  // by device and inode
  size_t copies_ = 0;
  uint64_t debug_bytes_ = 0;
  uint64_t disk_bytes_ = 0;
  uint64_t allowed_bytes_ = 0;
  uint64_t taken_bytes_ = 0;
  bool has_refused_ = false;
};

}  // namespace espy::symbols::dwarf
