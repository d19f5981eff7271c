#include "check/map_expressions.h"

#include <algorithm>

#include "check/suggestions.h"
#include "program/probe_names.h"

namespace espy::check {

using types::Kind;

MapExpressions::MapExpressions(Facts& facts, Reporter& reporter, const Round& round, Expressions& expressions,
                               Maps& maps, const Table<ProbeId, program::Probe>& probes)
    : facts_(facts), reporter_(reporter), round_(round), expressions_(expressions), maps_(maps), probes_(probes) {
  find_whole_maps();
}

// `@x[1]` is an element of the map @x, or of an array that the scalar @x holds; the script's assignments tell which.
void MapExpressions::find_whole_maps() {
  std::set<std::string, std::less<>> keyed;
  const syntax::Ast& ast = facts_.ast();
  for (const syntax::Stmt& stmt : ast.stmts) {
    const auto* assign = std::get_if<syntax::Assign>(&stmt.node);
    if (!assign) continue;
    if (const auto* map = ast.get<syntax::Map>(assign->target)) whole_maps_.insert(map->name);
    const auto* index = ast.get<syntax::Index>(assign->target);
    if (const auto* map = index ? ast.get<syntax::Map>(index->base) : nullptr) keyed.insert(map->name);
  }
  std::erase_if(whole_maps_, [&](const std::string& name) { return keyed.contains(name); });
}

TypeId MapExpressions::scalar(ExprId id, const syntax::Map& node) {
  const Span span = facts_.span(id);
  MapState& state = maps_.find_or_add(node.name, span);
  facts_.fact(id).map = state.id;
  maps_.use_as_scalar(state, span);
  warn_if_unset(state, node.name, span);
  return maps_.value_type(state);
}

bool MapExpressions::is_element(const syntax::Index& node) {
  const auto* map = facts_.ast().get<syntax::Map>(node.base);
  if (!map) return false;
  if (node.indices.size() != 1 || !whole_maps_.contains(map->name)) return true;
  const TypeId held = maps_.find_or_add(map->name, facts_.span(node.base)).value.type;
  if (!held) return false;  // not known yet: a later round decides
  const Kind kind = facts_.type_of(held).kind;
  return kind != Kind::kArray && kind != Kind::kString && kind != Kind::kBuffer && kind != Kind::kTuple &&
         kind != Kind::kPointer;
}

TypeId MapExpressions::element(ExprId id, const syntax::Index& node) {
  MapState* state = target(id);
  warn_if_unset(*state, facts_.ast().get<syntax::Map>(node.base)->name, facts_.span(node.base));
  return maps_.value_type(*state);
}

// @m[a, b] and @m[(a, b)] are the same.
const std::vector<ExprId>& MapExpressions::key_parts(const std::vector<ExprId>& indices) const {
  const syntax::Tuple* tuple = indices.size() == 1 ? facts_.ast().get<syntax::Tuple>(indices[0]) : nullptr;
  return tuple ? tuple->elements : indices;
}

void MapExpressions::use_key(MapState& map, const std::vector<ExprId>& indices, Span span) {
  const std::vector<ExprId>& parts = key_parts(indices);
  if (&parts != &indices) {
    expressions_.expr(indices[0]);
  } else {
    for (const ExprId part : parts) expressions_.read_value(part);
  }
  maps_.use_key(map, parts, span);
}

MapState* MapExpressions::target(ExprId target) {
  const syntax::Ast& ast = facts_.ast();
  if (const auto* map = ast.get<syntax::Map>(target)) {
    MapState& state = maps_.find_or_add(map->name, facts_.span(target));
    maps_.use_as_scalar(state, facts_.span(target));
    facts_.fact(target).map = state.id;
    return &state;
  }
  const auto* index = ast.get<syntax::Index>(target);
  const auto* map = index ? ast.get<syntax::Map>(index->base) : nullptr;
  if (!map) return nullptr;
  MapState& state = maps_.find_or_add(map->name, facts_.span(index->base));
  use_key(state, index->indices, facts_.span(target));
  facts_.fact(target).map = state.id;
  facts_.fact(index->base).map = state.id;
  return &state;
}

MapState* MapExpressions::argument(ExprId expr, bool allows_element) {
  if (const auto* map = facts_.ast().get<syntax::Map>(expr)) {
    MapState& state = maps_.find_or_add(map->name, facts_.span(expr));
    warn_if_unset(state, map->name, facts_.span(expr));
    facts_.fact(expr).map = state.id;
    facts_.fact(expr).type = state.value.type;
    return &state;
  }
  if (!allows_element || !facts_.ast().get<syntax::Index>(expr)) return nullptr;
  MapState* state = target(expr);
  if (state) facts_.fact(expr).type = state->value.type;
  return state;
}

void MapExpressions::warn_if_unset(const MapState& map, const std::string& name, Span span) {
  if (map.value.type || !round_.is_final) return;
  reporter_.warning("unset-map", span, "nothing is ever assigned to `" + name + "`",
                    did_you_mean(name, maps_.assigned_names()));
}

void MapExpressions::refuse_unknown_names(const MapState& map, ExprId target) {
  const auto* index = facts_.ast().get<syntax::Index>(target);
  if (!index) return;
  const std::vector<ExprId>& parts = key_parts(index->indices);
  for (size_t i = 0; i < std::min(parts.size(), map.key.size()); ++i) {
    const Kind kind = facts_.type_of(map.key[i].type).kind;
    const auto name = facts_.text(parts[i]);
    if (!name || !program::is_probe_name(kind)) continue;
    if (program::first_named(kind, *name, probes_) < probes_.size()) continue;
    std::vector<std::string> names;
    for (const ProbeId id : probes_.ids()) names.push_back(program::probe_name_text(kind, probes_[id]));
    const std::string near = did_you_mean(*name, names);
    reporter_.error("no-probe-named", facts_.span(parts[i]),
                    "no probe of this script has `" + *name + "` as its " + facts_.show(map.key[i].type),
                    near.empty() ? "only names of its probes can be keys of `" + maps_.name(map) + "`" : near);
  }
}

}  // namespace espy::check
