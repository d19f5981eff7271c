// The interface of probe types. A probe type is a row with its functions, in probes/NAME.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/kernel.h"
#include "program/program.h"
#include "source/diagnostic.h"
#include "spec/config.h"
#include "syntax/ast.h"
#include "types/value_location.h"

namespace espy::symbols {
class Symbolizer;
}
namespace espy::load {
class Machine;
}

namespace espy::spec {

struct Provider;

// How a field of a context is read. Lowering knows recipes, and no probe types.
struct Recipe {
  enum class Kind : uint8_t {
    kContext,        // load `size_bytes` at context + offset
    kContextCopy,    // the same, read as kernel memory: the verifier does not let a program load it
    kBehindPointer,  // p = 8 bytes at context + offset; then kernel memory at p + inner_offset
    kTaskRegister,   // at inner_offset in the pt_regs saved when the current task entered the kernel
    kDataLoc,      // u32 at context + offset locates a string in the record: low half its offset, high half its length
    kRelativeLoc,  // the same, with the offset relative to the end of the u32
    kContextAddress,  // the address context + offset: char arrays and structs in the record
    kUserStackWord,   // sp = register at context + offset; then user memory at sp + inner_offset
    kConstant,        // the number `displacement`
    kUserMemory,      // user memory at `displacement` + register at context + offset + scaled index register
    kLocation,        // a DWARF location; the context is pt_regs
  };
  Kind kind = Kind::kContext;
  uint32_t offset_bytes = 0;
  uint32_t inner_offset_bytes = 0;
  uint8_t size_bytes = 8;
  bool is_signed = false;
  // Only for kConstant and kUserMemory:
  int64_t displacement = 0;
  bool has_base = true;  // false: no register at `offset_bytes` is added
  uint32_t index_offset_bytes = 0;
  uint8_t index_scale = 0;          // 0: no index
  types::ValueLocation place = {};  // only for kLocation
};

struct ContextField {
  std::string name;  // "filename", "arg0", "retval"
  types::TypeId type;
  Recipe recipe;
  // If not empty, the variable exists, but cannot be read at this address: the message of the error, and its hint.
  std::string unreadable = {};
  std::string hint = {};
  std::string c_type = {};  // as tracefs writes the type: "const char *"; "" for fields of other probes
};

// Where the probes of a timer fire. The `number` of a timer's probe is its period in nanoseconds.
enum class Timer : uint8_t { kNone, kOnOneCpu, kOnEachCpu };

// Where a probe of a function fires in a call. Entry and return of one call have the same frame: a number that differs
// between the active calls of a thread.
enum class CallBoundary : uint8_t { kNone, kEntry, kReturn };
struct Frame {
  uint32_t register_offset_bytes = 0;  // of the stack pointer in the context
  int32_t displacement = 0;            // added to the stack pointer
};

// What a program does after exit(). The run ends when user space has seen the exit, some milliseconds later.
enum class AfterExit : uint8_t {
  kStop,       // returns at once
  kForAWhile,  // timers that were due at the same time still run
  kUntilEnd,   // iterators: finish their walk, unless the user ends the run
  kAlways,     // begin and end
};

// The context of a program: how it is loaded, and what it can read.
struct ProbeContext {
  program::ProgramKind kind = program::ProgramKind::kRawTracepoint;
  uint32_t expected_attach_type = 0;
  uint32_t attach_btf_id = 0;
  std::string attach_btf_module;        // module of `attach_btf_id`; "" for vmlinux
  uint32_t attach_program = 0;          // id of the BPF program that is traced; 0: none
  uint32_t session_attach_type = 0;     // for one program that runs at entry and return of calls; 0: not possible
  uint32_t deepest_nesting = 0;         // returns of calls nested deeper in a thread are not seen; 0: no limit
  bool may_sleep = false;               // the program may be sleepable: page faults are served
  bool is_raised_by_kernel = false;     // a perf event that code of the kernel raises, without registers
  bool is_preemptible = false;          // threads may interleave on a CPU: aggregations must be atomic
  std::vector<ContextField> args;       // args.NAME
  std::vector<ContextField> arguments;  // arg0, arg1, ...
  std::vector<ContextField> locals;     // locals.NAME
  std::optional<ContextField> retval;
  std::vector<ContextField> recorded;              // of a recording: values of expressions, which are their names
  std::optional<uint32_t> registers_offset_bytes;  // of pt_regs in the context, for reg()
  bool registers_behind_pointer = false;           // ... or of a pointer to them
  std::string context_struct;                      // that `ctx` points to; "": no `ctx`
  types::AddressSpace context_space = types::AddressSpace::kKernel;  // where it is
  types::AddressSpace pointers = types::AddressSpace::kKernel;       // what argN and retval point to

