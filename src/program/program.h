// Program: what the compiler hands to the kernel's side and the display's side. Plain data, printable, immutable once
// made.
//
// In: written by `lower` (maps, events, attach points) and `bpf` (code). Out: `load` creates the maps and loads the
// code, `probes` attach it, `runtime` and `output` read what it emits. Nobody behind here sees a tree or the IR.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/id.h"
#include "source/source.h"
#include "types/type.h"

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
  kTaskStorage
};

// A map to create. Sizes in bytes.
struct BpfMap {
  std::string name;  // at most 15 bytes are passed on
  MapKind kind = MapKind::kArray;
  uint32_t key_size = 4;
  uint32_t value_size = 8;
  uint32_t max_entries = 1;
  bool is_mmapable = false;      // kArray only; user space sees the values without a system call
  uint32_t first_bytes = 0;      // of an mmapable value: what is mapped at first; 0: all
  bool is_read_only = false;     // for programs; frozen once `initial` is in
  bool is_preallocated = false;  // hashes
  std::string initial = {};      // kArray with one entry: first bytes of its value
};

// Where a script's map lives. A scalar is in the `globals` array: a 64-bit word that is 1 once it was assigned, then
// the value at +8. Per-CPU scalars repeat that every `stride_bytes`, CPU by CPU.
enum class Storage : uint8_t { kGlobal, kGlobalPerCpu, kHash, kPercpuHash };

struct ScriptMap {
  std::string name;   // "@x"
  types::TypeId key;  // void: a scalar
  types::TypeId value;
  Storage storage = Storage::kGlobal;
  MapId map;                  // the hash; unset for scalars
  uint32_t offset_bytes = 0;  // scalars: of the "assigned" word in `globals`
  uint32_t stride_bytes = 0;  // kGlobalPerCpu
  source::Span span;          // first use, for messages
};

// ---- Events -----------------------------------------------------------------------------------------------------

// One value in a record. Strings and buffers whose length is only known at run time are in the tail: the fixed part
// then has a uint32 offset (from the record's start) and a uint32 length in bytes at `offset_bytes`.
struct EventField {
  types::TypeId type;
  uint32_t offset_bytes = 0;
  bool is_in_tail = false;
};

// What a record means. `builtin` is the row whose `handle` is called with it. Where it is empty, the helper that
// literals[0] names failed at `span` and returned the only field.
struct EventSchema {
  std::string builtin;                // "printf"; empty: a helper failed (-k)
  std::vector<std::string> literals;  // format strings and other constants of the call
  std::vector<int64_t> numbers;       // constant numbers of the call: top, div, ...
  std::vector<EventField> fields;
  uint32_t size_bytes = 0;  // of the fixed part, header included
  ScriptMapId map;          // print(@m), clear(@m)
  source::Span span;
  ProgramId program;  // that emits it
};

// Every record starts so. See program/ring.h.
struct RecordHeader {
  uint32_t event_plus_one;  // 0: reserved, not yet complete. Written last.
  uint32_t size_bytes;      // of the whole record, header included; a multiple of 8
  uint64_t sequence;        // one count over all CPUs: the order in which records were reserved
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

// An instruction whose imm needs a file descriptor: known only once the map is made.
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
  uint32_t memory_bytes = 0;  // not 0: a global function; its parameter points at so many
};

struct BpfProgram {
  std::string name;  // at most 15 bytes are passed on
  ProgramKind kind = ProgramKind::kRawTracepoint;
  bool is_sleepable = false;
  uint32_t expected_attach_type = 0;   // BPF_TRACE_UPROBE_MULTI and the like; 0 for none
  uint32_t attach_btf_id = 0;          // kTracingRawTracepoint, kFentry, kFexit, kIter
  std::string attach_btf_module = {};  // whose ids those are; "" for vmlinux
  uint32_t attach_program = 0;         // not 0: they are those of the BPF program with this id
  std::vector<BpfInsn> code;
  std::vector<MapReference> map_references;
  std::vector<LineInfo> lines;          // ascending by insn
  std::vector<FunctionInfo> functions;  // ascending by insn; the first is the main one
};

// ---- Probes -----------------------------------------------------------------------------------------------------

