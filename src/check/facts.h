// The side tables of the unit being checked: what is known of each expression.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/checked.h"
#include "check/fold_constants.h"

namespace espy::check {

using source::Span;

class Facts {
 public:
  Facts(Checked& checked, types::Types& types) : checked_(checked), types_(types) {}

  void enter_unit(size_t index);
  Unit& unit() { return *unit_; }
  const Unit& unit() const { return *unit_; }
  size_t unit_index() const { return unit_index_; }
  Variable& variable(size_t unit, VariableId id) { return checked_.units[unit].variables[id]; }
  // An empty one in the unit of a function.
  const program::Probe& first_probe() const;

  types::Types& types() { return types_; }
  const syntax::Ast& ast() const { return checked_.ast; }
  Span span(ExprId id) const { return checked_.ast[id].span; }

  ExprFact& fact(ExprId id) { return unit_->exprs[id]; }
  TypeId type(ExprId id) const { return unit().fact(id).type; }
  const Constant& constant(ExprId id) const { return unit().fact(id).constant; }
  bool is_constant(ExprId id) const { return constant(id).index() != 0; }
  std::optional<int64_t> integer(ExprId id) const { return constant_as<int64_t>(constant(id)); }
  std::optional<std::string> text(ExprId id) const { return constant_as<std::string>(constant(id)); }
  // The integer constant with its sign; nullopt if the expression is not one.
  std::optional<Number> number(ExprId id) const;

  // True for a constant of the type that its value alone gives it, which may therefore take another type.
  bool is_literal(ExprId id) const;
  // True for an integer literal, or arithmetic on such literals, without a cast. It is computed exactly, as a
  // mathematical number; with a cast it is computed as a variable of that type would be, by the optimizer.
  bool is_number_literal(ExprId id) const;

  // Make the expression a constant, and return its type.
  TypeId set_number(ExprId id, Number value);
  TypeId set_text(ExprId id, std::string text);

  // An invalid id counts as void.
  TypeId known(TypeId id) const { return id ? id : types_.void_type(); }
  const types::Type& type_of(TypeId id) const { return types_[known(id)]; }
  // Two types as diagnostics show them, with where each is defined if their names are the same.
  std::pair<std::string, std::string> show_both(TypeId a, TypeId b) const;
  // The type as diagnostics show it: "`int64`".
  std::string show(TypeId id) const { return "`" + types::to_string(types_, known(id)) + "`"; }

 private:
  bool has_cast(ExprId id) const;

  Checked& checked_;
  types::Types& types_;
  Unit* unit_ = nullptr;
  size_t unit_index_ = 0;
};

}  // namespace espy::check
