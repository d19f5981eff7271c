#include <fmt/format.h>

#include "check/checker.h"

namespace espy::check {

void Checker::leave_block() {
  for (const auto& [name, variable] : scopes_.back().names) ended_names_.emplace(name);
  leave_scope();
}

VariableId Checker::find_variable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    for (const auto& [known, id] : scope->names)
      if (known == name) return id;
  return {};
}

VariableId Checker::declare_variable(DeclarationSite site, const std::string& name, Span span, bool is_explicit) {
  if (is_explicit) {
    if (const VariableId other = find_variable(name))
      error_with_note("shadowed-variable", span, "`" + name + "` is declared already, and variables cannot be shadowed",
                      "use another name", {unit_->variables[other].span, "declared here"});
  }
  auto& declarations = declarations_[unit_index_];
  auto found = declarations.find(site);
  if (found == declarations.end()) {
    const VariableId id = unit_->variables.add({name, {}, span});
    variable_states_[unit_index_].emplace_back();
    found = declarations.emplace(site, id).first;
    if (const auto assumed = assumed_.variables.find({unit_index_, site}); assumed != assumed_.variables.end()) {
      variable_state(id).slot = assumed->second;
      unit_->variables[id].type = assumed->second.type;
    }
    has_changed_ = true;
  }
  variable_state(found->second).loop_depth = loop_depth_;
  scopes_.back().names.emplace_back(name, found->second);
  return found->second;
}

VariableId Checker::declare_target(ExprId target, const std::string& name) {
  return declare_variable({DeclarationSite::Kind::kTarget, target.index}, name, span_of(target), false);
}

TypeId Checker::visit(ExprId id, const syntax::Variable& node) {
  const Span span = span_of(id);
  const std::string message = "`" + node.name + "` is used before anything is assigned to it";
  const VariableId found = find_variable(node.name);
  if (!found) {
    std::vector<std::string> names;
    for (const Scope& scope : scopes_)
      for (const auto& [name, unused] : scope.names) names.emplace_back(name);
    error("unset-variable", span, message,
          ended_names_.contains(node.name)
              ? "it belongs to a block that has ended: write `let " + node.name + ";` before that"
              : did_you_mean(node.name, names));
    return {};
  }
  VariableState& variable = variable_state(found);
  if (!variable.is_assigned && variable.is_let) {
    variable.is_read_unset = true;
    if (loop_depth_ <= variable.loop_depth) warning("uninitialized-variable", span, message, "it is 0, or empty");
  } else if (!variable.is_assigned && loop_depth_ <= variable.loop_depth) {
    error("unset-variable", span, message);
  }
  fact(id).variable = found;
  return variable_type(found);
}

bool Checker::has_unset_variable() const {
  for (const std::vector<VariableState>& unit : variable_states_)
    for (const VariableState& state : unit)
      if (state.is_read_unset && !state.slot.type) return true;
  return false;
}

VariableTypes Checker::variable_types() const {
  VariableTypes out;
  for (size_t unit = 0; unit < declarations_.size(); ++unit)
    for (const auto& [site, id] : declarations_[unit])
      if (const Slot& slot = variable_states_[unit][id.index].slot; slot.type) out.emplace(std::pair(unit, site), slot);
  return out;
}

bool Checker::settle_unassigned_variables() {
  bool has_changed = false;
  for (size_t unit = 0; unit < variable_states_.size(); ++unit) {
    for (uint32_t i = 0; i < variable_states_[unit].size(); ++i) {
      VariableState& state = variable_states_[unit][i];
      if (!state.is_read_unset || state.slot.type) continue;
      state.slot.type = state.slot.firm = checked_.units[unit].variables[VariableId{i}].type = types_.int64();
      has_changed = true;
    }
  }
  return has_changed;
}

void Checker::set_variable_type(VariableId id, TypeId type) {
  Variable& variable = unit_->variables[id];
  Slot& slot = variable_state(id).slot;
  if (variable.type == type && slot.type == type) return;
  variable.type = slot.type = slot.firm = type;
  slot.members.clear();
  has_changed_ = true;
}

void Checker::report_variable_mismatch(const Variable& variable, TypeId held, TypeId given, Span span) {
  const auto [now, other] = show_both(held, given);
  error_with_note("type-mismatch", span, "`" + variable.name + "` is " + now + " and cannot hold " + other, {},
                  {variable.span, "first seen here"});
}

void Checker::warn_of_other_sign(const std::string& what, TypeId declared, TypeId given, Span span) {
  warning("mixed-signs", span,
          fmt::format("{} is {}, in which {} of {} become {}", what, show(declared),
                      type_of(declared).is_signed ? "large values" : "negative values", show(given),
                      type_of(declared).is_signed ? "negative" : "large"),
          "cast the value if that is what you want");
}

void Checker::add_to_variable(VariableId id, const Given& given, Span span, ExprId value) {
  const TypeId type = given.type;
  if (!type) return;
  Variable& variable = unit_->variables[id];
  VariableState& known = variable_state(id);
  Slot& slot = known.slot;
  const auto is_pointer = [&](TypeId each) { return each && type_of(each).kind == types::Kind::kPointer; };
  if (value && is_pointer(type)) {
    if (!known.pointer) known.pointer = value;
    // What `&$x` points to gets its type by later assignments to $x.
    if (known.pointer == value && !slot.is_declared && slot.type != type && is_pointer(slot.type)) slot = {};
  }
  const TypeId before = slot.type;
  if (becomes_symbol(before, type)) slot = {};
  if (!slot.add(types_, given)) {
    const bool is_integer = std::holds_alternative<int64_t>(given.constant) && is_int_like(type_of(type));
    if (slot.is_declared && is_integer && is_int_like(type_of(before)))
      error("out-of-range", span, "the value does not fit `" + variable.name + "`, which is " + show(before));
    else
      report_variable_mismatch(variable, before, type, span);
    return;
  }
  if (slot.loses_sign && slot.is_declared)
    warn_of_other_sign("`" + variable.name + "`", slot.type, type, span);
  else if (slot.loses_sign && is_final_ && !std::exchange(slot.is_sign_reported, true))
    warning("mixed-signs", span,
            "`" + variable.name + "` holds signed and unsigned values, so it becomes " + show(slot.type),
            "cast one of them");
  if (slot.type == before) return;
  variable.type = slot.type;
  has_changed_ = true;
}

}  // namespace espy::check
