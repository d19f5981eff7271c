#include "check/maps.h"

#include <algorithm>
#include <utility>

#include "check/func_symbol.h"
#include "program/probe_names.h"
#include "types/recent_layout.h"

namespace espy::check {

using types::Kind;

Maps::Maps(Facts& facts, Reporter& reporter, Round& round, Table<ScriptMapId, CheckedMap>& maps)
    : facts_(facts), reporter_(reporter), round_(round), maps_(maps) {
  for (const ScriptMapId id : maps.ids()) states_[maps[id].name].id = id;
}

MapState& Maps::find_or_add(const std::string& name, Span use) {
  const auto found = states_.find(name);
  if (found != states_.end()) {
    CheckedMap& map = maps_[found->second.id];
    if (!map.span.valid()) map.span = use;
    if (!std::exchange(found->second.is_used, true)) take_assumed(name, found->second);
    return found->second;
  }
  MapState& state = states_[name];
  state.is_used = true;
  take_assumed(name, state);
  CheckedMap map;
  map.name = name;
  map.key = map.value = facts_.types().void_type();
  map.span = use;
  state.id = maps_.add(std::move(map));
  round_.has_changed = true;
  return state;
}

void Maps::take_assumed(const std::string& name, MapState& state) {
  if (const auto assumed = assumed_.find(name); assumed != assumed_.end()) state.value = assumed->second;
}

bool Maps::has_unset() const {
  return std::ranges::any_of(states_, [](const auto& each) { return each.second.is_used && !each.second.value.type; });
}

std::map<std::string, Slot> Maps::values() const {
  std::map<std::string, Slot> out;
  for (const auto& [name, state] : states_)
    if (state.value.type) out.emplace(name, state.value);
  return out;
}

std::vector<std::string> Maps::assigned_names() const {
  std::vector<std::string> out;
  for (const auto& [name, state] : states_)
    if (state.value.type) out.push_back(name);
  return out;
}

bool Maps::is_keyed(ExprId expr) const {
  const auto* map = facts_.ast().get<syntax::Map>(expr);
  const auto found = map ? states_.find(map->name) : states_.end();
  return found != states_.end() && !found->second.key.empty();
}

TypeId Maps::key_type(const MapState& map) {
  types::Types& types = facts_.types();
  if (map.key.empty()) return types.void_type();
  std::vector<TypeId> elements;
  for (const Slot& slot : map.key) elements.push_back(slot.type ? slot.type : types.int64());
  return elements.size() == 1 ? elements[0] : types.tuple(elements);
}

TypeId Maps::value_type(const MapState& map) { return map.value.type ? map.value.type : facts_.types().int64(); }

void Maps::use_as_scalar(MapState& map, Span span) {
  if (!map.scalar_span.valid()) map.scalar_span = span;
  if (map.key.empty()) return;
  reporter_.error_with_note("map-needs-key", span, "`" + name(map) + "` has keys, but is used without one here",
                            "write `" + name(map) + "[KEY]`", {map.keyed_span, "used with a key here"});
}

void Maps::use_key(MapState& map, const std::vector<ExprId>& parts, Span span) {
  const TypeId first = parts.size() == 1 ? facts_.type(parts[0]) : TypeId{};
  if (first && facts_.type_of(first).kind == Kind::kTuple) {
    std::vector<TypeId> elements;
    for (const types::Member& member : facts_.type_of(first).members) elements.push_back(member.type);
    return use_key_types(map, elements, span);
  }
  if (!open_key(map, parts.size(), span)) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TypeId before = map.key[i].type;
    use_func_as_symbol(facts_, parts[i], before);
    const TypeId given = facts_.type(parts[i]);
    if (!add_key_part(map.key[i], given, facts_.constant(parts[i]), facts_.is_literal(parts[i])))
      key_mismatch(map, before, given, facts_.span(parts[i]));
    if (map.key[i].type != before) round_.has_changed = true;
  }
}

void Maps::use_key_types(MapState& map, const std::vector<TypeId>& types, Span span) {
  if (!open_key(map, types.size(), span)) return;
  for (size_t i = 0; i < types.size(); ++i) {
    const TypeId before = map.key[i].type;
    if (!add_key_part(map.key[i], types[i], {}, false)) key_mismatch(map, before, types[i], span);
    if (map.key[i].type != before) round_.has_changed = true;
  }
}

