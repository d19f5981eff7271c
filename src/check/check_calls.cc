#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/strings.h"
#include "check/checker.h"
#include "program/program.h"
#include "types/parts.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

// ---- Calls of functions

namespace {

constexpr size_t kMaxNesting = 16;  // of functions in calls; lowering inlines no more

// "first" for 0.
std::string ordinal(size_t index) {
  static constexpr std::string_view kWords[] = {"first", "second", "third", "fourth", "fifth", "sixth"};
  return index < std::size(kWords) ? std::string(kWords[index]) : fmt::format("{}th", index + 1);
}

}  // namespace

TypeId Checker::visit(ExprId id, const Call& node) {
  for (size_t i = 0; i < ast_.functions.size(); ++i)
    if (ast_.functions[i].name == node.name) return check_function_call(id, node, i);
  const spec::Builtin* builtin = registry_.find_builtin(node.name);
  if (!builtin) {
    for (const ExprId argument : node.arguments)
      if (!ast_.get<Name>(argument)) check_expr(argument);
    if (node.arguments.empty())
      if (const auto found = context_word(id, node.name)) return *found;
    report_unknown_name(node.name, node.name_span, true);
    return {};
  }
  if (builtin->reads_text_at && !node.arguments.empty()) {
    if (const auto text = parameter_text(node.arguments[0])) {
      fact(id).builtin = builtin;
      for (const ExprId argument : std::span(node.arguments).subspan(1)) check_expr(argument);
      return set_text(id, *text);
    }
  }
  return check_builtin(id, *builtin, node.arguments);
}

// `$1` as text, also if it looks like a number; `$1 + 2` without its first two bytes. nullopt for other expressions.
std::optional<std::string> Checker::parameter_text(ExprId id) {
  const auto* sum = ast_.get<Binary>(id);
  const bool is_sum = sum != nullptr && sum->op == BinaryOp::kAdd && ast_.get<Positional>(sum->left) != nullptr;
  const auto* parameter = ast_.get<Positional>(is_sum ? sum->left : id);
  if (parameter == nullptr) return std::nullopt;
  const auto& given = config_.arguments.positional;
  const bool is_given = parameter->index >= 1 && parameter->index <= given.size();
  const std::string text = is_given ? given[parameter->index - 1] : std::string();
  check_expr(is_sum ? sum->left : id);
  if (!is_sum || !is_given) return text;
  check_integer(sum->right);
  const auto skipped = integer(sum->right);
  if (skipped && *skipped >= 0 && std::cmp_less_equal(*skipped, text.size()))
    return text.substr(static_cast<size_t>(*skipped));
  if (!skipped)
    error("not-constant", span_of(sum->right), "only a constant can be added to a parameter");
  else
    error("out-of-range", span_of(sum->right),
          fmt::format("the parameter has {} byte{}", text.size(), text.size() == 1 ? "" : "s"));
  return std::string();
}

TypeId Checker::check_function_call(ExprId id, const Call& node, size_t index) {
  const syntax::Function& function = ast_.functions[index];
  fact(id).function = static_cast<int32_t>(index);
  refuse_recursion(id, index);
  for (const ExprId argument : node.arguments) read_value(argument);
  if (node.arguments.size() != function.parameters.size()) {
    error("wrong-arity", span_of(id),
          fmt::format("`{}` takes {} argument{}, {} given", node.name, function.parameters.size(),
                      function.parameters.size() == 1 ? "" : "s", node.arguments.size()));
  } else {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const ExprId argument = node.arguments[i];
      if (!type(argument) || !function.parameters[i].type) continue;
      Slot slot = Slot::of_type(named_type(function.parameters[i].type));
      const std::string what = fmt::format("`{}`'s {} parameter", node.name, ordinal(i));
      if (slot.type && !slot.add(types_, given(argument)))
        error("type-mismatch", span_of(argument),
              fmt::format("{} is {}, not {}", what, show(slot.type), show(type(argument))));
      else if (slot.loses_sign)
        warn_of_other_sign(what, slot.type, type(argument), span_of(argument));
    }
  }
  return function.result ? named_type(function.result) : types_.void_type();
}

