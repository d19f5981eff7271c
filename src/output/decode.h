// Bytes and their type to a Value. The only reader of the layouts of program/layout.h in user space.
#pragma once

#include <cstddef>
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

// Answers what the bytes alone do not tell. Any may be empty: the number is shown then.
struct Resolver {
  std::function<std::vector<uint64_t>(types::TypeId stack_type, int64_t reference)>
      stack;  // addresses, innermost first
  std::function<std::vector<uint64_t>(types::TypeId stack_type, uint64_t key)> unwound_stack;  // the same
  std::function<Frame(uint64_t address)> kernel_symbol;
  std::function<Frame(uint32_t pid, uint64_t address)> user_symbol;
  // What is shown of a user stack's address: itself, and before it what is inlined there. `is_caller`: a call returns
  // there, so its code is before the address.
  std::function<std::vector<Frame>(uint32_t pid, uint64_t address, types::StackMode mode, bool is_caller)> user_frames;
  std::function<std::string(uint32_t uid)> username;
  std::function<std::string(uint64_t id)> cgroup_path;
  std::function<std::string(std::string_view format, uint64_t ns, uint32_t clock)> timestamp;
  std::function<const program::Probe*(uint64_t index)> probe;
  std::string_view signal_trampoline = {};  // symbol of the code that a signal handler returns to
};

// Strings that max_strlen cut: what a script cut itself it meant to.
struct TruncatedStrings {
  uint64_t limit_bytes = 0;
  uint64_t count = 0;
};

// The frames of the stacks that are decoded together, a map's: most stacks have most of their frames in common.
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
  TruncatedStrings* truncated_strings = nullptr;  // where to count them
  bool shows_addresses = false;                   // members that are addresses by type or name as such
  FrameCache* frames = nullptr;                   // where to keep those of stacks
};

// One value as it lies in an event, in a map's key, or in a map's value that is not per-CPU. Too few bytes decode as
// zeros.
Value decode(const DecodeContext& context, types::TypeId type, std::span<const std::byte> bytes);

// A per-CPU value: `bytes` is every CPU's, one behind the other, each padded to a multiple of 8 bytes. Merged as the
// type says.
Value decode_per_cpu(const DecodeContext& context, types::TypeId type, std::span<const std::byte> bytes,
                     uint32_t cpu_count);

// A field of a record, following a tail reference. `record` starts at its RecordHeader.
Value decode_field(const DecodeContext& context, const program::EventField& field, std::span<const std::byte> record);

// True if a scalar's per-CPU or global words say that it was never assigned.
bool is_unset(std::span<const std::byte> bytes, uint32_t cpu_count, uint32_t stride_bytes);

// The order in which a map is shown (spec X4): values or keys ascending. Negative, zero, positive like strcmp.
struct MapEntry {
  Value key;
  Value value;
};
void sort_for_display(std::vector<MapEntry>& entries);

}  // namespace espy::output
