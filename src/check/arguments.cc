#include "check/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/signature.h"
#include "check/type_rules.h"
#include "program/probe_names.h"
#include "types/sized_text.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

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

std::string ordinal(size_t index) {
  static constexpr std::string_view kWords[] = {"first", "second", "third", "fourth", "fifth", "sixth"};
  return index < std::size(kWords) ? std::string(kWords[index]) : fmt::format("{}th", index + 1);
}

void Arguments::check(const spec::Builtin& builtin, const Signature& signature, const std::vector<ExprId>& arguments) {
  MapState* map = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ExprId argument = arguments[i];
    if (i >= signature.parameters.size()) {
      expressions_.read_value(argument);
      continue;
    }
    const Parameter& parameter = signature.parameters[i];
    const std::string where = fmt::format("`{}`'s {} argument", spec::name_of(builtin), ordinal(i));
    if (parameter.type == "variable")
      assigned_variable(map, argument, where);
    else
      check_one(parameter, argument, where);
    if (is_map(parameter) && facts_.fact(argument).map.valid())
      map = &maps_.state(facts_.fact(argument).map);
    else if (map && parameter.name == "key" && facts_.type(argument))
      map_expressions_.use_key(*map, {argument}, facts_.span(argument));
    if (map && parameter.type == kMapOrElement && arguments.size() == 1 && facts_.ast().get<Map>(argument))
      maps_.use_as_scalar(*map, facts_.span(argument));
  }
}

void Arguments::check_one(const Parameter& parameter, ExprId argument, const std::string& where) {
  if (is_map(parameter)) return map_or_element(parameter, argument, where);
  if (parameter.type == kAnyOrMap && facts_.ast().get<Map>(argument)) {
    map_expressions_.argument(argument, false);
    return;
  }
  if (const auto* type = facts_.ast().get<TypeExpr>(argument); type && parameter.type == "type") {
    facts_.fact(argument).type = type_names_.type(type->type);
    return;
  }
  if (parameter.type == "word") {
    const std::string path = dotted(facts_.ast(), argument);
    if (path.empty()) reporter_.error("wrong-argument", facts_.span(argument), where + " must be a name");
    facts_.fact(argument).type = facts_.set_text(argument, path);
    return;
  }
  if (is_mode(parameter, argument)) {
    facts_.fact(argument).type = facts_.set_text(argument, facts_.ast().get<Name>(argument)->name);
    return;
  }
  check_value(parameter, argument, where);
}

void Arguments::map_or_element(const Parameter& parameter, ExprId argument, const std::string& where) {
  if (map_expressions_.argument(argument, parameter.type == kMapOrElement) || facts_.ast().get<ErrorExpr>(argument))
    return;
  expressions_.expr(argument);
  reporter_.error("not-a-map", facts_.span(argument), where + " must be a map",
                  facts_.ast().get<Index>(argument) ? "write the map's name alone" : "");
}

// A bare word is a mode: nsecs(boot), ustack(perf, 5); also one that is a builtin's name: tseries(n, 1s, 5, max).
bool Arguments::is_mode(const Parameter& parameter, ExprId argument) const {
  const auto* word = facts_.ast().get<Name>(argument);
  const bool takes_words = (parameter.is_literal && (parameter.type == "string" || parameter.type == "any")) ||
                           parameter.type == kModeOrTask;
  if (!word || !takes_words || defines_.contains(word->name)) return false;
  return (parameter.type == "string" && parameter.is_optional) || !registry_.find_builtin(word->name);
}

void Arguments::check_value(const Parameter& parameter, ExprId argument, const std::string& where) {
  const bool is_text = parameter.type == "string" || parameter.type == kText;
  const bool is_histogram = parameter.type == kHistogram;
  if (!expressions_.read_value(argument, is_histogram || parameter.type == kAnyOrMap)) return;
  if (is_histogram) facts_.fact(argument).is_reduced = false;
  if (is_text && !parameter.is_literal) name_as_text(argument);
  const TypeId found = facts_.type(argument);
  if (parameter.is_literal && !facts_.is_constant(argument)) {
    reporter_.error("not-constant", facts_.span(argument),
                    where + " must be " + (is_text ? "a string literal" : "a constant"));
    return;
  }
  if (matches(parameter.type, found, argument)) return;
  reporter_.error("wrong-argument", facts_.span(argument),
                  where + " must be " +
                      (parameter.is_literal && is_text ? "a string literal" : describe(parameter.type)) + ", not " +
                      facts_.show(found));
}

