// Dispatches expressions to the parts of the checker, and checks how their values are used.
#pragma once

#include "check/facts.h"
#include "check/reporter.h"

namespace espy::check {

class Blocks;
class Calls;
class Casts;
class Constants;
class ContextFields;
class MapExpressions;
class Members;
class Names;
class UnaryOperators;
class BinaryOperators;
class Variables;

// The parts that check one kind of expression each. They hold references to `Expressions` for their operands.
struct ExpressionParts {
  ContextFields& context_fields;
  Blocks& blocks;
  Calls& calls;
  Casts& casts;
  Constants& constants;
  MapExpressions& maps;
  Members& members;
  Names& names;
  UnaryOperators& unary_operators;
  BinaryOperators& binary_operators;
  Variables& variables;
};

// Every function notes what it finds in the facts and returns the expression's type, invalid if that is unknown.
class Expressions {
 public:
  Expressions(Facts& facts, Reporter& reporter, ExpressionParts parts)
      : facts_(facts), reporter_(reporter), parts_(parts) {}

  // Any expression; void if it has no value.
  TypeId expr(ExprId id);
  // One that must have a value. An aggregation stays one: the value of a map, or the call of `count()`.
  TypeId value(ExprId id);
  // One that must have a value; an aggregation in a map is read as the number it stands for.
  // `is_printed`: it may be an aggregation that is not one number, such as a histogram.
  TypeId read_value(ExprId id, bool is_printed = false);
  // The second half of read_value().
  void read_aggregation(ExprId id, bool is_printed = false);
  // One that must be an integer.
  TypeId number(ExprId id);
  // One that must be true or false: an integer, a pointer or a string.
  void condition(ExprId id);

 private:
  static constexpr int kMaxDepth = 400;  // the parser's own limit is lower; macros and #defines nest further

  TypeId dispatch(ExprId id);

  Facts& facts_;
  Reporter& reporter_;
  ExpressionParts parts_;
  int depth_ = 0;
};

}  // namespace espy::check
