// program: the compiled script, which all stages after the compiler take.
//
// Program: the result of compilation. Plain data, printable, immutable once complete.
//
// `lower` writes maps, events and probes, `bpf` the code. `load` creates the maps and loads the code, `probes` attach
// it, `runtime` and `output` decode its records. These stages see neither the syntax tree nor the IR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/id.h"
#include "source/source.h"
#include "types/type.h"

namespace espy::kernel {
struct Arch;
}

namespace espy::program {

using MapId = Id<struct MapTag>;              // a BPF map
using ScriptMapId = Id<struct ScriptMapTag>;  // a map of the script: @x
using ProgramId = Id<struct ProgramTag>;      // a BPF program
using ProbeId = Id<struct ProbeTag>;          // one attach point, after wildcards
using EventId = Id<struct EventTag>;          // a kind of record

// ---- Maps -------------------------------------------------------------------------------------------------------

enum class MapKind : uint8_t {
  kArray,
  kPercpuArray,
  kHash,
  kPercpuHash,
  kLruHash,
  kLruPercpuHash,
  kStackTrace,
  kTaskStorage,
  kArrayOfMaps,
  kCgroupArray
};

// A map to create. Sizes in bytes.
struct BpfMap {
  std::string name;  // the kernel receives the first 15 bytes
  MapKind kind = MapKind::kArray;
  uint32_t key_size = 4;
  uint32_t value_size = 8;
  uint32_t max_entries = 1;
  bool is_mmapable = false;      // kArray only; user space reads values through a mapping
  uint32_t first_bytes = 0;      // of an mmapable value: the part that is mapped initially; 0: all
  bool is_read_only = false;     // for programs; frozen after `initial` is written
  bool is_preallocated = false;  // hashes
  MapId like = {};               // kArrayOfMaps: an earlier map, whose shape its maps have
  std::string initial = {};      // kArray with one entry: first bytes of its value
  std::string cgroup = {};       // kCgroupArray: the directory of its only entry
};

// The storage of a script's map. A scalar is in the `globals` array: a 64-bit word that is 1 after the first
// assignment, then the value at +8. Per-CPU scalars repeat this every `stride_bytes`. An element of kSlotHash, a plain
// hash, has a value for each CPU every `stride_bytes`. The kind kThread is task storage of a scalar's layout; the idle
// threads of all CPUs, which share the number 0, have a scalar in `globals`.
enum class Storage : uint8_t { kGlobal, kGlobalPerCpu, kHash, kPercpuHash, kSlotHash, kThread };

// What one firing of a sampling probe stands for: 10'101'010 "nanoseconds" of "cpu". The texts are constants.
struct SamplePeriod {
  std::string_view type, unit;  // empty: the probe does not sample
  uint64_t amount = 0;
  bool operator==(const SamplePeriod&) const = default;
};

struct ScriptMap {
  std::string name;   // "@x"
  types::TypeId key;  // void: a scalar
  types::TypeId value;
  Storage storage = Storage::kGlobal;
  MapId map;                  // the hash or task storage; unset for scalars
  uint32_t offset_bytes = 0;  // scalars, kThread: offset of the "assigned" word in `globals`
  uint32_t stride_bytes = 0;  // kGlobalPerCpu, kSlotHash
  uint32_t keys_offset = 0;   // not 0: a u64 in `globals`, keys added minus keys removed, where the kernel evicts some
  std::vector<ProgramId> writers = {};       // programs that assign to it
  std::string note;                          // why this storage, where another was possible
  source::Span span;                         // first use, for messages
  std::vector<std::string> key_names = {};   // the parts of the key, in the words of the script: "comm"
  std::optional<SamplePeriod> sampled = {};  // of count() by sampling probes of one period
};

// ---- Events -----------------------------------------------------------------------------------------------------

// One value in a record. Strings and buffers of a length known only at run time are in the tail. Then `offset_bytes`
// holds a uint32 offset from the start of the record and a uint32 length in bytes.
struct EventField {
  types::TypeId type;
  uint32_t offset_bytes = 0;
  bool is_in_tail = false;
};

// The meaning of a record. `builtin` is the row whose `handle` receives it. If empty, the helper named by literals[0]
// has failed at `span`, and the only field is its result.
struct EventSchema {
  std::string builtin;                // "printf"; empty: a helper failed (-k)
  std::vector<std::string> literals;  // format strings and other constants of the call
  std::vector<int64_t> numbers;       // constant numbers of the call: top, div, ...
  std::vector<EventField> fields;
  uint32_t size_bytes = 0;  // of the fixed part, with the header
  ScriptMapId map;          // argument of print(@m), clear(@m)
  source::Span span;
  ProgramId program;  // the program that emits it
};

// The header of every record (program/layout.h).
struct RecordHeader {
  uint32_t event_plus_one;  // 0: reserved, not yet complete. Written last.
  uint32_t size_bytes;      // of the whole record, with the header; a multiple of 8
  uint64_t sequence;        // position in the order of reservation over all CPUs
};
static_assert(sizeof(RecordHeader) == 16);

// ---- Code -------------------------------------------------------------------------------------------------------

enum class ProgramKind : uint8_t {
  kSyscall,
  kRawTracepoint,
  kTracingRawTracepoint,
  kTracepoint,
  kPerfEvent,
  kKprobe,
  kFentry,
  kFexit,
  kIter
};

struct BpfInsn {  // struct bpf_insn
  uint8_t code = 0;
  uint8_t registers = 0;  // dst in the low four bits, src in the high four
  int16_t offset = 0;
  int32_t imm = 0;
  bool operator==(const BpfInsn&) const = default;
};

// An instruction whose imm receives the file descriptor of a map when the map is created.
struct MapReference {
  uint32_t insn = 0;
  MapId map;
};

struct LineInfo {
  uint32_t insn = 0;
  source::Span span;
};

struct FunctionInfo {
  uint32_t insn = 0;
  std::string name;
  uint32_t parameter_count = 1;
  bool is_callback = false;
  bool is_global = false;
  uint32_t memory_bytes = 0;  // of a global function; not 0: its parameter points to this many bytes
};

// What a program is attached to, as far as the time to reach it depends on it.
enum class Hook : uint8_t {
  kNone,   // espy itself runs it
  kOther,  // timers, counters, watchpoints, iterators
  kRawTracepoint,
  kSystemCalls,  // the raw tracepoint of all system calls
  kTracepoint,   // through a perf event
  kKernelFunction,
  kTrampoline,  // fentry, fexit
  kUserFunction
};

struct BpfProgram {
  std::string name;  // the kernel receives the first 15 bytes
  ProgramKind kind = ProgramKind::kRawTracepoint;
  Hook hook = Hook::kOther;
  bool sees_returns = false;  // of functions: it is attached to their returns, alone or, in a session, also
  bool is_sleepable = false;
  bool keeps_thread_stack = false;  // its frames must not be in memory of the CPU (bpf/encode.cc)
  uint32_t waiting_offset = 0;  // if it is: in `globals`, a u64, how many of its runs wait for memory of their process
  uint32_t expected_attach_type = 0;    // BPF_TRACE_UPROBE_MULTI and the like; 0 for none
  uint32_t attach_btf_id = 0;           // kTracingRawTracepoint, kFentry, kFexit, kIter
  std::string attach_btf_module = {};   // the module that attach_btf_id refers to; "" for vmlinux
  uint32_t attach_program = 0;          // not 0: attach_btf_id refers to the BPF program with this id
  bool is_last_attached_first = false;  // of the programs on one hook, the kernel runs the one attached last first
  std::vector<BpfInsn> code;
  std::vector<MapReference> map_references;
  std::vector<LineInfo> lines;          // ascending by insn
  std::vector<FunctionInfo> functions;  // ascending by insn; the first is the main one

