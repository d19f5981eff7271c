#include "lower/aggregations.h"

#include "program/layout.h"
#include "types/recent_layout.h"

namespace espy::lower {
namespace {

constexpr int64_t kIntervalBytes = 24;  // of a time series: epoch, value, count or time

Condition is_better(bool is_max, bool is_signed) {
  if (is_max) return is_signed ? Condition::sgt : Condition::ugt;
  return is_signed ? Condition::slt : Condition::ult;
}

}  // namespace

void Aggregations::for_each_cpu(const MapElements::Element& element, const std::function<void(ValueId)>& body) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == program::Storage::kSlotHash) {
    const ValueId found = elements_.lookup(element);
    return when(Condition::ne, found, ir().constant(0), [&] {
      ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) { body(elements_.slot(map, found, cpu)); });
    });
  }
  ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) {
    if (!element.key.valid()) return body(offset(elements_.assigned_word(map, cpu), 8));
    const ValueId address = ir().call(Helper::map_lookup_percpu_elem, {ir().map(map.map), element.key, cpu});
    when(Condition::ne, address, ir().constant(0), [&] { body(address); });
  });
}

void Aggregations::merge_words(ValueId destination, ValueId source, uint32_t words) {
  constexpr uint32_t kUnrolled = 4;
  const auto add = [&](ValueId to, ValueId from, int64_t at) {
    ir().store(8, to, ir().binary(Op::k_add, ir().load(8, to, at), ir().load(8, from, at)), at);
  };
  if (words <= kUnrolled) {
    for (uint32_t i = 0; i < words; ++i) add(destination, source, i * 8);
    return;
  }
  ir().count_up(words, [&](ValueId index, BlockId) {
    const ValueId at = ir().binary(Op::k_shl, index, 3);
    add(ir().binary(Op::k_add, destination, at), ir().binary(Op::k_add, source, at), 0);
  });
}

// A minimum or maximum, and whether there is one.
void Aggregations::merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source) {
  when(Condition::eq, ir().load(8, source, 8), ir().constant(1), [&] {
    const ValueId other = ir().load(8, source);
    const ValueId mine = ir().load(8, destination);
    const BlockId take = ir().add_block("take");
    const BlockId compare = ir().add_block("compare");
    const BlockId join = ir().add_block("join");
    ir().branch(Condition::eq, ir().load(8, destination, 8), 0, take, compare);
    ir().enter(compare);
    ir().branch(is_better(is_max, is_signed), other, mine, take, join);
    ir().enter(take);
    ir().store(8, destination, other);
    ir().store(8, destination, ir().constant(1), 8);
    ir().jump(join);
    ir().enter(join);
  });
}

void Aggregations::merge_tseries(TypeId type, ValueId destination, ValueId source) {
  ir().count_up(static_cast<uint32_t>(types().tseries_params(type).intervals), [&](ValueId index, BlockId) {
    const ValueId at = ir().binary(Op::k_mul, index, ir().constant(kIntervalBytes));
    const ValueId to = ir().binary(Op::k_add, destination, at);
    const ValueId from = ir().binary(Op::k_add, source, at);
    const ValueId stored = ir().load(8, from);
    const ValueId epoch = select(
        Condition::eq, stored, ir().constant(static_cast<int64_t>(program::kTseriesBusy)),
        [&] { return ir().constant(0); }, [&] { return stored; });
    when(
        Condition::ugt, epoch, ir().load(8, to), [&] { ir().copy(to, from, kIntervalBytes); },
        [&] { when(Condition::eq, epoch, ir().load(8, to), [&] { merge_interval(type, to, from); }); });
  });
}

// Intervals of the same epoch.
void Aggregations::merge_interval(TypeId type, ValueId destination, ValueId source) {
  const Kind aggregation = types().tseries_params(type).aggregation;
  if (aggregation == Kind::kVoid) {  // the last one, by its time
    when(Condition::ugt, ir().load(8, source, 16), ir().load(8, destination, 16),
         [&] { ir().copy(destination, source, kIntervalBytes); });
    return;
  }
  const ValueId mine = ir().load(8, destination, 8);
  const ValueId other = ir().load(8, source, 8);
  ValueId both = ir().binary(Op::k_add, mine, other);
  if (aggregation == Kind::kMax || aggregation == Kind::kMin) {
    both = select(
        is_better(aggregation == Kind::kMax, types()[type].is_signed), other, mine, [&] { return other; },
        [&] { return mine; });
  }
  ir().store(8, destination, both, 8);
  ir().store(8, destination, ir().binary(Op::k_add, ir().load(8, destination, 16), ir().load(8, source, 16)), 16);
}

void Aggregations::merge(TypeId type_id, ValueId destination, ValueId source) {
  const types::Type type = types()[type_id];
  switch (type.kind) {
    case Kind::kMin:
    case Kind::kMax: return merge_extreme(type.kind == Kind::kMax, type.is_signed, destination, source);
    case Kind::kTseries: return merge_tseries(type_id, destination, source);
    default: return merge_words(destination, source, type.size_bytes / 8);
  }
}

// Programs may add values meanwhile. The barriers keep the order that program/layout.h asks for.
Operand Aggregations::copied(const MapElements::Element& element, TypeId type_id) {
  const types::Type type = types()[type_id];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const ValueId address = memory_.allocate(type.size_bytes, "recent");
  const auto barrier = [&] { ir().atomic(Op::k_atomic_fetch_add, 8, address, {ir().constant(0)}); };
  elements_.with_value(
      element,
      [&](ValueId found) {
        memory_.copy(address, found, layout.values_offset);
        barrier();
        memory_.copy(offset(address, layout.values_offset), offset(found, layout.values_offset),
                     type.size_bytes - layout.values_offset);
        barrier();
        ir().store(8, address, ir().load(8, found));
      },
      [&] { memory_.zero(address, type.size_bytes); });
  return {type_id, address, true};
}

Operand Aggregations::merged(const MapElements::Element& element) {
  const TypeId type = module_.script_map(element.map).value;
  if (types()[type].kind == Kind::kRecent) return copied(element, type);
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = memory_.allocate(size, "merged");
  memory_.zero(address, size);
  if (!types::is_aggregation(types()[type])) {  // a number in a map that is declared per CPU
    elements_.with_value(
        element, [&](ValueId found) { memory_.copy(address, found, size); }, nullptr);
    return memory_.load(address, type);
  }
  for_each_cpu(element, [&](ValueId source) { merge(type, address, source); });
  return {type, address, true};
}

}  // namespace espy::lower
