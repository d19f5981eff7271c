#include "check/analyzer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "check/arguments.h"
#include "check/assignments.h"
#include "check/binary_operators.h"
#include "check/blocks.h"
#include "check/builtin_calls.h"
#include "check/builtin_checker.h"
#include "check/calls.h"
#include "check/casts.h"
#include "check/constants.h"
#include "check/context_fields.h"
#include "check/copied_values.h"
#include "check/expressions.h"
#include "check/map_expressions.h"
#include "check/members.h"
#include "check/names.h"
#include "check/other_tasks.h"
#include "check/program_types.h"
#include "check/statements.h"
#include "check/suggestions.h"
#include "check/thread_maps.h"
#include "check/type_names.h"
#include "check/unary_operators.h"

namespace espy::check {

namespace {

// The parts of the analysis. Each states in its constructor what it may touch. `Expressions` comes first and refers to
// parts below it, which are complete before the first expression is checked.
struct Parts {
  Parts(CheckRequest& request, Checked& checked, const Defines& defines, source::Diagnostics& diagnostics)
      : facts(checked, request.types),
        reporter(round, diagnostics),
        variables(facts, reporter, round, checked.units.size()),
        maps(facts, reporter, round, checked.maps),
        expressions(facts, reporter,
                    {context_fields, blocks, calls, casts, constants, map_expressions, members, names, unary_operators,
                     binary_operators, variables}),
        checker(request, checked, facts, reporter, round, maps),
        map_expressions(facts, reporter, round, expressions, maps, checked.probes),
        program_types(facts, checked, request.registry, request.kernel),
        type_names(facts, reporter, round, expressions, program_types, request.kernel, checked.config),
        context_fields(facts, reporter, request.kernel, checked.config),
        constants(facts, reporter, expressions, type_names, request.registry, defines, request.kernel, checked.config),
        casts(facts, reporter, expressions, type_names, checked.config),
        members(facts, reporter, round, expressions, context_fields, constants, variables, program_types,
                request.kernel),
        unary_operators(facts, reporter, expressions, variables, maps, map_expressions, members),
        binary_operators(facts, reporter, expressions),
        arguments(facts, reporter, expressions, variables, maps, map_expressions, type_names, request.registry, defines,
                  checked.probes, request.kernel),
        builtin_calls(facts, reporter, arguments, checker, variables, request.kernel, checked.config),
        names(facts, reporter, round, expressions, context_fields, builtin_calls, variables, maps, request.registry,
              defines, program_types, request.kernel),
        calls(facts, reporter, expressions, context_fields, names, builtin_calls, type_names, request.registry,
              checked.config),
        assignments(facts, reporter, expressions, variables, maps, map_expressions, binary_operators),
        statements(facts, reporter, expressions, variables, maps, map_expressions, type_names, assignments,
                   request.kernel, request.sources),
        blocks(facts, reporter, expressions, variables, statements),
        copied_values(facts, reporter, request.kernel, checked.config) {}

  Round round;
  Facts facts;
  Reporter reporter;
  Variables variables;
  Maps maps;
  Expressions expressions;
  BuiltinChecker checker;
  MapExpressions map_expressions;
  ProgramTypes program_types;
  TypeNames type_names;
  ContextFields context_fields;
  Constants constants;
  Casts casts;
  Members members;
  UnaryOperators unary_operators;
  BinaryOperators binary_operators;
  Arguments arguments;
  BuiltinCalls builtin_calls;
  Names names;
  Calls calls;
  Assignments assignments;
  Statements statements;
  Blocks blocks;
  CopiedValues copied_values;
};

void check_action(Parts& parts, const syntax::Action& action) {
  parts.variables.enter_scope();
  if (action.predicate) parts.expressions.condition(action.predicate);
  if (action.body) parts.expressions.expr(action.body);
  parts.variables.leave_scope();
}

void check_function(Parts& parts, const syntax::Function& function) {
  Unit& unit = parts.facts.unit();
  types::Types& types = parts.facts.types();
  Variables& variables = parts.variables;
  variables.enter_scope();
  unit.parameters.clear();
  unit.result = function.result ? parts.type_names.type(function.result) : types.void_type();
  for (uint32_t i = 0; i < function.parameters.size(); ++i) {
    const auto& parameter = function.parameters[i];
    const VariableId id =
        variables.declare({DeclarationSite::Kind::kParameter, i}, parameter.name, parameter.span, true);
    variables.set_type(id, parameter.type ? parts.type_names.type(parameter.type) : types.int64());
    variables.state(id).slot.is_declared = true;
    variables.state(id).is_assigned = true;
    unit.parameters.push_back(id);
  }
  if (function.body) parts.expressions.expr(function.body);
  variables.leave_scope();
}

void check_units(Parts& parts, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    parts.facts.enter_unit(i);
    parts.variables.enter_unit();
    const Unit& unit = parts.facts.unit();
    if (unit.action) check_action(parts, *unit.action);
    if (unit.function) check_function(parts, *unit.function);
  }
}

void refuse_copies(Parts& parts, const Checked& checked) {
  if (!parts.copied_values.may_be_refused()) return;
  const size_t errors = parts.reporter.error_count();
  for (size_t i = 0; i < checked.units.size(); ++i) {
    parts.facts.enter_unit(i);
    parts.copied_values.check_unit();
  }
  if (parts.reporter.error_count() != errors) return;
  for (const CheckedMap& map : checked.maps) parts.copied_values.check_map(map);
}

// Reports options given after `--` that the script never asks for. `--help` is answered by espy itself.
void refuse_unknown_options(const Checked& checked, source::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const ScriptOption& option : checked.options) names.push_back(option.name);
  for (const auto& [name, value] : checked.config.named) {
    if (name == "help" || std::ranges::find(names, name) != names.end()) continue;
    const std::string near = did_you_mean(name, names, "--");
    diagnostics.error("unknown-option", {}, "the program has no option `--" + name + "`",
                      near.empty() ? "`-- --help` lists its options" : near);
  }
}