  // Returns the first place in the script that this was made of; invalid if unknown.
  source::Span first_span() const { return lines.empty() ? source::Span{} : lines.front().span; }
};

// ---- Probes -----------------------------------------------------------------------------------------------------

// One attach point, wildcards resolved. The provider (probes/NAME.cc) defines which fields are used.
struct Probe {
  std::string provider;            // "tracepoint": the row's name
  std::string name;                // the value of `probe`: "tracepoint:syscalls:sys_enter_openat"
  std::string function;            // the value of `func`
  std::string target;              // binary, category, module
  uint64_t address = 0;            // file offset or kernel address
  uint64_t offset = 0;             // from the function's start
  uint64_t number = 0;             // tracepoint id, period, nanoseconds, syscall number
  uint64_t reference_counter = 0;  // file offset of a USDT semaphore
  FileState file = {};             // the file on disk of `target`, when the symbols were read; unknown if it is not a
                                   // file
  uint64_t file_start = 0;         // of `target` in that file: not 0 within an archive; `address` is relative to it
  bool is_optional = false;        // one match of a wildcard: skipped if the kernel refuses to attach it
  std::string why_not = {};        // why it is not attached, though the kernel would; ""
  ProgramId program;
  source::Span span;
};

// Returns the location of a probe, equal for entry and return of the same function.
inline auto location_of(const Probe& probe) {
  return std::make_tuple(probe.target, probe.function, probe.address, probe.offset, probe.number,
                         probe.reference_counter);
}

// ---- Losses -----------------------------------------------------------------------------------------------------

// Reasons for missing or incomplete data.
enum class LossKind : uint8_t {
  kMissed,  // the probe fired, but its action did not run
  kSlice,   // the probe was off, to keep a budget
  kRecord,  // the ring was full
  kUpdate,  // a map was full
  kStack,   // the stack map was full
  kGuess,   // a user stack continued by frame pointers, because code has no unwind table
  kString,  // a string was truncated at max_strlen
  kRead,    // a read of memory failed and yielded zeros
  kLoop,    // a loop exceeded the kernel's limit of iterations
  kValue,   // a division by zero or an index outside of an array
  kCount
};

// A counter in `globals`, incremented by programs.
struct LossCounter {
  LossKind kind = LossKind::kMissed;
  ProgramId program;
  std::string what;  // "update(s) lost: @x is full"; reported as "3 updates lost: ...", summed over programs, if not 0
  uint32_t offset_bytes = 0;
  source::Span span = {};  // the place in the script, if it is shown
};

// Hit counters, if requested: a u64 per probe and CPU.
struct HitCounters {
  uint32_t offset_bytes = 0;  // in `globals`
  uint32_t stride_bytes = 0;  // from one CPU to the next, a power of two; 0: no counters
};

// The gates of programs, if a budget is kept. By a u64 in `globals` for each program, user space turns its probes on
// and off. `skipped` has the events of each probe and CPU meanwhile. If a script has entries and returns of calls, a
// return runs only if its entry has run in the same slice of time. `calls` has the slice and the depth of a thread's
// calls.
struct Gates {
  enum : uint64_t { kOpen = 0, kClosed = 1 };
  uint32_t offset_bytes = 0;  // 0: no gates
  uint32_t slice_offset = 0;  // u64: the number of the slice
  HitCounters skipped;
  // A hash from u64 process and thread, u64 number of a function to u32 slice, u32 depth of calls in progress. Invalid
  // if the script does not probe both ends of calls.
  MapId calls;
  std::vector<bool> is_gated;  // by ProgramId
  bool has_gate(ProgramId id) const { return id.index < is_gated.size() && is_gated[id.index]; }
  // In which processes the events of a program happened while its gate was open: for each CPU kCallers elements, of u64
  // process and u64 events. A process has the element of its low bits, unless another one has taken it.
  static constexpr uint32_t kCallers = 64, kCallerBytes = 16;
  std::vector<uint32_t> caller_tables;  // by ProgramId: the offset in `globals`; 0: none
  uint32_t caller_table(ProgramId id) const { return id.index < caller_tables.size() ? caller_tables[id.index] : 0; }
};

// The times of programs by their own clock, if requested. A u64 `switch` in `globals` is set by user space for a while.
// Each program has u64 runs and nanoseconds since.
struct OwnTimes {
  uint32_t switch_offset = 0;  // 0: no times
  uint32_t offset_bytes = 0;
};

constexpr int64_t kEndedByUserSpace = 1;  // a value of the exit flag

// The maps that keep the stacks of one type. A stack is kept by bpf_get_stackid() in the first map of `by_hash` where
// it is, or where its place is free: the kernel keeps one stack for each hash. If all places are taken, the stack is
// the key of an element in `by_content`, whose value is a number; `contents` has the frames by this number, as u32.
//
// The id of a stack has the place or the number in its low kStackMapShift bits, above them the index in `by_hash` or
// kStackByContent.
struct StackMaps {
  types::TypeId type;
  std::vector<MapId> by_hash;
  MapId by_content, contents;       // invalid if the kernel cannot
  uint32_t last_number_offset = 0;  // in `globals`, u64: the numbers given so far
};
constexpr uint32_t kStackMapShift = 24;
constexpr uint32_t kStackByContent = 127;

struct Program {
  const kernel::Arch* arch = nullptr;  // the CPU of the kernel that it is for
  uint32_t page_size_bytes = 0;        // of that kernel