// Calls are inlined. Earlier rounds have found all calls by the time that errors count.
void Checker::refuse_recursion(ExprId id, size_t called) {
  const Function* caller = unit().function;
  if (!caller) return;
  const auto index = static_cast<size_t>(caller - ast_.functions.data());
  calls_.emplace(index, called);
  std::set<size_t> seen;
  if (!calls_function(called, index, seen)) {
    std::map<size_t, size_t> known;
    if (nesting_of_calls(called, known) == kMaxNesting)
      error("nested-functions", span_of(id), fmt::format("functions call each other more than {} deep", kMaxNesting),
            "calls are inlined; call some of these functions from the probe");
    return;
  }
  const std::string& name = ast_.functions[called].name;
  error("recursive-function", span_of(id),
        called == index ? fmt::format("the function `{}` calls itself", name)
                        : fmt::format("the function `{}` calls `{}`, which calls it again", caller->name, name),
        "BPF programs cannot recurse; use a loop");
}

bool Checker::calls_function(size_t caller, size_t called, std::set<size_t>& seen) const {
  if (caller == called) return true;
  if (!seen.insert(caller).second) return false;
  for (auto it = calls_.lower_bound({caller, 0}); it != calls_.end() && it->first == caller; ++it)
    if (calls_function(it->second, called, seen)) return true;
  return false;
}

size_t Checker::nesting_of_calls(size_t function, std::map<size_t, size_t>& known) const {
  if (const auto [entry, is_new] = known.emplace(function, 1); !is_new) return entry->second;
  size_t most = 0;
  for (auto it = calls_.lower_bound({function, 0}); it != calls_.end() && it->first == function; ++it)
    most = std::max(most, nesting_of_calls(it->second, known));
  return known[function] = most + 1;
}

// ---- Uses of builtins

TypeId Checker::check_builtin(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments) {
  fact(id).builtin = &builtin;
  const Span span = span_of(id);
  const Signature signature = parse_signature(builtin.sig);
  const bool allowed = is_allowed(builtin, span) && is_recorded(builtin, !arguments.empty(), span);
  const size_t errors = error_count_;
  check_arguments(builtin, signature, arguments);
  if (const auto problem = arity_problem(spec::name_of(builtin), signature, arguments.size())) {
    error("wrong-arity", span, *problem, fmt::format("it is `{}`", builtin.sig));
    return {};
  }
  TypeId result = signature_type(types_, kernel_, signature.result);
  if (signature.result == "int") result = types_.int64();
  const bool is_known = std::ranges::all_of(
      arguments, [&](ExprId argument) { return type(argument).valid() || fact(argument).map.valid(); });
  if (!allowed || !is_known || error_count_ != errors || !builtin.check) return result;
  const TypeId found = builtin.check(*this, {id, span, arguments});
  return signature.result == "any" || !result ? found : result;
}

bool Checker::is_recorded(const spec::Builtin& builtin, bool has_arguments, Span span) {
  const bool is_kept =
      builtin.kept == spec::Kept::kYes || (builtin.kept == spec::Kept::kWithArguments && has_arguments);
  if (kernel_.recording() == nullptr || !is_kept || builtin.is_in_recordings) return true;
  error("not-recorded", span, fmt::format("this value of `{}` was not recorded", spec::name_of(builtin)),
        "`espy record --for SCRIPT` records what the probes of a script read");
  return false;
}

bool Checker::is_allowed(const spec::Builtin& builtin, Span span) {
  const std::string name = "`" + std::string(spec::name_of(builtin)) + "`";
  bool allowed = true;
  if (builtin.is_unsafe && !config_.allow_unsafe) {
    error("unsafe", span, name + " can change the system", "run with --unsafe to allow it");
    allowed = false;
  }
  if (builtin.needs && !kernel_.has(*builtin.needs)) {
    report_missing_feature(*builtin.needs, name, span);
    allowed = false;
  }
  allowed &= works_in_probe(builtin, name, span);
  if (builtin.ends_action && is_in_loop())
    error("exit-in-loop", span, name + " cannot be called in a loop", "use `break`, and call it after the loop");
  return allowed;
}

void Checker::report_missing_feature(kernel::Feature feature, const std::string& name, Span span) {
  const std::string forbidden = feature == kernel::Feature::kProbeWriteUser
                                    ? forbidden_by(kernel_.lockdown(), kernel::Lockdown::kIntegrity, name)
                                    : "";
  error("kernel-lacks", span, !forbidden.empty() ? forbidden : kernel::missing_feature(feature, name));
}

