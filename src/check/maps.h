// The types of the keys and values of maps, each wide enough for all uses in all units.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/facts.h"
#include "check/reporter.h"
#include "check/type_rules.h"
#include "kernel/kernel.h"

namespace espy::check {

struct MapState {
  ScriptMapId id;
  std::vector<Slot> key;  // empty for a scalar, or before the first use
  Slot value;
  Span keyed_span, scalar_span, value_span;  // first uses, invalid if none
  bool is_used = false;                      // else only declared
};

class Maps {
 public:
  // `maps` holds the declared maps; others are added where they are first used.
  Maps(Facts& facts, Reporter& reporter, Round& round, Table<ScriptMapId, CheckedMap>& maps);

  // Returns the state of a map, which is added if `use` is its first use.
  MapState& find_or_add(const std::string& name, Span use);
  // Returns the state of a map. Requires that the map is in the table.
  MapState& state(ScriptMapId id) { return states_.find(maps_[id].name)->second; }
  bool contains(std::string_view name) const { return states_.contains(name); }
  const std::string& name(const MapState& map) const { return maps_[map.id].name; }
  // Returns the names of maps with a value, sorted.
  std::vector<std::string> assigned_names() const;
  // Returns true if `expr` is a whole map with keys.
  bool is_keyed(ExprId expr) const;
  // Returns the type of the key: a tuple if it has several parts, void for a scalar.
  TypeId key_type(const MapState& map);
  // Returns the type of the value; int64 before the first assignment.
  TypeId value_type(const MapState& map);

  // Whether something uses a map to which nothing is assigned.
  bool has_unset() const;
  // The types of values, by name, of the maps to which something is assigned.
  std::map<std::string, Slot> values() const;
  // Takes these types for the values of maps that are used.
  void assume(std::map<std::string, Slot> values) { assumed_ = std::move(values); }

  void use_as_scalar(MapState& map, Span span);
  // Widens the key to hold the values of `parts`. Requires that these are checked.
  void use_key(MapState& map, const std::vector<ExprId>& parts, Span span);
  // Widens the value to hold `value`, which must be checked, or a value of `type`.
  void add_value(MapState& map, ExprId value, Span span);
  void add_type(MapState& map, TypeId type, const Constant& constant, bool is_literal, Span span);

  // Warns of each map that is declared and never used.
  void warn_of_unused();
  // Writes the final types to the table.
  void finish(uint64_t default_max_entries, kernel::Kernel& kernel);

 private:
  void finish_recent(CheckedMap& map, const MapState& state, uint64_t default_max_entries, kernel::Kernel& kernel);
  void take_assumed(const std::string& name, MapState& state);
  bool open_key(MapState& map, size_t count, Span span);
  void use_key_types(MapState& map, const std::vector<TypeId>& types, Span span);
  bool has_argument_of_any_sign(ExprId value) const;
  bool add_key_part(Slot& part, TypeId type, const Constant& constant, bool is_literal);
  TypeId shortened(TypeId key, uint32_t share_bytes);
  TypeId fitting_key(TypeId key);
  void key_mismatch(const MapState& map, TypeId held, TypeId given, Span span);

  Facts& facts_;
  Reporter& reporter_;
  Round& round_;
  Table<ScriptMapId, CheckedMap>& maps_;
  std::map<std::string, MapState, std::less<>> states_;  // by name
  std::map<std::string, Slot> assumed_;                  // by name
};

}  // namespace espy::check