  Table<MapId, BpfMap> maps;
  Table<ScriptMapId, ScriptMap> script_maps;
  Table<EventId, EventSchema> events;
  Table<ProgramId, BpfProgram> programs;
  Table<ProbeId, Probe> probes;

  MapId globals;                  // scalars, counters, flags; mmapable, one value
  MapId rodata;                   // constants
  MapId ring;                     // program/layout.h; invalid if the program emits no records
  uint32_t ring_bytes = 0;        // data bytes per CPU, a power of two
  uint32_t ring_slack_bytes = 0;  // after the data: the longest record of this program, rounded up
  uint32_t cpu_count = 0;
  std::string license = "GPL";              // as passed to the kernel
  uint32_t verifier_log_bytes = 1'000'000;  // size of the buffer for the verifier's log

  // Words in `globals`, as offsets in bytes. u64: 0 while the run continues; the monotonic time of exit(), or
  // kEndedByUserSpace. Then most programs return at once.
  uint32_t exit_flag_offset = 0;
  uint32_t exit_status_offset = 0;  // u64: the request of exit(), because its record may be lost; set before the flag
  uint32_t sequence_offset = 0;     // u64
  uint32_t start_offset = 0;        // u64: CLOCK_BOOTTIME when begin ran; written by user space
  std::vector<LossCounter> loss_counters;
  HitCounters hits;
  OwnTimes own_times;
  Gates gates;

