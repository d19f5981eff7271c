#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "check/checker.h"
#include "program/program.h"
#include "syntax/format_script.h"
#include "types/parts.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

// ---- Expressions that name a map or an element of one: `@x`, `@x[KEY]`

// `@x[1]` is an element of the map @x, or of an array that the scalar @x holds; the script's assignments tell which.
void Checker::find_whole_maps() {
  std::set<std::string, std::less<>> keyed;
  for (const Stmt& stmt : ast_.stmts) {
    const auto* assign = std::get_if<Assign>(&stmt.node);
    if (!assign) continue;
    if (const auto* map = ast_.get<Map>(assign->target)) whole_maps_.insert(map->name);
    const auto* index = ast_.get<Index>(assign->target);
    if (const auto* map = index ? ast_.get<Map>(index->base) : nullptr) keyed.insert(map->name);
  }
  std::erase_if(whole_maps_, [&](const std::string& name) { return keyed.contains(name); });
}

TypeId Checker::visit(ExprId id, const Map& node) {
  const Span span = span_of(id);
  MapState& state = find_or_add_map(node.name, span);
  fact(id).map = state.id;
  use_as_scalar(state, span);
  warn_if_unset_map(state, node.name, span);
  return map_value_type(state);
}

bool Checker::is_map_element(const Index& node) {
  const auto* map = ast_.get<Map>(node.base);
  if (!map) return false;
  if (node.indices.size() != 1 || !whole_maps_.contains(map->name)) return true;
  const TypeId held = find_or_add_map(map->name, span_of(node.base)).value.type;
  if (!held) return false;  // not known yet: a later round decides
  const Kind kind = type_of(held).kind;
  return kind != Kind::kArray && kind != Kind::kString && kind != Kind::kBuffer && kind != Kind::kTuple &&
         kind != Kind::kPointer;
}

TypeId Checker::visit(ExprId id, const Index& node) {
  if (!is_map_element(node)) return check_element(id, node);
  const MapState* state = assigned_map(id);
  warn_if_unset_map(*state, ast_.get<Map>(node.base)->name, span_of(node.base));
  return map_value_type(*state);
}

// @m[a, b] and @m[(a, b)] are the same.
const std::vector<ExprId>& Checker::key_parts(const std::vector<ExprId>& indices) const {
  const Tuple* tuple = indices.size() == 1 ? ast_.get<Tuple>(indices[0]) : nullptr;
  return tuple ? tuple->elements : indices;
}

void Checker::check_key(MapState& map, const std::vector<ExprId>& indices, Span span) {
  const std::vector<ExprId>& parts = key_parts(indices);
  if (&parts != &indices) {
    check_expr(indices[0]);
  } else {
    for (const ExprId part : parts) read_value(part);
  }
  add_key(map, parts, span);
}

MapState* Checker::assigned_map(ExprId target) {
  if (const auto* map = ast_.get<Map>(target)) {
    MapState& state = find_or_add_map(map->name, span_of(target));
    use_as_scalar(state, span_of(target));
    fact(target).map = state.id;
    return &state;
  }
  const auto* index = ast_.get<Index>(target);
  const auto* map = index ? ast_.get<Map>(index->base) : nullptr;
  if (!map) return nullptr;
  MapState& state = find_or_add_map(map->name, span_of(index->base));
  check_key(state, index->indices, span_of(target));
  fact(target).map = state.id;
  fact(index->base).map = state.id;
  return &state;
}

MapState* Checker::map_argument(ExprId expr, bool allows_element) {
  if (const auto* map = ast_.get<Map>(expr)) {
    MapState& state = find_or_add_map(map->name, span_of(expr));
    warn_if_unset_map(state, map->name, span_of(expr));
    fact(expr).map = state.id;
    fact(expr).type = state.value.type;
    return &state;
  }
  if (!allows_element || !ast_.get<Index>(expr)) return nullptr;
  MapState* state = assigned_map(expr);
  if (state) fact(expr).type = state->value.type;
  return state;
}

void Checker::warn_if_unset_map(const MapState& map, const std::string& name, Span span) {
  if (map.value.type || !is_final_) return;
  warning("unset-map", span, "nothing is ever assigned to `" + name + "`", did_you_mean(name, assigned_maps()));
}

