#include "check/checker.h"

#include <algorithm>

namespace espy::check {

using namespace syntax;

Checker::Checker(CheckRequest& request, Checked& checked, const Defines& defines, source::Diagnostics& diagnostics)
    : request_(request),
      checked_(checked),
      defines_(defines),
      diagnostics_(diagnostics),
      types_(request.types),
      kernel_(request.kernel),
      registry_(request.registry),
      config_(checked.config),
      ast_(checked.ast),
      probes_(checked.probes),
      variable_states_(checked.units.size()),
      declarations_(checked.units.size()) {
  for (const ScriptMapId id : checked.maps.ids()) map_states_[checked.maps[id].name].id = id;
  find_whole_maps();
}

// ---- Rounds

void Checker::enter_unit(size_t index) {
  unit_ = &checked_.units[index];
  unit_index_ = index;
  scopes_.clear();
  ended_names_.clear();
  loop_depth_ = 0;
  for (VariableState& state : variable_states_[index]) state.is_assigned = false;
}

void Checker::check_action(const Action& action) {
  enter_scope();
  if (action.predicate) check_condition(action.predicate);
  if (action.body) check_expr(action.body);
  leave_scope();
}

void Checker::check_function(const Function& function) {
  enter_scope();
  unit_->parameters.clear();
  unit_->result = function.result ? named_type(function.result) : types_.void_type();
  for (uint32_t i = 0; i < function.parameters.size(); ++i) {
    const auto& parameter = function.parameters[i];
    const VariableId id =
        declare_variable({DeclarationSite::Kind::kParameter, i}, parameter.name, parameter.span, true);
    set_variable_type(id, parameter.type ? named_type(parameter.type) : types_.int64());
    variable_state(id).slot.is_declared = true;
    variable_state(id).is_assigned = true;
    unit_->parameters.push_back(id);
  }
  if (function.body) check_expr(function.body);
  leave_scope();
}

void Checker::check_units() {
  for (size_t i = 0; i < checked_.units.size(); ++i) {
    enter_unit(i);
    if (unit().action) check_action(*unit().action);
    if (unit().function) check_function(*unit().function);
  }
}

namespace {

constexpr int kMaxRounds = 24;  // a guard against an inference that does not converge

// Forgets what a checker has found.
void reset(Checked& checked, TypeId void_type) {
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

// Reports options given after `--` that the script never asks for. `--help` is answered by espy itself.
void refuse_unknown_options(const Checked& checked, source::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const ScriptOption& option : checked.options) names.push_back(option.name);
  for (const auto& [name, value] : checked.config.arguments.named) {
    if (name == "help" || std::ranges::find(names, name) != names.end()) continue;
    const std::string near = did_you_mean(name, names, "--");
    diagnostics.error("unknown-option", {}, "the program has no option `--" + name + "`",
                      near.empty() ? "`-- --help` lists its options" : near);
  }
}

}  // namespace

void Checker::infer() {
  int round = 0;
  do {
    has_changed_ = false;
    check_units();
  } while (has_changed_ && ++round < kMaxRounds);
}

void Checker::run_final_round() {
  is_final_ = true;
  check_units();
}

void Checker::finish() {
  int round = 0;
  while (settle_unassigned_variables() && ++round < kMaxRounds) infer();
  run_final_round();
  warn_of_unused_maps();
  finish_maps();
  refuse_copies();
}

// What a branch gives that a known condition leaves out: `if ($# > 0) { @name = str($1); } else { exit(); }`. Without a
// parameter, nothing else tells that @name is a string.
AssumedTypes Checker::types_of_all_branches(CheckRequest& request, Checked& checked, const Defines& defines) {
  reset(checked, request.types.void_type());
  source::Diagnostics ignored;
  Checker all(request, checked, defines, ignored);
  all.checks_all_branches_ = true;
  all.infer();
  all.run_final_round();
  AssumedTypes out = all.found_types();
  std::vector<ScriptOption> options = std::move(checked.options);
  reset(checked, request.types.void_type());
  checked.options = std::move(options);
  return out;
}

void Checker::run(CheckRequest& request, Checked& checked, const Defines& defines) {
  std::optional<Checker> checker(std::in_place, request, checked, defines, request.diagnostics);
  checker->infer();
  const bool wants_options = request.binding == spec::Binding::kForetell || !checked.config.arguments.named.empty();
  if (checker->has_left_out_ && (wants_options || checker->has_unset_map() || checker->has_unset_variable())) {
    // The rest of the script decides its types. A branch that is left out changes none of them.
    const AssumedTypes known = checker->found_types();
    AssumedTypes all = types_of_all_branches(request, checked, defines);
    const auto is_known = [](const auto& in) { return [&in](const auto& each) { return in.contains(each.first); }; };
    std::erase_if(all.maps, is_known(known.maps));
    std::erase_if(all.variables, is_known(known.variables));
    checker.emplace(request, checked, defines, request.diagnostics);
    checker->assumed_ = std::move(all);
    checker->infer();
  }
  checker->finish();
  if (!request.diagnostics.has_errors()) find_thread_maps(checked, request.registry, request.types, request.kernel);
  refuse_unknown_options(checked, request.diagnostics);
  if (!request.diagnostics.has_errors()) warn_of_other_tasks(checked, request.diagnostics);
}

// ---- Diagnostics

bool Checker::is_new(std::string_view id, Span span) {
  return reported_.emplace(span.source.index, span.begin, span.end, span.expansion.index, std::string(id)).second;
}

void Checker::error(std::string_view id, Span span, std::string message, std::string hint) {
  error_with_note(id, span, std::move(message), std::move(hint), {});
}

void Checker::error_with_note(std::string_view id, Span span, std::string message, std::string hint,
                              source::Note note) {
  if (is_muted_) return;
  ++error_count_;
  if (!is_final_ || !is_new(id, span)) return;
  source::Diagnostic& added = diagnostics_.error(id, span, std::move(message), std::move(hint));
  if (note.span.valid()) added.notes.push_back(std::move(note));
}

void Checker::warning(std::string_view id, Span span, std::string message, std::string hint) {
  if (!is_muted_ && is_final_ && is_new(id, span)) diagnostics_.warning(id, span, std::move(message), std::move(hint));
}

// ---- What builtins ask and note

const program::Probe& Checker::first_probe() const {
  static const program::Probe nothing;
  return unit().probes.empty() ? nothing : probes_[unit().probes.front()];
}

std::vector<std::string> Checker::probe_types() const {
  std::vector<std::string> out;
  for (const ProbeId id : unit().probes) {
    const std::string& provider = probes_[id].provider;
    if (std::ranges::find(out, provider) == out.end()) out.push_back(provider);
  }
  return out;
}

void Checker::act_in_all_tasks() {
  for (Unit& unit : checked_.units) unit.context.is_limited_to_pid = false;
}

void Checker::note_option(ScriptOption option) {
  const bool is_known = std::ranges::find(checked_.options, option.name, &ScriptOption::name) != checked_.options.end();
  if (is_final_ && !is_known) checked_.options.push_back(std::move(option));
}

// ---- Facts

std::optional<Number> Checker::number(ExprId id) const {
  const auto known = integer(id);
  if (!known || !type(id)) return std::nullopt;
  const types::Type& t = type_of(type(id));
  return Number{*known, !t.is_signed && *known < 0};
}

bool Checker::is_literal(ExprId id) const {
  if (!is_constant(id) || !type(id)) return false;
  const auto known = number(id);
  if (!known || type_of(type(id)).kind != types::Kind::kInt) return true;
  return type(id) == (known->is_unsigned ? types_.uint64() : smallest_signed(types_, known->bits));
}

bool Checker::is_number_literal(ExprId id) const {
  return is_literal(id) && type_of(type(id)).kind == types::Kind::kInt && !has_cast(id);
}

Given Checker::given(ExprId id) const {
  Given out{type(id), constant(id), is_literal(id)};
  const auto* tuple = ast_.get<syntax::Tuple>(id);
  const auto* record = ast_.get<syntax::Record>(id);
  if (out.type && (tuple != nullptr || record != nullptr))
    for (const ExprId member : tuple != nullptr ? tuple->elements : record->values)
      out.members.push_back(given(member));
  return out;
}

std::pair<std::string, std::string> Checker::show_both(TypeId a, TypeId b) const {
  const auto with_origin = [&](TypeId id) {
    const std::string text = show(id);
    for (id = known(id); type_of(id).element.valid(); id = type_of(id).element) {
    }
    const types::Type& type = type_of(id);
    const std::string program(types_.origin_name(type.origin));
    if (type.kind != types::Kind::kStruct && type.kind != types::Kind::kEnum) return text;
    return text + " of " + (!program.empty() ? program : type.origin.btf_id == 0 ? "the script" : "the kernel");
  };
  if (show(a) != show(b)) return {show(a), show(b)};
  return {with_origin(a), with_origin(b)};
}

bool Checker::has_cast(ExprId id) const {
  if (const auto* unary = ast().get<Unary>(id)) return has_cast(unary->operand);
  if (const auto* binary = ast().get<Binary>(id)) return has_cast(binary->left) || has_cast(binary->right);
  if (const auto* choice = ast().get<Ternary>(id))
    return has_cast(choice->then_value.valid() ? choice->then_value : choice->condition) ||
           has_cast(choice->else_value);
  if (const auto* comptime = ast().get<Comptime>(id)) return has_cast(comptime->operand);
  return ast().get<Cast>(id) != nullptr;
}

TypeId Checker::set_number(ExprId id, Number value) {
  fact(id).constant = value.bits;
  if (value.is_unsigned) return literal_type(types_, value.as_unsigned());
  return smallest_signed(types_, value.bits);
}

TypeId Checker::set_text(ExprId id, std::string text) {
  const auto capacity = static_cast<uint32_t>(text.size() + 1);
  fact(id).constant = std::move(text);
  return types_.string(capacity);
}

}  // namespace espy::check
