// Calls of builtins and of the script's own functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "check/builtin_calls.h"
#include "check/context_fields.h"
#include "check/expressions.h"
#include "check/names.h"
#include "check/type_names.h"
#include "spec/registry.h"

namespace espy::check {

class Calls {
 public:
  Calls(Facts& facts, Reporter& reporter, Expressions& expressions, ContextFields& context_fields, Names& names,
        BuiltinCalls& builtin_calls, TypeNames& type_names, const spec::Registry& registry, const spec::Config& config)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        context_fields_(context_fields),
        names_(names),
        builtin_calls_(builtin_calls),
        type_names_(type_names),
        registry_(registry),
        config_(config) {}

  TypeId call(ExprId id, const syntax::Call& node);

 private:
  std::optional<std::string> parameter_text(ExprId id);
  TypeId call_function(ExprId id, const syntax::Call& node, size_t function);
  void refuse_recursion(ExprId id, size_t called);
  bool calls(size_t caller, size_t called, std::set<size_t>& seen) const;
  // Returns how many functions are nested in calls of this one, itself included. `known`: those of other functions.
  size_t nesting(size_t function, std::map<size_t, size_t>& known) const;

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  ContextFields& context_fields_;
  Names& names_;
  BuiltinCalls& builtin_calls_;
  TypeNames& type_names_;
  const spec::Registry& registry_;
  const spec::Config& config_;
  std::set<std::pair<size_t, size_t>> calls_;  // between functions of the script: caller, called
};

}  // namespace espy::check