bool Checker::works_in_probe(const spec::Builtin& builtin, const std::string& name, Span span) {
  if (builtin.providers.empty() || !unit().action) return true;
  std::vector<std::string> providers;
  for (const std::string_view provider : split(builtin.providers, ',')) providers.emplace_back(trim(provider));
  const std::string& provider = first_probe().provider;
  if (std::ranges::find(providers, provider) != providers.end()) return true;
  error("wrong-probe", span, name + " does not work in a `" + provider + "` probe",
        "it works in " + join(providers, ", "));
  return false;
}

// ---- Arguments

namespace {

// Types of parameters (spec/builtin.h). For `any or map`, a map's name alone means the whole map.
constexpr std::string_view kAnyOrMap = "any or map";
constexpr std::string_view kHistogram = "histogram";
constexpr std::string_view kText = "text";  // a string, or characters in memory
// Allows delete(@m[key]), the old form of delete(@m, key).
constexpr std::string_view kMapOrElement = "map or element";
constexpr std::string_view kModeOrTask = "mode or task";  // a bare word, or a value

std::string describe(std::string_view wanted) {
  if (wanted == "int") return "an integer";
  if (wanted == "pointer") return "a pointer";
  if (wanted == "string" || wanted == kText) return "a string";
  if (wanted == "buffer") return "a buffer";
  if (wanted == "map") return "a map";
  if (wanted == kHistogram) return "a histogram";
  if (wanted == "stack") return "a stack";
  if (wanted == "type") return "a type";
  return fmt::format("`{}`", wanted);
}

// The text of `a.b.c`; empty for other expressions.
std::string dotted(const Ast& ast, ExprId id) {
  if (const auto* name = ast.get<Name>(id)) return name->name;
  const auto* access = ast.get<Access>(id);
  const std::string outer = access ? dotted(ast, access->base) : std::string();
  return outer.empty() ? outer : outer + "." + access->name;
}

bool is_map(const Parameter& parameter) { return parameter.type == "map" || parameter.type == kMapOrElement; }

}  // namespace

void Checker::check_arguments(const spec::Builtin& builtin, const Signature& signature,
                              const std::vector<ExprId>& arguments) {
  MapState* map = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ExprId argument = arguments[i];
    if (i >= signature.parameters.size()) {
      read_value(argument);
      continue;
    }
    const Parameter& parameter = signature.parameters[i];
    const std::string where = fmt::format("`{}`'s {} argument", spec::name_of(builtin), ordinal(i));
    if (parameter.type == "variable")
      check_assigned_argument(map, argument, where);
    else
      check_argument(parameter, argument, where);
    if (is_map(parameter) && fact(argument).map.valid())
      map = &map_state(fact(argument).map);
    else if (map && parameter.name == "key" && type(argument))
      check_key(*map, {argument}, span_of(argument));
    if (map && parameter.type == kMapOrElement && arguments.size() == 1 && ast_.get<Map>(argument))
      use_as_scalar(*map, span_of(argument));
  }
}

void Checker::check_argument(const Parameter& parameter, ExprId argument, const std::string& where) {
  if (is_map(parameter)) return check_map_argument(parameter, argument, where);
  if (parameter.type == kAnyOrMap && ast_.get<Map>(argument)) {
    map_argument(argument, false);
    return;
  }
  if (const auto* type = ast_.get<TypeExpr>(argument); type && parameter.type == "type") {
    fact(argument).type = named_type(type->type);
    return;
  }
  if (parameter.type == "word") {
    const std::string path = dotted(ast_, argument);
    if (path.empty()) error("wrong-argument", span_of(argument), where + " must be a name");
    fact(argument).type = set_text(argument, path);
    return;
  }
  if (is_mode_word(parameter, argument)) {
    fact(argument).type = set_text(argument, ast_.get<Name>(argument)->name);
    return;
  }
  check_value_argument(parameter, argument, where);
}

void Checker::check_map_argument(const Parameter& parameter, ExprId argument, const std::string& where) {
  if (map_argument(argument, parameter.type == kMapOrElement) || ast_.get<ErrorExpr>(argument)) return;
  check_expr(argument);
  error("not-a-map", span_of(argument), where + " must be a map",
        ast_.get<Index>(argument) ? "write the map's name alone" : "");
}

// A bare word is a mode: nsecs(boot), ustack(perf, 5); also one that is a builtin's name: tseries(n, 1s, 5, max).
bool Checker::is_mode_word(const Parameter& parameter, ExprId argument) const {
  const auto* word = ast_.get<Name>(argument);
  const bool takes_words = (parameter.is_literal && (parameter.type == "string" || parameter.type == "any")) ||
                           parameter.type == kModeOrTask;
  if (!word || !takes_words || defines_.contains(word->name)) return false;
  return (parameter.type == "string" && parameter.is_optional) || !registry_.find_builtin(word->name);
}

