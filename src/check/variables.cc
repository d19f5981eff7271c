// Variables: scopes, and types that widen with every assignment.
#include "check/analyzer.h"

namespace espy::check {

VariableId Analyzer::find_variable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    for (const auto& [known, id] : scope->names)
      if (known == name) return id;
  return {};
}

// `site` tells declarations of one unit apart, so that a variable is the same one in the next round.
VariableId Analyzer::declare(uint64_t site, const std::string& name, Span at, bool is_let) {
  if (is_let) {
    if (const VariableId other = find_variable(name)) {
      auto* said = report(source::Severity::kError, "shadowed-variable", at,
                          "`" + name + "` is declared already, and variables cannot be shadowed", "take another name");
      note(said, unit_->variables[other].span, "declared here");
    }
  }
  auto& declarations = declarations_[unit_index_];
  auto found = declarations.find(site);
  if (found == declarations.end()) {
    const VariableId id = unit_->variables.add({name, {}, at});
    variables_[unit_index_].emplace_back();
    found = declarations.emplace(site, id).first;
    changed();
  }
  variables_[unit_index_][found->second.index].loop_depth = loop_depth_;
  scopes_.back().names.emplace_back(name, found->second);  // `name` is the tree's, and stays
  return found->second;
}

void Analyzer::set_variable_type(VariableId id, TypeId type) {
  Variable& variable = unit_->variables[id];
  Slot& slot = variables_[unit_index_][id.index].slot;
  if (variable.type == type && slot.type == type) return;
  variable.type = slot.type = slot.firm = type;
  changed();
}

void Analyzer::add_to_variable(VariableId id, TypeId type, const Constant& constant, bool is_literal, Span at) {
  if (!type) return;
  VariableState& state = variables_[unit_index_][id.index];
  const std::string name = unit_->variables[id].name;
  const TypeId before = state.slot.type;
  if (!state.slot.add(types(), type, constant, is_literal)) {
    const auto* integer = std::get_if<int64_t>(&constant);
    if (state.slot.is_declared && integer && is_int_like(type_of(before)) && is_int_like(type_of(type))) {
      error("out-of-range", at, "the value does not fit `" + name + "`, which is " + show(before));
    } else {
      auto* said = report(source::Severity::kError, "type-mismatch", at,
                          "`" + name + "` is " + show(before) + " and cannot hold " + show(type), {});
      note(said, unit_->variables[id].span, "first seen here");
    }
    return;
  }
  if (state.slot.loses_sign && is_final_round_ && !std::exchange(state.slot.is_sign_reported, true))
    warning("mixed-signs", at, "`" + name + "` holds signed and unsigned values, so it becomes `int64`",
            "cast one of them");
  if (state.slot.type != before) {
    unit_->variables[id].type = state.slot.type;
    changed();
  }
}

}  // namespace espy::check
