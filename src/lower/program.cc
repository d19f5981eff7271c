// What surrounds an action in the main function of its program:
//
//   entry     recursion guard, exit flag, dispatch by number, process filter, gate, hit counter
//   guard     the predicate
//   setup     scratch and frame, if used; before `guard` if the predicate uses scratch
//   body      the action
//   exit      releases the scratch region, returns
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lower/lowering.h"
#include "lower/process_ids.h"
#include "spec/builtin.h"

namespace espy::lower {
namespace {

constexpr ir::SlotId kNumberSlot{0};
constexpr size_t kMaxComparisons = 3;  // as fast as a table, or faster
constexpr uint32_t kDepthOffset = 4;   // of an element of the map of calls
// Timers of one rate, attached one after the other, are due within this time.
constexpr int64_t kSameTimeNs = 2'000'000;

}  // namespace

Lowering::Lowering(ModuleContext& module, const check::Unit& unit, ir::Unit& out, Part part)
    : module_(module),
      action_(unit),
      context_(unit.context),
      part_(part),
      functions_(module, out),
      // get_stackid() and its maps are not available to programs that sleep.
      may_sleep_(unit.context.may_sleep && !module.takes_stacks(unit)) {}

ir::Function Lowering::lower_action() {
  functions_.begin_main();
  Activation activation{.unit = &action_, .shared_variables = find_shared_variables(ast(), action_)};
  with_activation(activation, [&] {
    begin_action();
    discard(action_.action->body);
    finish_action();
  });
  return functions_.finish();
}

ir::Function Lowering::lower_entry_alone() {
  functions_.begin_main();
  ir().enter(ir().add_block("entry"));
  leave_if_exited(spec::AfterExit::kStop);
  if (context_.is_limited_to_pid) skip_other_tasks(ir(), module_);
  count_deep_nesting();
  if (has_gate()) leave_if_closed();
  ir().ret(0);
  return functions_.finish();
}

ir::Function Lowering::lower_dismissal(std::span<const uint64_t> numbers) {
  functions_.begin_main();
  begin_dispatch();
  ir().enter(ir().add_block("entry"));
  leave_if_none_of(numbers);
  ir().ret(0);
  return functions_.finish();
}

void Lowering::with_activation(Activation& activation, const std::function<void()>& body) {
  Activation* outer = std::exchange(activation_, &activation);
  body();
  activation_ = outer;
}

// ---- The program around the action

// Writes up to where the action begins.
void Lowering::begin_action() {
  begin_dispatch();
  frame_.slot = ir().add_slot(8, 8, "frame");
  const BlockId entry = ir().add_block("entry");
  main_.setup = ir().add_block("setup");
  main_.exit = ir().add_block("exit");
  main_.skip = ir().add_block("skip");
  scratch_.main_base = functions_.function().values.add({.op = Op::k_add});
  activation_->result = new_slot("result");
  main_.end = main_.exit;
  ir().enter(entry);
  if (needs_recursion_guard()) begin_recursion_guard();
  write_entry();
  const BlockId body = main_.after_setup = ir().add_block("body");
  if (action_.action->predicate.valid()) {
    write_predicate();
  } else {
    ir().jump(body);
  }
  ir().enter(body);
}

void Lowering::finish_action() {
  ir().jump(main_.exit);
  write_setup();
  write_exit();
  if (main_.recursion_flag.valid()) end_recursion_guard();
}

void Lowering::write_entry() {
  if (context_.not_null)
    end_program_if(ir(), Condition::eq, ir().load(8, ir().context(), context_.not_null->offset_bytes), 0);
  leave_if_other_number();
  if (!part_.shares_number) leave_if_exited(may_exit() ? spec::AfterExit::kStop : context_.after_exit);
  if (context_.is_limited_to_pid) skip_other_tasks(ir(), module_);
  if (part_.max_traced_depth != 0) count_deep_nesting();
  if (has_gate()) leave_if_closed();
  count_hit(1);
  count_caller();
}

void Lowering::write_predicate() {
  const BlockId body = main_.after_setup;
  const BlockId guard = ir().add_block("guard");
  ir().jump(guard);
  ir().enter(guard);
  main_.end = main_.skip;
  const uint32_t uses = scratch_.use_count;
  branch_on(action_.action->predicate, body, main_.skip);
  main_.end = main_.exit;
  main_.is_setup_before_guard = scratch_.use_count != uses;
  if (main_.is_setup_before_guard) main_.after_setup = guard;
}

// Only after the body is it known what setup must do.
void Lowering::write_setup() {
  ir::Function& main = functions_.function();
  for (const BlockId id : main.blocks.ids()) {
    if (main.blocks[id].instructions.empty()) continue;
    for (ir::Target& target : main.values[main.blocks[id].instructions.back()].targets)
      if (target.block == main_.after_setup) target.block = main_.setup;
  }
  ir().enter(main_.setup);
  if (context_.returns_value) write_slot(activation_->result, ir().constant(0));
  const uint32_t regions = sleeps_ ? kRegionsIfAsleep : kRegions;
  const ValueId scratch_base = init_scratch(regions, [&] {
    count_loss(program::LossKind::kMissed,
               fmt::format("event(s) skipped: {} other threads were running this program on the same CPU", regions));
    count_hit(-1);  // it counts as missed instead
    ir().ret(0);
  });
  init_frame(scratch_base);
  ir().jump(main_.after_setup);
}

// A false predicate skips the release of scratch if it was taken after the guard.
void Lowering::write_exit() {
  ir().enter(main_.skip);
  if (main_.is_setup_before_guard) {
    ir().jump(main_.exit);
  } else {
    ir().ret(0);
  }
  ir().enter(main_.exit);
  release_scratch();
  ir().ret(context_.returns_value ? read_slot(activation_->result) : ir().constant(0));
}

// Before Linux 5.12 a trampoline calls a program again that calls the traced function, by a helper, until the kernel's
// stack is full.
bool Lowering::needs_recursion_guard() {
  const bool has_trampoline =
      context_.kind == program::ProgramKind::kFentry || context_.kind == program::ProgramKind::kFexit;
  return has_trampoline && !kernel().has(kernel::Feature::kRecursionGuard);
}

// The flag of a CPU is set while the program runs there. Such programs are not preempted (migrate_disable() of those
// kernels), so that only an interrupt could fire the same program otherwise.
void Lowering::begin_recursion_guard() {
  main_.recursion_flag = cpu_memory("recursion", kCacheLineBytes);
  main_.recursion_block = ir().add_block("recursion");
  const BlockId first = ir().add_block("first");
  ir().branch(Condition::ne, ir().load(8, main_.recursion_flag), 0, main_.recursion_block, first);
  ir().enter(main_.recursion_block);
  count_loss(program::LossKind::kMissed, "event(s) skipped: the probe fired within its own program");
  ir().ret(0);
  ir().enter(first);
  ir().store(8, main_.recursion_flag, ir().constant(1));
}

// Clears the flag wherever the program returns, but for the recursion.
void Lowering::end_recursion_guard() {
  ir::Function& main = functions_.function();
  for (const BlockId id : main.blocks.ids()) {
    if (id == main_.recursion_block || main.blocks[id].instructions.empty()) continue;
    const ValueId last = main.blocks[id].instructions.back();
    if (main.values[last].op != Op::k_ret) continue;
    main.blocks[id].instructions.pop_back();
    ir().enter(id);
    ir().store(8, main_.recursion_flag, ir().constant(0));
    main.blocks[id].instructions.push_back(last);
  }
}

// True for a timer whose own action calls exit(): it shall not run again before the run ends.
bool Lowering::may_exit() {
  if (context_.after_exit != spec::AfterExit::kForAWhile) return false;
  return std::ranges::any_of(action_.exprs.ids(), [&](ExprId id) {
    const spec::Builtin* builtin = action_.fact(id).builtin;
    return builtin != nullptr && builtin->ends_action;
  });
}

// The kernel keeps a list of a thread's calls whose return is traced. If the list is full, further returns are missed
// (kernel/events/uprobes.c, prepare_uretprobe).
void Lowering::count_deep_nesting() {
  const TypeId list = kernel().find_struct(types(), "uprobe_task");
  if (!list.valid()) return;
  module_.complete(list);
  if (!types::find_member(types(), list, "depth")) return;
  const ValueId depth = current_task_field({"utask", "depth"});
  when(Condition::uge, depth, ir().constant(part_.max_traced_depth), [&] {
    count_loss(program::LossKind::kMissed,
               fmt::format("return(s) not seen by the kernel: a thread had more than {} nested calls",
                           part_.max_traced_depth));
  });
}

// Firings count even if the predicate is false. The counters are per CPU, so only a thread that may be preempted needs
// an atomic add.
void Lowering::count_hit(int64_t change) { add_to_counter(module_.program.hits, change); }

void Lowering::add_to_counter(const program::HitCounters& counters, int64_t change) {
  if (counters.stride_bytes == 0) return;
  const ValueId slot = cpu_slot(cpu());
  const ValueId of_cpu = ir().binary(Op::k_add, ir().map_value(module_.program.globals, counters.offset_bytes),
                                     ir().binary(Op::k_shl, slot, std::countr_zero(counters.stride_bytes)));
  const ValueId index = ir().binary(Op::k_and, probe_index(), counters.stride_bytes / 8 - 1);
  const ValueId word = ir().binary(Op::k_add, of_cpu, ir().binary(Op::k_shl, index, 3));
  if (context_.is_preemptible) {
    ir().atomic_add(8, word, ir().constant(change));
  } else {
    ir().store(8, word, ir().binary(Op::k_add, ir().load(8, word), change));
  }
}

// Adds one event of the current process to the table of the program (program::Gates::caller_tables), if it has one.
void Lowering::count_caller() {
  using program::Gates;
  const uint32_t table = module_.program.gates.caller_table(functions_.program());
  if (table == 0) return;
  const ValueId on_cpu = cpu();
  const auto& space = config().tracee.pid_namespace;
  const ValueId process = space ? own_id(ir(), types(), kernel(), *space, true) : current_process(ir());
  const ValueId slot = cpu_slot(on_cpu);
  const ValueId of_cpu = ir().binary(Op::k_add, ir().map_value(module_.program.globals, table),
                                     ir().binary(Op::k_shl, slot, std::countr_zero(kCallerTableBytes)));
  const ValueId place = ir().binary(Op::k_and, process, Gates::kCallers - 1);
  const ValueId element =
      ir().binary(Op::k_add, of_cpu, ir().binary(Op::k_shl, place, std::countr_zero(Gates::kCallerBytes)));
  const BlockId other = ir().add_block("other_caller");
  const BlockId first = ir().add_block("first_of_caller");
  const BlockId known = ir().add_block("known_caller");
  const BlockId done = ir().add_block("caller_is_counted");
  const ValueId owner = ir().load(8, element);
  ir().branch(Condition::eq, owner, process, known, other);
  ir().enter(other);
  ir().branch(Condition::eq, owner, 0, first, done);
  ir().enter(first);
  ir().store(8, element, process);
  ir().jump(known);
  ir().enter(known);
  if (is_preemptible())
    ir().atomic_add(8, ir().binary(Op::k_add, element, 8), ir().constant(1));
  else
    ir().store(8, element, ir().binary(Op::k_add, ir().load(8, element, 8), 1), 8);
  ir().jump(done);
  ir().enter(done);
}

// ---- Which of its probes the program serves

void Lowering::begin_dispatch() {
  if (part_.shares_number) new_slot("number");
}

void Lowering::leave_if_other_number() {
  if (!is_by_number()) return;
  const ValueId number = part_.shares_number ? read_slot(kNumberSlot) : event_number();
  const BlockId other = ir().add_block("other");
  const BlockId match = ir().add_block("mine");
  if (action_.probes.size() == 1) {
    match_one(number, match, other);
  } else {
    match_by_table(number, match, other);
  }
  skip_compat_calls();
  end_program_in(ir(), other, ir().block());
}

// The first instructions of a program for all system calls: those that are not traced pay for them.
void Lowering::leave_if_none_of(std::span<const uint64_t> numbers) {
  const ValueId number = event_number();
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

ValueId Lowering::field_value(const char* name, const spec::Recipe& recipe) {
  return context_field({name, types().int64(), recipe}).value;
}

ValueId Lowering::event_number() { return field_value("number", context_.number); }

void Lowering::match_one(ValueId number, BlockId match, BlockId other) {
  const program::ProbeId probe = action_.probes[0];
  ir().branch(Condition::eq, number, static_cast<int64_t>(module_.program.probes[probe].number), match, other);
  ir().enter(match);
  main_.found_index = ir().constant(probe.index);
}

// By a table in .rodata, with the index of the number's probe plus 1, or 0. A system call without a probe should cost
// little.
void Lowering::match_by_table(ValueId number, BlockId match, BlockId other) {
  uint64_t last = 0;
  uint32_t largest_entry = 0;
  for (const program::ProbeId id : action_.probes) {
    last = std::max(last, module_.program.probes[id].number);
    largest_entry = std::max(largest_entry, id.index + 1);
  }
  const uint8_t entry_bytes = largest_entry <= UINT16_MAX ? 2 : 4;
  std::string table((last + 1) * entry_bytes, '\0');
  for (const program::ProbeId id : action_.probes) {
    const uint64_t at = module_.program.probes[id].number * entry_bytes;
    for (uint32_t i = 0; i < entry_bytes; ++i) table[at + i] = static_cast<char>((id.index + 1) >> (8 * i));
  }
  const ValueId found = table_entry(number, table, entry_bytes, other);
  ir().branch(Condition::ne, found, 0, match, other);
  ir().enter(match);
  main_.found_index = ir().binary(Op::k_sub, found, 1);
}

ValueId Lowering::table_entry(ValueId number, std::string_view table, uint8_t entry_bytes, BlockId if_beyond) {
  const BlockId known = ir().add_block("known");
  const auto last = static_cast<int64_t>(table.size() / entry_bytes - 1);
  ir().branch(Condition::ule, number, last, known, if_beyond);
  ir().enter(known);
  const ValueId offset = entry_bytes == 1 ? number : ir().binary(Op::k_shl, number, std::countr_zero(entry_bytes));
  return ir().load(entry_bytes, ir().binary(Op::k_add, constant_bytes(table), offset));
}

// Calls of the 32-bit interface have other numbers. Where 64-bit code can make them as well (int $0x80), no register
// tells: the kernel's flag does, which perf's tracepoints ask, too (in_ia32_syscall() in
// arch/x86/include/asm/compat.h). Without BTF, espy does not know where the flag is, and asks a register for the calls
// of 32-bit code.
void Lowering::skip_compat_calls() {
  const kernel::Arch& arch = kernel().arch();
  if (arch.compat_call && kernel().find_struct(types(), "task_struct").valid()) {
    const ValueId flags = current_task_field(arch.compat_call->members);
    end_program_if(ir(), Condition::test, flags, arch.compat_call->mask);
  } else if (context_.compat_register) {
    const kernel::RegisterValue& compat = *arch.compat_task;
    const ValueId held = field_value("compat", *context_.compat_register);
    const ValueId mode = compat.mask == -1 ? held : ir().binary(Op::k_and, held, compat.mask);
    end_program_if(ir(), Condition::eq, mode, compat.value);
  }
}

ValueId Lowering::probe_index() {
  using Dispatch = spec::ProbeContext::Dispatch;
  switch (context_.dispatch) {
    case Dispatch::kSingle:
      if (action_.probes.empty()) return ir().constant(0);
      return ir().constant(action_.probes[0].index);
    case Dispatch::kCookie: {
      const ValueId cookie = ir().call(Helper::get_attach_cookie, {ir().context()});
      return part_.cookie_distance == 0 ? cookie : ir().binary(Op::k_add, cookie, part_.cookie_distance);
    }
    case Dispatch::kNumber: break;
  }
  return functions_.is_in_callback() ? ir().load(8, frame_address(), kFrameProbeOffset) : main_.found_index;
}

// ---- The gate
//
// By the gate of a program, user space turns its probes off for a while (program::Gates).
//
// A call of which only the entry, or only the return, is seen would be worse than one that is not seen at all: the
// script would measure its time against that of another call. So where the script probes both, a return passes only if
// the entry of its call has passed in the same slice of time. In a session the kernel sees to that. Else the first
// program at the entry of a function counts how deep the thread is in calls of it that are seen, and the last one at
// the return counts down; calls of the function within one that is seen are seen, too.

// Counts the events that come while the gate is closed.
void Lowering::leave_if_closed() {
  const BlockId closed = ir().add_block("closed");
  const BlockId open = ir().add_block("open");
  branch_on_gate(open, closed);
  ir().enter(closed);
  add_to_counter(module_.program.gates.skipped, 1);
  // The kernel then leaves out the return of a session's call.
  ir().ret(part_.begins_session ? 1 : 0);
  ir().enter(open);
}

bool Lowering::has_gate() const {
  const program::Gates& gates = module_.program.gates;
  return gates.offset_bytes != 0 && !part_.ends_session && gates.has_gate(functions_.program());
}

bool Lowering::has_call_pairs() const {
  return !part_.begins_session && std::ranges::any_of(action_.probes, [&](program::ProbeId id) {
    return id.index < module_.call_numbers.size() && module_.call_numbers[id.index] != 0;
  });
}

void Lowering::branch_on_gate(BlockId open, BlockId closed) {
  if (!has_call_pairs()) return branch_on_gate_state(open, closed);
  std::string table(std::bit_ceil(module_.call_numbers.size()) * 4, '\0');
  std::memcpy(table.data(), module_.call_numbers.data(), module_.call_numbers.size() * 4);
  const ValueId index = ir().binary(Op::k_and, probe_index(), static_cast<int64_t>(table.size() / 4 - 1));
  const ValueId entry = ir().load(4, ir().binary(Op::k_add, constant_bytes(table), ir().binary(Op::k_shl, index, 2)));
  const BlockId alone = ir().add_block("alone");
  const BlockId pair = ir().add_block("pair");
  ir().branch(Condition::eq, entry, 0, alone, pair);
  ir().enter(alone);
  branch_on_gate_state(open, closed);
  ir().enter(pair);
  const ValueId key = ir().slot(ir().add_slot(16, 8, "call"));
  ir().store(8, key, ir().call(Helper::get_current_pid_tgid, {}));
  ir().store(8, key, ir().binary(Op::k_and, entry, kCallNumberMask), 8);
  const ValueId is_leader = ir().binary(Op::k_shr, entry, std::countr_zero(kCallLeader));
  const ValueId calls = ir().call(Helper::map_lookup_elem, {ir().map(module_.program.gates.calls), key});
  if (context_.part_of_call == spec::CallBoundary::kEntry)
    branch_at_entry(calls, key, is_leader, open, closed);
  else
    branch_at_return(calls, key, is_leader, open, closed);
}

void Lowering::branch_on_gate_state(BlockId open, BlockId closed) {
  ir().branch(Condition::eq, gate_state(), program::Gates::kOpen, open, closed);
}

ValueId Lowering::gate_state() {
  const program::Gates& gates = module_.program.gates;
  return ir().load(8, ir().map_value(module_.program.globals, gates.offset_bytes + functions_.program().index * 8));
}

ValueId Lowering::gate_slice() {
  return ir().load(4, ir().map_value(module_.program.globals, module_.program.gates.slice_offset));
}

ValueId Lowering::enter_if_within_call(ValueId calls, BlockId other) {
  const BlockId known = ir().add_block("known");
  const BlockId within = ir().add_block("within");
  ir().branch(Condition::ne, calls, 0, known, other);
  ir().enter(known);
  ir().branch(Condition::eq, ir().load(4, calls), gate_slice(), within, other);
  ir().enter(within);
  return ir().load(4, calls, kDepthOffset);
}

// A system call is never within another one of the same thread: what is left is of a call that did not return.
void Lowering::branch_at_entry(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed) {
  const BlockId leads = ir().add_block("leads");
  const BlockId follows = ir().add_block("follows");
  const BlockId outside = ir().add_block("outside");
  const BlockId begin = ir().add_block("begin");
  const BlockId end = ir().add_block("end");
  ir().branch(Condition::ne, is_leader, 0, leads, follows);
  ir().enter(follows);
  enter_if_within_call(calls, closed);
  ir().jump(open);
  ir().enter(leads);
  if (context_.dispatch == spec::ProbeContext::Dispatch::kNumber) {
    ir().jump(outside);
  } else {
    const ValueId depth = enter_if_within_call(calls, outside);
    ir().store(4, calls, ir().binary(Op::k_add, depth, 1), kDepthOffset);
    ir().jump(open);
  }
  ir().enter(outside);
  branch_on_gate_state(begin, end);
  ir().enter(end);
  ir().call(Helper::map_delete_elem, {ir().map(module_.program.gates.calls), key});
  ir().jump(closed);
  ir().enter(begin);
  begin_seen_call(key, open, closed);
}

void Lowering::begin_seen_call(ValueId key, BlockId open, BlockId closed) {
  const ValueId value = ir().slot(ir().add_slot(8, 8, "seen_call"));
  ir().store(4, value, gate_slice());
  ir().store(4, value, ir().constant(1), kDepthOffset);
  const ValueId failed =
      ir().call(Helper::map_update_elem, {ir().map(module_.program.gates.calls), key, value, ir().constant(0)});
  ir().branch(Condition::eq, failed, 0, open, closed);
}

void Lowering::branch_at_return(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed) {
  const BlockId leads = ir().add_block("leads");
  const BlockId last = ir().add_block("last");
  const BlockId inner = ir().add_block("inner");
  const ValueId depth = enter_if_within_call(calls, closed);
  ir().branch(Condition::ne, is_leader, 0, leads, open);
  ir().enter(leads);
  ir().branch(Condition::ugt, depth, 1, inner, last);
  ir().enter(inner);
  ir().store(4, calls, ir().binary(Op::k_sub, depth, 1), kDepthOffset);
  ir().jump(open);
  ir().enter(last);
  ir().call(Helper::map_delete_elem, {ir().map(module_.program.gates.calls), key});
  ir().jump(open);
}

// ---- Exits

void Lowering::go_to(BlockId block) {
  ir().jump(block);
  ir().enter(ir().add_block("unreachable"));
}

// Ends the iteration over the map by returning 1. The code after the helper call checks how it was left.
void Lowering::leave_callback(int64_t how) {
  ir().store(8, frame_address(), ir().constant(how), kFrameLeftOffset);
  ir().ret(1);
  ir().enter(ir().add_block("unreachable"));
}

void Lowering::end_action() {
  if (functions_.is_in_callback()) return leave_callback(kLeftAction);
  go_to(main_.end);
}

void Lowering::end_function() {
  const Activation& activation = *activation_;
  if (activation.callback_depth > 0) return leave_callback(kLeftFunction);
  if (activation.return_block.valid()) return go_to(activation.return_block);
  end_action();
}

void Lowering::set_exit_flag(ValueId status) {
  ir().store(8, ir().map_value(module_.program.globals, module_.program.exit_status_offset), status);
  ir().store(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset),
             ir().call(Helper::ktime_get_ns, {}));
}

void Lowering::leave_if_exited(spec::AfterExit after) {
  using spec::AfterExit;
  if (after == AfterExit::kAlways) return;
  const ValueId flag = ir().load(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset));
  if (after == AfterExit::kStop) return end_program_if(ir(), Condition::ne, flag, 0);
  if (after == AfterExit::kUntilEnd) return end_program_if(ir(), Condition::eq, flag, program::kEndedByUserSpace);
  when(Condition::ne, flag, ir().constant(0), [&] {
    const ValueId since_exit_ns = ir().binary(Op::k_sub, ir().call(Helper::ktime_get_ns, {}), flag);
    end_program_if(ir(), Condition::ugt, since_exit_ns, kSameTimeNs);
  });
}

}  // namespace espy::lower
