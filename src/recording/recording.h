// recording: files of events. This is the data of a recording (docs/internals/recording-format.md): what Writer takes
// and Reader gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace espy::recording {

// ---- Types of values. Indexes lead into Description::types.

constexpr uint32_t kNoType = UINT32_MAX;
// A recording with more is damaged.
constexpr size_t kMaxParents = 64;  // of a task
constexpr size_t kMaxFrames = 65;   // of an address: its function, and as many inlined ones as `symbols` finds

struct Member {
  std::string name;
  uint32_t type = kNoType;
  uint32_t offset_bits = 0;
  uint32_t bit_size = 0;  // of a bit field; else 0
  bool operator==(const Member&) const = default;
};

struct Enumerator {
  std::string name;
  int64_t value = 0;
  bool operator==(const Enumerator&) const = default;
};

enum class TypeKind : uint8_t { kVoid, kBool, kInt, kFloat, kEnum, kPointer, kArray, kString, kStruct };

struct Type {
  TypeKind kind = TypeKind::kVoid;
  bool is_signed = false;
  bool is_union = false;
  bool is_complete = false;    // kStruct: its members were recorded
  bool is_text = false;        // kInt: C's char; kString: an array of it, which may lack a NUL
  bool is_user_space = false;  // kPointer: it points to memory of the process; kStruct: its pointers do
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
  uint32_t count = 0;          // of an array or a string
  uint32_t element = kNoType;  // of a pointer or an array
  std::string name;            // of a struct or an enum
  std::vector<Member> members;
  std::vector<Enumerator> enumerators;
  bool operator==(const Type&) const = default;
};

// ---- Probes

enum class FieldKind : uint8_t {
  kNumber,
  kText,   // of any length
  kChars,  // text in a place of a fixed size
  kBytes,
  kStack,
  kNothing,  // it could not be read there: without a value in events
};

enum class FieldRole : uint8_t {
  kArgs,      // args.NAME
  kArgument,  // arg0, arg1, ...
  kResult,    // retval
  kMemory,    // what an earlier field points to
  kKernelStack,
  kUserStack,
  kLocal,  // locals.NAME
  kValue,  // of an expression of a script, which is its name: "leader_comm", `reg("ip")`
  kNamed,  // an address that is there for its name (FrameNames)
};

struct Field {
  FieldKind kind = FieldKind::kNumber;
  FieldRole role = FieldRole::kArgs;
  std::string name;
  uint32_t type = kNoType;
  std::string shown;          // as `espy -lv` lists it: "const char * filename"; empty: not listed
  uint32_t pointer_in = 0;    // kMemory: the index of the field that has its address
  uint32_t offset_bytes = 0;  // kMemory: of the address in that field, if that is memory, too
  bool operator==(const Field&) const = default;
};

// The recorded fields of an event; probes may share it.
struct Layout {
  std::vector<Field> fields;
  bool points_to_user_space = false;  // argN and retval do
  bool has_kernel_names = false;      // addresses of the kernel in its numbers have their names (FrameNames)
  bool has_user_names = false;        // addresses of the process in its pointers have
  bool operator==(const Layout&) const = default;
};

// A probe that was recorded.
struct Probe {
  std::string provider;            // "tracepoint"
  std::string name;                // "tracepoint:syscalls:sys_enter_openat"
  std::vector<std::string> parts;  // of the name, after the provider
  std::string given;               // the attach point of the command line that it comes from
  std::string target, function;    // of program::Probe
  uint32_t layout = 0;             // in Description::layouts
  bool operator==(const Probe&) const = default;
};

// The machine and the run that were recorded.
struct Description {
  std::string espy_version;
  std::string command;  // the command line of the recording
  std::string kernel_release;
  std::string arch;
  uint32_t page_size_bytes = 0;
  uint32_t cpu_count = 0;        // possible CPUs
  uint64_t started_ns = 0;       // CLOCK_BOOTTIME
  uint64_t started_wall_ns = 0;  // CLOCK_REALTIME at the same time
  uint32_t max_text_bytes = 0;   // of a text, with its NUL, and of a struct behind a pointer
  uint32_t child_pid = 0;        // of the command of -c; 0: none
  uint64_t ring_id = 0;          // of the files of one ring, the same in all; 0: the recording is one file
  uint64_t ring_number = 0;      // of this file in the ring, from 1 on
  std::vector<Type> types;
  std::vector<Layout> layouts;
  std::vector<Probe> probes;
  bool operator==(const Description&) const = default;

  const Layout& layout_of(uint32_t probe) const { return layouts[probes[probe].layout]; }
};

// ---- Events

struct Parent {
  uint32_t pid = 0;
  std::string comm;
  bool operator==(const Parent&) const = default;
};

struct Task {
  uint32_t pid = 0, tid = 0;
  uint32_t uid = 0, gid = 0;
  uint64_t cgroup = 0;
  std::string comm;
  std::vector<Parent> parents;  // the parent first, then its parent, as many as were recorded
  bool operator==(const Task&) const = default;
};

// A frame of a stack, with its names where they are known.
struct Frame {
  std::string symbol;
  uint64_t offset = 0;  // in the symbol
  std::string module;
  uint64_t module_address = 0;  // in the file of the module, as linked
  bool has_module_address = false;
  std::string file;  // of the source
  uint32_t line = 0;
  bool is_inlined = false;  // into the next frame
  bool operator==(const Frame&) const = default;
};

// An address of a process (0: of the kernel), in stacks and in values. In a caller it is after the call.
struct Place {
  uint32_t pid = 0;
  bool is_caller = false;
  uint64_t address = 0;
  bool operator==(const Place&) const = default;
};
struct HashPlace {
  size_t operator()(const Place& place) const {
    return std::hash<uint64_t>()((place.address ^ uint64_t{place.pid} << 40) * 2 + (place.is_caller ? 1 : 0));
  }
};

// Innermost first: functions inlined at the place, then the function itself.
using FrameNames = std::unordered_map<Place, std::vector<Frame>, HashPlace>;

struct Value {
  int64_t number = 0;               // FieldKind::kNumber
  std::string_view text;            // kText, kChars: without its NUL; kBytes
  std::span<const uint64_t> stack;  // kStack: addresses, innermost first
};

}  // namespace espy::recording
