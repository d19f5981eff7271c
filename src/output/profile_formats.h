// Profiles: maps keyed by stacks as folded stacks, speedscope and pprof.
#pragma once

#include <cstddef>
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

#include "output/format.h"
#include "output/sink.h"
#include "output/value.h"

namespace espy::output {

// ---- The tables of a profile in the format of pprof (profile.proto): strings, functions, mappings and locations, each
// once.
//
// Addresses of user code are addresses in the file, as linked. A mapping is a segment of the file at its own address.
// So processes that have a file at different addresses share locations, and readers that open the file find the code.

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

// ---- Compression by zlib.

enum class Wrapping : uint8_t { kZlib, kGzip };

// Returns `bytes` compressed, with the header and the checksum of a zlib stream or of a gzip file.
std::string deflated(std::string_view bytes, Wrapping wrapping);

// ---- Maps keyed by stacks as collapsed stacks, lists of frames with a weight: the input of folded lines and flame
// graphs.

enum class FrameKind : uint8_t { kText, kUser, kInlined, kKernel, kUnknown };

struct FoldedFrame {
  std::string name;  // printable, and different where the text of a program differs
  FrameKind kind = FrameKind::kText;
  auto operator<=>(const FoldedFrame&) const = default;
};

struct FoldedStack {
  std::vector<FoldedFrame> frames;  // outermost first
  uint64_t weight = 0;
};

// A key in its parts.
struct KeyStack {
  std::vector<const StackValue*> stacks;                     // kernel frames before user frames: innermost first
  std::vector<std::pair<std::string, const Value*>> labels;  // the other parts, by their names
};
// `names`: MapView::key_names. A part without a name that is a word is "key", or "key2" as the second part.
KeyStack split_key(const Value& key, std::span<const std::string> names);

// Returns a value as a weight: of a histogram, the sum of its counts; 0 for a negative one.
uint64_t weight_of(const Value& value);

// Adds a weight of a profile or picture, which holds 2^63 - 1 at most.
inline void add_weight(uint64_t& sum, uint64_t weight) {
  if (__builtin_add_overflow(sum, weight, &sum) || sum > INT64_MAX) sum = INT64_MAX;
}

// True if the map's keys have a stack.
bool has_stacks(const MapView& map);

// Returns a stack for each entry: the other parts of the key (a comm, ...) first, then user frames, then kernel frames,
// in whatever order they have in the key. The weight is the value as a number (of a histogram, the sum of its counts);
// entries with a weight of 0 or less are skipped.
std::vector<FoldedStack> collapse_stacks(const MapView& map, const TextStyle& style);

// Stacks that are merged: equal frames of one caller are one node.
struct CallTree {
  uint64_t total = 0;
  std::map<FoldedFrame, CallTree> callees;

  void add(const std::vector<FoldedFrame>& frames, uint64_t weight);
};

// "1,234,567"
std::string with_commas(uint64_t number);

// The name of the frame in folded lines. A semicolon, which separates frames, becomes a colon, or `\x3b` in text that
// is not a function. With the suffixes of stackcollapse-perf.pl, `_[k]` for the kernel and `_[i]` for inlined
// functions.
std::string folded_name(const FoldedFrame& frame);

// ---- Merged stacks as a tree of text: callers above what they call, the largest branch first.

// Returns the lines. `columns`: of a line; 0: any number. One line sums up branches below half a percent, and branches
// beyond 20 of a frame, with their number and value. Names need be printable.
std::string call_tree_text(const CallTree& all, size_t columns);

}  // namespace espy::output
