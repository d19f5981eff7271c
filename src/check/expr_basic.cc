// Expressions: literals, names, variables, maps, composites.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/analyzer.h"
#include "check/hoisting.h"
#include "program/probe_names.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

namespace {
constexpr int kDeepest = 400;  // nesting of expressions; the parser's own limit is lower
}

TypeId Analyzer::expr(ExprId id) {
  if (!id) return {};
  ExprFact& out = fact(id);
  if (++depth_ > kDeepest) {
    error("too-deep", span(id), "this is nested too deeply");
    --depth_;
    return {};
  }
  out.constant = {};
  out.is_reduced = false;
  const TypeId found = std::visit([&](const auto& node) { return visit(id, node); }, ast()[id].node);
  --depth_;
  // Whether another round is needed is for variables and maps to say: all else follows from them.
  return fact(id).type = found;
}

TypeId Analyzer::value(ExprId id) {
  const TypeId found = expr(id);
  if (found && type_of(found).kind == Kind::kVoid) {
    // A map that nothing is assigned to yet has no type of its own: it reads as 0.
    if (fact(id).map.valid()) return fact(id).type = types().int64();
    error("no-value", span(id), "this has no value");
    return fact(id).type = {};
  }
  return found;
}

void Analyzer::read_aggregation(ExprId id) {
  if (!id) return;
  ExprFact& out = fact(id);
  if (out.builtin && out.builtin->kind == spec::BuiltinKind::kAggregation) {
    error("aggregation-not-assigned", span(id), "an aggregation can only be assigned to a map");
    out.type = {};
    return;
  }
  if (!out.type || !out.map.valid() || !types::is_aggregation(type_of(out.type))) return;
  const TypeId number_type = reduced_type(types(), out.type);
  out.is_reduced = true;
  if (number_type) out.type = number_type;
}

TypeId Analyzer::number(ExprId id) {
  value(id);
  read_aggregation(id);
  const TypeId found = type(id);
  if (found && !is_int_like(type_of(found)))
    error("not-a-number", span(id), "this must be an integer, not " + show(found));
  return found;
}

std::optional<Number> Analyzer::number_of(ExprId id) {
  const auto known = integer(id);
  if (!known || !type(id)) return std::nullopt;
  const types::Type& t = type_of(type(id));
  return Number{*known, !t.is_signed && *known < 0};
}

bool Analyzer::is_literal(ExprId id) {
  if (!is_constant(id) || !type(id)) return false;
  const auto known = number_of(id);
  if (!known || type_of(type(id)).kind != Kind::kInt) return true;
  return type(id) == (known->is_unsigned ? types().uint64() : smallest_signed(types(), known->bits));
}

TypeId Analyzer::integer_constant(ExprId id, Number value) {
  fact(id).constant = value.bits;
  if (value.is_unsigned) return literal_type(types(), value.as_unsigned());
  return smallest_signed(types(), value.bits);
}

TypeId Analyzer::string_constant(ExprId id, std::string text) {
  const auto capacity = static_cast<uint32_t>(text.size() + 1);
  fact(id).constant = std::move(text);
  return types().string(capacity);
}

TypeId Analyzer::visit(ExprId, const ErrorExpr&) { return {}; }

TypeId Analyzer::visit(ExprId id, const IntegerLiteral& node) {
  fact(id).constant = static_cast<int64_t>(node.value);
  return literal_type(types(), node.value);
}

TypeId Analyzer::visit(ExprId id, const BoolLiteral& node) {
  fact(id).constant = int64_t{node.value};
  return types().bool_type();
}

TypeId Analyzer::visit(ExprId id, const StringLiteral& node) { return string_constant(id, node.value); }

TypeId Analyzer::visit(ExprId id, const syntax::Variable& node) {
  const VariableId found = find_variable(node.name);
  if (!found) {
    std::vector<std::string> names;
    for (const Scope& scope : scopes_)
      for (const auto& [name, unused] : scope.names) names.emplace_back(name);
    error("unset-variable", span(id), "`" + node.name + "` is used before anything is assigned to it",
          ended_variables_.contains(node.name)
              ? "the block that assigned it has ended: write `let " + node.name + ";` before that"
              : did_you_mean(node.name, names));
    return {};
  }
  const VariableState& state = variables_[unit_index_][found.index];
  if (!state.is_assigned && loop_depth_ <= state.loop_depth)
    error("unset-variable", span(id), "`" + node.name + "` is used before anything is assigned to it");
  fact(id).variable = found;
  return unit_->variables[found].type;
}

