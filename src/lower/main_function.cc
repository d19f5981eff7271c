#include "lower/main_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lower/callers.h"
#include "lower/control.h"
#include "lower/module_context.h"
#include "lower/processes.h"
#include "spec/builtin.h"

namespace espy::lower {
namespace {

constexpr uint32_t kRegions = 4;  // of scratch per CPU, if the program may be preempted

}  // namespace

void MainFunction::begin(const WriteGuard& write_guard) {
  dispatch_.begin();
  frame_.begin();
  const BlockId entry = ir().add_block("entry");
  setup_ = ir().add_block("setup");
  exit_ = ir().add_block("exit");
  skip_ = ir().add_block("skip");
  scratch_.begin();
  scope_.activation().result = new_slot("result");
  exits_.set_end(exit_);
  ir().enter(entry);
  if (needs_recursion_guard()) begin_recursion_guard();
  write_entry();
  const BlockId body = after_setup_ = ir().add_block("body");
  if (write_guard) {
    this->write_guard(write_guard);
  } else {
    ir().jump(body);
  }
  ir().enter(body);
}

void MainFunction::write_guard(const WriteGuard& write_guard) {
  const BlockId body = after_setup_;
  const BlockId guard = ir().add_block("guard");
  ir().jump(guard);
  ir().enter(guard);
  exits_.set_end(skip_);
  const uint32_t uses = scratch_.use_count();
  write_guard(body, skip_);
  exits_.set_end(exit_);
  is_setup_before_guard_ = scratch_.use_count() != uses;
  if (is_setup_before_guard_) after_setup_ = guard;
}

void MainFunction::finish() {
  ir().jump(exit_);
  write_setup();
  write_exit();
  if (recursion_flag_.valid()) end_recursion_guard();
}

// Before Linux 5.12 a trampoline calls a program again that calls the traced function, by a helper, until the kernel's
// stack is full.
bool MainFunction::needs_recursion_guard() {
  const bool has_trampoline =
      unit_.context.kind == program::ProgramKind::kFentry || unit_.context.kind == program::ProgramKind::kFexit;
  return has_trampoline && !kernel().has(kernel::Feature::kRecursionGuard);
}

// The flag of a CPU is set while the program runs there. Such programs are not preempted (migrate_disable() of those
// kernels), so that only an interrupt could fire the same program otherwise.
void MainFunction::begin_recursion_guard() {
  recursion_flag_ = scratch_.cpu_memory("recursion", kCacheLineBytes);
  recursion_block_ = ir().add_block("recursion");
  const BlockId first = ir().add_block("first");
  ir().branch(Condition::ne, ir().load(8, recursion_flag_), 0, recursion_block_, first);
  ir().enter(recursion_block_);
  count_loss(program::LossKind::kMissed, "probes that fired within their own program were skipped");
  ir().ret(0);
  ir().enter(first);
  ir().store(8, recursion_flag_, ir().constant(1));
}

// Clears the flag wherever the program returns, but for the recursion.
void MainFunction::end_recursion_guard() {
  ir::Function& main = functions_.function();
  for (const BlockId id : main.blocks.ids()) {
    if (id == recursion_block_ || main.blocks[id].instructions.empty()) continue;
    const ValueId last = main.blocks[id].instructions.back();
    if (main.values[last].op != Op::k_ret) continue;
    main.blocks[id].instructions.pop_back();
    ir().enter(id);
    ir().store(8, recursion_flag_, ir().constant(0));
    main.blocks[id].instructions.push_back(last);
  }
}

void MainFunction::write_entry() {
  const spec::ProbeContext& context = unit_.context;
  if (context.not_null)
    end_program_if(ir(), Condition::eq, ir().load(8, ir().context(), context.not_null->offset_bytes), 0);
  dispatch_.leave_if_other_number();
  if (!part_.shares_number) exits_.leave_if_exited(may_exit() ? spec::AfterExit::kStop : context.after_exit);
  if (context.is_limited_to_pid) skip_other_tasks(ir(), module_);
  if (part_.max_traced_depth != 0) count_deep_nesting();
  if (gate_.is_wanted()) leave_if_closed();
  count_hit(1);
  if (module_.program.gates.caller_table(functions_.program()) != 0)
    count_caller(ir(), module_, functions_.program(), cpu(), unit_.context.is_preemptible);
}

// Counts the events that come while the gate is closed.
void MainFunction::leave_if_closed() {
  const BlockId closed = ir().add_block("closed");
  const BlockId open = ir().add_block("open");
  gate_.branch(open, closed);
  ir().enter(closed);
  add_to(module_.program.gates.skipped, 1);
  // The kernel then leaves out the return of a session's call.
  ir().ret(part_.begins_session ? 1 : 0);
  ir().enter(open);
}

// True for a timer whose own action calls exit(): it shall not run again before the run ends.
bool MainFunction::may_exit() {
  if (unit_.context.after_exit != spec::AfterExit::kForAWhile) return false;
  return std::ranges::any_of(unit_.exprs.ids(), [&](check::ExprId id) {
    const spec::Builtin* builtin = unit_.fact(id).builtin;
    return builtin != nullptr && builtin->ends_action;
  });
}

void MainFunction::write_entry_alone() {
  ir().enter(ir().add_block("entry"));
  exits_.leave_if_exited(spec::AfterExit::kStop);
  if (unit_.context.is_limited_to_pid) skip_other_tasks(ir(), module_);
  count_deep_nesting();
  if (gate_.is_wanted()) leave_if_closed();
  ir().ret(0);
}

// The kernel keeps a list of a thread's calls whose return is traced. If the list is full, further returns are missed
// (kernel/events/uprobes.c, prepare_uretprobe).
void MainFunction::count_deep_nesting() {
  const TypeId list = kernel().find_struct(types(), "uprobe_task");
  if (!list.valid()) return;
  module_.complete(list);
  if (!types::find_member(types(), list, "depth")) return;
  const ValueId depth = reads_.current_task_field({"utask", "depth"});
  when(Condition::uge, depth, ir().constant(part_.max_traced_depth), [&] {
    count_loss(
        program::LossKind::kMissed,
        fmt::format("calls nested deeper than {} in a thread returned unseen by the kernel", part_.max_traced_depth));
  });
}

// Firings count even if the predicate is false. The counters are per CPU, so only a thread that may be preempted needs
// an atomic add.
void MainFunction::count_hit(int64_t change) { add_to(module_.program.hits, change); }

void MainFunction::add_to(const program::HitCounters& counters, int64_t change) {
  if (counters.stride_bytes == 0) return;
  const ValueId slot = ir().binary(Op::k_and, cpu(), module_.cpu_slots() - 1);
  const ValueId of_cpu = ir().binary(Op::k_add, ir().map_value(module_.program.globals, counters.offset_bytes),
                                     ir().binary(Op::k_shl, slot, std::countr_zero(counters.stride_bytes)));
  const ValueId index = ir().binary(Op::k_and, dispatch_.index(), counters.stride_bytes / 8 - 1);
  const ValueId word = ir().binary(Op::k_add, of_cpu, ir().binary(Op::k_shl, index, 3));
  if (unit_.context.is_preemptible) {
    ir().atomic_add(8, word, ir().constant(change));
  } else {
    ir().store(8, word, ir().binary(Op::k_add, ir().load(8, word), change));
  }
}

// Only after the body is it known what setup must do.
void MainFunction::write_setup() {
  ir::Function& main = functions_.function();
  for (const BlockId id : main.blocks.ids()) {
    if (main.blocks[id].instructions.empty()) continue;
    for (ir::Target& target : main.values[main.blocks[id].instructions.back()].targets)
      if (target.block == after_setup_) target.block = setup_;
  }
  ir().enter(setup_);
  if (unit_.context.returns_value) write_slot(scope_.activation().result, ir().constant(0));
  const uint32_t regions = reads_.sleeps() ? kRegionsIfAsleep : kRegions;
  const ValueId scratch_base = scratch_.write_setup(regions, [&] {
    count_loss(program::LossKind::kMissed,
               fmt::format("{} other threads were in the same program on a CPU; events skipped", regions));
    count_hit(-1);  // it counts as missed instead
    ir().ret(0);
  });
  frame_.write_setup(scratch_base, dispatch_.found_index());
  ir().jump(after_setup_);
}

// A false predicate skips the release of scratch if it was taken after the guard.
void MainFunction::write_exit() {
  ir().enter(skip_);
  if (is_setup_before_guard_) {
    ir().jump(exit_);
  } else {
    ir().ret(0);
  }
  ir().enter(exit_);
  scratch_.write_release();
  ir().ret(unit_.context.returns_value ? read_slot(scope_.activation().result) : ir().constant(0));
}

}  // namespace espy::lower
