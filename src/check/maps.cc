// Maps: keys and values that fit all uses, in all units.
#include <algorithm>

#include "check/analyzer.h"
#include "program/probe_names.h"

namespace espy::check {

using source::Severity;
using types::Kind;

Analyzer::MapState& Analyzer::map_state(const std::string& name, Span at) {
  const auto found = maps_.find(name);
  if (found != maps_.end()) {
    CheckedMap& map = checked_.maps[found->second.id];
    if (!map.span.valid()) map.span = at;
    return found->second;
  }
  MapState& state = maps_[name];
  CheckedMap map;
  map.name = name;
  map.key = map.value = types().void_type();
  map.span = at;
  state.id = checked_.maps.add(std::move(map));
  changed();
  return state;
}

TypeId Analyzer::key_type(const MapState& map) {
  if (map.key.empty()) return types().void_type();
  std::vector<TypeId> elements;
  for (const Slot& slot : map.key) elements.push_back(slot.type ? slot.type : types().int64());
  return elements.size() == 1 ? elements[0] : types().tuple(elements);
}

void Analyzer::use_as_scalar(MapState& map, Span at) {
  if (!map.scalar_span.valid()) map.scalar_span = at;
  if (map.key.empty()) return;
  const std::string name = checked_.maps[map.id].name;
  auto* said = report(Severity::kError, "map-needs-key", at, "`" + name + "` has keys, but is used without one here",
                      "write `" + name + "[KEY]`");
  note(said, map.keyed_span, "used with a key here");
}

// @m[a, b] and @m[(a, b)] are the same.
const std::vector<ExprId>& Analyzer::key_parts(const std::vector<ExprId>& indices) const {
  const syntax::Tuple* tuple = indices.size() == 1 ? ast().get<syntax::Tuple>(indices[0]) : nullptr;
  return tuple ? tuple->elements : indices;
}

void Analyzer::use_key(MapState& map, const std::vector<ExprId>& indices, Span at) {
  const std::vector<ExprId>& parts = key_parts(indices);
  if (&parts != &indices) {
    expr(indices[0]);
  } else {
    for (const ExprId part : parts) value(part), read_aggregation(part);
  }
  if (parts.size() == 1 && type(parts[0]) && type_of(type(parts[0])).kind == Kind::kTuple) {
    std::vector<TypeId> elements;
    for (const types::Member& member : type_of(type(parts[0])).members) elements.push_back(member.type);
    return use_key_type(map, std::move(elements), at);
  }
  if (!open_key(map, parts.size(), at)) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TypeId before = map.key[i].type;
    if (!add_key_part(map.key[i], type(parts[i]), constant(parts[i]), is_literal(parts[i])))
      key_mismatch(map, before, type(parts[i]), span(parts[i]));
    if (map.key[i].type != before) changed();
  }
}

// Where `func` or its like is a key, text known at compile time stands for what has that name. If it came first, the
// part is what fired from here on, and the next round says whether all other text is known as well.
bool Analyzer::add_key_part(Slot& part, TypeId given, const Constant& known, bool literal) {
  const auto is_fired = [&](TypeId id) { return program::is_probe_name(type_of(id).kind); };
  if (is_fired(part.type) && std::holds_alternative<std::string>(known)) return true;
  if (is_fired(given) && type_of(part.type).kind == Kind::kString) part = {};
  return part.add(types(), given, known, literal);
}

// What fired is kept as a number: a name that no probe has can be looked for, but not be put into a map.
void Analyzer::refuse_unknown_names(const MapState& map, ExprId target) {
  const auto* index = ast().get<syntax::Index>(target);
  if (!index) return;
  const std::vector<ExprId>& parts = key_parts(index->indices);
  for (size_t i = 0; i < std::min(parts.size(), map.key.size()); ++i) {
    const Kind kind = type_of(map.key[i].type).kind;
    const auto name = text(parts[i]);
    if (!name || !program::is_probe_name(kind)) continue;
    if (program::first_named(kind, *name, checked_.probes) < checked_.probes.size()) continue;
    std::vector<std::string> names;
    for (const ProbeId id : checked_.probes.ids()) names.push_back(program::probe_name_text(kind, checked_.probes[id]));
    const std::string near = did_you_mean(*name, names);
    const std::string& map_name = checked_.maps[map.id].name;
    error("no-probe-named", span(parts[i]),
          "no probe of this script has `" + *name + "` as its " + show(map.key[i].type),
          near.empty() ? "only names of its probes can be keys of `" + map_name + "`" : near);
  }
}

void Analyzer::key_mismatch(const MapState& map, TypeId held, TypeId given, Span at) {
  auto* said = report(Severity::kError, "key-mismatch", at,
                      "the key of `" + checked_.maps[map.id].name + "` is " + show(held) + ", and " + show(given) +
                          " does not go with it",
                      {});
  note(said, map.keyed_span, "first used here");
}

