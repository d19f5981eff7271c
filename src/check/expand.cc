// A call is replaced in place: its node becomes a Block with a copy of the macro's body. Copies are new nodes at the
// end of the tree, so the loop over all calls reaches those inside a body later; the chain of expansions in their spans
// shows recursion.
#include "check/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/walk.h"

namespace espy::check {

using namespace syntax;
using source::ExpansionId;
using source::Span;

namespace {

// The substitutions in one copy of a body.
struct Substitution {
  std::map<std::string, ExprId> expressions;   // plain parameters
  std::map<std::string, std::string> renamed;  // `$` and `@` parameters
  ExpansionId expansion;
  bool is_argument = false;  // copies an argument: names and spans stay as they are
};

size_t node_count(const Ast& ast) { return ast.exprs.size() + ast.stmts.size() + ast.type_names.size(); }

// Copies no more once the tree has more than `most` nodes.
class Copier {
 public:
  Copier(Ast& ast, const Substitution& with, size_t most) : ast_(ast), with_(with), most_(most) {}

  ExprId expr(ExprId id) {
    if (!id) return id;
    if (node_count(ast_) > most_) return ast_.exprs.add({at(ast_[id].span), ErrorExpr{}});
    if (const auto* name = ast_.get<Name>(id)) {
      if (const auto found = with_.expressions.find(name->name); found != with_.expressions.end()) {
        const Substitution nothing{.is_argument = true};
        return Copier(ast_, nothing, most_).expr(found->second);
      }
    }
    Expr out = ast_[id];
    out.span = at(out.span);
    std::visit([this](auto& node) { fix(node); }, out.node);
    return ast_.exprs.add(std::move(out));
  }

 private:
  Span at(Span span) const {
    if (!with_.is_argument) span.expansion = with_.expansion;
    return span;
  }
  std::string name(const std::string& old) const {
    if (with_.is_argument) return old;
    if (const auto found = with_.renamed.find(old); found != with_.renamed.end()) return found->second;
    // A script cannot write `#` in a name, so the macro's variables are distinct from all others.
    return old.starts_with('$') ? fmt::format("{}#{}", old, with_.expansion.index) : old;
  }
  StmtId stmt(StmtId id) {
    Stmt out = ast_[id];
    out.span = at(out.span);
    std::visit([this](auto& node) { fix(node); }, out.node);
    return ast_.stmts.add(std::move(out));
  }
  TypeNameId type_name(TypeNameId id) {
    if (!id) return id;
    TypeName out = ast_[id];
    out.span = at(out.span);
    // `(t)x`, where the parameter t is a type.
    const auto given = out.tag == TypeName::Tag::kNone ? with_.expressions.find(out.name) : with_.expressions.end();
    if (given != with_.expressions.end()) {
      const Substitution nothing{.is_argument = true};
      if (const auto* type = ast_.get<TypeExpr>(given->second)) {
        out.name.clear();
        out.typeof_type = Copier(ast_, nothing, most_).type_name(type->type);
        for (TypeName::Suffix& suffix : out.suffixes) suffix.count = expr(suffix.count);
        return ast_.type_names.add(std::move(out));
      }
      if (const auto* name = ast_.get<Name>(given->second)) out.name = name->name;
    }
    out.typeof_expr = expr(out.typeof_expr);
    out.typeof_type = type_name(out.typeof_type);
    for (TypeNameId& element : out.elements) element = type_name(element);
    for (TypeName::Suffix& suffix : out.suffixes) suffix.count = expr(suffix.count);
    return ast_.type_names.add(std::move(out));
  }
  void all(std::vector<ExprId>& ids) {
    for (ExprId& id : ids) id = expr(id);
  }

