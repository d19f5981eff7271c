// One action (or all attach points of it that see the same context) into one BPF program.
#include "lower/unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lower/frame.h"
#include "lower/processes.h"

namespace espy::lower {
namespace {

constexpr uint32_t kRegions = 4;              // of scratch per CPU, where threads may interleave
constexpr uint32_t kSleepersRegions = 16;     // ... and wait for pages meanwhile
constexpr uint32_t kRegionsOffsetBytes = 64;  // behind the word that says which are taken
constexpr ir::SlotId kNumberSlot{0};          // of a part that shares it

}  // namespace

UnitLowering::UnitLowering(ModuleContext& shared, const check::Unit& unit, ir::Unit& into, Part part)
    : module_(shared), main_unit_(unit), into_(into), part_(part), unit_(&unit), frame_bytes_(kFrameHeaderBytes) {}

FunctionId UnitLowering::begin_function(std::string name, uint32_t parameters, bool is_callback) {
  const FunctionId id = module_.module.functions.add({});
  into_.functions.push_back(id);
  begin_body(id, std::move(name), parameters, is_callback);
  return id;
}

void UnitLowering::begin_body(FunctionId id, std::string name, uint32_t parameters, bool is_callback) {
  bodies_[id] = std::make_unique<ir::Function>(
      ir::Function{.name = std::move(name), .parameter_count = parameters, .is_callback = is_callback});
}

FunctionId UnitLowering::callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) {
  if (const auto known = callbacks_.find(name); known != callbacks_.end()) return known->second;
  const FunctionId outer = function_id_;
  ir::Builder* outer_builder = builder_;
  const FunctionId id = callbacks_[name] = function_id_ = begin_function(name, parameters, true);
  ir::Builder builder(function());
  builder.at(outer_builder->span());
  builder_ = &builder;
  builder.enter(builder.add_block("entry"));
  body();
  function_id_ = outer;
  builder_ = outer_builder;
  return id;
}

ir::Function UnitLowering::lower() {
  main_id_ = function_id_ = into_.functions.front();
  begin_body(main_id_, module_.program.programs[into_.program].name, 1, false);
  // get_stackid() and its maps are not for programs that sleep.
  may_sleep_ = main_unit_.context.may_sleep && !module_.takes_stacks(main_unit_);
  Activation main{.unit = unit_};
  activation_ = &main;
  find_shared_variables(main);
  {
    ir::Builder builder(function());
    builder_ = &builder;
    if (part_.shares_number) builder.add_variable("number");
    frame_slot_ = builder.add_slot(8, 8, "frame");
    const BlockId entry = builder.add_block("entry");
    setup_block_ = builder.add_block("setup");
    exit_block_ = builder.add_block("exit");
    skip_block_ = builder.add_block("skip");
    scratch_base_ = function().values.add({.op = Op::k_add});  // placed by fill_setup()
    main.result = new_slot("result");
    builder.enter(entry);
    lower_entry();
    const BlockId body = first_block_ = builder.add_block("body");
    if (main_unit_.action->predicate.valid()) {
      const BlockId guard = builder.add_block("guard");
      builder.jump(guard);
      builder.enter(guard);
      is_guarding_ = true;
      branch_on(main_unit_.action->predicate, body, skip_block_);
      is_guarding_ = false;
      if (has_setup_before_guard_) first_block_ = guard;
    } else {
      builder.jump(body);
    }
    builder.enter(body);
    discard(main_unit_.action->body);
    builder.jump(exit_block_);
    fill_setup();
    fill_exit();
  }
  builder_ = nullptr;
  module_.program.programs[into_.program].is_sleepable |= sleeps_;
  for (auto& [id, body] : bodies_) {
    prune_unreachable(*body);
    if (id != main_id_) module_.module.functions[id] = std::move(*body);
  }
  return std::move(*bodies_.at(main_id_));
}

// ---- Entry

void UnitLowering::lower_entry() {
  if (main_unit_.context.not_null) leave_if_null(*main_unit_.context.not_null);
  if (main_unit_.context.dispatch == spec::ProbeContext::Dispatch::kNumber) dispatch_by_number();
  if (!main_unit_.context.runs_after_exit) leave_after_exit();
  if (main_unit_.context.is_limited_to_pid) skip_other_processes(ir(), module_);
  if (part_.deepest_nesting != 0) count_deep_nesting();
  count_hit(1);
}