TypeId Analyzer::visit(ExprId id, const Map& node) {
  MapState& state = map_state(node.name, span(id));
  fact(id).map = state.id;
  use_as_scalar(state, span(id));
  warn_if_unset(state, node.name, span(id));
  return state.value.type ? state.value.type : types().int64();
}

TypeId Analyzer::visit(ExprId id, const Positional& node) {
  const auto& given = config().positional;
  if (node.index == 0 || node.index > given.size()) return integer_constant(id, {0});
  const std::string& text = given[node.index - 1];
  if (const auto number = parse_int(text)) return integer_constant(id, {*number, *number < 0 && text[0] != '-'});
  return string_constant(id, text);
}

TypeId Analyzer::visit(ExprId id, const PositionalCount&) {
  return integer_constant(id, {static_cast<int64_t>(config().positional.size())});
}

TypeId Analyzer::visit(ExprId id, const Index& node) {
  if (ast().get<Map>(node.base) && !is_part_of_scalar(node)) {
    MapState* state = map_target(id);
    warn_if_unset(*state, ast().get<Map>(node.base)->name, span(node.base));
    return state->value.type ? state->value.type : types().int64();
  }
  const TypeId base = value(node.base);
  for (const ExprId index : node.indices) number(index);
  const bool is_unknown_yet = ast().get<Map>(node.base) && !is_final_round_ && type_of(base).kind == Kind::kInt;
  if (!base || is_unknown_yet) return {};
  if (node.indices.size() != 1) {
    error("bad-index", span(id), "one index is wanted here");
    return {};
  }
  return element(id, base, node.indices[0]);
}

TypeId Analyzer::visit(ExprId, const TypeExpr& node) {
  type_name(node.type);
  return types().void_type();
}

TypeId Analyzer::visit(ExprId id, const Typeinfo&) {
  error("no-value", span(id), "`typeinfo` has members, but no value of its own",
        "ask for `.base_type`, `.full_type` or `.btf_id`");
  return {};
}

// typeinfo(x).base_type: a constant.
TypeId Analyzer::type_question(ExprId id, const Typeinfo& node, const std::string& name, Span at) {
  const auto* as_type = ast().get<TypeExpr>(node.operand);
  TypeId found = as_type ? type_name(as_type->type) : value(node.operand);
  if (!as_type && ast().get<Map>(node.operand)) found = type(node.operand);
  if (!found) return {};
  if (name == "base_type") {
    const Kind kind = type_of(found).kind;
    return string_constant(id, program::is_probe_name(kind) ? "string" : std::string(types::kind_word(kind)));
  }
  if (name == "full_type") return string_constant(id, types::to_string(types(), found));
  if (name == "btf_id") {
    const auto location = kernel().btf_location(types(), found);
    return integer_constant(id, {location ? int64_t{location->btf_id} : 0});
  }
  error("unknown-member", at, "`typeinfo` has no member `" + name + "`",
        did_you_mean(name, {"base_type", "full_type", "btf_id"}));
  return {};
}

TypeId Analyzer::visit(ExprId id, const Comptime& node) {
  const TypeId found = value(node.operand);
  fact(id).constant = constant(node.operand);
  if (found && !is_constant(node.operand))
    error("not-constant", span(node.operand), "this is not known at compile time");
  return found;
}

TypeId Analyzer::visit(ExprId, const Tuple& node) {
  std::vector<TypeId> elements;
  for (const ExprId element : node.elements) {
    value(element);
    read_aggregation(element);
    elements.push_back(type(element));
  }
  if (std::ranges::any_of(elements, [](TypeId t) { return !t; })) return {};
  return types().tuple(elements);
}

TypeId Analyzer::visit(ExprId id, const syntax::Record& node) {
  std::vector<types::Member> members;
  bool complete = true;
  for (size_t i = 0; i < node.values.size(); ++i) {
    value(node.values[i]);
    read_aggregation(node.values[i]);
    const TypeId found = type(node.values[i]);
    complete &= found.valid();
    const std::string& name = node.names[i];
    if (std::ranges::any_of(members, [&](const auto& m) { return m.name == name; }))
      error("repeated-name", span(id), "the record has two elements named `" + name + "`");
    members.push_back({.name = name, .type = found});
  }
  return complete ? types().record(std::move(members)) : TypeId{};
}