  template <class Leaf>
  void fix(Leaf&) {}
  void fix(syntax::Variable& n) { n.name = name(n.name); }
  void fix(Map& n) { n.name = name(n.name); }
  void fix(Index& n) { n.base = expr(n.base), all(n.indices); }
  void fix(Call& n) { n.name_span = at(n.name_span), all(n.arguments); }
  void fix(TypeExpr& n) { n.type = type_name(n.type); }
  void fix(Sizeof& n) { n.operand = expr(n.operand); }
  void fix(Offsetof& n) { n.operand = expr(n.operand); }
  void fix(Typeinfo& n) { n.operand = expr(n.operand); }
  void fix(Comptime& n) { n.operand = expr(n.operand); }
  void fix(Unary& n) { n.operand = expr(n.operand); }
  void fix(Binary& n) { n.left = expr(n.left), n.right = expr(n.right), n.op_span = at(n.op_span); }
  void fix(Ternary& n) {
    n.condition = expr(n.condition), n.then_value = expr(n.then_value), n.else_value = expr(n.else_value);
  }
  void fix(Access& n) { n.base = expr(n.base), n.name_span = at(n.name_span); }
  void fix(TupleAccess& n) { n.base = expr(n.base); }
  void fix(Cast& n) { n.type = type_name(n.type), n.operand = expr(n.operand); }
  void fix(Tuple& n) { all(n.elements); }
  void fix(Record& n) { all(n.values); }
  void fix(Block& n) {
    for (StmtId& id : n.statements) id = stmt(id);
    n.value = expr(n.value);
  }
  void fix(If& n) {
    n.condition = expr(n.condition), n.then_branch = expr(n.then_branch), n.else_branch = expr(n.else_branch);
  }
  void fix(ExprStmt& n) { n.value = expr(n.value); }
  void fix(Assign& n) { n.target = expr(n.target), n.value = expr(n.value); }
  void fix(Let& n) {
    n.name = name(n.name), n.name_span = at(n.name_span);
    n.type = type_name(n.type), n.value = expr(n.value);
  }
  void fix(Discard& n) { n.value = expr(n.value); }
  void fix(While& n) { n.condition = expr(n.condition), n.body = expr(n.body); }
  void fix(Unroll& n) { n.count = expr(n.count), n.body = expr(n.body); }
  void fix(ForMap& n) {
    n.variable = name(n.variable), n.variable_span = at(n.variable_span);
    n.map = expr(n.map), n.body = expr(n.body);
  }
  void fix(ForRange& n) {
    n.variable = name(n.variable), n.variable_span = at(n.variable_span);
    n.begin = expr(n.begin), n.end = expr(n.end), n.body = expr(n.body);
  }
  void fix(Return& n) { n.value = expr(n.value); }

  Ast& ast_;
  const Substitution& with_;
  size_t most_;
};

size_t least_arguments(const Macro& macro) {
  const auto is_required = [](const Macro::Parameter& parameter) { return !parameter.default_value.valid(); };
  return static_cast<size_t>(std::ranges::count_if(macro.parameters, is_required));
}

bool takes(const Macro& macro, size_t arguments) {
  return arguments >= least_arguments(macro) && arguments <= macro.parameters.size();
}

class Expander {
 public:
  Expander(Ast& ast, const spec::Registry& registry, source::Sources& sources, source::Diagnostics& diagnostics)
      : ast_(ast),
        registry_(registry),
        sources_(sources),
        diagnostics_(diagnostics),
        most_(node_count(ast) + kMostCopies) {}

  void run() {
    std::set<ExprId> in_macros;
    for (const Macro& macro : ast_.macros) {
      walk(ast_, macro.body, [&](ExprId id) { in_macros.insert(id); });
      for (const Macro::Parameter& parameter : macro.parameters)
        walk(ast_, parameter.default_value, [&](ExprId id) { in_macros.insert(id); });
    }
    for (uint32_t i = 0; i < ast_.exprs.size(); ++i) {
      const ExprId id{i};
      if (in_macros.contains(id)) continue;
      if (const auto* call = ast_.get<Call>(id)) {
        if (const Macro* macro = find(call->name, call->arguments.size())) expand(id, *macro, call->arguments);
      } else if (const auto* name = ast_.get<Name>(id)) {
        const Macro* macro = find(name->name, 0);
        if (macro && takes(*macro, 0)) expand(id, *macro, {});
      }
    }
    give_values_to_typeinfos(in_macros);
  }

 private:
  // Each use of an argument is a copy of it, so that calls in arguments of calls multiply.
  static constexpr size_t kMostCopies = 1 << 17;

  // Two that are compared are so by their full types, which are constants. Any other of which no member is asked for is
  // a record of all.
  void give_values_to_typeinfos(const std::set<ExprId>& in_macros) {
    const size_t count = ast_.exprs.size();
    std::set<ExprId> asked;
    for (uint32_t i = 0; i < count; ++i) {
      const ExprId id{i};
      if (const auto* access = ast_.get<Access>(id)) asked.insert(access->base);
      const auto* compared = ast_.get<Binary>(id);
      if (compared == nullptr || in_macros.contains(id)) continue;
      const bool is_equality = compared->op == BinaryOp::kEqual || compared->op == BinaryOp::kNotEqual;
      const ExprId left = compared->left, right = compared->right;
      if (!is_equality || !ast_.get<Typeinfo>(left) || !ast_.get<Typeinfo>(right)) continue;
      asked.insert({left, right});
      const ExprId of_left = member_of(left, "full_type"), of_right = member_of(right, "full_type");
      auto& node = std::get<Binary>(ast_.exprs[id].node);
      node.left = of_left;
      node.right = of_right;
    }
    const Substitution nothing{.is_argument = true};
    for (uint32_t i = 0; i < count; ++i) {
      const ExprId id{i};
      if (!ast_.get<Typeinfo>(id) || asked.contains(id) || in_macros.contains(id) || is_too_long()) continue;
      Record all;
      for (const char* name : {"btf_id", "base_type", "full_type"}) {
        const ExprId question = Copier(ast_, nothing, most_).expr(id);
        all.names.emplace_back(name);
        all.values.push_back(member_of(question, name));
      }
      ast_.exprs[id].node = std::move(all);
    }
  }

