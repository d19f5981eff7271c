// Casts: `(TYPE)expression`.
#pragma once

#include "check/expressions.h"
#include "check/type_names.h"

namespace espy::check {

class Casts {
 public:
  Casts(Facts& facts, Reporter& reporter, Expressions& expressions, TypeNames& type_names, const spec::Config& config)
      : facts_(facts), reporter_(reporter), expressions_(expressions), type_names_(type_names), config_(config) {}

  TypeId cast(ExprId id, const syntax::Cast& node);

 private:
  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  TypeNames& type_names_;
  const spec::Config& config_;
};

}  // namespace espy::check
