#include "lower/unit.h"

#include "lower/shared_variables.h"

namespace espy::lower {

UnitLowering::UnitLowering(ModuleContext& module, const check::Unit& unit, ir::Unit& out, Part part)
    : module_(module),
      unit_(unit),
      part_(part),
      functions_(module, out),
      frame_(module, functions_),
      scratch_(module, functions_, unit.context),
      memory_(module, functions_, scratch_),
      writer_(module, functions_, memory_),
      failures_(module, functions_, writer_),
      reads_(module, functions_, unit, scratch_, memory_, failures_),
      conversions_(module, functions_, memory_, reads_),
      laundering_(module, functions_, scope_),
      variables_(module, functions_, scope_, frame_, scratch_, memory_, conversions_, laundering_),
      locations_(module, functions_, unit.context, memory_, reads_),
      fields_(module, functions_, unit.context, reads_, locations_),
      dispatch_(module, functions_, unit, part_, frame_, memory_, reads_, fields_),
      exits_(module, functions_, frame_, scope_),
      main_(module, functions_, unit, part_, scope_, frame_, scratch_, memory_, reads_, dispatch_, exits_),
      elements_(module, functions_, memory_, conversions_, failures_),
      aggregations_(module, functions_, memory_, elements_),
      arithmetic_(module, functions_, memory_, conversions_, laundering_),
      builtins_(module, functions_, *this, scope_, memory_),
      tuples_(module, functions_, scope_, memory_, reads_, conversions_, fields_, builtins_, expressions_),
      recents_(module, functions_, scope_, memory_, reads_, conversions_, elements_, builtins_, tuples_, expressions_),
      maps_(module, functions_, scope_, memory_, conversions_, failures_, variables_, elements_, aggregations_,
            builtins_, tuples_, recents_, expressions_),
      access_(module, functions_, scope_, memory_, reads_, conversions_, fields_, variables_, elements_, maps_,
              expressions_),
      branches_(module, functions_, scope_, conversions_, laundering_, expressions_, statements_),
      operators_(module, functions_, scope_, memory_, reads_, conversions_, arithmetic_, laundering_, variables_,
                 elements_, maps_, access_, branches_, builtins_, expressions_),
      function_calls_(module, functions_, scope_, frame_, memory_, variables_, expressions_, statements_),
      loops_(module, functions_, scope_, frame_, scratch_, memory_, conversions_, laundering_, variables_, exits_,
             aggregations_, branches_, expressions_, statements_),
      statements_(module, functions_, scope_, frame_, memory_, conversions_, variables_, exits_, maps_, operators_,
                  access_, branches_, expressions_, loops_),
      expressions_(module, functions_, scope_, memory_, conversions_, fields_, variables_, maps_, operators_, access_,
                   branches_, tuples_, builtins_, function_calls_, statements_),
      events_(module, functions_, scope_, memory_, reads_, conversions_, writer_, builtins_, expressions_) {}

ir::Function UnitLowering::lower() {
  functions_.begin_main();
  Activation action{.unit = &unit_, .shared_variables = find_shared_variables(ast(), unit_)};
  scope_.with(action, [&] {
    MainFunction::WriteGuard write_guard;
    if (unit_.action->predicate.valid())
      write_guard = [&](BlockId if_true, BlockId if_false) {
        branches_.branch_on(unit_.action->predicate, if_true, if_false);
      };
    main_.begin(write_guard);
    statements_.discard(unit_.action->body);
    main_.finish();
  });
  return functions_.finish();
}

ir::Function UnitLowering::lower_entry_alone() {
  functions_.begin_main();
  main_.write_entry_alone();
  return functions_.finish();
}

ir::Function UnitLowering::lower_dismissal(std::span<const uint64_t> numbers) {
  functions_.begin_main();
  dispatch_.begin();
  ir().enter(ir().add_block("entry"));
  dispatch_.leave_if_none_of(numbers);
  ir().ret(0);
  return functions_.finish();
}

bool UnitLowering::calls(decltype(spec::Builtin::lower) emitter) {
  const auto [known, is_new] = called_.try_emplace(&unit());
  if (is_new)
    for (const ExprId expr : unit().exprs.ids())
      if (const spec::Builtin* builtin = unit().fact(expr).builtin) known->second.insert(builtin->lower);
  return known->second.contains(emitter);
}

void UnitLowering::emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                              std::vector<std::string> literals, std::vector<int64_t> numbers, ScriptMapId map,
                              const SpanBuffer* buffer) {
  program::EventSchema schema{.builtin = std::string(builtin),
                              .literals = std::move(literals),
                              .numbers = std::move(numbers),
                              .map = map,
                              .span = span};
  events_.emit(std::move(schema), arguments, buffer);
}

}  // namespace espy::lower