// What the kernel does not see when it returns is missed: it keeps a list of the calls of each thread that are to
// return, and no more than so many (kernel/events/uprobes.c, prepare_uretprobe).
void UnitLowering::count_deep_nesting() {
  const TypeId list = kernel().find_struct(types(), "uprobe_task");
  if (!list.valid()) return;
  kernel().complete(types(), list);
  if (!types::find_member(types(), list, "depth")) return;
  const ValueId depth = current_task_field({"utask", "depth"});
  when(Condition::uge, depth, ir().constant(part_.deepest_nesting), [&] {
    count_loss(
        program::LossKind::kMissed,
        fmt::format("calls nested deeper than {} in a thread returned unseen by the kernel", part_.deepest_nesting));
  });
}

ir::Function UnitLowering::lower_entry_alone() {
  main_id_ = function_id_ = into_.functions.front();
  begin_body(main_id_, module_.program.programs[into_.program].name, 1, false);
  ir::Builder builder(function());
  builder_ = &builder;
  builder.enter(builder.add_block("entry"));
  leave_after_exit();
  if (main_unit_.context.is_limited_to_pid) skip_other_processes(ir(), module_);
  count_deep_nesting();
  builder.ret(0);
  builder_ = nullptr;
  return std::move(function());
}

// What fires counts, also where the predicate is false. Each CPU has its words, so only a thread that may be preempted
// here needs an atomic add.
void UnitLowering::count_hit(int64_t change) {
  const program::HitCounters hits = module_.program.hits;
  if (hits.stride_bytes == 0) return;
  const ValueId slot = ir().binary(Op::k_and, cpu(), module_.cpu_slots() - 1);
  const ValueId of_cpu = ir().binary(Op::k_add, ir().map_value(module_.program.globals, hits.offset_bytes),
                                     ir().binary(Op::k_shl, slot, std::countr_zero(hits.stride_bytes)));
  const ValueId index = ir().binary(Op::k_and, probe_index(), hits.stride_bytes / 8 - 1);
  const ValueId word = ir().binary(Op::k_add, of_cpu, ir().binary(Op::k_shl, index, 3));
  if (main_unit_.context.is_preemptible) {
    ir().atomic_add(8, word, ir().constant(change));
  } else {
    ir().store(8, word, ir().binary(Op::k_add, ir().load(8, word), change));
  }
}

void UnitLowering::leave_after_exit() {
  const ValueId flag = ir().load(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset));
  leave_if(Condition::ne, flag, 0);
}

void UnitLowering::leave_if_null(const spec::Recipe& pointer) {
  const ValueId found = ir().load(8, ir().context(), pointer.offset_bytes);
  leave_if(Condition::eq, found, 0);
}

// Ends the program where the condition holds.
void UnitLowering::leave_if(Condition condition, ValueId a, int64_t b) {
  const BlockId leave = ir().add_block("leave");
  const BlockId stay = ir().add_block("stay");
  ir().branch(condition, a, b, leave, stay);
  ir().enter(leave);
  ir().ret(0);
  ir().enter(stay);
}

// Several system calls are served by one program: those that nobody asked for must cost as little as can be.
void UnitLowering::dispatch_by_number() {
  const ValueId number = part_.knows_number ? read_slot(kNumberSlot) : number_of_event();
  if (part_.shares_number && !part_.knows_number) write_slot(kNumberSlot, number);
  const BlockId leave = ir().add_block("other");
  const BlockId mine = ir().add_block("mine");
  const auto probe = [&](program::ProbeId id) -> const program::Probe& { return module_.program.probes[id]; };
  if (main_unit_.probes.size() == 1) {
    ir().branch(Condition::eq, number, static_cast<int64_t>(probe(main_unit_.probes[0]).number), mine, leave);
    ir().enter(mine);
    probe_index_ = ir().constant(main_unit_.probes[0].index);
  } else {
    uint64_t last = 0;
    for (const program::ProbeId id : main_unit_.probes) last = std::max(last, probe(id).number);
    std::string table((last + 1) * 2, '\0');  // u16 each: the probe's index + 1, or 0
    for (const program::ProbeId id : main_unit_.probes) {
      const uint32_t entry = id.index + 1;
      table[probe(id).number * 2] = static_cast<char>(entry & 0xff);
      table[probe(id).number * 2 + 1] = static_cast<char>(entry >> 8);
    }
    const BlockId known = ir().add_block("known");
    ir().branch(Condition::ule, number, static_cast<int64_t>(last), known, leave);
    ir().enter(known);
    const ValueId address = ir().binary(Op::k_add, constant_bytes(table), ir().binary(Op::k_shl, number, 1));
    const ValueId found = ir().load(2, address);
    ir().branch(Condition::ne, found, 0, mine, leave);
    ir().enter(mine);
    probe_index_ = ir().binary(Op::k_sub, found, 1);
  }
  if (main_unit_.context.compat_register) skip_compat_tasks();
  const BlockId on = ir().block();
  ir().enter(leave);
  ir().ret(0);
  ir().enter(on);
}

