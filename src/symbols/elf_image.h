// The sections, segments and symbol tables of an ELF file, read with libelf. Internal to symbols/; others use
// elf_file.h.
#pragma once

#include <gelf.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/untrusted_file.h"

namespace espy::symbols {

// A PT_LOAD program header.
struct Segment {
  uint64_t address = 0;  // virtual, as linked
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  bool executable = false;
  bool writable = false;

  // Whether the byte at a virtual address comes from the file; false also for .bss.
  bool contains_address(uint64_t virtual_address) const {
    return virtual_address >= address && virtual_address - address < file_size;
  }
  bool contains_offset(uint64_t offset) const { return offset >= file_offset && offset - file_offset < file_size; }
  // Requires `contains_address` and `contains_offset`.
  uint64_t offset_of_address(uint64_t virtual_address) const { return virtual_address - address + file_offset; }
  uint64_t address_of_offset(uint64_t offset) const { return offset - file_offset + address; }
};

// A defined symbol. `name` is a view into the string table and excludes a version, as in `f@V1`.
struct RawSymbol {
  std::string_view name;
  uint64_t address = 0;
  uint64_t size = 0;
  unsigned char type = STT_NOTYPE;
  bool is_local = false;
  bool is_old_version = false;  // not the default version of the name: kept for programs linked earlier
  uint32_t text_bytes = 0;      // of the name with the version
};

// .symtab or .dynsym, with its strings and, for .dynsym, versions. Valid for the life of the image.
class SymbolTable {
 public:
  SymbolTable(Elf* elf, Elf_Data* symbols, Elf_Scn* strings, Elf_Data* versions);

  size_t size() const { return count_; }
  uint64_t strings_bytes() const { return strings().size(); }
  // nullopt if the symbol is undefined, or has no name or no address.
  std::optional<RawSymbol> at(size_t index) const;

 private:
  std::string_view strings() const;

  Elf_Data* symbols_;
  Elf_Data* versions_;  // or nullptr
  Elf_Scn* strings_section_;
  mutable std::optional<std::string_view> strings_;  // read when a name is first needed
  size_t count_;
};

// The dependencies of a dynamically linked file.
struct DynamicNeeds {
  std::string interpreter;  // the dynamic loader
  std::vector<std::string> libraries;
  std::string run_path;               // DT_RUNPATH or DT_RPATH: directories, colon-separated
  bool has_text_relocations = false;  // the loader changes the code
};

// Returns the content of a section that is compressed by zstd, which libelf can do from elfutils 0.189 on; nullopt if
// it is compressed otherwise, or malformed. It takes `ch_size` of the header that gelf_getchdr(3) reads: the caller
// bounds it.
std::optional<std::string> unpack_zstd(Elf* elf, Elf_Scn* section);

class ElfImage {
 public:
  // Opens a file; a path may lead into an archive. The file stays open, and sections are read when they are first used:
  // a file that is truncated or overwritten meanwhile gives no bytes, or others, but is never mapped.
  static Result<ElfImage> open(const std::string& path);
  static Result<ElfImage> open(UntrustedFile file);
  static Result<ElfImage> from_bytes(std::string bytes, std::string name);

  const std::string& path() const { return path_; }
  const UntrustedFile& file() const { return file_; }  // not open if the image is in memory
  // The file on disk, which may be an archive, when it was opened; unknown for an image in memory.
  const FileState& file_state() const { return file_state_; }
  // Offset of the first byte in the file on disk; 0 unless the path leads into an archive.
  uint64_t offset_in_archive() const { return offset_in_archive_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // Translate between virtual addresses, as linked, and file offsets; nullopt if no segment loads the byte. Where two
  // executable segments, or two others, overlap, the first in the program headers counts. An executable segment is
  // preferred for an offset: linkers may load a page of the file twice, and callers mean code.
  std::optional<uint64_t> offset_of_address(uint64_t address) const;
  std::optional<uint64_t> address_of_offset(uint64_t file_offset) const;
  const Segment* segment_at_offset(uint64_t file_offset) const;  // null if there is none
  uint16_t type() const { return header_.e_type; }
  uint16_t machine() const { return header_.e_machine; }
  bool is_64bit() const { return header_.e_ident[EI_CLASS] == ELFCLASS64; }

  // Returns the GNU build id in lower-case hex; "" if there is none.
  std::string build_id() const;
  // File name and CRC-32 of the separate debug file, from .gnu_debuglink.
  std::optional<std::pair<std::string, uint32_t>> debug_link() const;
  // Returns the bytes of a section, not decompressed; empty if there is none, or a larger one.
  std::string_view section_bytes(std::string_view name, uint64_t limit_bytes = UINT64_MAX) const;
  // The same, decompressed; empty if that takes more than max_binary_bytes().
  std::string unpacked_section(std::string_view name) const;
  // Whether there is such a section with bytes in the file.
  bool has_section(std::string_view name) const;
  bool has_section(uint32_t type) const;
  // Returns bytes of the file; empty if they are not all within it.
  std::string bytes_at(uint64_t file_offset, uint64_t size) const;
  std::optional<uint64_t> section_address(std::string_view name) const;
  DynamicNeeds dynamic_needs() const;
  // Returns how much memory the sections take that were read, and an image in memory.
  uint64_t memory_bytes() const { return memory_bytes_ + (bytes_ ? bytes_->size() : 0); }
  // The first symbol table of type SHT_SYMTAB or SHT_DYNSYM.
  std::optional<SymbolTable> symbol_table(uint32_t section_type) const;

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  using OwnedElf = std::unique_ptr<Elf, EndElf>;

  static Result<ElfImage> finish(ElfImage image);
  uint64_t size_bytes() const { return bytes_ ? bytes_->size() : file_.size_bytes; }
  size_t segment_count() const;
  tl::unexpected<Error> fail_too_many(std::string_view what) const;
  Status check_header() const;
  Status check_sizes() const;
  static bool is_in_file(Elf_Scn* section);
  std::string build_id_in(uint64_t offset, uint64_t notes_bytes, uint64_t alignment) const;
  Elf_Scn* find_section(uint32_t type) const;
  Elf_Scn* find_section(std::string_view name) const;

  std::string path_;
  uint64_t offset_in_archive_ = 0;
  FileState file_state_;
  UntrustedFile file_;
  std::unique_ptr<std::string> bytes_;  // by pointer: libelf refers to them, so a move must not relocate them
  OwnedElf elf_;
  GElf_Ehdr header_ = {};
  std::vector<Segment> segments_;
  mutable uint64_t memory_bytes_ = 0;
};

}  // namespace espy::symbols