void Checker::refuse_unknown_names(const MapState& map, ExprId target) {
  const auto* index = ast_.get<Index>(target);
  if (!index) return;
  const std::vector<ExprId>& parts = key_parts(index->indices);
  for (size_t i = 0; i < std::min(parts.size(), map.key.size()); ++i) {
    const Kind kind = type_of(map.key[i].type).kind;
    const auto name = text(parts[i]);
    if (!name || !program::is_probe_name(kind)) continue;
    if (program::first_named(kind, *name, probes_) < probes_.size()) continue;
    std::vector<std::string> names;
    for (const ProbeId id : probes_.ids()) names.push_back(program::probe_name_text(kind, probes_[id]));
    const std::string near = did_you_mean(*name, names);
    error("no-probe-named", span_of(parts[i]),
          "no probe of this script has `" + *name + "` as its " + show(map.key[i].type),
          near.empty() ? "only names of its probes can be keys of `" + map_name(map) + "`" : near);
  }
}

// ---- The types of keys and values, each wide enough for all uses in all units

MapState& Checker::find_or_add_map(const std::string& name, Span use) {
  const auto found = map_states_.find(name);
  if (found != map_states_.end()) {
    CheckedMap& map = checked_.maps[found->second.id];
    if (!map.span.valid()) map.span = use;
    if (!std::exchange(found->second.is_used, true)) take_assumed_type(name, found->second);
    return found->second;
  }
  MapState& state = map_states_[name];
  state.is_used = true;
  take_assumed_type(name, state);
  CheckedMap map;
  map.name = name;
  map.key = map.value = types_.void_type();
  map.span = use;
  state.id = checked_.maps.add(std::move(map));
  has_changed_ = true;
  return state;
}

void Checker::take_assumed_type(const std::string& name, MapState& state) {
  if (const auto assumed = assumed_.maps.find(name); assumed != assumed_.maps.end()) state.value = assumed->second;
}

bool Checker::has_unset_map() const {
  return std::ranges::any_of(map_states_,
                             [](const auto& each) { return each.second.is_used && !each.second.value.type; });
}

std::map<std::string, Slot> Checker::map_value_types() const {
  std::map<std::string, Slot> out;
  for (const auto& [name, state] : map_states_)
    if (state.value.type) out.emplace(name, state.value);
  return out;
}

std::vector<std::string> Checker::assigned_maps() const {
  std::vector<std::string> out;
  for (const auto& [name, state] : map_states_)
    if (state.value.type) out.push_back(name);
  return out;
}

bool Checker::is_keyed(ExprId expr) const {
  const auto* map = ast_.get<Map>(expr);
  const auto found = map ? map_states_.find(map->name) : map_states_.end();
  return found != map_states_.end() && !found->second.key.empty();
}

TypeId Checker::map_key_type(const MapState& map) {
  if (map.key.empty()) return types_.void_type();
  std::vector<TypeId> elements;
  for (const Slot& slot : map.key) elements.push_back(slot.type ? slot.type : types_.int64());
  return elements.size() == 1 ? elements[0] : types_.tuple(elements);
}

TypeId Checker::map_value_type(const MapState& map) { return map.value.type ? map.value.type : types_.int64(); }

void Checker::use_as_scalar(MapState& map, Span span) {
  if (!map.scalar_span.valid()) map.scalar_span = span;
  if (map.key.empty()) return;
  error_with_note("map-needs-key", span, "`" + map_name(map) + "` has keys, but is used without one here",
                  "write `" + map_name(map) + "[KEY]`", {map.keyed_span, "used with a key here"});
}

void Checker::warn_of_address(ExprId id, std::string_view what) {
  const TypeId given = type(id);
  if (!given || type_of(given).kind != Kind::kPointer || !type_of(type_of(given).element).char_like) return;
  const std::string text = syntax::format(ast_, id);
  warning("address-of-text", span_of(id), fmt::format("{} the address `{}`, not the string there", what, text),
          fmt::format("write str({})", text));
}

void Checker::add_key(MapState& map, const std::vector<ExprId>& parts, Span span) {
  const TypeId first = parts.size() == 1 ? type(parts[0]) : TypeId{};
  if (first && type_of(first).kind == Kind::kTuple) {
    std::vector<TypeId> elements;
    for (const types::Member& member : type_of(first).members) elements.push_back(member.type);
    return add_key_types(map, elements, span);
  }
  if (!open_key(map, parts.size(), span)) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TypeId before = map.key[i].type;
    use_func_as_symbol(parts[i], before);
    warn_of_address(parts[i], "the key is");
    if (!add_key_part(map.key[i], given(parts[i]))) report_key_mismatch(map, before, type(parts[i]), span_of(parts[i]));
    if (map.key[i].type != before) has_changed_ = true;
  }
}

