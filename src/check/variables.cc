#include "check/variables.h"

#include "check/func_symbol.h"
#include "check/suggestions.h"

namespace espy::check {

void Variables::enter_unit() {
  scopes_.clear();
  ended_names_.clear();
  loop_depth_ = 0;
  for (VariableState& state : states_[facts_.unit_index()]) state.is_assigned = false;
}

void Variables::leave_block() {
  for (const auto& [name, variable] : scopes_.back().names) ended_names_.emplace(name);
  leave_scope();
}

VariableId Variables::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    for (const auto& [known, id] : scope->names)
      if (known == name) return id;
  return {};
}

VariableId Variables::declare(DeclarationSite site, const std::string& name, Span span, bool is_explicit) {
  if (is_explicit) {
    if (const VariableId other = find(name))
      reporter_.error_with_note("shadowed-variable", span,
                                "`" + name + "` is declared already, and variables cannot be shadowed",
                                "use another name", {facts_.unit().variables[other].span, "declared here"});
  }
  auto& declarations = declarations_[facts_.unit_index()];
  auto found = declarations.find(site);
  if (found == declarations.end()) {
    const VariableId id = facts_.unit().variables.add({name, {}, span});
    states_[facts_.unit_index()].emplace_back();
    found = declarations.emplace(site, id).first;
    if (const auto assumed = assumed_.find({facts_.unit_index(), site}); assumed != assumed_.end()) {
      state(id).slot = assumed->second;
      facts_.unit().variables[id].type = assumed->second.type;
    }
    round_.has_changed = true;
  }
  state(found->second).loop_depth = loop_depth_;
  scopes_.back().names.emplace_back(name, found->second);
  return found->second;
}

VariableId Variables::declare_at(ExprId target, const std::string& name) {
  return declare({DeclarationSite::Kind::kTarget, target.index}, name, facts_.span(target), false);
}

TypeId Variables::read(ExprId id, const syntax::Variable& node) {
  const Span span = facts_.span(id);
  const std::string message = "`" + node.name + "` is used before anything is assigned to it";
  const VariableId found = find(node.name);
  if (!found) {
    std::vector<std::string> names;
    for (const Scope& scope : scopes_)
      for (const auto& [name, unused] : scope.names) names.emplace_back(name);
    reporter_.error("unset-variable", span, message,
                    ended_names_.contains(node.name)
                        ? "it belongs to a block that has ended: write `let " + node.name + ";` before that"
                        : did_you_mean(node.name, names));
    return {};
  }
  VariableState& variable = state(found);
  if (!variable.is_assigned && variable.is_let) {
    variable.is_read_unset = true;
    if (loop_depth_ <= variable.loop_depth)
      reporter_.warning("uninitialized-variable", span, message, "it is 0, or empty");
  } else if (!variable.is_assigned && loop_depth_ <= variable.loop_depth) {
    reporter_.error("unset-variable", span, message);
  }
  facts_.fact(id).variable = found;
  return type(found);
}

bool Variables::has_unset() const {
  for (const std::vector<VariableState>& unit : states_)
    for (const VariableState& state : unit)
      if (state.is_read_unset && !state.slot.type) return true;
  return false;
}

VariableTypes Variables::values() const {
  VariableTypes out;
  for (size_t unit = 0; unit < declarations_.size(); ++unit)
    for (const auto& [site, id] : declarations_[unit])
      if (const Slot& slot = states_[unit][id.index].slot; slot.type) out.emplace(std::pair(unit, site), slot);
  return out;
}

bool Variables::settle_unassigned() {
  bool has_changed = false;
  for (size_t unit = 0; unit < states_.size(); ++unit) {
    for (uint32_t i = 0; i < states_[unit].size(); ++i) {
      VariableState& state = states_[unit][i];
      if (!state.is_read_unset || state.slot.type) continue;
      state.slot.type = state.slot.firm = facts_.variable(unit, VariableId{i}).type = facts_.types().int64();
      has_changed = true;
    }
  }
  return has_changed;
}

void Variables::set_type(VariableId id, TypeId type) {
  Variable& variable = facts_.unit().variables[id];
  Slot& slot = state(id).slot;
  if (variable.type == type && slot.type == type) return;
  variable.type = slot.type = slot.firm = type;
  round_.has_changed = true;
}

void Variables::report_mismatch(const Variable& variable, TypeId held, TypeId given, Span span) {
  const auto [now, other] = facts_.show_both(held, given);
  reporter_.error_with_note("type-mismatch", span, "`" + variable.name + "` is " + now + " and cannot hold " + other,
                            {}, {variable.span, "first seen here"});
}

void Variables::add(VariableId id, TypeId type, const Constant& constant, bool is_literal, Span span, ExprId value) {
  if (!type) return;
  Variable& variable = facts_.unit().variables[id];
  VariableState& known = state(id);
  Slot& slot = known.slot;
  const auto is_pointer = [&](TypeId each) { return each && facts_.type_of(each).kind == types::Kind::kPointer; };
  if (value && is_pointer(type)) {
    if (!known.pointer) known.pointer = value;
    // What `&$x` points to gets its type by later assignments to $x.
    if (known.pointer == value && !slot.is_declared && slot.type != type && is_pointer(slot.type)) slot = {};
  }
  const TypeId before = slot.type;
  if (becomes_symbol(facts_, before, type)) slot = {};
  if (!slot.add(facts_.types(), type, constant, is_literal)) {
    const bool is_integer = std::holds_alternative<int64_t>(constant) && is_int_like(facts_.type_of(type));
    if (slot.is_declared && is_integer && is_int_like(facts_.type_of(before)))
      reporter_.error("out-of-range", span,
                      "the value does not fit `" + variable.name + "`, which is " + facts_.show(before));
    else
      report_mismatch(variable, before, type, span);
    return;
  }
  if (slot.loses_sign && round_.is_final && !std::exchange(slot.is_sign_reported, true))
    reporter_.warning("mixed-signs", span,
                      "`" + variable.name + "` holds signed and unsigned values, so it becomes `int64`",
                      "cast one of them");
  if (slot.type == before) return;
  variable.type = slot.type;
  round_.has_changed = true;
}

}  // namespace espy::check
