// Assignments: `$x = 1`, `@x[KEY] += 1`.
#pragma once

#include "check/binary_operators.h"
#include "check/expressions.h"
#include "check/map_expressions.h"
#include "check/maps.h"
#include "check/variables.h"

namespace espy::check {

class Assignments {
 public:
  Assignments(Facts& facts, Reporter& reporter, Expressions& expressions, Variables& variables, Maps& maps,
              MapExpressions& map_expressions, BinaryOperators& operators)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        variables_(variables),
        maps_(maps),
        map_expressions_(map_expressions),
        operators_(operators) {}

  // `target` must be a Variable.
  void to_variable(ExprId target, const syntax::Assign& node);
  // `target` must be a Map, or an Index of one.
  void to_map(ExprId target, const syntax::Assign& node);

 private:
  // The type of `old OP value` for `target OP= value`; invalid, with an error, if there is none.
  TypeId combine(const syntax::Assign& node, TypeId old);
  bool is_single_value(const syntax::Assign& node);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Maps& maps_;
  MapExpressions& map_expressions_;
  BinaryOperators& operators_;
};

}  // namespace espy::check
