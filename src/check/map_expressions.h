// Expressions that name a map or an element of one: `@x`, `@x[KEY]`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "check/expressions.h"
#include "check/maps.h"

namespace espy::check {

class MapExpressions {
 public:
  MapExpressions(Facts& facts, Reporter& reporter, const Round& round, Expressions& expressions, Maps& maps,
                 const Table<ProbeId, program::Probe>& probes);

  // A map that is read without a key.
  TypeId scalar(ExprId id, const syntax::Map& node);
  // True for an element of a map; false for one of an array, also of an array that a scalar map holds.
  bool is_element(const syntax::Index& node);
  // An element that is read.
  TypeId element(ExprId id, const syntax::Index& node);
  // A map or element that is assigned to; checks the key. Null if `target` is neither.
  MapState* target(ExprId target);
  // A whole map as an argument, or an element if `allows_element`: clear(@m), delete(@m[k]). Null for others.
  MapState* argument(ExprId expr, bool allows_element);
  // Checks the expressions of a key, and widens the map's key so that it holds their values.
  void use_key(MapState& map, const std::vector<ExprId>& indices, Span span);
  // Reports a constant in the key of `target` that should name a probe or function, and names none of the script's.
  // Such a key can be looked for, but not be assigned to: names are kept as numbers of those that exist.
  void refuse_unknown_names(const MapState& map, ExprId target);

 private:
  void find_whole_maps();
  const std::vector<ExprId>& key_parts(const std::vector<ExprId>& indices) const;
  void warn_if_unset(const MapState& map, const std::string& name, Span span);

  Facts& facts_;
  Reporter& reporter_;
  const Round& round_;
  Expressions& expressions_;
  Maps& maps_;
  const Table<ProbeId, program::Probe>& probes_;
  std::set<std::string, std::less<>> whole_maps_;  // assigned without a key, and never with one
};

}  // namespace espy::check