constexpr int kMaxRounds = 24;  // a guard against an inference that does not converge

void infer(Parts& parts, Checked& checked) {
  int round = 0;
  do {
    parts.round.has_changed = false;
    check_units(parts, checked.units.size());
  } while (parts.round.has_changed && ++round < kMaxRounds);
}

// Forgets the analysis.
void reset(Checked& checked, types::TypeId void_type) {
  for (Unit& unit : checked.units) {
    unit.exprs = {};
    unit.stmts = {};
    unit.variables = {};
  }
  Table<ScriptMapId, CheckedMap> declared;
  for (CheckedMap& map : checked.maps) {
    map.key = map.value = void_type;
    if (map.is_declared) declared.add(std::move(map));
  }
  checked.maps = std::move(declared);
  checked.options.clear();
}

// What a branch gives that a known condition leaves out: `if ($# > 0) { @name = str($1); } else { exit(); }`. Without a
// parameter, nothing else tells that @name is a string.
struct OfAllBranches {
  AssumedTypes types;
  std::vector<ScriptOption> options;
};

OfAllBranches check_all_branches(CheckRequest& request, Checked& checked, const Defines& defines) {
  reset(checked, request.types.void_type());
  source::Diagnostics ignored;
  Parts parts(request, checked, defines, ignored);
  parts.blocks.check_all();
  infer(parts, checked);
  parts.round.is_final = true;
  check_units(parts, checked.units.size());
  OfAllBranches out{{parts.maps.values(), parts.variables.values()}, std::move(checked.options)};
  reset(checked, request.types.void_type());
  return out;
}

void finish(Parts& parts, CheckRequest& request, Checked& checked) {
  int round = 0;
  while (parts.variables.settle_unassigned() && ++round < kMaxRounds) infer(parts, checked);
  parts.round.is_final = true;
  check_units(parts, checked.units.size());
  parts.maps.warn_of_unused();
  parts.maps.finish(checked.config.max_map_keys, request.kernel);
  refuse_copies(parts, checked);
}

}  // namespace

void analyze(CheckRequest& request, Checked& checked, const Defines& defines) {
  std::optional<Parts> parts(std::in_place, request, checked, defines, request.diagnostics);
  infer(*parts, checked);
  const bool wants_options = request.is_foretold || !checked.config.named.empty();
  if (parts->blocks.has_left_out() && (wants_options || parts->maps.has_unset() || parts->variables.has_unset())) {
    // The rest of the script decides its types. A branch that is left out changes none of them.
    const AssumedTypes known{parts->maps.values(), parts->variables.values()};
    OfAllBranches all = check_all_branches(request, checked, defines);
    const auto is_known = [](const auto& in) { return [&in](const auto& each) { return in.contains(each.first); }; };
    std::erase_if(all.types.maps, is_known(known.maps));
    std::erase_if(all.types.variables, is_known(known.variables));
    parts.emplace(request, checked, defines, request.diagnostics);
    checked.options = std::move(all.options);
    parts->maps.assume(std::move(all.types.maps));
    parts->variables.assume(std::move(all.types.variables));
    infer(*parts, checked);
  }
  finish(*parts, request, checked);
  if (!request.diagnostics.has_errors()) find_thread_maps(checked, request.registry, request.types, request.kernel);
  refuse_unknown_options(checked, request.diagnostics);
  if (!request.diagnostics.has_errors()) warn_of_other_tasks(checked, request.diagnostics);
}

}  // namespace espy::check