ValueId UnitLowering::number_of_event() {
  return context_field({"number", types().int64(), main_unit_.context.number}).value;
}

// A 32-bit task's system calls have other numbers. A register shows it for two loads; the kernel's own flag (TS_COMPAT)
// also covers a 64-bit task that makes a 32-bit call, but reading it takes a helper call, a seventh of the cost of
// counting an event.
void UnitLowering::skip_compat_tasks() {
  const ValueId mode = context_field({"compat", types().int64(), *main_unit_.context.compat_register}).value;
  leave_if(Condition::eq, mode, kernel().arch().compat_task->value);
}

ValueId UnitLowering::probe_index() {
  using Dispatch = spec::ProbeContext::Dispatch;
  switch (main_unit_.context.dispatch) {
    case Dispatch::kSingle:
      if (main_unit_.probes.empty()) return ir().constant(0);
      return ir().constant(main_unit_.probes[0].index);
    case Dispatch::kCookie: {
      const ValueId cookie = ir().call(Helper::get_attach_cookie, {ir().context()});
      return part_.cookie_distance == 0 ? cookie : ir().binary(Op::k_add, cookie, part_.cookie_distance);
    }
    case Dispatch::kNumber: break;
  }
  return is_in_callback() ? ir().load(8, frame(), kFrameProbeOffset) : probe_index_;
}

// ---- Scratch and frame

// `setup` stands between entry and guard, or between guard and body; only now is it known what it must do.
void UnitLowering::fill_setup() {
  ir::Function& main = function();
  for (const BlockId id : main.blocks.ids()) {
    if (main.blocks[id].instructions.empty()) continue;
    for (ir::Target& target : main.values[main.blocks[id].instructions.back()].targets)
      if (target.block == first_block_) target.block = setup_block_;
  }
  ir().enter(setup_block_);
  const bool has_scratch = scratch_bytes_ > 0;
  if (main_unit_.context.returns_value) write_slot(activation().result, ir().constant(0));
  if (has_scratch) {
    const bool is_shared = main_unit_.context.is_preemptible;
    const uint32_t region = std::bit_ceil(std::max(scratch_bytes_, 64u));
    const uint32_t stride = is_shared ? std::bit_ceil(region * region_count() + kRegionsOffsetBytes) : region;
    const auto at = static_cast<uint32_t>(round_up(module_.scratch_bytes, 64));
    module_.scratch_bytes = at + stride * module_.cpu_slots();
    const ValueId slot = ir().binary(Op::k_and, cpu(), module_.cpu_slots() - 1);
    const ValueId distance = ir().binary(Op::k_shl, slot, std::countr_zero(stride));
    const ValueId of_cpu = ir().binary(Op::k_add, ir().map_value(module_.scratch_map(), at), distance);
    if (is_shared) {
      take_scratch_region(of_cpu);
    } else {
      main.values[scratch_base_].operands = {of_cpu, ir().constant(0)};
    }
  } else {
    main.values[scratch_base_] = {.op = Op::k_konst};
  }
  main.blocks[setup_block_].instructions.push_back(scratch_base_);
  if (frame_bytes_ > kFrameHeaderBytes || has_callbacks_) {
    main.slots[frame_slot_].size_bytes = frame_bytes_;
    const ValueId frame = ir().slot(frame_slot_);
    ir().zero(frame, frame_bytes_);
    ir().store(8, frame, scratch_base_, kFrameScratchOffset);
    ir().store(8, frame, ir().context(), kFrameContextOffset);
    if (probe_index_.valid()) ir().store(8, frame, probe_index_, kFrameProbeOffset);
  }
  ir().jump(first_block_);
}

uint32_t UnitLowering::region_count() const { return sleeps_ ? kSleepersRegions : kRegions; }

