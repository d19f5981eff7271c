// Helpers that several families of builtins share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/checker.h"
#include "lower/lowering.h"
#include "spec/builtin.h"

namespace espy::symbols {
class ElfFile;
}

namespace espy::builtins {

// The id of the error by which a script refuses to run itself.
constexpr std::string_view kRefusedByScript = "fail";

// Emits the unsigned minimum of `value` and `limit`. The verifier knows the result to be at most `limit`.
ir::ValueId bounded(lower::Lowering& lowering, ir::ValueId value, uint32_t limit);

// The bytes of a value that is a string, a buffer, an array or the like; nullopt for types that refer to memory, and
// for structs that are not complete.
std::optional<uint32_t> own_bytes(const types::Type& type);

// The memory that an expression refers to: the value of a pointer or integer, the address of an array, string or
// struct, or of the bytes of a buffer. An integer is taken as an address in the address space that the probe's own
// pointers have.
struct MemoryRef {
  ir::ValueId address;
  types::AddressSpace space = types::AddressSpace::kKernel;
};
MemoryRef referenced_memory(lower::Lowering& lowering, syntax::ExprId expr);

// Emits 1 if the `size_bytes` bytes at `a` and at `b` differ, else 0. Both must be BPF memory (stack, scratch, map
// value).
ir::ValueId bytes_differ(lower::Lowering& lowering, ir::ValueId a, ir::ValueId b, uint32_t size_bytes);

// Returns the address of a copy of the string `expr`, which may be in any address space, with `capacity_bytes` bytes;
// those after the NUL are zeros.
ir::ValueId as_string(lower::Lowering& lowering, syntax::ExprId expr, uint32_t capacity_bytes);

// Emits a lookup of `names[index]`; the result is `otherwise` if `index` is out of range or the name is empty. The
// table is in .rodata, with `capacity_bytes` bytes an entry.
lower::Operand name_in_table(lower::Lowering& lowering, ir::ValueId index, const std::vector<std::string>& names,
                             std::string_view otherwise, uint32_t capacity_bytes);

// Returns the hint for an unknown `word`: "did you mean `x`?" if a name is similar, else the list of names.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

// Emits the read of a member of the kernel struct at `base`. `path` names the member, through nested structs and
// pointers. Returns its address if it is larger than a register, and 0 if there is no such member.
lower::Operand kernel_member(lower::Lowering& lowering, ir::ValueId base, types::TypeId struct_type,
                             std::initializer_list<std::string_view> path);

// Returns the LRU map `name`, which is added on first use. Its keys, of `key_bytes` bytes, are what user space has been
// notified of; its values, 8 bytes, are free for the caller.
ir::ValueId seen_map(lower::Lowering& lowering, std::string_view name, uint32_t key_bytes, uint32_t max_entries);
// Emits a lookup of the key at address `key` in a map of seen_map(); if it is missing, inserts it and runs `notify`.
void notify_once(lower::Lowering& lowering, ir::ValueId map, ir::ValueId key, const std::function<void()>& notify);

// Emits the id by which user space finds the current process below /proc; 0 if it has none there.
ir::ValueId process_in_proc(lower::Lowering& lowering);

// Emits a record, once per process, and user space then reads the mappings of process `pid` (an id of
// process_in_proc()). The process may have ended before its addresses are symbolized.
void remember_process(lower::Lowering& lowering, ir::ValueId pid, source::Span span);

// Checks the arguments of printf() and of others that take a format: the format must parse, and the number and types of
// the values must match it. After a successful check, parsing the format again cannot fail.
types::TypeId check_format(check::Checker& checker, const spec::CallSite& call);
// The same, but allows more values than the format uses.
types::TypeId check_format_with_extra(check::Checker& checker, const spec::CallSite& call);

// The values of a record, from the argument number `first` on. All times of now that strftime() is given are the same.
std::vector<lower::EventArgument> values_from(lower::Lowering& lowering, const spec::CallSite& call, size_t first);

// Returns the file of the unit's first probe; null if it cannot be read.
std::shared_ptr<const symbols::ElfFile> probed_file(lower::Lowering& lowering);

// The current task, with the values of `pid`, `tid` and `comm`. Each is a plain load if the kernel supports typed task
// pointers.
struct CurrentTask {
  lower::Operand pid, tid, comm;
};
CurrentTask current_task(lower::Lowering& lowering);

// Returns the message of a loss of stacks that did not fit, with the setting to raise.
std::string no_room_for_stacks(lower::Lowering& lowering);
// Returns the flags of bpf_get_stack() and bpf_get_stackid() for a stack of `type` in this program.
ir::ValueId stack_flags(lower::Lowering& lowering, const types::Type& type);
// Whether an iterator has no stack of `type`. The checker reports it, but not in functions, which any action may call.
bool is_without_stack(lower::Lowering& lowering, const types::Type& type);
// Emits the capture of a stack to `destination`: the stack of the current task or, in an iterator, of its object's
// task. Returns the bytes written, or an error below 0.
ir::ValueId get_stack(lower::Lowering& lowering, const types::Type& type, ir::ValueId destination, uint32_t size_bytes);
// Emits the same, and returns the number of frames; 0 if it fails.
ir::ValueId frame_count(lower::Lowering& lowering, types::Type type);

// ---- percentile(): a bound of a part of the values that a histogram has counted (aggregation.cc).

// Emits the largest value of the first bucket up to which `percent` of `whole` of the values are counted; 0 for an
// empty histogram.
lower::Operand lower_percentile(lower::Lowering& lowering, const spec::CallSite& call);
types::TypeId check_percentile(check::Checker& checker, const spec::CallSite& call);

}  // namespace espy::builtins
