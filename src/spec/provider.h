// The socket for probe types. A probe type is one file, probes/NAME.cc, with one row.
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

// How a field of a context is got at, so that lowering never asks which probe it is in.
struct Recipe {
  enum class Kind : uint8_t {
    kContext,         // load `size_bytes` at context + offset
    kBehindPointer,   // p = 8 bytes at context + offset; then kernel memory at p + inner_offset
    kTaskRegister,    // at inner_offset in the pt_regs that the current task entered the kernel with, typed
    kDataLoc,         // u32 at context + offset names a string in the record: low half its offset, high half its length
    kRelativeLoc,     // the same, offset counted from behind the u32
    kContextAddress,  // the address context + offset itself: char arrays and structs in the record
    kUserStackWord,   // sp = register at context + offset; then user memory at sp + inner_offset
    kConstant,        // the number `displacement`
    kUserMemory,      // user memory at `displacement` + the register at context + offset + that of the index, scaled
    kLocation,        // where `place` says; the context is pt_regs
  };
  Kind kind = Kind::kContext;
  uint32_t offset_bytes = 0;
  uint32_t inner_offset_bytes = 0;
  uint8_t size_bytes = 8;
  bool is_signed = false;
  // kConstant and kUserMemory alone:
  int64_t displacement = 0;
  bool has_base = true;  // else there is no register at `offset_bytes`
  uint32_t index_offset_bytes = 0;
  uint8_t index_scale = 0;          // 0: no index
  types::ValueLocation place = {};  // kLocation alone
};

struct ContextField {
  std::string name;  // "filename", "arg0", "retval"
  types::TypeId type;
  Recipe recipe;
  // Not empty: there is such a variable, but its value is not to be had at this place. What to say of it, and a hint.
  std::string unreadable = {};
  std::string hint = {};
};

// A function's probe fires at its beginning or at its end; two such firings are of the same call if they have the same
// frame: a number that differs between calls that are under way at the same time in one thread.
enum class CallBoundary : uint8_t { kNone, kEntry, kReturn };
struct Frame {
  uint32_t register_offset_bytes = 0;  // of the stack pointer in the context ...
  int32_t displacement = 0;            // ... to which this is added
};

// What a program sees when its probe fires.
struct ProbeContext {
  program::ProgramKind kind = program::ProgramKind::kRawTracepoint;
  uint32_t expected_attach_type = 0;
  uint32_t attach_btf_id = 0;
  std::string attach_btf_module;        // whose id that is; "" for vmlinux
  uint32_t attach_program = 0;          // not 0: it is of the BPF program with this id
  uint32_t session_attach_type = 0;     // not 0: by it the kernel fires one program for both edges of the calls
  uint32_t deepest_nesting = 0;         // not 0: of calls that are nested deeper in a thread no return is seen
  bool may_sleep = false;               // its programs run where the kernel lets them wait for a page
  bool is_preemptible = false;          // two threads may interleave on one CPU: aggregations must be atomic
  std::vector<ContextField> args;       // args.NAME
  std::vector<ContextField> arguments;  // arg0, arg1, ...
  std::vector<ContextField> locals;     // locals.NAME
  std::optional<ContextField> retval;
  std::optional<uint32_t> registers_offset_bytes;               // where pt_regs start in the context, for reg()
  bool registers_behind_pointer = false;                        // ... or where a pointer to them is
  types::TypeId context_type;                                   // of `ctx`: pointer to struct; invalid: no `ctx`
  types::AddressSpace pointers = types::AddressSpace::kKernel;  // what argN and retval point to

  // Which of its probes a program serves when it fires: one and the same; the attach cookie, which is the ProbeId's
  // index; or a number found by `number` (a system call's), looked up in `by_number`; a number that is not there ends
  // the program.
  enum class Dispatch : uint8_t { kSingle, kCookie, kNumber };
  Dispatch dispatch = Dispatch::kSingle;
  Recipe number;
  std::string_view hook = {};          // with kNumber: what the program hangs on; those with the same may be one
  std::optional<Recipe> code_segment;  // with kNumber: tells 32-bit tasks, which have other numbers and are left out

  // Where given: a pointer in the context that is NULL in the last call of an iterator, in which nothing is to be done.
  std::optional<Recipe> not_null;
  CallBoundary boundary = CallBoundary::kNone;
  std::optional<Frame> frame;            // where there is one; stacks grow downwards
  std::optional<Recipe> return_address;  // of a call, at its entry, with `frame`
  bool is_limited_to_pid = true;         // with -p: fires, but does nothing, in other processes
  bool runs_after_exit = false;          // begin and end: not stopped by the exit flag
  bool returns_value = false;            // what `return` says is what the program returns
  bool fires_rarely = false;             // as the provider's row says
};

// A probe that an attach point stands for, before programs are formed.
struct BoundProbe {
  program::Probe probe;
  std::string share;      // probes of an action with equal `share` are served by one program
  bool is_wanted = true;  // false: well formed, but the command line did not ask for it
};

// What binding and listing may use. `uses_*` tell what the action reads, so that a cheaper way to attach can be chosen.
struct BindRequest {
  const syntax::AttachPoint& point;
  std::span<const std::string> parts;  // the attach point's parts with parameters put in
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null where there is none (recorded kernels)
  const Config& config;
  source::Diagnostics& diagnostics;  // for errors in the attach point
  bool uses_args = false;            // `args`
  bool uses_context = false;         // `ctx`, `argN`, `retval`, reg()
  bool uses_locals = false;          // `locals`
  bool uses_retval = false;          // `retval`
  bool uses_file = false;            // uaddr(): what differs from file to file
};

struct ContextRequest {
  std::span<const program::Probe> probes;  // all of one `share`
  std::string_view share;
  kernel::Kernel& kernel;
  types::Types& types;
  bool uses_args = false;
  symbols::Symbolizer* symbols = nullptr;  // null where there is none
  bool uses_locals = false;
  bool uses_retval = false;
};

struct AttachRequest {
  load::Machine& machine;
  const program::Program& program;
  program::ProgramId program_id;
  std::span<const program::ProbeId> probes;  // all that this program serves
  const Config& config;
};

struct ListRequest {
  std::span<const std::string> parts;  // patterns after the provider; may be empty
  bool verbose = false;                // with arguments
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;
  const Config& config;
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
  // All probes that the attach point stands for, at least one; or nothing and an error in `diagnostics`. Where it
  // matches nothing at all, returns nothing and says nothing: the checker reports that by `missing_probes`.
  std::vector<BoundProbe> (*bind)(BindRequest&) = nullptr;
  ProbeContext (*context)(ContextRequest&) = nullptr;
  Status (*attach)(AttachRequest&) = nullptr;  // null: run by the session, at `phase`
  enum class Phase : uint8_t { kAttached, kBegin, kEnd, kTest, kBench } phase = Phase::kAttached;
  std::vector<ListedProbe> (*list)(ListRequest&) = nullptr;  // null: not listed
  bool needs_target_to_list = false;                         // user probes: only listed if named
  bool fires_rarely = false;                                 // a small ring is enough for its events
  std::string_view example = {};
};

}  // namespace espy::spec
