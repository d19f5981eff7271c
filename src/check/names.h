// Names: words of the probe's context, #defines, builtins without parentheses, enumerators.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "check/builtin_calls.h"
#include "check/context_fields.h"
#include "check/defines.h"
#include "check/expressions.h"
#include "check/maps.h"
#include "check/program_types.h"
#include "check/variables.h"
#include "spec/registry.h"

namespace espy::check {

class Names {
 public:
  Names(Facts& facts, Reporter& reporter, const Round& round, Expressions& expressions, ContextFields& context_fields,
        BuiltinCalls& builtin_calls, const Variables& variables, const Maps& maps, const spec::Registry& registry,
        const Defines& defines, ProgramTypes& program_types, kernel::Kernel& kernel)
      : facts_(facts),
        reporter_(reporter),
        round_(round),
        expressions_(expressions),
        context_fields_(context_fields),
        builtin_calls_(builtin_calls),
        variables_(variables),
        maps_(maps),
        registry_(registry),
        defines_(defines),
        program_types_(program_types),
        kernel_(kernel) {}

  TypeId name(ExprId id, const syntax::Name& node);
  // Reports that `name` stands for nothing, with a suggestion.
  void report_unknown(std::string_view name, Span span, bool is_call);

 private:
  // Of the script, the programs that the unit probes, or the kernel.
  TypeId enumerator(ExprId id, const std::string& name);
  bool is_expansion_too_long(ExprId id);
  std::optional<kernel::Enumerated> program_enumerator(ProgramTypes::Scope scope, const std::string& name);

  Facts& facts_;
  Reporter& reporter_;
  const Round& round_;
  Expressions& expressions_;
  ContextFields& context_fields_;
  BuiltinCalls& builtin_calls_;
  const Variables& variables_;
  const Maps& maps_;
  const spec::Registry& registry_;
  const Defines& defines_;
  ProgramTypes& program_types_;
  kernel::Kernel& kernel_;
  std::unordered_map<std::string, std::optional<kernel::Enumerated>> enumerators_;  // by name: a cache
  uint32_t replacements_ = 0;       // of names by #defines, within the outermost one
  uint32_t open_replacements_ = 0;  // nested in each other
};

}  // namespace espy::check
