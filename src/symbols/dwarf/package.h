// A DWARF package (.dwp): the .dwo files of a program in one. libdw before 0.191 reads single .dwo files only, which
// are made of the package one by one, when a unit is needed. Internal to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

class Package {
 public:
  // Fails if the file is no package.
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

}  // namespace espy::symbols::dwarf