// One attach point, wildcards resolved. Which fields mean something is the provider's business (probes/NAME.cc).
struct Probe {
  std::string provider;            // "tracepoint": the row's name
  std::string name;                // in full, as `probe` shows it: "tracepoint:syscalls:sys_enter_openat"
  std::string function;            // as `func` shows it
  std::string target;              // binary, category, module
  uint64_t address = 0;            // file offset or kernel address
  uint64_t offset = 0;             // behind the function's start
  uint64_t number = 0;             // tracepoint id, period, nanoseconds, syscall number
  uint64_t reference_counter = 0;  // file offset of a USDT semaphore
  bool is_optional = false;        // one of a wildcard's: where the kernel does not let it attach, it is left out
  ProgramId program;
  source::Span span;
};

// Where a probe is, whichever edge of a call it is for.
inline auto place_of(const Probe& probe) {
  return std::make_tuple(probe.target, probe.function, probe.address, probe.offset, probe.number,
                         probe.reference_counter);
}

// ---- Losses -----------------------------------------------------------------------------------------------------

// Why something that the script asked for did not happen, or not wholly.
enum class LossKind : uint8_t {
  kMissed,  // the probe fired, its action did not run
  kRecord,  // no room in the ring
  kUpdate,  // no room in a map
  kStack,   // no room among the stacks
  kGuess,   // a user stack that went on by frame pointers, for want of an unwind table
  kString,  // longer than max_strlen
  kRead,    // memory that is not there: zeros instead
  kLoop,    // more turns than the kernel allows
  kCount
};

// A word in `globals` that programs add to.
struct LossCounter {
  LossKind kind = LossKind::kMissed;
  ProgramId program;
  std::string what;  // "@x is full ...; updates lost": shown as "WHAT: N", N summed over programs, where it is not 0
  uint32_t offset_bytes = 0;
};

// How often each probe fired, counted where somebody asked: a u64 for each probe, CPU by CPU.
struct HitCounters {
  uint32_t offset_bytes = 0;  // in `globals`
  uint32_t stride_bytes = 0;  // from one CPU to the next, a power of two; 0: not counted
};

struct Program {
  Table<MapId, BpfMap> maps;
  Table<ScriptMapId, ScriptMap> script_maps;
  Table<EventId, EventSchema> events;
  Table<ProgramId, BpfProgram> programs;
  Table<ProbeId, Probe> probes;

  MapId globals;                  // scalars, counters, flags; mmapable, one value
  MapId rodata;                   // constants
  MapId ring;                     // program/ring.h; invalid if nothing is emitted
  uint32_t ring_bytes = 0;        // data bytes per CPU, a power of two
  uint32_t ring_slack_bytes = 0;  // behind them: the longest record of this program, rounded up
  uint32_t cpu_count = 0;
  std::string license = "GPL";              // told to the kernel
  uint32_t verifier_log_bytes = 1'000'000;  // room for what the verifier says of a program it refuses

  // Runtime words in `globals`, offsets in bytes. User space writes the first, programs the others.
  uint32_t exit_flag_offset = 0;  // u64: set by exit(); programs return at once when it is not 0
  uint32_t sequence_offset = 0;   // u64
  uint32_t start_offset = 0;      // u64: CLOCK_BOOTTIME when begin ran; written by user space
  std::vector<LossCounter> loss_counters;
  HitCounters hits;

  // Formats of timestamps, which name theirs by its index here: a value may travel from an event into a map and back.
  std::vector<std::string> formats;

  // One STACK_TRACE map per shape of stack, by the stack's type.
  std::vector<std::pair<types::TypeId, MapId>> stacks;
  // --follow: a u64 for each process that was started, by its u32 number: not 0 while it lives; and the programs that
  // keep them, by the raw tracepoint that each is for. The map is invalid where nobody is followed.
  struct Following {
    MapId processes;
    std::vector<std::pair<std::string, ProgramId>> programs;
  } following;
  // Where user stacks are unwound by tables (program/unwind.h); invalid where the script takes none, or cannot.
  struct Unwinding {
    MapId files, cells;
    std::vector<std::pair<types::TypeId, MapId>> stacks;
  } unwinding;
};

// "program NAME kind=..." and so on, a line a thing: what --dump=program shows.
std::string print(const Program& program, const types::Types& types);

}  // namespace espy::program
