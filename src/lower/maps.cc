// Maps of the script. A scalar is a word "assigned" and a value in `globals`, of each CPU where it aggregates; anything
// with a key is an entry of a hash.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "lower/unit.h"

namespace espy::lower {
namespace {

using program::Storage;

constexpr int64_t kAny = 0;      // BPF_ANY
constexpr int64_t kNoExist = 1;  // BPF_NOEXIST

}  // namespace

// ---- Elements

Lowering::MapElement UnitLowering::element(ScriptMapId map, ExprId key) {
  const TypeId type = script_map(map).key;
  if (types()[type].kind == Kind::kVoid) return {map, {}};
  if (const auto* tuple = ast().get<syntax::Tuple>(key)) return element(map, tuple->elements);
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = memory(size, "key");
  if (writes_bytes(key)) zero(address, size);
  store_member(address, 0, key, type);
  return {map, address};
}

Lowering::MapElement UnitLowering::element(ScriptMapId map, const std::vector<ExprId>& parts) {
  if (parts.size() == 1) return element(map, parts[0]);
  const types::Type key = types()[script_map(map).key];
  const ValueId address = memory(key.size_bytes, "key");
  zero(address, key.size_bytes);
  for (size_t i = 0; i < parts.size() && i < key.members.size(); ++i)
    store_member(address, key.members[i].offset_bytes(), parts[i], key.members[i].type);
  return {map, address};
}

Lowering::MapElement UnitLowering::element(ExprId map_expr) {
  const ScriptMapId map = unit_->fact(map_expr).map;
  const auto* index = ast().get<syntax::Index>(map_expr);
  return index ? element(map, index->indices) : MapElement{map, {}};
}

ValueId UnitLowering::scalar_slot(const program::ScriptMap& map, ValueId at_cpu) {
  const ValueId start = ir().map_value(module_.program.globals, map.offset_bytes);
  if (map.storage == Storage::kGlobal) return start;
  const ValueId slot = ir().binary(Op::k_and, at_cpu, module_.cpu_slots() - 1);
  return ir().binary(Op::k_add, start, ir().binary(Op::k_shl, slot, std::countr_zero(map.stride_bytes)));
}

ValueId UnitLowering::scalar_slot(const program::ScriptMap& map) {
  return scalar_slot(map, map.storage == Storage::kGlobal ? ValueId{} : cpu());
}

ValueId UnitLowering::lookup(const MapElement& element) {
  const program::ScriptMap map = script_map(element.map);
  if (!element.key.valid()) return offset(scalar_slot(map), 8);
  return ir().call(Helper::map_lookup_elem, {ir().map(map.map), element.key});
}

void UnitLowering::with_value(const MapElement& element, const std::function<void(ValueId)>& then,
                              const std::function<void()>& otherwise) {
  const program::ScriptMap map = script_map(element.map);
  if (!element.key.valid()) {
    const ValueId slot = scalar_slot(map);
    when(
        Condition::ne, ir().load(8, slot), ir().constant(0),
        [&] {
          if (then) then(offset(slot, 8));
        },
        otherwise);
    return;
  }
  const ValueId found = lookup(element);
  when(
      Condition::ne, found, ir().constant(0),
      [&] {
        if (then) then(found);
      },
      otherwise);
}

// `failed` is what map_update_elem gave.
void UnitLowering::lose_update(const program::ScriptMap& map, ValueId failed) {
  const std::string full = map.name + " is full at " + std::to_string(module_.program.maps[map.map].max_entries) +
                           " keys (raise max_map_keys, or the number it is declared with); updates lost";
  const std::string busy =
      map.name + " was busy on that CPU, or the kernel had no memory at hand for a new key; updates lost";
  when(
      Condition::eq, failed, ir().constant(-E2BIG), [&] { count_loss(program::LossKind::kUpdate, full); },
      [&] { count_loss(program::LossKind::kUpdate, busy); });
}

// An absent key is inserted as zeros, without touching a value that someone else may have inserted meanwhile, and
// looked up again: so whatever `then` does is done in place, once, and nothing is lost.
void UnitLowering::with_new_value(const MapElement& element, const std::function<void(ValueId)>& then) {
  const program::ScriptMap map = script_map(element.map);
  if (!element.key.valid()) {
    const ValueId slot = scalar_slot(map);
    ir().store(8, slot, ir().constant(1));
    return then(offset(slot, 8));
  }
  const ValueId found = lookup(element);
  const BlockId use = ir().add_block("value");
  const ValueId address = ir().add_block_parameter(use);
  const BlockId miss = ir().add_block("miss");
  const BlockId hit = ir().add_block("hit");
  const BlockId full = ir().add_block("full");
  const BlockId inserted = ir().add_block("inserted");
  const BlockId done = ir().add_block("done");
  ir().branch(Condition::ne, found, 0, hit, miss);
  ir().enter(hit);
  ir().jump(use, {found});
  ir().enter(miss);
  const uint32_t size = module_.program.maps[map.map].value_size;
  const ValueId failed =
      ir().call(Helper::map_update_elem, {ir().map(map.map), element.key, zeros(size), ir().constant(kNoExist)});
  const ValueId again = lookup(element);
  ir().branch(Condition::ne, again, 0, inserted, full);
  ir().enter(inserted);
  ir().jump(use, {again});
  ir().enter(full);
  emit_failure(Helper::map_update_elem, failed);
  lose_update(map, failed);
  ir().jump(done);
  ir().enter(use);
  then(address);
  ir().jump(done);
  ir().enter(done);
}

Operand UnitLowering::read_element(const MapElement& element, ExprId) {
  const program::ScriptMap map = script_map(element.map);
  if (types::is_aggregation(types()[map.value])) return merged(element);
  const bool is_reference = types::is_by_reference(types()[map.value]);
  if (!element.key.valid()) return load(lookup(element), map.value);  // zeros until it is assigned
  const ir::SlotId result = new_slot("element");
  with_value(
      element, [&](ValueId address) { write_slot(result, load(address, map.value).value); },
      [&] {
        const uint32_t size = module_.program.maps[map.map].value_size;
        write_slot(result, is_reference ? zeros(size) : ir().constant(0));
        emit_failure(Helper::map_lookup_elem, ir().constant(0));
      });
  return {map.value, read_slot(result), is_reference};
}

ValueId UnitLowering::find_into(const MapElement& element, ExprId variable_expr) {
  const VariableId variable = unit_->fact(variable_expr).variable;
  const program::ScriptMap map = script_map(element.map);
  const bool is_aggregation = types::is_aggregation(types()[map.value]);
  const ir::SlotId is_there = new_slot("is_there");
  write_slot(is_there, ir().constant(0));
  // The first write gives the variable its home, before the paths part.
  const uint32_t size = std::max(types()[map.value].size_bytes, 8u);
  const TypeId held = unit_->variables[variable].type;
  if (is_aggregation) {
    const Operand whole = merged(element);
    write_variable(variable, is_scalar(held) ? reduce(whole, held) : whole);
  } else {
    const bool is_reference = types::is_by_reference(types()[map.value]);
    write_variable(variable, {map.value, is_reference ? zeros(size) : ir().constant(0), is_reference});
  }
  with_value(
      element,
      [&](ValueId address) {
        write_slot(is_there, ir().constant(1));
        if (!is_aggregation) write_variable(variable, load(address, map.value));
      },
      nullptr);
  return read_slot(is_there);
}

// ---- Assignment

void UnitLowering::assign_element(const MapElement& element, ExprId value_expr) {
  const auto* call = ast().get<syntax::Call>(value_expr);
  const spec::Builtin* builtin = call ? unit_->fact(value_expr).builtin : nullptr;
  if (builtin && builtin->kind == spec::BuiltinKind::kAggregation) return aggregate(element, *builtin, value_expr);
  store_element(element, value(value_expr));
}

void UnitLowering::aggregate(const MapElement& element, const spec::Builtin& builtin, ExprId call) {
  const spec::CallSite site{call, ast()[call].span, ast().get<syntax::Call>(call)->arguments};
  const bool is_atomic = is_preemptible() || module_.is_interrupted(element.map);
  with_new_value(element, [&](ValueId address) { builtin.lower_update(*this, site, address, is_atomic); });
}

void UnitLowering::store_element(const MapElement& element, Operand operand) {
  const program::ScriptMap map = script_map(element.map);
  if (!element.key.valid()) {
    const ValueId slot = scalar_slot(map);
    store_converted(offset(slot, 8), operand, map.value);
    ir().store(8, slot, ir().constant(1));
    return;
  }
  const uint32_t size = module_.program.maps[map.map].value_size;
  const uint32_t used = types()[map.value].size_bytes;
  const ValueId copy = memory(size, "new");
  if (used % 8) zero(copy, size);
  store_converted(copy, operand, map.value);
  const ValueId failed =
      ir().call(Helper::map_update_elem, {ir().map(map.map), element.key, copy, ir().constant(kAny)});
  when(Condition::ne, failed, ir().constant(0), [&] {
    emit_failure(Helper::map_update_elem, failed);
    lose_update(map, failed);
  });
}

ValueId UnitLowering::remove(const MapElement& element) {
  const program::ScriptMap map = script_map(element.map);
  if (element.key.valid()) {
    const ValueId failed = ir().call(Helper::map_delete_elem, {ir().map(map.map), element.key});
    report_failure(Helper::map_delete_elem, failed);
    return ir().binary(Op::k_eq, failed, ir().constant(0));
  }
  const auto size = static_cast<uint32_t>(round_up(types()[map.value].size_bytes, 8));
  const ir::SlotId was = new_slot("was");
  write_slot(was, ir().constant(0));
  const auto clear = [&](ValueId slot) {
    write_slot(was, ir().binary(Op::k_or, read_slot(was), ir().load(8, slot)));
    zero(slot, 8 + size);
  };
  if (map.storage == Storage::kGlobal) {
    clear(scalar_slot(map));
  } else {
    ir().count_up(module_.program.cpu_count, [&](ValueId at_cpu, BlockId) { clear(scalar_slot(map, at_cpu)); });
  }
  return read_slot(was);
}

// ---- Length

ValueId UnitLowering::length(ScriptMapId id) {
  const program::ScriptMap map = script_map(id);
  if (!map.map.valid()) return ir().load(8, scalar_slot(map));
  if (const auto sum = kernel().kfunc_id("bpf_map_sum_elem_count")) return ir().kfunc(*sum, {ir().map(map.map)}, false);
  const ValueId counter = memory(8, "length");
  ir().store(8, counter, ir().constant(0));
  const FunctionId count = callback("count_keys", 4, [&] {
    const ValueId place = ir().param(3);
    ir().store(8, place, ir().binary(Op::k_add, ir().load(8, place), 1));
    ir().ret(0);
  });
  ir().call(Helper::for_each_map_elem, {ir().map(map.map), ir().function_address(count), counter, ir().constant(0)});
  return ir().load(8, counter);
}

// ---- Aggregations read by the program itself

void UnitLowering::for_each_cpu(const MapElement& element, const std::function<void(ValueId)>& body) {
  const program::ScriptMap map = script_map(element.map);
  ir().count_up(module_.program.cpu_count, [&](ValueId at_cpu, BlockId) {
    if (!element.key.valid()) return body(offset(scalar_slot(map, at_cpu), 8));
    const ValueId address = ir().call(Helper::map_lookup_percpu_elem, {ir().map(map.map), element.key, at_cpu});
    when(Condition::ne, address, ir().constant(0), [&] { body(address); });
  });
}

void UnitLowering::merge_words(ValueId destination, ValueId source, uint32_t words) {
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

void UnitLowering::merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source) {
  when(Condition::ne, ir().load(8, source, 8), ir().constant(0), [&] {
    const ValueId other = ir().load(8, source);
    const ValueId mine = ir().load(8, destination);
    const BlockId take = ir().add_block("take");
    const BlockId compare = ir().add_block("compare");
    const BlockId join = ir().add_block("join");
    ir().branch(Condition::eq, ir().load(8, destination, 8), 0, take, compare);
    ir().enter(compare);
    const Condition better =
        is_max ? (is_signed ? Condition::sgt : Condition::ugt) : (is_signed ? Condition::slt : Condition::ult);
    ir().branch(better, other, mine, take, join);
    ir().enter(take);
    ir().store(8, destination, other);
    ir().store(8, destination, ir().constant(1), 8);
    ir().jump(join);
    ir().enter(join);
  });
}

// Slots of the same epoch add up; a newer one replaces an older.
void UnitLowering::merge_tseries(TypeId type, ValueId destination, ValueId source) {
  const types::TseriesParams params = types().tseries_params(type);
  const bool is_signed = types()[type].is_signed;
  ir().count_up(static_cast<uint32_t>(params.intervals), [&](ValueId index, BlockId) {
    const ValueId at = ir().binary(Op::k_mul, index, ir().constant(24));
    const ValueId to = ir().binary(Op::k_add, destination, at);
    const ValueId from = ir().binary(Op::k_add, source, at);
    const ValueId epoch = ir().load(8, from);
    when(
        Condition::ugt, epoch, ir().load(8, to), [&] { ir().copy(to, from, 24); },
        [&] {
          when(Condition::eq, epoch, ir().load(8, to), [&] {
            const ValueId mine = ir().load(8, to, 8);
            const ValueId other = ir().load(8, from, 8);
            ValueId both = ir().binary(Op::k_add, mine, other);
            if (params.aggregation == Kind::kMax || params.aggregation == Kind::kMin) {
              const bool is_max = params.aggregation == Kind::kMax;
              const Condition better = is_max ? (is_signed ? Condition::sgt : Condition::ugt)
                                              : (is_signed ? Condition::slt : Condition::ult);
              both = select(
                  better, other, mine, [&] { return other; }, [&] { return mine; });
            } else if (params.aggregation == Kind::kVoid) {
              both = other;
            }
            ir().store(8, to, both, 8);
            ir().store(8, to, ir().binary(Op::k_add, ir().load(8, to, 16), ir().load(8, from, 16)), 16);
          });
        });
  });
}

void UnitLowering::merge_cpu(TypeId type_id, ValueId destination, ValueId source) {
  const types::Type type = types()[type_id];
  switch (type.kind) {
    case Kind::kMin:
    case Kind::kMax: return merge_extreme(type.kind == Kind::kMax, type.is_signed, destination, source);
    case Kind::kTseries: return merge_tseries(type_id, destination, source);
    default: return merge_words(destination, source, type.size_bytes / 8);
  }
}

// The aggregation of all CPUs, in the layout of one.
Operand UnitLowering::merged(const MapElement& element) {
  const TypeId type = script_map(element.map).value;
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = memory(size, "merged");
  zero(address, size);
  if (!types::is_aggregation(types()[type])) {  // a number in a map that was declared per CPU
    with_value(
        element, [&](ValueId found) { copy(address, found, size); }, nullptr);
    return load(address, type);
  }
  for_each_cpu(element, [&](ValueId source) { merge_cpu(type, address, source); });
  return {type, address, true};
}

Operand UnitLowering::reduce(Operand aggregate, TypeId to) {
  const types::Type type = types()[aggregate.type];
  const ValueId first = ir().load(8, aggregate.value);
  if (type.kind == Kind::kAvg || type.kind == Kind::kStats) {
    const ValueId count = ir().load(8, aggregate.value, 8);
    return {to, ir().binary(type.is_signed ? Op::k_sdiv : Op::k_udiv, first, count)};
  }
  return {to, normalise(first, to)};
}

}  // namespace espy::lower
