// Functions for several families.
#pragma once

#include <functional>
#include <memory>
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

// The smaller of `value` and `limit`, compared unsigned, for values that need a bound for the verifier.
ir::ValueId bounded(lower::Lowering& lowering, ir::ValueId value, uint32_t limit);

// Where the bytes of `expr` are when taken as the target of a pointer: of a pointer or integer its value, of an array,
// string or struct its address. An integer points to where the probe's own pointers do.
struct Pointed {
  ir::ValueId address;
  types::AddressSpace space = types::AddressSpace::kKernel;
};
Pointed pointed_to(lower::Lowering& lowering, syntax::ExprId expr);

// 1 if `size_bytes` at two places of our memory differ, else 0.
ir::ValueId bytes_differ(lower::Lowering& lowering, ir::ValueId a, ir::ValueId b, uint32_t size_bytes);

// The string of our memory or anywhere as one of `capacity_bytes`, zeros behind its end.
ir::ValueId as_string(lower::Lowering& lowering, syntax::ExprId expr, uint32_t capacity_bytes);

// `names[index]`, or `otherwise` if the index is out of range: a table of strings of one length in .rodata.
lower::Operand named_number(lower::Lowering& lowering, ir::ValueId index, const std::vector<std::string>& names,
                            std::string_view otherwise, uint32_t capacity_bytes);

// The hint for a word that is not in `names`: "did you mean `x`?", or the list of names.
std::string choices(std::string_view word, const std::vector<std::string>& names);

// The member of the struct at `base` by its path, through pointers; its address where it is larger than a register.
lower::Operand kernel_member(lower::Lowering& lowering, ir::ValueId base, types::TypeId struct_type,
                             std::initializer_list<std::string_view> path);

// An LRU map of what was reported to user space, with keys of `key_bytes` and values of 8 bytes.
ir::ValueId seen_map(lower::Lowering& lowering, std::string_view name, uint32_t key_bytes, uint32_t max_entries);
// `tell` the first time that `key`, an address, is met.
void notify_once(lower::Lowering& lowering, ir::ValueId map, ir::ValueId key, const std::function<void()>& tell);

// Notifies user space of the current process, once, so that its mappings are read before it ends.
void remember_process(lower::Lowering& lowering, ir::ValueId pid, source::Span span);

// For printf(format, ...) and the like: checks that the format is valid and matches the values. Later stages rely on it
// and parse the format without a check.
types::TypeId check_format(check::Checker& checker, const spec::CallSite& call);
// The same, but more values than the format needs are allowed.
types::TypeId check_format_and_more(check::Checker& checker, const spec::CallSite& call);

// The file of the unit's first probe; null if it cannot be read.
std::shared_ptr<const symbols::ElfFile> probed_file(lower::Lowering& lowering);

// The current task's `pid`, `tid` and `comm`: one load each if the kernel has typed pointers to tasks.
struct CurrentTask {
  lower::Operand pid, tid, comm;
};
CurrentTask current_task(lower::Lowering& lowering);

// The flags of the kernel's stack helpers for a stack of this type, and the number of frames that they would return.
ir::ValueId stack_flags(lower::Lowering& lowering, const types::Type& type);
ir::ValueId frame_count(lower::Lowering& lowering, types::Type type);

}  // namespace espy::builtins