// A variable that the builtin assigns, of the type of the map's values; declared here if it is new.
void Arguments::assigned_variable(const MapState* map, ExprId argument, const std::string& where) {
  const auto* variable = facts_.ast().get<syntax::Variable>(argument);
  if (!variable) {
    if (!facts_.ast().get<ErrorExpr>(argument))
      reporter_.error("wrong-argument", facts_.span(argument), where + " must be a variable to assign");
    return;
  }
  VariableId id = variables_.find(variable->name);
  if (!id) id = variables_.declare_at(argument, variable->name);
  TypeId held = map ? maps_.value_type(*map) : facts_.types().int64();
  if (const TypeId reduced = reduced_type(facts_.types(), held)) held = reduced;
  variables_.add(id, held, {}, false, facts_.span(argument));
  variables_.state(id).is_assigned = true;
  facts_.fact(argument).variable = id;
  facts_.fact(argument).type = variables_.type(id);
}

// Values of `probe`, `func` and the like are numbers that print as names. A parameter that is a string takes the name.
void Arguments::name_as_text(ExprId argument) {
  const Kind kind = facts_.type_of(facts_.type(argument)).kind;
  if (!program::is_probe_name(kind) || !facts_.ast().get<Name>(argument)) return;
  size_t longest = 0;
  const auto measure = [&](program::ProbeId id) {
    longest = std::max(longest, program::probe_name_text(kind, probes_[id]).size());
  };
  std::ranges::for_each(facts_.unit().probes, measure);
  if (facts_.unit().probes.empty())  // a function of the script: any action may call it
    for (const program::ProbeId id : probes_.ids()) measure(id);
  facts_.fact(argument).type = facts_.types().string(static_cast<uint32_t>(longest + 1));
}

bool Arguments::matches(std::string_view wanted, TypeId found, ExprId argument) {
  if (wanted == "any" || wanted == kAnyOrMap || wanted == kModeOrTask || wanted.empty()) return true;
  const types::Type& t = facts_.type_of(found);
  if (wanted == "int") return is_int_like(t) || t.kind == Kind::kPointer;
  if (wanted == "pointer")
    return t.kind == Kind::kPointer || (t.kind == Kind::kInt && !t.char_like) || t.kind == Kind::kArray ||
           t.kind == Kind::kString || types::sized_text(facts_.types(), facts_.known(found));
  if (wanted == "string") return t.kind == Kind::kString;
  if (wanted == kText) {
    const bool has_elements = t.kind == Kind::kPointer || t.kind == Kind::kArray;
    const types::Type& element = facts_.type_of(t.element);
    return t.kind == Kind::kString || (has_elements && element.kind == Kind::kInt && element.size_bytes == 1);
  }
  if (wanted == "buffer") return t.kind == Kind::kBuffer || t.kind == Kind::kString;
  if (wanted == kHistogram) return t.kind == Kind::kHist || t.kind == Kind::kLhist;
  if (wanted == "stack") return t.kind == Kind::kKernelStack || t.kind == Kind::kUserStack;
  if (wanted == "type") return facts_.ast().get<TypeExpr>(argument) != nullptr;
  const TypeId exact = signature_type(facts_.types(), kernel_, wanted);
  if (!exact) return true;
  const types::Type& e = facts_.type_of(exact);
  const types::Type& now = facts_.type_of(found);
  if (is_int_like(e)) return is_int_like(now) || now.kind == Kind::kPointer;
  if (e.kind == Kind::kPointer) return now.kind == Kind::kPointer || now.kind == Kind::kInt;
  return e.kind == now.kind;
}

}  // namespace espy::check