void Checker::add_key_types(MapState& map, const std::vector<TypeId>& types, Span span) {
  if (!open_key(map, types.size(), span)) return;
  for (size_t i = 0; i < types.size(); ++i) {
    const TypeId before = map.key[i].type;
    if (!add_key_part(map.key[i], {types[i]})) report_key_mismatch(map, before, types[i], span);
    if (map.key[i].type != before) has_changed_ = true;
  }
}

// Gives the map keys of `count` parts; false if it cannot have them.
bool Checker::open_key(MapState& map, size_t count, Span span) {
  if (map.scalar_span.valid() && map.key.empty()) {
    error_with_note("map-has-no-key", span, "`" + map_name(map) + "` has no keys, but is used with one here", {},
                    {map.scalar_span, "used without a key here"});
    return false;
  }
  if (!map.keyed_span.valid()) map.keyed_span = span;
  if (map.key.empty()) {
    map.key.resize(count);
    has_changed_ = true;
  }
  if (map.key.size() == count) return true;
  error_with_note("key-mismatch", span,
                  "`" + map_name(map) + "` has keys of " + std::to_string(map.key.size()) +
                      (map.key.size() == 1 ? " value, " : " values, ") + std::to_string(count) +
                      (count == 1 ? " is" : " are") + " given here",
                  {}, {map.keyed_span, "first used here"});
  return false;
}

// Names of probes and functions are kept as numbers. Where one is a part of a key, constant text stands for the probe
// or function of that name. If the text came first, the part becomes a name now, and the next round checks the texts.
bool Checker::add_key_part(Slot& part, const Given& given) {
  const auto is_name = [&](TypeId id) { return program::is_probe_name(type_of(id).kind); };
  if (is_name(part.type) && std::holds_alternative<std::string>(given.constant)) return true;
  if (is_name(given.type) && type_of(part.type).kind == Kind::kString) part = {};
  if (becomes_symbol(part.type, given.type)) part = {};
  return part.add(types_, given);
}

void Checker::report_key_mismatch(const MapState& map, TypeId held, TypeId given, Span span) {
  const auto [now, other] = show_both(held, given);
  error_with_note("key-mismatch", span, "the key of `" + map_name(map) + "` is " + now + ", and cannot be " + other, {},
                  {map.keyed_span, "first used here"});
}

void Checker::add_to_map(MapState& map, ExprId value, Span span) {
  use_func_as_symbol(value, map.value.type);
  Given assigned = given(value);
  assigned.is_literal |= has_argument_of_any_sign(value);
  add_type_to_map(map, assigned, span);
}

// Whether the expression is a sum, an extreme or an average of a number that both signs hold: a constant, or one of
// fewer than 64 bits without a sign.
bool Checker::has_argument_of_any_sign(ExprId value) const {
  const auto* call = ast_.get<Call>(value);
  if (!call || call->arguments.size() != 1 || !type(value)) return false;
  const Kind kind = type_of(type(value)).kind;
  const bool has_sign =
      kind == Kind::kSum || kind == Kind::kMin || kind == Kind::kMax || kind == Kind::kAvg || kind == Kind::kStats;
  const ExprId argument = call->arguments[0];
  if (!has_sign || !type(argument)) return false;
  const types::Type& counted = type_of(type(argument));
  const auto known = integer(argument);
  return (known && *known >= 0) || (!counted.is_signed && counted.size_bytes < 8);
}

void Checker::add_type_to_map(MapState& map, const Given& given, Span span) {
  const TypeId type = given.type;
  if (!type) return;
  const TypeId before = map.value.type;
  if (type_of(type).kind == Kind::kVoid) {
    error("no-value", span, "there is no value to assign to `" + map_name(map) + "`");
    return;
  }
  if (becomes_symbol(map.value.type, type)) map.value = {};
  if (!map.value.add(types_, given)) {
    const auto [now, other] = show_both(before, type);
    const std::string what = now == other ? "one with other arguments" : other;
    error_with_note("type-mismatch", span, "`" + map_name(map) + "` holds " + now + ", and cannot hold " + what, {},
                    {map.value_span, "first assigned here"});
    return;
  }
  if (!map.value_span.valid()) map.value_span = span;
  if (map.value.loses_sign && is_final_ && !std::exchange(map.value.is_sign_reported, true))
    warning("mixed-signs", span,
            "`" + map_name(map) + "` holds signed and unsigned values, so it becomes " + show(map.value.type),
            "cast one of them");
  if (map.value.type != before) has_changed_ = true;
}

void Checker::warn_of_unused_maps() {
  for (const auto& [name, state] : map_states_)
    if (!state.is_used) warning("unused-map", checked_.maps[state.id].span, "nothing uses `" + name + "`");
}

