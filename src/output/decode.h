// Decodes bytes to Values by their type. The only code in user space that reads the layouts of program/layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "output/value.h"
#include "program/program.h"
#include "types/type.h"

namespace espy::output {

// The symbol of the last frame, which has no address, of a stack that may have had more.
constexpr std::string_view kTruncated = "[truncated]";

// Looks up what numbers stand for. Each function may be empty; the number is shown then.
struct Resolver {
  std::function<std::vector<uint64_t>(types::TypeId stack_type, int64_t reference)>
      stack;  // addresses, innermost first
  std::function<std::vector<uint64_t>(types::TypeId stack_type, uint64_t key)> unwound_stack;  // the same
  std::function<Frame(uint64_t address)> kernel_symbol;
  std::function<Frame(uint32_t pid, uint64_t address)> user_symbol;
  // The frames of an address in a user stack: the functions inlined there, innermost first, then the function itself.
  // `is_caller`: the address is a return address, so the call is before it.
  std::function<std::vector<Frame>(uint32_t pid, uint64_t address, types::StackMode mode, bool is_caller)> user_frames;
  std::function<std::string(uint32_t uid)> username;
  std::function<std::string(uint64_t id)> cgroup_path;
  std::function<std::string(std::string_view format, uint64_t ns, uint32_t clock)> timestamp;
  std::function<const program::Probe*(uint64_t index)> probe;
  std::string_view signal_trampoline = {};  // symbol of the code that a signal handler returns to
};

// Counts strings truncated by max_strlen, not those truncated by a length in the script.
struct TruncatedStrings {
  uint64_t limit_bytes = 0;
  uint64_t count = 0;
};

// Caches frames while the stacks of a map are decoded, which have most of their frames in common.
struct FrameKey {
  uint64_t address = 0;
  uint32_t pid = 0;  // of a user stack
  bool is_user = false;
  bool is_caller = false;
  types::StackMode mode = {};
  bool operator==(const FrameKey&) const = default;
};
struct HashFrameKey {
  size_t operator()(const FrameKey& key) const { return std::hash<uint64_t>()(key.address ^ uint64_t{key.pid} << 40); }
};
using FrameCache = std::unordered_map<FrameKey, std::vector<std::shared_ptr<const Frame>>, HashFrameKey>;

struct DecodeContext {
  const types::Types& types;
  const Resolver& resolver;
  std::span<const std::string> literals = {};     // Program::formats
  TruncatedStrings* truncated_strings = nullptr;  // null: not counted
  bool shows_addresses = false;                   // shows members that are network addresses, by type or name, as such
  FrameCache* frames = nullptr;                   // null: not cached
};

// Decodes a value of a record, of a map's key, or of a map's value that is not per-CPU. Missing bytes are zeros.
Value decode(const DecodeContext& context, types::TypeId type, std::span<const std::byte> bytes);

// Decodes and merges a per-CPU value. `bytes`: the values of all CPUs, one every `stride_bytes`, a multiple of 8; if 0,
// each is padded to such a multiple. The maps of recent() are.
Value decode_per_cpu(const DecodeContext& context, types::TypeId type, std::span<const std::byte> bytes,
                     uint32_t cpu_count, uint32_t stride_bytes = 0);

// Decodes a field of a record, also one in its tail. `record` starts at the RecordHeader.
Value decode_field(const DecodeContext& context, const program::EventField& field, std::span<const std::byte> record);

// True if a scalar's "assigned" words are 0 on all CPUs.
bool is_unset(std::span<const std::byte> bytes, uint32_t cpu_count, uint32_t stride_bytes);

// Sorts for display: ascending by value, or by key if values are equal or not ordered.
struct MapEntry {
  Value key;
  Value value;
};
void sort_for_display(std::vector<MapEntry>& entries);
// The order of keys: negative if `a` comes before `b`, 0 if they are equal.
int compare_keys(const Value& a, const Value& b);

}  // namespace espy::output