// Gives the map keys of `count` parts; false if it cannot have them.
bool Maps::open_key(MapState& map, size_t count, Span span) {
  if (map.scalar_span.valid() && map.key.empty()) {
    reporter_.error_with_note("map-has-no-key", span, "`" + name(map) + "` has no keys, but is used with one here", {},
                              {map.scalar_span, "used without a key here"});
    return false;
  }
  if (!map.keyed_span.valid()) map.keyed_span = span;
  if (map.key.empty()) {
    map.key.resize(count);
    round_.has_changed = true;
  }
  if (map.key.size() == count) return true;
  reporter_.error_with_note("key-mismatch", span,
                            "`" + name(map) + "` has keys of " + std::to_string(map.key.size()) +
                                (map.key.size() == 1 ? " value, " : " values, ") + std::to_string(count) +
                                (count == 1 ? " is" : " are") + " given here",
                            {}, {map.keyed_span, "first used here"});
  return false;
}

// Names of probes and functions are kept as numbers. Where one is a part of a key, constant text stands for the probe
// or function of that name. If the text came first, the part becomes a name now, and the next round checks the texts.
bool Maps::add_key_part(Slot& part, TypeId type, const Constant& constant, bool is_literal) {
  const auto is_name = [&](TypeId id) { return program::is_probe_name(facts_.type_of(id).kind); };
  if (is_name(part.type) && std::holds_alternative<std::string>(constant)) return true;
  if (is_name(type) && facts_.type_of(part.type).kind == Kind::kString) part = {};
  if (becomes_symbol(facts_, part.type, type)) part = {};
  return part.add(facts_.types(), type, constant, is_literal);
}

void Maps::key_mismatch(const MapState& map, TypeId held, TypeId given, Span span) {
  const auto [now, other] = facts_.show_both(held, given);
  reporter_.error_with_note("key-mismatch", span,
                            "the key of `" + name(map) + "` is " + now + ", and cannot be " + other, {},
                            {map.keyed_span, "first used here"});
}

void Maps::add_value(MapState& map, ExprId value, Span span) {
  use_func_as_symbol(facts_, value, map.value.type);
  add_type(map, facts_.type(value), facts_.constant(value), facts_.is_literal(value) || has_argument_of_any_sign(value),
           span);
}

// Whether the expression is a sum, an extreme or an average of a number that both signs hold: a constant, or one of
// fewer than 64 bits without a sign.
bool Maps::has_argument_of_any_sign(ExprId value) const {
  const auto* call = facts_.ast().get<syntax::Call>(value);
  if (!call || call->arguments.size() != 1 || !facts_.type(value)) return false;
  const Kind kind = facts_.type_of(facts_.type(value)).kind;
  const bool has_sign =
      kind == Kind::kSum || kind == Kind::kMin || kind == Kind::kMax || kind == Kind::kAvg || kind == Kind::kStats;
  const ExprId argument = call->arguments[0];
  if (!has_sign || !facts_.type(argument)) return false;
  const types::Type& type = facts_.type_of(facts_.type(argument));
  const auto number = facts_.integer(argument);
  const bool is_constant = number && *number >= 0;
  return is_constant || (!type.is_signed && type.size_bytes < 8);
}

void Maps::add_type(MapState& map, TypeId type, const Constant& constant, bool is_literal, Span span) {
  if (!type) return;
  const TypeId before = map.value.type;
  if (facts_.type_of(type).kind == Kind::kVoid) {
    reporter_.error("no-value", span, "there is no value to assign to `" + name(map) + "`");
    return;
  }
  if (becomes_symbol(facts_, map.value.type, type)) map.value = {};
  if (!map.value.add(facts_.types(), type, constant, is_literal)) {
    const auto [now, other] = facts_.show_both(before, type);
    const std::string what = now == other ? "one with other arguments" : other;
    reporter_.error_with_note("type-mismatch", span, "`" + name(map) + "` holds " + now + ", and cannot hold " + what,
                              {}, {map.value_span, "first assigned here"});
    return;
  }
  if (!map.value_span.valid()) map.value_span = span;
  if (map.value.loses_sign && round_.is_final && !std::exchange(map.value.is_sign_reported, true))
    reporter_.warning(
        "mixed-signs", span,
        "`" + name(map) + "` holds signed and unsigned values, so it becomes " + facts_.show(map.value.type),
        "cast one of them");
  if (map.value.type != before) round_.has_changed = true;
}

void Maps::warn_of_unused() {
  for (const auto& [name, state] : states_)
    if (!state.is_used) reporter_.warning("unused-map", maps_[state.id].span, "nothing uses `" + name + "`");
}

