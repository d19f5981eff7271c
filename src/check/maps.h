// Maps: the types of keys and values that hold all uses, in all units.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/facts.h"
#include "check/reporter.h"
#include "check/type_rules.h"

namespace espy::check {

struct MapState {
  ScriptMapId id;
  std::vector<Slot> key;  // empty: scalar, as far as is known
  Slot value;
  Span keyed_span, scalar_span, value_span;  // first uses, invalid if none
};

class Maps {
 public:
  // `maps` holds the declared maps; others are added where they are first used.
  Maps(Facts& facts, Reporter& reporter, Round& round, Table<ScriptMapId, CheckedMap>& maps);

  MapState& find_or_add(const std::string& name, Span use);
  // The state of a map that is in the table.
  MapState& state(ScriptMapId id) { return states_.find(maps_[id].name)->second; }
  bool contains(std::string_view name) const { return states_.contains(name); }
  const std::string& name(const MapState& map) const { return maps_[map.id].name; }
  // Maps with a value, sorted.
  std::vector<std::string> assigned_names() const;
  // True if `expr` is a whole map that has keys.
  bool is_keyed(ExprId expr) const;
  // One type; a tuple for several; void for a scalar.
  TypeId key_type(const MapState& map);
  // int64 while nothing is assigned.
  TypeId value_type(const MapState& map);

  void use_as_scalar(MapState& map, Span span);
  // Widens the key so that it holds the values of `parts`, which are checked already.
  void use_key(MapState& map, const std::vector<ExprId>& parts, Span span);
  // Widens the value so that it holds that of `value`, which is checked already, or a value of `type`.
  void add_value(MapState& map, ExprId value, Span span);
  void add_type(MapState& map, TypeId type, const Constant& constant, bool is_literal, Span span);

  // Writes the final types to the table.
  void finish(uint64_t default_max_entries);

 private:
  bool open_key(MapState& map, size_t count, Span span);
  void use_key_types(MapState& map, const std::vector<TypeId>& types, Span span);
  bool add_key_part(Slot& part, TypeId type, const Constant& constant, bool is_literal);
  void key_mismatch(const MapState& map, TypeId held, TypeId given, Span span);

  Facts& facts_;
  Reporter& reporter_;
  Round& round_;
  Table<ScriptMapId, CheckedMap>& maps_;
  std::map<std::string, MapState, std::less<>> states_;  // by name
};

}  // namespace espy::check
