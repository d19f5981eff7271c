// What several families need.
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

// `value`, or `limit` where it is larger as an unsigned number: where the verifier must see a bound.
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

// `names[index]`, or `otherwise` for what is not among them: a table of equally long strings in .rodata.
lower::Operand named_number(lower::Lowering& lowering, ir::ValueId index, const std::vector<std::string>& names,
                            std::string_view otherwise, uint32_t capacity_bytes);

// The hint for a word that is not among `names`: "did you mean `x`?", or what there is.
std::string choices(std::string_view word, const std::vector<std::string>& names);

// The member of the struct at `base` by its path, through pointers; its address where it is larger than a register.
lower::Operand kernel_member(lower::Lowering& lowering, ir::ValueId base, types::TypeId struct_type,
                             std::initializer_list<std::string_view> path);

// A map of what user space was told of already, by keys of `key_bytes`, to 8 bytes; the oldest ones make room.
ir::ValueId seen_map(lower::Lowering& lowering, std::string_view name, uint32_t key_bytes, uint32_t max_entries);
// `tell` the first time that `key`, an address, is met.
void notify_once(lower::Lowering& lowering, ir::ValueId map, ir::ValueId key, const std::function<void()>& tell);

// Lets user space take down where a process has its code, before the process is gone; once for each.
void remember_process(lower::Lowering& lowering, ir::ValueId pid, source::Span span);

// printf(format, ...) and its kin: whether the format can be read, and the values go with it. Where they do, the
// session and whoever else parses it again can rely on it.
types::TypeId check_format(check::Checker& checker, const spec::CallSite& call);
// The same where more values than the format wants may follow.
types::TypeId check_format_and_more(check::Checker& checker, const spec::CallSite& call);

// The file that the unit's first probe is in; null where it cannot be read.
std::shared_ptr<const symbols::ElfFile> probed_file(lower::Lowering& lowering);

// Who runs, as `pid`, `tid` and `comm` have it: a load each where the kernel has typed pointers to tasks.
struct CurrentTask {
  lower::Operand pid, tid, comm;
};
CurrentTask current_task(lower::Lowering& lowering);

// The flags with which the kernel's helpers take a stack of this type here, and how many frames they would find.
ir::ValueId stack_flags(lower::Lowering& lowering, const types::Type& type);
ir::ValueId frame_count(lower::Lowering& lowering, types::Type type);

}  // namespace espy::builtins
