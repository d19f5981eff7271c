// Statements other than assignments.
#pragma once

#include <cstdint>

#include "check/assignments.h"
#include "check/expressions.h"
#include "check/map_expressions.h"
#include "check/maps.h"
#include "check/type_names.h"
#include "check/variables.h"
#include "source/source.h"

namespace espy::check {

class Statements {
 public:
  Statements(Facts& facts, Reporter& reporter, Expressions& expressions, Variables& variables, Maps& maps,
             MapExpressions& map_expressions, TypeNames& type_names, Assignments& assignments, kernel::Kernel& kernel,
             const source::Sources& sources)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        variables_(variables),
        maps_(maps),
        map_expressions_(map_expressions),
        type_names_(type_names),
        assignments_(assignments),
        kernel_(kernel),
        sources_(sources) {}

  void statement(StmtId id);

 private:
  void visit(StmtId id, const syntax::ExprStmt& node);
  void visit(StmtId id, const syntax::Assign& node);
  void visit(StmtId id, const syntax::Let& node);
  void visit(StmtId id, const syntax::Discard& node);
  void visit(StmtId id, const syntax::While& node);
  void visit(StmtId id, const syntax::Unroll& node);
  void visit(StmtId id, const syntax::ForMap& node);
  void for_element(StmtId id, const syntax::ForMap& node);
  void visit(StmtId id, const syntax::ForRange& node);
  void visit(StmtId id, const syntax::Break& node);
  void visit(StmtId id, const syntax::Continue& node);
  void visit(StmtId id, const syntax::Return& node);
  void loop_body(ExprId body);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Maps& maps_;
  MapExpressions& map_expressions_;
  TypeNames& type_names_;
  Assignments& assignments_;
  kernel::Kernel& kernel_;
  const source::Sources& sources_;
  int64_t copies_ = 1;  // of the statement, by `unroll`
};

}  // namespace espy::check