TypeId Analyzer::visit(ExprId block, const Block& node) {
  scopes_.emplace_back();
  bool ended = false;
  for (size_t i = 0; i < node.statements.size(); ++i) {
    const StmtId id = node.statements[i];
    if (ended) {
      warning("unreachable", ast()[id].span, "this is never reached");
      ended = false;
    }
    unit_->stmts[id].hoisted.clear();
    for (const ExprId target : variables_to_hoist(ast(), node, i)) {
      const std::string& name = ast().get<syntax::Variable>(target)->name;
      if (!find_variable(name)) unit_->stmts[id].hoisted.push_back(declare_at(target, name));
    }
    statement(id);
    const StmtNode& what = ast()[id].node;
    ended = std::holds_alternative<Break>(what) || std::holds_alternative<Continue>(what) ||
            std::holds_alternative<Return>(what);
  }
  TypeId found = types().void_type();
  if (node.value) {
    found = expr(node.value);
    read_aggregation(node.value);
    found = type(node.value);
    // Macros for constants come out so.
    if (node.statements.empty()) fact(block).constant = constant(node.value);
  }
  for (const auto& [name, variable] : scopes_.back().names) ended_variables_.emplace(name);
  scopes_.pop_back();
  return found;
}

TypeId Analyzer::visit(ExprId id, const If& node) {
  condition(node.condition);
  if (node.is_comptime) {
    const auto known = integer(node.condition);
    if (!known) {
      if (type(node.condition)) error("not-constant", span(node.condition), "this is not known at compile time");
      return {};
    }
    fact(id).branch_taken = *known != 0;
    const ExprId taken = *known != 0 ? node.then_branch : node.else_branch;
    return taken ? expr(taken) : types().void_type();
  }
  const TypeId a = expr(node.then_branch);
  const TypeId b = node.else_branch ? expr(node.else_branch) : types().void_type();
  const TypeId void_type = types().void_type();
  if (!a || !b) return {};
  if (a == void_type || b == void_type) return void_type;
  const auto both = unify(types(), a, b);
  return both ? *both : void_type;
}

TypeId Analyzer::branches(ExprId id, ExprId a, ExprId b) {
  const TypeId left = type(a);
  const TypeId right = type(b);
  if (!left || !right) return {};
  Slot slot;
  if (slot.add(types(), left, constant(a), is_number_literal(a)) &&
      slot.add(types(), right, constant(b), is_number_literal(b)))
    return slot.type;
  if (type_of(left).kind == Kind::kVoid && type_of(right).kind == Kind::kVoid) return left;
  error("type-mismatch", span(id),
        "the two sides are " + show(left) + " and " + show(right) + ", which do not go together");
  return {};
}

TypeId Analyzer::visit(ExprId id, const Ternary& node) {
  condition(node.condition);
  const ExprId then_value = node.then_value ? node.then_value : node.condition;
  if (node.then_value) expr(node.then_value), read_aggregation(node.then_value);
  expr(node.else_value);
  read_aggregation(node.else_value);
  const TypeId found = branches(id, then_value, node.else_value);
  if (const auto known = integer(node.condition); known && found) {
    fact(id).constant = constant(*known ? then_value : node.else_value);
  }
  return found;
}

TypeId Analyzer::visit(ExprId id, const Sizeof& node) {
  const auto* as_type = ast().get<TypeExpr>(node.operand);
  const TypeId found = as_type ? type_name(as_type->type) : value(node.operand);
  if (!found) return {};
  if (type_of(found).kind == Kind::kStruct && !type_of(found).complete) kernel().complete(types(), found);
  integer_constant(id, {type_of(found).size_bytes});
  return types().uint64();
}

TypeId Analyzer::visit(ExprId id, const Offsetof& node) {
  const auto* as_type = ast().get<TypeExpr>(node.operand);
  TypeId at = as_type ? type_name(as_type->type) : value(node.operand);
  uint64_t offset = 0;
  for (const std::string& name : node.path) {
    if (!at) return {};
    if (type_of(at).kind == Kind::kStruct && !type_of(at).complete) kernel().complete(types(), at);
    const auto found = types::find_member(types(), at, name);
    if (!found) {
      error("unknown-member", node.path_span, show(at) + " has no member `" + name + "`");
      return {};
    }
    offset += found->offset_bits / 8;
    at = found->type;
  }
  integer_constant(id, {static_cast<int64_t>(offset)});
  return types().uint64();
}

}  // namespace espy::check
