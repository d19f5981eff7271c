#include "check/walk.h"

namespace espy::check {

using namespace syntax;

namespace {

struct Walker {
  const Ast& ast;
  const ExprVisitor& visit;
  const TypeNameVisitor& visit_type;

  void expr(ExprId id) {
    if (!id) return;
    visit(id);
    std::visit([this](const auto& node) { children(node); }, ast[id].node);
  }
  void exprs(const std::vector<ExprId>& ids) {
    for (const ExprId id : ids) expr(id);
  }
  void stmt(StmtId id) {
    std::visit([this](const auto& node) { children(node); }, ast[id].node);
  }

  template <class Leaf>
  void children(const Leaf&) {}
  void children(const Index& n) { expr(n.base), exprs(n.indices); }
  void children(const Call& n) { exprs(n.arguments); }
  void children(const TypeExpr& n) { type_name(n.type); }
  void children(const Sizeof& n) { expr(n.operand); }
  void children(const Offsetof& n) { expr(n.operand); }
  void children(const Typeinfo& n) { expr(n.operand); }
  void children(const Comptime& n) { expr(n.operand); }
  void children(const Unary& n) { expr(n.operand); }
  void children(const Binary& n) { expr(n.left), expr(n.right); }
  void children(const Ternary& n) { expr(n.condition), expr(n.then_value), expr(n.else_value); }
  void children(const Access& n) { expr(n.base); }
  void children(const TupleAccess& n) { expr(n.base); }
  void children(const Cast& n) { type_name(n.type), expr(n.operand); }
  void children(const Tuple& n) { exprs(n.elements); }
  void children(const Record& n) { exprs(n.values); }
  void children(const Block& n) {
    for (const StmtId id : n.statements) stmt(id);
    expr(n.value);
  }
  void children(const If& n) { expr(n.condition), expr(n.then_branch), expr(n.else_branch); }

  void children(const ExprStmt& n) { expr(n.value); }
  void children(const Assign& n) { expr(n.target), expr(n.value); }
  void children(const Let& n) { type_name(n.type), expr(n.value); }
  void children(const Discard& n) { expr(n.value); }
  void children(const While& n) { expr(n.condition), expr(n.body); }
  void children(const Unroll& n) { expr(n.count), expr(n.body); }
  void children(const ForMap& n) { expr(n.map), expr(n.body); }
  void children(const ForRange& n) { expr(n.begin), expr(n.end), expr(n.body); }
  void children(const Return& n) { expr(n.value); }

  void type_name(TypeNameId id) {
    if (!id) return;
    if (visit_type) visit_type(id);
    expr(ast[id].typeof_expr);
    type_name(ast[id].typeof_type);
    for (const TypeNameId element : ast[id].elements) type_name(element);
  }
};

}  // namespace

void walk(const Ast& ast, ExprId root, const ExprVisitor& visit, const TypeNameVisitor& visit_type) {
  Walker{ast, visit, visit_type}.expr(root);
}
void walk(const Ast& ast, StmtId root, const ExprVisitor& visit) { Walker{ast, visit, {}}.stmt(root); }

}  // namespace espy::check