// Kernels without long keys get shorter strings in them, of equal shares. Cut strings are counted, as those that do not
// fit max_strlen. The key stays as it is if that is not enough.
TypeId Maps::shortened(TypeId key, uint32_t share_bytes) {
  types::Types& types = facts_.types();
  const types::Type type = types[key];
  if (type.kind == Kind::kString) return type.count > share_bytes ? types.string(share_bytes, true) : key;
  if (type.kind != Kind::kTuple) return key;
  std::vector<TypeId> elements;
  for (const types::Member& member : type.members) elements.push_back(shortened(member.type, share_bytes));
  return types.tuple(elements);
}

TypeId Maps::fitting_key(TypeId key) {
  constexpr uint32_t kLeastShare = 32, kStep = 8;
  for (uint32_t share = kernel::kShortKeyBytes; share >= kLeastShare; share -= kStep)
    if (const TypeId shorter = shortened(key, share); facts_.type_of(shorter).size_bytes <= kernel::kShortKeyBytes)
      return shorter;
  return key;
}

namespace {

constexpr uint64_t kMostRecentBytes = 63 * 1024;            // of a key: has to fit a record (program/ring.h)
constexpr uint64_t kDefaultRecentBytes = 64 * 1024 * 1024;  // of all keys, which are allocated at once
constexpr uint64_t kMostDeclaredBytes = uint64_t{1} << 30;  // of all keys of a map that is declared
constexpr uint64_t kMostBytesOfCpus = 256 * 1024 * 1024;    // of a map without keys

std::string megabytes(uint64_t bytes) { return std::to_string((bytes + 1'000'000 - 1) / 1'000'000) + " MB"; }

}  // namespace

// One copy serves all CPUs, and where the script does not say otherwise, the keys that were not used for longest make
// room for new ones. Such a map is allocated at once.
void Maps::finish_recent(CheckedMap& map, const MapState& state, uint64_t default_max_entries, kernel::Kernel& kernel) {
  using program::MapKind;
  const types::Type& type = facts_.type_of(map.value);
  const uint64_t size = types::RecentLayout(type.count, facts_.type_of(type.element).size_bytes).size_bytes;
  const std::string hint = "keep fewer values (and keys), or shorter strings: `str(x, 64)`";
  const auto refuse = [&](const std::string& what) {
    reporter_.error("recent-too-large", state.value_span, what, hint);
  };
  const bool is_lru = !map.is_declared || map.kind == MapKind::kLruHash || map.kind == MapKind::kLruPercpuHash;
  map.kind = is_lru ? MapKind::kLruHash : MapKind::kHash;
  if (facts_.type_of(map.key).kind == Kind::kVoid) {
    const uint64_t total = size * std::max(kernel.cpu_count(), 1u);
    if (total > kMostBytesOfCpus)
      refuse("`" + map.name + "` would take " + megabytes(total) + " on " + std::to_string(kernel.cpu_count()) +
             " CPUs, and may take " + megabytes(kMostBytesOfCpus));
    return;
  }
  if (size > kMostRecentBytes)
    return refuse("a key of `" + map.name + "` would take " + std::to_string(size) + " bytes, and may take " +
                  std::to_string(kMostRecentBytes));
  if (!map.is_declared)
    map.max_entries = std::min(default_max_entries, std::max<uint64_t>(kDefaultRecentBytes / size, 1));
  if (map.is_declared && size * map.max_entries > kMostDeclaredBytes)
    refuse("`" + map.name + "` would take " + megabytes(size * map.max_entries) + " for " +
           std::to_string(map.max_entries) + " keys, and may take " + megabytes(kMostDeclaredBytes));
}

void Maps::finish(uint64_t default_max_entries, kernel::Kernel& kernel) {
  for (auto& [name, state] : states_) {
    CheckedMap& map = maps_[state.id];
    map.key = key_type(state);
    if (facts_.type_of(map.key).size_bytes > kernel::kShortKeyBytes && !kernel.has(kernel::Feature::kLongKeys))
      map.key = fitting_key(map.key);
    map.value = state.value.type ? state.value.type : facts_.types().void_type();
    if (facts_.type_of(map.value).kind == Kind::kRecent) {
      finish_recent(map, state, default_max_entries, kernel);
      continue;
    }
    const bool per_cpu = types::is_aggregation(facts_.type_of(map.value));
    if (!map.is_declared) {
      map.max_entries = default_max_entries;
      map.kind = per_cpu ? program::MapKind::kPercpuHash : program::MapKind::kHash;
    } else if (per_cpu) {
      if (map.kind == program::MapKind::kHash) map.kind = program::MapKind::kPercpuHash;
      if (map.kind == program::MapKind::kLruHash) map.kind = program::MapKind::kLruPercpuHash;
    }
  }
}

}  // namespace espy::check