  // Formats of timestamps. A timestamp holds an index into these, so that it can be stored in maps and records.
  std::vector<std::string> formats;

  std::vector<StackMaps> stacks;  // one for each type
  // --follow: a hash from the u32 id of each started process to a u64 that is not 0 while it runs. Also the programs
  // that maintain it, by their raw tracepoints. The map is invalid without --follow.
  struct Following {
    MapId processes;
    std::vector<std::pair<std::string, ProgramId>> programs;
  } following;
  MapId cgroup;  // --cgroup: a kCgroupArray with the group that probes are limited to; invalid without
  // Maps for unwinding user stacks by tables (program/unwind_layout.h); invalid if not used.
  struct UnwoundStacks {
    types::TypeId type;
    MapId map;
    uint32_t added_offset_bytes = 0;  // in `globals`, u64: the stacks that programs have added so far
  };
  struct Unwinding {
    MapId files, cells, more_cells;
    uint32_t epoch_offset_bytes = 0;    // in `globals`, u32
    std::vector<UnwoundStacks> stacks;  // one for each type
  } unwinding;
};

// Returns the program as text, one entity per line: the output of --dump=program.
std::string print(const Program& program, const types::Types& types);

// ---- Names of the probe that fired: `probe`, `func` and `probetype` are the index of a probe, displayed as one of its
// names. Probes with the same name use the index of the first of them, so that equal names are equal map keys.

inline bool is_probe_name(types::Kind kind) {
  return kind == types::Kind::kProbeName || kind == types::Kind::kFunctionName || kind == types::Kind::kProbeType;
}

// Returns the name of a probe. `kind`: kProbeName, kFunctionName or kProbeType.
inline const std::string& probe_name_text(types::Kind kind, const Probe& probe) {
  if (kind == types::Kind::kProbeName) return probe.name;
  return kind == types::Kind::kFunctionName ? probe.function : probe.provider;
}

// Returns the index of the first probe with the name; probes.size() if there is none. A function whose demangled name
// is shown is also found by the symbol that its probe names.
uint32_t first_named(types::Kind kind, const std::string& name, const Table<ProbeId, Probe>& probes);

// Returns, for each probe, the index of the first one with the same name.
std::vector<uint32_t> first_of_each_name(types::Kind kind, const Table<ProbeId, Probe>& probes);

}  // namespace espy::program
