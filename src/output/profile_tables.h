// The tables of a profile in the format of pprof (profile.proto): strings, functions, mappings and locations, each
// once.
//
// Addresses of user code are those of the file, as linked, and a mapping is a segment of the file at its own address.
// So processes that have a file at different addresses share locations, and readers that open the file find the code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "output/value.h"

namespace espy::output {

class ProfileTables {
 public:
  ProfileTables() { text(""); }

  // Returns the index of a string. What a terminal cannot show is in it as `\xNN`.
  int64_t text(std::string_view text);
  // Returns the ids of the locations of a stack, innermost first.
  std::vector<uint64_t> locations(const StackValue& stack);
  void write(protozero::pbf_writer& profile) const;

 private:
  struct Mapping {
    uint64_t start = 0, limit = 0, file_offset = 0;
    int64_t file = 0, build_id = 0;
    bool has_functions = true, has_lines = true, is_file = false;
  };
  using Frames = std::span<const std::shared_ptr<const Frame>>;

  uint64_t mapping(const Frame& frame, bool is_user, uint64_t address);
  uint64_t function(const Frame& frame);
  uint64_t location(Frames frames, bool is_user, bool is_caller);
  static bool is_named(const Frame& frame) { return !frame.symbol.empty(); }

  std::map<std::string, int64_t, std::less<>> texts_;
  std::vector<const std::string*> text_order_;
  std::map<std::pair<int64_t, int64_t>, uint64_t> functions_;  // by name and file
  std::vector<Mapping> mappings_;
  std::map<std::tuple<std::string, std::string, uint64_t>, uint64_t> mapping_ids_;  // by file, build id and segment
  std::map<std::string, uint64_t> locations_;                                       // by their encoding without the id
};

}  // namespace espy::output