  // How a program finds which of its probes fired. It has only one probe, or it uses the attach cookie, which is the
  // index of the ProbeId. Or it looks up a number that `number` reads (of a system call) in a table. An unknown number
  // ends the program.
  enum class Dispatch : uint8_t { kSingle, kCookie, kNumber };
  Dispatch dispatch = Dispatch::kSingle;
  Recipe number;
  std::string_view hook = {};           // with kNumber: the attachment; programs with equal hooks may be merged
  bool is_at_all_system_calls = false;  // a raw tracepoint that the kernel's slow path of system calls passes
  // With kNumber: identifies 32-bit tasks, whose calls have other numbers and are ignored (Arch::compat_task). If the
  // CPU has a `compat_call`, and BTF its members, the program asks that instead.
  std::optional<Recipe> compat_register;

  // A pointer in the context that is NULL in the last call of an iterator, which is ignored.
  std::optional<Recipe> not_null;
  // The task_struct of the object of an iterator, which runs in the process that reads it.
  std::optional<Recipe> task;
  CallBoundary boundary = CallBoundary::kNone;
  CallBoundary part_of_call = CallBoundary::kNone;  // also of system calls
  std::optional<Frame> frame;                       // stacks grow downwards
  std::optional<Recipe> return_address;             // at the entry of a call; set only with `frame`
  bool is_limited_to_pid = true;                    // with -p: does nothing in other processes
  AfterExit after_exit = AfterExit::kStop;
  bool returns_value = false;           // the value of `return` is the program's result
  bool fires_rarely = false;            // from the provider's row
  bool is_last_attached_first = false;  // of the programs on one hook, the kernel runs the one attached last first
  program::SamplePeriod sampled;
};

// What probes have in common that one program can serve. The provider defines which fields are used.
struct Share {
  std::string method = {};                 // how they are attached
  std::string place = {};                  // an event, a probe, a file; "": any
  FileState file = {};                     // the file of `place` when its symbols were read
  std::optional<uint64_t> offset = {};     // in it
  std::optional<std::string> layout = {};  // where in the context the fields are that the action reads
  bool is_any_pointer = false;             // they return pointers of different types: `retval` is a `void *`
  auto operator<=>(const Share&) const = default;
};

// A probe that an attach point stands for, before probes are grouped into programs.
struct BoundProbe {
  program::Probe probe;
  Share share = {};       // probes of an action with equal `share` are served by one program
  bool is_wanted = true;  // false: valid, but excluded by the command line
};

// What an action reads of its probe, so that a provider can choose a cheaper way to attach.
struct Uses {
  bool args = false;     // `args`
  bool context = false;  // `ctx`, `argN`, `retval`, reg()
  bool locals = false;   // `locals`
  bool retval = false;   // `retval`
  bool file = false;     // uaddr(): what differs between files
};

// What becomes of the probes that an attach point stands for.
enum class Binding : uint8_t {
  kAttach,
  kList,     // nothing is attached
  kForetell  // what the kernel would refuse is reported; nothing is loaded
};

struct BindRequest {
  const syntax::AttachPoint& point;
  std::span<const std::string> parts;  // the attach point's parts, with parameters replaced
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null for recorded kernels
  const Config& config;
  source::Diagnostics& diagnostics;              // for errors in the attach point
  source::Diagnostics& missing;                  // for errors that say why it stands for nothing
  std::span<const program::Probe> earlier = {};  // the probes of the attach points before it
  Binding binding = Binding::kAttach;
  Uses uses = {};
  const Provider* provider = nullptr;  // the row: a function may serve several

