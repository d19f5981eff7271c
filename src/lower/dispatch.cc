#include "lower/dispatch.h"

#include <algorithm>
#include <bit>

#include "lower/control.h"

namespace espy::lower {
namespace {

constexpr ir::SlotId kNumberSlot{0};
constexpr size_t kMaxComparisons = 3;  // as fast as a table, or faster

}  // namespace

void ProbeDispatch::begin() {
  if (part_.shares_number) new_slot("number");
}

void ProbeDispatch::leave_if_other_number() {
  if (!is_by_number()) return;
  const ValueId number = part_.shares_number ? read_slot(kNumberSlot) : this->number();
  const BlockId other = ir().add_block("other");
  const BlockId match = ir().add_block("mine");
  if (unit_.probes.size() == 1) {
    match_one(number, match, other);
  } else {
    match_by_table(number, match, other);
  }
  skip_compat_calls();
  end_program_in(ir(), other, ir().block());
}

// The first instructions of a program for all system calls: those that are not traced pay for them.
void ProbeDispatch::leave_if_none_of(std::span<const uint64_t> numbers) {
  const ValueId number = this->number();
  write_slot(kNumberSlot, number);
  const BlockId other = ir().add_block("other");
  const BlockId wanted = ir().add_block("wanted");
  if (numbers.size() <= kMaxComparisons) {
    for (const uint64_t each : numbers) {
      const BlockId next = each == numbers.back() ? other : ir().add_block("next");
      ir().branch(Condition::eq, number, static_cast<int64_t>(each), wanted, next);
      ir().enter(next);
    }
  } else {
    std::string table(numbers.back() + 1, '\0');
    for (const uint64_t each : numbers) table[each] = 1;
    ir().branch(Condition::ne, table_entry(number, table, 1, other), 0, wanted, other);
  }
  const BlockId rest = ir().add_block("rest");
  ir().enter(wanted);
  ir().jump(rest);
  end_program_in(ir(), other, rest);
}

ValueId ProbeDispatch::field(const char* name, const spec::Recipe& recipe) {
  return fields_.read({name, types().int64(), recipe}).value;
}

ValueId ProbeDispatch::number() { return field("number", unit_.context.number); }

void ProbeDispatch::match_one(ValueId number, BlockId match, BlockId other) {
  const program::ProbeId probe = unit_.probes[0];
  ir().branch(Condition::eq, number, static_cast<int64_t>(module_.program.probes[probe].number), match, other);
  ir().enter(match);
  found_index_ = ir().constant(probe.index);
}

// By a table in .rodata, with the index of the number's probe plus 1, or 0. A system call without a probe should cost
// little.
void ProbeDispatch::match_by_table(ValueId number, BlockId match, BlockId other) {
  uint64_t last = 0;
  uint32_t largest_entry = 0;
  for (const program::ProbeId id : unit_.probes) {
    last = std::max(last, module_.program.probes[id].number);
    largest_entry = std::max(largest_entry, id.index + 1);
  }
  const uint8_t entry_bytes = largest_entry <= UINT16_MAX ? 2 : 4;
  std::string table((last + 1) * entry_bytes, '\0');
  for (const program::ProbeId id : unit_.probes) {
    const uint64_t at = module_.program.probes[id].number * entry_bytes;
    for (uint32_t i = 0; i < entry_bytes; ++i) table[at + i] = static_cast<char>((id.index + 1) >> (8 * i));
  }
  const ValueId found = table_entry(number, table, entry_bytes, other);
  ir().branch(Condition::ne, found, 0, match, other);
  ir().enter(match);
  found_index_ = ir().binary(Op::k_sub, found, 1);
}

ValueId ProbeDispatch::table_entry(ValueId number, std::string_view table, uint8_t entry_bytes, BlockId if_beyond) {
  const BlockId known = ir().add_block("known");
  const auto last = static_cast<int64_t>(table.size() / entry_bytes - 1);
  ir().branch(Condition::ule, number, last, known, if_beyond);
  ir().enter(known);
  const ValueId offset = entry_bytes == 1 ? number : ir().binary(Op::k_shl, number, std::countr_zero(entry_bytes));
  return ir().load(entry_bytes, ir().binary(Op::k_add, memory_.constant_bytes(table), offset));
}

// Calls of the 32-bit interface have other numbers. Where 64-bit code can make them as well (int $0x80), no register
// tells: the kernel's flag does, which perf's tracepoints ask, too (in_ia32_syscall() in
// arch/x86/include/asm/compat.h). Without BTF, espy does not know where the flag is, and asks a register for the calls
// of 32-bit code.
void ProbeDispatch::skip_compat_calls() {
  const kernel::Arch& arch = kernel().arch();
  if (arch.compat_call && kernel().find_struct(types(), "task_struct").valid()) {
    const ValueId flags = reads_.current_task_field(arch.compat_call->members);
    end_program_if(ir(), Condition::test, flags, arch.compat_call->mask);
  } else if (unit_.context.compat_register) {
    const kernel::RegisterValue& compat = *arch.compat_task;
    const ValueId held = field("compat", *unit_.context.compat_register);
    const ValueId mode = compat.mask == -1 ? held : ir().binary(Op::k_and, held, compat.mask);
    end_program_if(ir(), Condition::eq, mode, compat.value);
  }
}

ValueId ProbeDispatch::index() {
  using Dispatch = spec::ProbeContext::Dispatch;
  switch (unit_.context.dispatch) {
    case Dispatch::kSingle:
      if (unit_.probes.empty()) return ir().constant(0);
      return ir().constant(unit_.probes[0].index);
    case Dispatch::kCookie: {
      const ValueId cookie = ir().call(Helper::get_attach_cookie, {ir().context()});
      return part_.cookie_distance == 0 ? cookie : ir().binary(Op::k_add, cookie, part_.cookie_distance);
    }
    case Dispatch::kNumber: break;
  }
  return functions_.is_in_callback() ? ir().load(8, frame_.address(), kFrameProbeOffset) : found_index_;
}

}  // namespace espy::lower