// Kernels without long keys get shorter strings in them, of equal shares. Cut strings are counted, as those that do not
// fit max_strlen. The key stays as it is if that is not enough.
TypeId Checker::shortened_key(TypeId key, uint32_t share_bytes) {
  const types::Type type = types_[key];
  if (type.kind == Kind::kString) return type.count > share_bytes ? types_.string(share_bytes, true) : key;
  if (type.kind != Kind::kTuple) return key;
  std::vector<TypeId> elements;
  for (const types::Member& member : type.members) elements.push_back(shortened_key(member.type, share_bytes));
  return types_.tuple(elements);
}

TypeId Checker::fitting_key(TypeId key) {
  constexpr uint32_t kLeastShare = 32, kStep = 8;
  for (uint32_t share = kernel::kShortKeyBytes; share >= kLeastShare; share -= kStep)
    if (const TypeId shorter = shortened_key(key, share); type_of(shorter).size_bytes <= kernel::kShortKeyBytes)
      return shorter;
  return key;
}

namespace {

constexpr uint64_t kMostRecentBytes = 63 * 1024;            // of a key: has to fit a record (program/layout.h)
constexpr uint64_t kDefaultRecentBytes = 64 * 1024 * 1024;  // of all keys, which are allocated at once
constexpr uint64_t kMostDeclaredBytes = uint64_t{1} << 30;  // of all keys of a map that is declared
constexpr uint64_t kMostBytesOfCpus = 256 * 1024 * 1024;    // of a map without keys

std::string megabytes(uint64_t bytes) { return std::to_string((bytes + 1'000'000 - 1) / 1'000'000) + " MB"; }

}  // namespace

// One copy serves all CPUs, and where the script does not say otherwise, the keys that were not used for longest make
// room for new ones. Such a map is allocated at once.
void Checker::finish_recent_map(CheckedMap& map, const MapState& state) {
  using program::MapKind;
  const types::Type& type = type_of(map.value);
  const uint64_t size = types::RecentLayout(type.count, type_of(type.element).size_bytes).size_bytes;
  const std::string hint = "keep fewer values (and keys), or shorter strings: `str(x, 64)`";
  const auto refuse = [&](const std::string& what) { error("recent-too-large", state.value_span, what, hint); };
  const bool is_lru = !map.is_declared || map.kind == MapKind::kLruHash || map.kind == MapKind::kLruPercpuHash;
  map.kind = is_lru ? MapKind::kLruHash : MapKind::kHash;
  if (type_of(map.key).kind == Kind::kVoid) {
    const uint64_t total = size * std::max(kernel_.cpu_count(), 1u);
    if (total > kMostBytesOfCpus)
      refuse("`" + map.name + "` would take " + megabytes(total) + " on " + std::to_string(kernel_.cpu_count()) +
             " CPUs, and may take " + megabytes(kMostBytesOfCpus));
    return;
  }
  if (size > kMostRecentBytes)
    return refuse("a key of `" + map.name + "` would take " + std::to_string(size) + " bytes, and may take " +
                  std::to_string(kMostRecentBytes));
  if (!map.is_declared)
    map.max_entries = std::min(config_.limits.max_map_keys, std::max<uint64_t>(kDefaultRecentBytes / size, 1));
  if (map.is_declared && size * map.max_entries > kMostDeclaredBytes)
    refuse("`" + map.name + "` would take " + megabytes(size * map.max_entries) + " for " +
           std::to_string(map.max_entries) + " keys, and may take " + megabytes(kMostDeclaredBytes));
}

void Checker::finish_maps() {
  for (auto& [name, state] : map_states_) {
    CheckedMap& map = checked_.maps[state.id];
    map.key = map_key_type(state);
    if (type_of(map.key).size_bytes > kernel::kShortKeyBytes && !kernel_.has(kernel::Feature::kLongKeys))
      map.key = fitting_key(map.key);
    map.value = state.value.type ? state.value.type : types_.void_type();
    if (type_of(map.value).kind == Kind::kRecent) {
      finish_recent_map(map, state);
      continue;
    }
    const bool per_cpu = types::is_aggregation(type_of(map.value));
    if (!map.is_declared) {
      map.max_entries = config_.limits.max_map_keys;
      map.kind = per_cpu ? program::MapKind::kPercpuHash : program::MapKind::kHash;
    } else if (per_cpu) {
      if (map.kind == program::MapKind::kHash) map.kind = program::MapKind::kPercpuHash;
      if (map.kind == program::MapKind::kLruHash) map.kind = program::MapKind::kLruPercpuHash;
    }
  }
}

}  // namespace espy::check