  bool is_listing() const { return binding == Binding::kList; }
  bool is_foretold() const { return binding == Binding::kForetell; }
};

struct ContextRequest {
  std::span<const program::Probe> probes;  // all with the same `share`
  const Share& share;
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols = nullptr;  // null for recorded kernels
  Uses uses = {};
  const Provider* provider = nullptr;  // the row: a function may serve several
};

struct AttachRequest {
  load::Machine& machine;
  const program::Program& program;
  program::ProgramId program_id;
  std::span<const program::ProbeId> probes;  // all that the program serves
  const Config& config;
  const Provider* provider = nullptr;  // the row: a function may serve several
};

struct ListRequest {
  std::span<const std::string> parts;  // patterns after the provider; may be empty
  bool verbose = false;                // with arguments
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;
  const Config& config;
  bool shows_locations = false;        // with `verbose`: where the arguments of user functions are
  const Provider* provider = nullptr;  // the row: a function may serve several
};

// A question for a type or an enumerator of the program that a probe is in, by its name in the source: "Foo",
// "shop::Basket".
struct ProgramTypeRequest {
  enum class Category : uint8_t { kStruct, kEnum, kAny, kEnumerator };  // kStruct: also unions and classes
  Category category = Category::kAny;
  std::string_view name;
  const program::Probe& probe;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null for recorded kernels
};

struct ProgramType {
  types::TypeId type = {};                   // invalid if there is none
  int64_t value = 0;                         // of an enumerator
  std::vector<std::string> candidates = {};  // full names, if the name could mean several types
  std::string problem = {};                  // why nothing is known of the program's types
};

struct ListedProbe {
  std::string name;                    // "tracepoint:syscalls:sys_enter_openat"
  std::vector<std::string> arguments;  // "const char * filename"; only when verbose
};

struct Provider {
  std::string_view name;
  std::vector<std::string_view> aliases;
  std::string_view doc;   // Markdown for the manual; the first sentence for lists
  std::string_view form;  // "tracepoint:CATEGORY:EVENT"
  // Returns the probes that the attach point stands for. If it is wrong, returns none and adds an error. If it matches
  // nothing, returns none; the checker reports this, or the content of `missing`, as config.missing_probes demands.
  std::vector<BoundProbe> (*bind)(BindRequest&) = nullptr;
  ProbeContext (*context)(ContextRequest&) = nullptr;
  Status (*attach)(AttachRequest&) = nullptr;  // null: run by the session at `phase`
  enum class Phase : uint8_t { kAttached, kBegin, kEnd, kTest, kBench } phase = Phase::kAttached;
  std::vector<ListedProbe> (*list)(ListRequest&) = nullptr;  // null: not listed
  // Returns what there is instead of the attach point of the request, which matches nothing, or why its file cannot be
  // read, for the hint of the error.
  std::string (*tell_similar)(ListRequest&) = nullptr;
  // Finds a type of the program that is traced. null: the probes are not in programs.
  ProgramType (*find_type)(ProgramTypeRequest&) = nullptr;
  const Provider* return_provider = nullptr;  // probes the returns of the calls that this one probes
  bool needs_target_to_list = false;          // user probes: listed only for a given file
  bool fires_rarely = false;                  // a small ring is enough for its records
  std::string_view capability = {};           // besides CAP_BPF and CAP_PERFMON, see docs/reference/privileges.md
  Timer timer = Timer::kNone;                 //
  std::string_view example = {};
};

}  // namespace espy::spec
