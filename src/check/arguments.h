// Arguments of builtins, checked by the parameters of the builtin's signature.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/defines.h"
#include "check/expressions.h"
#include "check/map_expressions.h"
#include "check/maps.h"
#include "check/signature.h"
#include "check/type_names.h"
#include "check/variables.h"
#include "spec/registry.h"

namespace espy::check {

// "first" for 0.
std::string ordinal(size_t index);

class Arguments {
 public:
  Arguments(Facts& facts, Reporter& reporter, Expressions& expressions, Variables& variables, Maps& maps,
            MapExpressions& map_expressions, TypeNames& type_names, const spec::Registry& registry,
            const Defines& defines, const Table<ProbeId, program::Probe>& probes, kernel::Kernel& kernel)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        variables_(variables),
        maps_(maps),
        map_expressions_(map_expressions),
        type_names_(type_names),
        registry_(registry),
        defines_(defines),
        probes_(probes),
        kernel_(kernel) {}

  // Checks all arguments; how many there must be is not checked.
  void check(const spec::Builtin& builtin, const Signature& signature, const std::vector<ExprId>& arguments);

 private:
  // `where` begins messages: "`str`'s first argument".
  void check_one(const Parameter& parameter, ExprId argument, const std::string& where);
  void map_or_element(const Parameter& parameter, ExprId argument, const std::string& where);
  void assigned_variable(const MapState* map, ExprId argument, const std::string& where);
  void check_value(const Parameter& parameter, ExprId argument, const std::string& where);
  bool is_mode(const Parameter& parameter, ExprId argument) const;
  void name_as_text(ExprId argument);
  bool matches(std::string_view wanted, TypeId found, ExprId argument);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Maps& maps_;
  MapExpressions& map_expressions_;
  TypeNames& type_names_;
  const spec::Registry& registry_;
  const Defines& defines_;
  const Table<ProbeId, program::Probe>& probes_;
  kernel::Kernel& kernel_;
};

}  // namespace espy::check
