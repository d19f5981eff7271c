#include "check/analyzer.h"

#include <algorithm>

#include "base/strings.h"

namespace espy::check {

using source::Severity;

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view prefix) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const std::string best = nearest(word, views);
  return best.empty() ? std::string() : "did you mean `" + std::string(prefix) + best + "`?";
}

Analyzer::Analyzer(CheckRequest& request, Checked& checked, const Defines& defines)
    : request_(request), checked_(checked), defines_(defines) {
  variables_.resize(checked.units.size());
  declarations_.resize(checked.units.size());
  for (uint32_t i = 0; i < checked.maps.size(); ++i) {
    const CheckedMap& map = checked.maps[ScriptMapId{i}];
    MapState& state = maps_[map.name];
    state.id = ScriptMapId{i};
    state.is_declared = true;
  }
}

const program::Probe& Analyzer::first_probe() const {
  static const program::Probe nothing;
  return unit_->probes.empty() ? nothing : checked_.probes[unit_->probes.front()];
}

std::vector<std::string> Analyzer::probe_types() const {
  std::vector<std::string> out;
  for (const ProbeId id : unit_->probes) {
    const std::string& provider = checked_.probes[id].provider;
    if (std::ranges::find(out, provider) == out.end()) out.push_back(provider);
  }
  return out;
}

void Analyzer::run() {
  note_whole_maps();
  int round = 0;
  do {
    changed_ = false;
    for (size_t i = 0; i < checked_.units.size(); ++i) check_unit(i);
  } while (changed_ && ++round < kMostRounds);
  is_final_round_ = true;
  for (size_t i = 0; i < checked_.units.size(); ++i) check_unit(i);
  settle_maps();
  refuse_unknown_options();
}

void Analyzer::note_option(ScriptOption option) {
  const bool is_known = std::ranges::find(checked_.options, option.name, &ScriptOption::name) != checked_.options.end();
  if (is_final_round_ && !is_known) checked_.options.push_back(std::move(option));
}

// What was typed behind `--`, and the script never asks for. `--help` is answered by us.
void Analyzer::refuse_unknown_options() {
  std::vector<std::string> names;
  for (const ScriptOption& option : checked_.options) names.push_back(option.name);
  for (const auto& [name, value] : config().named) {
    if (name == "help" || std::ranges::find(names, name) != names.end()) continue;
    const std::string near = nearest(name, std::vector<std::string_view>(names.begin(), names.end()));
    request_.diagnostics.error("unknown-option", {}, "the program has no option `--" + name + "`",
                               near.empty() ? "`-- --help` lists its options" : "did you mean `--" + near + "`?");
  }
}

void Analyzer::check_unit(size_t index) {
  unit_ = &checked_.units[index];
  unit_index_ = index;
  scopes_.clear();
  ended_variables_.clear();
  loop_depth_ = 0;
  // All facts exist from here on, so that references to them stay good.
  if (!checked_.ast.exprs.empty()) unit_->exprs[ExprId{static_cast<uint32_t>(checked_.ast.exprs.size() - 1)}];
  for (VariableState& variable : variables_[index]) variable.is_assigned = false;
  if (unit_->action) check_action(*unit_->action);
  if (unit_->function) check_function(*unit_->function);
}

void Analyzer::check_action(const syntax::Action& action) {
  scopes_.emplace_back();
  if (action.predicate) condition(action.predicate);
  if (action.body) expr(action.body);
  scopes_.pop_back();
}

void Analyzer::check_function(const syntax::Function& function) {
  scopes_.emplace_back();
  unit_->parameters.clear();
  unit_->result = function.result ? type_name(function.result) : types().void_type();
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const auto& parameter = function.parameters[i];
    const VariableId id = declare((uint64_t{3} << 32) | i, parameter.name, parameter.span, true);
    const TypeId type = parameter.type ? type_name(parameter.type) : types().int64();
    set_variable_type(id, type);
    variables_[unit_index_][id.index].slot.is_declared = true;
    variables_[unit_index_][id.index].is_assigned = true;
    unit_->parameters.push_back(id);
  }
  if (function.body) expr(function.body);
  scopes_.pop_back();
}

// A use of the same map may be a scalar's and a keyed one's only in a wrong script, which was said.
void Analyzer::settle_maps() {
  for (auto& [name, state] : maps_) {
    CheckedMap& map = checked_.maps[state.id];
    map.key = key_type(state);
    map.value = state.value.type ? state.value.type : types().void_type();
    const bool per_cpu = types::is_aggregation(type_of(map.value));
    if (!map.is_declared) {
      map.max_entries = checked_.config.max_map_keys;
      map.kind = per_cpu ? program::MapKind::kPercpuHash : program::MapKind::kHash;
    } else if (per_cpu) {
      if (map.kind == program::MapKind::kHash) map.kind = program::MapKind::kPercpuHash;
      if (map.kind == program::MapKind::kLruHash) map.kind = program::MapKind::kLruPercpuHash;
    }
  }
}

source::Diagnostic* Analyzer::report(Severity severity, std::string_view id, Span at, std::string message,
                                     std::string hint) {
  if (severity == Severity::kError) ++problems_;
  if (!is_final_round_) return nullptr;
  // An action is checked once for each kind of probe: say everything once.
  if (!reported_.emplace(at.source.index, at.begin, at.end, at.expansion.index, std::string(id)).second) return nullptr;
  return severity == Severity::kError ? &request_.diagnostics.error(id, at, std::move(message), std::move(hint))
                                      : &request_.diagnostics.warning(id, at, std::move(message), std::move(hint));
}

void Analyzer::note(source::Diagnostic* diagnostic, Span at, std::string message) {
  if (diagnostic && at.valid()) diagnostic->notes.push_back({at, std::move(message)});
}

void Analyzer::error(std::string_view id, Span at, std::string message, std::string hint) {
  report(Severity::kError, id, at, std::move(message), std::move(hint));
}

void Analyzer::warning(std::string_view id, Span at, std::string message, std::string hint) {
  report(Severity::kWarning, id, at, std::move(message), std::move(hint));
}

}  // namespace espy::check
