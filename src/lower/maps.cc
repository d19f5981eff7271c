#include "lower/maps.h"

#include <algorithm>

#include "lower/expressions.h"
#include "lower/value_names.h"
#include "spec/builtin.h"

namespace espy::lower {

// Such an element has no key: it is found by the current thread.
bool Maps::is_of_thread(ScriptMapId map) const { return module_.script_map(map).storage == program::Storage::kThread; }

Maps::Element Maps::element(ScriptMapId map, ExprId key) {
  const TypeId type = module_.script_map(map).key;
  if (types()[type].kind == Kind::kVoid || is_of_thread(map)) return {map, {}};
  if (const auto* tuple = ast().get<syntax::Tuple>(key)) return element(map, tuple->elements);
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = memory_.allocate(size, "key");
  if (builtins_.writes_bytes(key)) memory_.zero(address, size);
  tuples_.store_member(address, 0, key, type);
  return {map, address};
}

Maps::Element Maps::element(ScriptMapId map, const std::vector<ExprId>& parts) {
  if (is_of_thread(map)) return {map, {}};
  if (parts.size() == 1) return element(map, parts[0]);
  const types::Type key = types()[module_.script_map(map).key];
  const ValueId address = memory_.allocate(key.size_bytes, "key");
  memory_.zero(address, key.size_bytes);
  for (size_t i = 0; i < parts.size() && i < key.members.size(); ++i)
    tuples_.store_member(address, key.members[i].offset_bytes(), parts[i], key.members[i].type);
  return {map, address};
}

Maps::Element Maps::element(ExprId map_expr) {
  const ScriptMapId map = scope_.fact(map_expr).map;
  const auto* index = ast().get<syntax::Index>(map_expr);
  if (index == nullptr) return {map, {}};
  note_key_names(map, index->indices);
  return element(map, index->indices);
}

// The first use of the map gives its keys their names.
void Maps::note_key_names(ScriptMapId map, const std::vector<ExprId>& indices) {
  std::vector<std::string>& names = module_.program.script_maps[map].key_names;
  const auto* tuple = indices.size() == 1 ? ast().get<syntax::Tuple>(indices[0]) : nullptr;
  if (names.empty())
    for (const ExprId part : tuple ? tuple->elements : indices) names.push_back(value_name(ast(), scope_.unit(), part));
}

void Maps::note_sampling(ScriptMapId id) {
  program::ScriptMap& map = module_.program.script_maps[id];
  const program::SamplePeriod sampled =
      types()[map.value].kind == Kind::kCount ? scope_.unit().context.sampled : program::SamplePeriod{};
  map.sampled = map.sampled.value_or(sampled) == sampled ? sampled : program::SamplePeriod{};
}

// While the program waits for a page, another thread may assign another value, or remove the key, whose element the
// kernel then gives to another one.
Operand Maps::copied(Operand value) {
  const auto size = static_cast<uint32_t>(round_up(types()[value.type].size_bytes, 8));
  const ValueId copy = memory_.allocate(size, "element");
  memory_.copy(copy, value.value, size);
  value.value = copy;
  return value;
}

Operand Maps::read(const Element& element) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (types::is_aggregation(types()[map.value])) return aggregations_.merged(element);
  const bool is_reference = !is_scalar(map.value);
  const auto load = [&](ValueId address) {
    const Operand value = memory_.load(address, map.value);
    return is_reference && scope_.unit().context.may_sleep ? copied(value) : value;
  };
  if (!map.map.valid()) return load(elements_.lookup(element));  // zeros until it is assigned
  const ir::SlotId result = new_slot("element");
  elements_.with_value(
      element, [&](ValueId address) { write_slot(result, load(address).value); },
      [&] {
        const uint32_t size = module_.program.maps[map.map].value_size;
        write_slot(result, is_reference ? memory_.zeros(size) : ir().constant(0));
        failures_.emit(Helper::map_lookup_elem, ir().constant(0));
      });
  return {map.value, read_slot(result), is_reference};
}

ValueId Maps::find_into(const Element& element, ExprId variable_expr) {
  const VariableId variable = scope_.fact(variable_expr).variable;
  const program::ScriptMap map = module_.script_map(element.map);
  const bool is_aggregation = types::is_aggregation(types()[map.value]);
  const ir::SlotId is_there = new_slot("is_there");
  write_slot(is_there, ir().constant(0));
  const check::Variable& info = scope_.unit().variables[variable];
  // If this declares the variable, the declaration must dominate both branches.
  if (info.span == ast()[variable_expr].span) variables_.clear(variable);
  elements_.with_value(
      element,
      [&](ValueId address) {
        write_slot(is_there, ir().constant(1));
        if (!is_aggregation) return variables_.write(variable, memory_.load(address, map.value));
        const Operand whole = aggregations_.merged(element);
        variables_.write(variable, is_scalar(info.type) ? conversions_.reduce(whole, info.type) : whole);
      },
      nullptr);
  return read_slot(is_there);
}

// A value is computed before the key, an aggregation after it: `@[$i] = ++$i` and `@[$i] = sum(++$i)` have different
// keys.
void Maps::assign(ExprId target, ExprId value) {
  const auto* call = ast().get<syntax::Call>(value);
  const spec::Builtin* builtin = call ? scope_.fact(value).builtin : nullptr;
  if (!builtin || builtin->kind != spec::BuiltinKind::kAggregation) {
    const Operand operand = expressions_.value(value);
    return elements_.store(this->element(target), operand);
  }
  const Element element = this->element(target);
  note_sampling(element.map);
  if (types()[module_.script_map(element.map).value].kind == Kind::kRecent)
    return recents_.add(element, call->arguments[1]);
  const bool is_atomic = scope_.unit().context.is_preemptible || module_.is_interrupted(element.map);
  const auto update = [&] {
    elements_.with_new_value(element, [&](ValueId address) { builtins_.update(value, *builtin, address, is_atomic); });
  };
  if (call->arguments.empty() || !element.key.valid() || !may_wait_for(call->arguments[0])) return update();
  expressions_.with_scalar(call->arguments[0], update);
}

// Whether a program may wait for a page while it evaluates an argument. It must not have looked up an element then: if
// another thread removes the key meanwhile, the kernel gives the element to another key.
bool Maps::may_wait_for(ExprId argument) const {
  const bool is_plain = ast().get<syntax::Name>(argument) || ast().get<syntax::Variable>(argument);
  return scope_.unit().context.may_sleep && !is_plain && !scope_.is_constant(argument);
}

}  // namespace espy::lower