void Checker::check_value_argument(const Parameter& parameter, ExprId argument, const std::string& where) {
  const bool is_text = parameter.type == "string" || parameter.type == kText;
  const bool is_histogram = parameter.type == kHistogram;
  if (!read_value(argument, is_histogram || parameter.type == kAnyOrMap)) return;
  if (is_histogram) fact(argument).is_reduced = false;
  if (is_text && !parameter.is_literal) take_name_as_text(argument);
  const TypeId found = type(argument);
  if (parameter.is_literal && !is_constant(argument)) {
    error("not-constant", span_of(argument), where + " must be " + (is_text ? "a string literal" : "a constant"));
    return;
  }
  if (matches_parameter(parameter.type, found, argument)) return;
  error("wrong-argument", span_of(argument),
        where + " must be " + (parameter.is_literal && is_text ? "a string literal" : describe(parameter.type)) +
            ", not " + show(found));
}

// A variable that the builtin assigns, of the type of the map's values; declared here if it is new.
void Checker::check_assigned_argument(const MapState* map, ExprId argument, const std::string& where) {
  const auto* variable = ast_.get<syntax::Variable>(argument);
  if (!variable) {
    if (!ast_.get<ErrorExpr>(argument))
      error("wrong-argument", span_of(argument), where + " must be a variable to assign");
    return;
  }
  VariableId id = find_variable(variable->name);
  if (!id) id = declare_target(argument, variable->name);
  TypeId held = map ? map_value_type(*map) : types_.int64();
  if (const TypeId reduced = reduced_type(types_, held)) held = reduced;
  add_to_variable(id, {held}, span_of(argument));
  variable_state(id).is_assigned = true;
  fact(argument).variable = id;
  fact(argument).type = variable_type(id);
}

// Values of `probe`, `func` and the like are numbers that print as names. A parameter that is a string takes the name.
void Checker::take_name_as_text(ExprId argument) {
  const Kind kind = type_of(type(argument)).kind;
  if (!program::is_probe_name(kind) || !ast_.get<Name>(argument)) return;
  size_t longest = 0;
  const auto measure = [&](program::ProbeId id) {
    longest = std::max(longest, program::probe_name_text(kind, probes_[id]).size());
  };
  std::ranges::for_each(unit().probes, measure);
  if (unit().probes.empty())  // a function of the script: any action may call it
    for (const program::ProbeId id : probes_.ids()) measure(id);
  fact(argument).type = types_.string(static_cast<uint32_t>(longest + 1));
}

bool Checker::matches_parameter(std::string_view wanted, TypeId found, ExprId argument) {
  if (wanted == "any" || wanted == kAnyOrMap || wanted == kModeOrTask || wanted.empty()) return true;
  const types::Type& t = type_of(found);
  if (wanted == "int") return is_int_like(t) || t.kind == Kind::kPointer;
  if (wanted == "pointer")
    return t.kind == Kind::kPointer || (t.kind == Kind::kInt && !t.char_like) || t.kind == Kind::kArray ||
           t.kind == Kind::kString || types::sized_text(types_, known(found));
  if (wanted == "string") return t.kind == Kind::kString;
  if (wanted == kText) {
    const bool has_elements = t.kind == Kind::kPointer || t.kind == Kind::kArray;
    const types::Type& element = type_of(t.element);
    return t.kind == Kind::kString || (has_elements && element.kind == Kind::kInt && element.size_bytes == 1);
  }
  if (wanted == "buffer") return t.kind == Kind::kBuffer || t.kind == Kind::kString;
  if (wanted == kHistogram) return t.kind == Kind::kHist || t.kind == Kind::kLhist;
  if (wanted == "stack") return t.kind == Kind::kKernelStack || t.kind == Kind::kUserStack;
  if (wanted == "type") return ast_.get<TypeExpr>(argument) != nullptr;
  const TypeId exact = signature_type(types_, kernel_, wanted);
  if (!exact) return true;
  const types::Type& e = type_of(exact);
  const types::Type& now = type_of(found);
  if (is_int_like(e)) return is_int_like(now) || now.kind == Kind::kPointer;
  if (e.kind == Kind::kPointer) return now.kind == Kind::kPointer || now.kind == Kind::kInt;
  return e.kind == now.kind;
}

}  // namespace espy::check