// Two threads may run this program on one CPU at a time where it can be preempted, so each takes one of a few regions.
void UnitLowering::take_scratch_region(ValueId cpu_base) {
  const uint32_t region = std::bit_ceil(std::max(scratch_bytes_, 64u));
  scratch_cpu_slot_ = new_slot("scratch_cpu");
  scratch_bit_slot_ = new_slot("scratch_bit");
  const BlockId got = ir().add_block("scratch");
  const ValueId index = ir().add_block_parameter(got);
  for (uint32_t i = 0; i < region_count(); ++i) {
    const ValueId old = ir().atomic(Op::k_atomic_fetch_or, 8, cpu_base, {ir().constant(int64_t{1} << i)});
    const ValueId number = ir().constant(i);
    const BlockId take = ir().add_block();
    const BlockId next = ir().add_block();
    ir().branch(Condition::test, old, int64_t{1} << i, next, take);
    ir().enter(take);
    ir().jump(got, {number});
    ir().enter(next);
  }
  count_loss(program::LossKind::kMissed,
             fmt::format("{} other threads were in the same program on a CPU; events skipped", region_count()));
  count_hit(-1);  // it is among those that were missed
  ir().ret(0);
  ir().enter(got);
  write_slot(scratch_cpu_slot_, cpu_base);
  write_slot(scratch_bit_slot_, ir().binary(Op::k_shl, ir().constant(1), index));
  const ValueId distance = ir().binary(Op::k_shl, index, std::countr_zero(region));
  const ValueId base = ir().binary(Op::k_add, cpu_base, distance);
  function().values[scratch_base_].operands = {base, ir().constant(kRegionsOffsetBytes)};
  setup_block_ = got;
}

void UnitLowering::fill_exit() {
  const bool returns_value = main_unit_.context.returns_value;
  if (has_setup_before_guard_) {
    ir().enter(skip_block_);
    ir().jump(exit_block_);
  } else {
    ir().enter(skip_block_);
    ir().ret(0);
  }
  ir().enter(exit_block_);
  if (scratch_cpu_slot_.valid()) {
    const ValueId mask = ir().unary(Op::k_not, read_slot(scratch_bit_slot_));
    ir().atomic(Op::k_atomic_fetch_and, 8, read_slot(scratch_cpu_slot_), {mask});
  }
  ir().ret(returns_value ? read_slot(activation().result) : ir().constant(0));
}

ValueId UnitLowering::cpu() { return ir().call(Helper::get_smp_processor_id, {}); }

// ---- Ends

void UnitLowering::go_to(BlockId block) {
  ir().jump(block);
  ir().enter(ir().add_block("unreachable"));
}

void UnitLowering::leave_callback(int64_t result) {
  ir().ret(result);
  ir().enter(ir().add_block("unreachable"));
}

void UnitLowering::end_action() {
  if (!is_in_callback()) return go_to(is_guarding_ ? skip_block_ : exit_block_);
  ir().store(8, frame(), ir().constant(kLeftAction), kFrameLeftOffset);
  leave_callback(1);
}

void UnitLowering::leave_activation() {
  if (activation().callback_depth > 0) {
    ir().store(8, frame(), ir().constant(kLeftFunction), kFrameLeftOffset);
    leave_callback(1);
  } else if (activation().return_block.valid()) {
    go_to(activation().return_block);
  } else {
    end_action();
  }
}

void UnitLowering::set_exit_flag() {
  ir().store(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset), ir().constant(1));
}

void UnitLowering::count_loss(program::LossKind kind, std::string_view what) {
  const uint32_t offset = module_.loss_counter(kind, into_.program, what);
  ir().atomic_add(8, ir().map_value(module_.program.globals, offset), ir().constant(1));
}

// Code behind a `return` may use values that were never made on any path to it. It is emptied rather than kept legal.
void UnitLowering::prune_unreachable(ir::Function& function) {
  std::vector<bool> is_reached(function.blocks.size());
  std::vector<BlockId> left{BlockId{0}};
  is_reached[0] = true;
  while (!left.empty()) {
    const ir::Block& block = function.blocks[left.back()];
    left.pop_back();
    for (const ir::Target& target : function.values[block.instructions.back()].targets) {
      if (is_reached[target.block.index]) continue;
      is_reached[target.block.index] = true;
      left.push_back(target.block);
    }
  }
  for (const BlockId id : function.blocks.ids()) {
    if (is_reached[id.index]) continue;
    const ValueId zero = function.values.add({.op = Op::k_konst});
    const ValueId end = function.values.add({.op = Op::k_ret, .operands = {zero}});
    function.blocks[id].parameters.clear();
    function.blocks[id].instructions = {zero, end};
  }
  // The context is the main function's: callbacks find it in the frame.
  if (!function.is_callback) return;
  for (const BlockId id : function.blocks.ids()) {
    for (const ValueId each : function.blocks[id].instructions) {
      ir::Instruction& instruction = function.values[each];
      if (instruction.op != Op::k_context || !is_reached[id.index]) continue;
      const ValueId frame = function.blocks[BlockId{0}].instructions.front();
      CHECK(function.values[frame].op == Op::k_param);
      instruction = {
          .op = Op::k_load, .width = 8, .imm = kFrameContextOffset, .operands = {frame}, .span = instruction.span};
    }
  }
}

}  // namespace espy::lower
