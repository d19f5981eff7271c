// An ELF file as libelf gives it: sections, segments, symbol tables. Inside this room only; the door is elf_file.h.
#pragma once

#include <gelf.h>
#include <libelf.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::symbols {

// A PT_LOAD program header.
struct Segment {
  uint64_t address = 0;  // virtual, as linked
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  bool executable = false;

  // Whether the byte at a virtual address comes from the file; false also for .bss.
  bool contains_address(uint64_t virtual_address) const {
    return virtual_address >= address && virtual_address - address < file_size;
  }
  bool contains_offset(uint64_t offset) const { return offset >= file_offset && offset - file_offset < file_size; }
  // Requires `contains_address` and `contains_offset`.
  uint64_t offset_of_address(uint64_t virtual_address) const { return virtual_address - address + file_offset; }
  uint64_t address_of_offset(uint64_t offset) const { return offset - file_offset + address; }
};

// A defined symbol, as a view: `name` ends at the `@` of a version, if the table spells versions in names.
struct RawSymbol {
  std::string_view name;
  uint64_t address = 0;
  uint64_t size = 0;
  unsigned char type = STT_NOTYPE;
  bool is_local = false;
  bool is_old_version = false;  // kept for programs linked long ago; new ones get another symbol of the same name
};

// .symtab or .dynsym, with its strings and (for .dynsym) versions. Views into the image.
class SymbolTable {
 public:
  SymbolTable(Elf* elf, Elf_Data* symbols, size_t strings_section, Elf_Data* versions);

  size_t size() const { return count_; }
  // Nothing for imports, nameless ones and those without an address.
  std::optional<RawSymbol> at(size_t index) const;

 private:
  Elf* elf_;
  Elf_Data* symbols_;
  Elf_Data* versions_;  // or nullptr
  size_t strings_section_;
  size_t count_;
};

// What the loader reads before a program starts.
struct DynamicNeeds {
  std::string interpreter;  // the loader itself
  std::vector<std::string> libraries;
  std::string run_path;  // DT_RUNPATH or DT_RPATH: directories, colon-separated
};

class ElfImage {
 public:
  static Result<ElfImage> open(const std::string& path);
  static Result<ElfImage> from_bytes(std::string bytes, std::string name);

  const std::string& path() const { return path_; }
  // Where its first byte is in the file on disk: not 0 for one in an archive.
  uint64_t start_in_file() const { return start_in_file_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // Translate between virtual addresses, as linked, and file offsets; nullopt if no segment loads the byte. Where two
  // executable segments, or two others, overlap, the first in the program headers counts. An executable segment is
  // preferred for an offset: linkers may load a page of the file twice, and callers mean code.
  std::optional<uint64_t> offset_of_address(uint64_t address) const;
  std::optional<uint64_t> address_of_offset(uint64_t file_offset) const;
  uint16_t type() const { return header_.e_type; }
  uint16_t machine() const { return header_.e_machine; }
  bool is_64bit() const { return header_.e_ident[EI_CLASS] == ELFCLASS64; }

  std::string build_id() const;
  // File name and CRC-32 of the separate debug file, as .gnu_debuglink has it.
  std::optional<std::pair<std::string, uint32_t>> debug_link() const;
  // The bytes of a section as they are in the file; empty if there is none.
  std::string_view section_bytes(std::string_view name) const;
  // The file's own bytes; empty where they are not all there.
  std::string_view bytes_at(uint64_t file_offset, uint64_t size) const;
  std::optional<uint64_t> section_address(std::string_view name) const;
  DynamicNeeds dynamic_needs() const;
  // The first symbol table of type SHT_SYMTAB or SHT_DYNSYM.
  std::optional<SymbolTable> symbol_table(uint32_t section_type) const;

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  using OwnedElf = std::unique_ptr<Elf, EndElf>;

  static Result<ElfImage> finish(ElfImage image);
  Elf_Scn* find_section(uint32_t type) const;
  Elf_Scn* find_section(std::string_view name) const;

  std::string path_;
  uint64_t start_in_file_ = 0;
  std::unique_ptr<std::string> bytes_;  // behind a pointer, so that moving the image leaves them in place
  OwnedElf elf_;
  GElf_Ehdr header_ = {};
  std::vector<Segment> segments_;
};

}  // namespace espy::symbols