// Makes sure that the map has keys of `count` values; false where it cannot.
bool Analyzer::open_key(MapState& map, size_t count, Span at) {
  const std::string& name = checked_.maps[map.id].name;
  if (map.scalar_span.valid() && map.key.empty()) {
    auto* said =
        report(Severity::kError, "map-has-no-key", at, "`" + name + "` has no keys, but is used with one here", {});
    note(said, map.scalar_span, "used without a key here");
    return false;
  }
  if (!map.keyed_span.valid()) map.keyed_span = at;
  if (map.key.empty()) {
    map.key.resize(count);
    changed();
  }
  if (map.key.size() == count) return true;
  auto* said = report(Severity::kError, "key-mismatch", at,
                      "`" + name + "` has keys of " + std::to_string(map.key.size()) +
                          (map.key.size() == 1 ? " value, " : " values, ") + std::to_string(count) +
                          (count == 1 ? " is" : " are") + " given here",
                      {});
  note(said, map.keyed_span, "first used here");
  return false;
}

void Analyzer::use_key_type(MapState& map, std::vector<TypeId> elements, Span at) {
  if (!open_key(map, elements.size(), at)) return;
  for (size_t i = 0; i < elements.size(); ++i) {
    const TypeId before = map.key[i].type;
    if (!add_key_part(map.key[i], elements[i], {}, false)) key_mismatch(map, before, elements[i], at);
    if (map.key[i].type != before) changed();
  }
}

void Analyzer::add_to_map(MapState& map, ExprId value_expr, Span at) {
  add_type_to_map(map, type(value_expr), constant(value_expr), is_literal(value_expr), at);
}

void Analyzer::add_type_to_map(MapState& map, TypeId value_type, const Constant& known, bool literal, Span at) {
  if (!value_type) return;
  const std::string name = checked_.maps[map.id].name;
  const TypeId before = map.value.type;
  if (type_of(value_type).kind == Kind::kVoid) {
    error("no-value", at, "there is no value to assign to `" + name + "`");
    return;
  }
  if (!map.value.add(types(), value_type, known, literal)) {
    auto* said = report(Severity::kError, "type-mismatch", at,
                        "`" + name + "` holds " + show(before) + ", and cannot hold " + show(value_type), {});
    note(said, map.value_span, "first assigned here");
    return;
  }
  if (!map.value_span.valid()) map.value_span = at;
  if (map.value.loses_sign && is_final_round_ && !std::exchange(map.value.is_sign_reported, true))
    warning("mixed-signs", at, "`" + name + "` holds signed and unsigned values, so it becomes `int64`",
            "cast one of them");
  if (map.value.type != before) changed();
}

bool Analyzer::is_keyed(ExprId expr) const {
  const auto* map = ast().get<syntax::Map>(expr);
  const auto found = map ? maps_.find(map->name) : maps_.end();
  return found != maps_.end() && !found->second.key.empty();
}

Analyzer::MapState* Analyzer::map_target(ExprId target) {
  if (const auto* map = ast().get<syntax::Map>(target)) {
    MapState& state = map_state(map->name, span(target));
    use_as_scalar(state, span(target));
    fact(target).map = state.id;
    return &state;
  }
  const auto* index = ast().get<syntax::Index>(target);
  const auto* map = index ? ast().get<syntax::Map>(index->base) : nullptr;
  if (!map) return nullptr;
  MapState& state = map_state(map->name, span(index->base));
  use_key(state, index->indices, span(target));
  fact(target).map = state.id;
  fact(index->base).map = state.id;
  return &state;
}

void Analyzer::warn_if_unset(const MapState& map, const std::string& name, Span at) {
  if (map.value.type || !is_final_round_) return;
  std::vector<std::string> names;
  for (const auto& [other_name, other] : maps_)
    if (other.value.type) names.push_back(other_name);
  warning("unset-map", at, "nothing is ever assigned to `" + name + "`", did_you_mean(name, names));
}

// `@x[1]` is an element of the map @x, or of the array that the scalar @x holds: what is assigned to says which.
void Analyzer::note_whole_maps() {
  std::set<std::string, std::less<>> keyed;
  const auto note = [&](ExprId target) {
    if (const auto* map = ast().get<syntax::Map>(target)) whole_maps_.insert(map->name);
    const auto* index = ast().get<syntax::Index>(target);
    if (const auto* map = index ? ast().get<syntax::Map>(index->base) : nullptr) keyed.insert(map->name);
  };
  for (const syntax::Stmt& stmt : ast().stmts)
    if (const auto* assign = std::get_if<syntax::Assign>(&stmt.node)) note(assign->target);
  std::erase_if(whole_maps_, [&](const std::string& name) { return keyed.contains(name); });
}

bool Analyzer::is_part_of_scalar(const syntax::Index& node) {
  const auto* map = ast().get<syntax::Map>(node.base);
  if (!map || node.indices.size() != 1 || !whole_maps_.contains(map->name)) return false;
  const TypeId held = map_state(map->name, span(node.base)).value.type;
  if (!held) return true;  // an early round: the next one knows
  const Kind kind = type_of(held).kind;
  return kind == Kind::kArray || kind == Kind::kString || kind == Kind::kBuffer || kind == Kind::kTuple ||
         kind == Kind::kPointer;
}

Analyzer::MapState* Analyzer::map_argument(ExprId id, bool allows_element) {
  if (const auto* map = ast().get<syntax::Map>(id)) {
    MapState& state = map_state(map->name, span(id));
    warn_if_unset(state, map->name, span(id));
    fact(id).map = state.id;
    fact(id).type = state.value.type;
    return &state;
  }
  if (!allows_element || !ast().get<syntax::Index>(id)) return nullptr;
  MapState* state = map_target(id);
  if (state) fact(id).type = state->value.type;
  return state;
}

}  // namespace espy::check
