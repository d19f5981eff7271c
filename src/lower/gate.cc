#include "lower/gate.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace espy::lower {

namespace {

constexpr uint32_t kDepthOffset = 4;  // of an element of the map of calls

}  // namespace

bool Gate::is_wanted() const {
  const program::Gates& gates = module_.program.gates;
  return gates.offset_bytes != 0 && !part_.ends_session && gates.has_gate(functions_.program());
}

bool Gate::has_pairs() const {
  return !part_.begins_session && std::ranges::any_of(unit_.probes, [&](program::ProbeId id) {
    return id.index < module_.call_numbers.size() && module_.call_numbers[id.index] != 0;
  });
}

void Gate::branch(BlockId open, BlockId closed) {
  if (!has_pairs()) return branch_by_state(open, closed);
  std::string table(std::bit_ceil(module_.call_numbers.size()) * 4, '\0');
  std::memcpy(table.data(), module_.call_numbers.data(), module_.call_numbers.size() * 4);
  const ValueId index = ir().binary(Op::k_and, dispatch_.index(), static_cast<int64_t>(table.size() / 4 - 1));
  const ValueId entry =
      ir().load(4, ir().binary(Op::k_add, memory_.constant_bytes(table), ir().binary(Op::k_shl, index, 2)));
  const BlockId alone = ir().add_block("alone");
  const BlockId pair = ir().add_block("pair");
  ir().branch(Condition::eq, entry, 0, alone, pair);
  ir().enter(alone);
  branch_by_state(open, closed);
  ir().enter(pair);
  const ValueId key = ir().slot(ir().add_slot(16, 8, "call"));
  ir().store(8, key, ir().call(Helper::get_current_pid_tgid, {}));
  ir().store(8, key, ir().binary(Op::k_and, entry, kCallNumberMask), 8);
  const ValueId is_leader = ir().binary(Op::k_shr, entry, std::countr_zero(kCallLeader));
  const ValueId calls = ir().call(Helper::map_lookup_elem, {ir().map(module_.program.gates.calls), key});
  if (unit_.context.part_of_call == spec::CallBoundary::kEntry)
    branch_at_entry(calls, key, is_leader, open, closed);
  else
    branch_at_return(calls, key, is_leader, open, closed);
}

void Gate::branch_by_state(BlockId open, BlockId closed) {
  ir().branch(Condition::eq, state(), program::Gates::kOpen, open, closed);
}

ValueId Gate::state() {
  const program::Gates& gates = module_.program.gates;
  return ir().load(8, ir().map_value(module_.program.globals, gates.offset_bytes + functions_.program().index * 8));
}

ValueId Gate::slice() {
  return ir().load(4, ir().map_value(module_.program.globals, module_.program.gates.slice_offset));
}

ValueId Gate::enter_if_within(ValueId calls, BlockId other) {
  const BlockId known = ir().add_block("known");
  const BlockId within = ir().add_block("within");
  ir().branch(Condition::ne, calls, 0, known, other);
  ir().enter(known);
  ir().branch(Condition::eq, ir().load(4, calls), slice(), within, other);
  ir().enter(within);
  return ir().load(4, calls, kDepthOffset);
}

// A system call is never within another one of the same thread: what is left is of a call that did not return.
void Gate::branch_at_entry(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed) {
  const BlockId leads = ir().add_block("leads");
  const BlockId follows = ir().add_block("follows");
  const BlockId outside = ir().add_block("outside");
  const BlockId begin = ir().add_block("begin");
  const BlockId end = ir().add_block("end");
  ir().branch(Condition::ne, is_leader, 0, leads, follows);
  ir().enter(follows);
  enter_if_within(calls, closed);
  ir().jump(open);
  ir().enter(leads);
  if (unit_.context.dispatch == spec::ProbeContext::Dispatch::kNumber) {
    ir().jump(outside);
  } else {
    const ValueId depth = enter_if_within(calls, outside);
    ir().store(4, calls, ir().binary(Op::k_add, depth, 1), kDepthOffset);
    ir().jump(open);
  }
  ir().enter(outside);
  branch_by_state(begin, end);
  ir().enter(end);
  ir().call(Helper::map_delete_elem, {ir().map(module_.program.gates.calls), key});
  ir().jump(closed);
  ir().enter(begin);
  begin_call(key, open, closed);
}

void Gate::begin_call(ValueId key, BlockId open, BlockId closed) {
  const ValueId value = ir().slot(ir().add_slot(8, 8, "seen_call"));
  ir().store(4, value, slice());
  ir().store(4, value, ir().constant(1), kDepthOffset);
  const ValueId failed =
      ir().call(Helper::map_update_elem, {ir().map(module_.program.gates.calls), key, value, ir().constant(0)});
  ir().branch(Condition::eq, failed, 0, open, closed);
}

void Gate::branch_at_return(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed) {
  const BlockId leads = ir().add_block("leads");
  const BlockId last = ir().add_block("last");
  const BlockId inner = ir().add_block("inner");
  const ValueId depth = enter_if_within(calls, closed);
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

}  // namespace espy::lower
