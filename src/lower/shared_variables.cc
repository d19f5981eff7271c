#include "lower/shared_variables.h"

#include <map>
#include <type_traits>
#include <variant>
#include <vector>

namespace espy::lower {
namespace {

using check::ExprId;
using check::StmtId;
using check::VariableId;

class Finder {
 public:
  Finder(const syntax::Ast& ast, const check::Unit& unit) : ast_(ast), unit_(unit) {}

  std::set<uint32_t> find() {
    for (const ExprId id : unit_.exprs.ids()) {
      const auto* unary = ast_.exprs.contains(id) ? ast_.get<syntax::Unary>(id) : nullptr;
      if (!unary || unary->op != syntax::UnaryOp::kAddressOf) continue;
      if (const VariableId variable = unit_.fact(unary->operand).variable; variable.valid())
        shared_.insert(variable.index);
    }
    for (const VariableId parameter : unit_.parameters) use(parameter);
    if (unit_.action) visit(unit_.action->predicate);
    visit(unit_.action ? unit_.action->body : unit_.function->body);
    return std::move(shared_);
  }

 private:
  void use(VariableId variable) {
    const auto [first, is_new] = first_use_.emplace(variable.index, function_);
    if (!is_new && first->second != function_) shared_.insert(variable.index);
  }

  template <class Id>
  void visit(const std::vector<Id>& list) {
    for (const Id each : list) visit(each);
  }

  void visit(ExprId expr) {
    if (!expr.valid()) return;
    if (const VariableId variable = unit_.fact(expr).variable; variable.valid()) use(variable);
    std::visit([&](const auto& node) { visit_parts(node); }, ast_[expr].node);
  }

  void visit(StmtId stmt) {
    const auto* for_map = ast_.get<syntax::ForMap>(stmt);
    const VariableId declared = unit_.fact(stmt).variable;
    if (for_map && ast_.get<syntax::Map>(for_map->map)) return visit_for_map(*for_map, declared);
    if (declared.valid()) use(declared);
    std::visit([&](const auto& node) { visit_parts(node); }, ast_[stmt].node);
  }

  // Functions are numbered: 0 is the action, others are callbacks.
  void visit_for_map(const syntax::ForMap& node, VariableId pair) {
    visit(node.map);
    const uint32_t outer = function_;
    function_ = ++callbacks_;
    if (pair.valid()) use(pair);
    visit(node.body);
    function_ = outer;
  }

  template <class... Ids>
  void visit_all(const Ids&... ids) {
    (visit(ids), ...);
  }

  template <class Node>
  void visit_parts(const Node&) {}  // a leaf
  void visit_parts(const syntax::Index& node) { visit_all(node.base, node.indices); }
  void visit_parts(const syntax::Call& node) { visit(node.arguments); }
  void visit_parts(const syntax::Unary& node) { visit(node.operand); }
  void visit_parts(const syntax::Cast& node) { visit(node.operand); }
  void visit_parts(const syntax::Comptime& node) { visit(node.operand); }
  void visit_parts(const syntax::Binary& node) { visit_all(node.left, node.right); }
  void visit_parts(const syntax::Ternary& node) { visit_all(node.condition, node.then_value, node.else_value); }
  void visit_parts(const syntax::Access& node) { visit(node.base); }
  void visit_parts(const syntax::TupleAccess& node) { visit(node.base); }
  void visit_parts(const syntax::Tuple& node) { visit(node.elements); }
  void visit_parts(const syntax::Record& node) { visit(node.values); }
  void visit_parts(const syntax::Block& node) { visit_all(node.statements, node.value); }
  void visit_parts(const syntax::If& node) { visit_all(node.condition, node.then_branch, node.else_branch); }
  void visit_parts(const syntax::ExprStmt& node) { visit(node.value); }
  void visit_parts(const syntax::Let& node) { visit(node.value); }
  void visit_parts(const syntax::Discard& node) { visit(node.value); }
  void visit_parts(const syntax::Return& node) { visit(node.value); }
  void visit_parts(const syntax::Assign& node) { visit_all(node.target, node.value); }
  void visit_parts(const syntax::While& node) { visit_all(node.condition, node.body); }
  void visit_parts(const syntax::Unroll& node) { visit_all(node.count, node.body); }
  void visit_parts(const syntax::ForMap& node) { visit_all(node.map, node.body); }
  void visit_parts(const syntax::ForRange& node) { visit_all(node.begin, node.end, node.body); }

  const syntax::Ast& ast_;
  const check::Unit& unit_;
  uint32_t function_ = 0;
  uint32_t callbacks_ = 0;
  std::map<uint32_t, uint32_t> first_use_;  // from a variable to the first function that uses it
  std::set<uint32_t> shared_;
};

}  // namespace

std::set<uint32_t> find_shared_variables(const syntax::Ast& ast, const check::Unit& unit) {
  return Finder(ast, unit).find();
}

}  // namespace espy::lower