  ExprId member_of(ExprId base, std::string name) {
    const Span span = ast_[base].span;
    return ast_.exprs.add({span, Access{base, std::move(name), span}});
  }

  bool is_too_long() const { return node_count(ast_) > most_; }

  // Macros are overloaded by the number of arguments. If none fits, and there is no builtin of that name, the error
  // names the first one.
  const Macro* find(std::string_view name, size_t arguments) const {
    const Macro* first = nullptr;
    for (const Macro& macro : ast_.macros) {
      if (macro.name != name) continue;
      if (takes(macro, arguments)) return &macro;
      if (!first) first = &macro;
    }
    return registry_.find_builtin(name) == nullptr ? first : nullptr;
  }

  bool calls_itself(const Macro& macro, Span call) const {
    while (call.expansion.valid()) {
      const auto made = expanded_.find(call.expansion);
      if (made != expanded_.end() && made->second == &macro) return true;
      call = sources_[call.expansion].call;
    }
    return false;
  }

  void expand(ExprId id, const Macro& macro, std::vector<ExprId> arguments) {
    if (is_too_long()) {
      ast_.exprs[id].node = ErrorExpr{};
      return;
    }
    const Span call = ast_[id].span;
    const auto refuse = [&](std::string_view what, Span at, std::string message) {
      auto& said = diagnostics_.error(what, at, std::move(message));
      said.notes.push_back({macro.name_span, "defined here"});
      ast_.exprs[id].node = ErrorExpr{};
    };
    if (calls_itself(macro, call))
      return refuse("recursive-macro", call, "the macro `" + macro.name + "` calls itself");
    Substitution with;
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const Macro::Parameter& parameter = macro.parameters[i];
      const ExprId given = i < arguments.size() ? arguments[i] : parameter.default_value;
      if (!given || arguments.size() > macro.parameters.size())
        return refuse("wrong-arity", call,
                      fmt::format("the macro `{}` takes {} argument{}, {} given", macro.name, macro.parameters.size(),
                                  macro.parameters.size() == 1 ? "" : "s", arguments.size()));
      if (!add(parameter, given, with))
        return refuse("wrong-argument", ast_[given].span,
                      fmt::format("the macro `{}` takes a {} for `{}`", macro.name,
                                  parameter.kind == Macro::ParameterKind::kMap ? "map" : "variable", parameter.name));
    }
    if (macro.parameters.empty() && !arguments.empty())
      return refuse("wrong-arity", call, fmt::format("the macro `{}` takes no arguments", macro.name));
    with.expansion = sources_.add_expansion(macro.name, call);
    expanded_.emplace(with.expansion, &macro);
    const ExprId body = Copier(ast_, with, most_).expr(macro.body);
    ast_.exprs[id].node = body ? ast_.exprs[body].node : ExprNode(ErrorExpr{});
    if (is_too_long()) refuse("too-long", call, "the script is too long after macro expansion");
  }

  bool add(const Macro::Parameter& parameter, ExprId given, Substitution& with) const {
    switch (parameter.kind) {
      case Macro::ParameterKind::kExpression: with.expressions[parameter.name] = given; return true;
      case Macro::ParameterKind::kVariable: {
        const auto* variable = ast_.get<syntax::Variable>(given);
        if (variable) with.renamed[parameter.name] = variable->name;
        return variable != nullptr;
      }
      case Macro::ParameterKind::kMap: {
        const auto* map = ast_.get<Map>(given);
        if (map) with.renamed[parameter.name] = map->name;
        return map != nullptr;
      }
    }
    return false;
  }

  Ast& ast_;
  const spec::Registry& registry_;
  source::Sources& sources_;
  source::Diagnostics& diagnostics_;
  size_t most_;  // nodes
  std::map<ExpansionId, const Macro*> expanded_;
};

}  // namespace

void expand_macros(Ast& ast, const spec::Registry& registry, source::Sources& sources,
                   source::Diagnostics& diagnostics) {
  const auto is_typeinfo = [](const syntax::Expr& each) { return std::holds_alternative<Typeinfo>(each.node); };
  if (!ast.macros.empty() || std::ranges::any_of(ast.exprs, is_typeinfo))
    Expander(ast, registry, sources, diagnostics).run();
}

bool take_the_same(const Macro& a, const Macro& b) {
  return least_arguments(a) <= b.parameters.size() && least_arguments(b) <= a.parameters.size();
}

}  // namespace espy::check
