// Calls: builtins by their signatures, the script's own functions.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/analyzer.h"
#include "check/signature.h"
#include "program/probe_names.h"
#include "types/sized_text.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

namespace {

std::string ordinal(size_t index) {
  static constexpr std::string_view kWords[] = {"first", "second", "third", "fourth", "fifth", "sixth"};
  return index < std::size(kWords) ? std::string(kWords[index]) : fmt::format("{}th", index + 1);
}

// A map's name stands for the whole map here, and for its value where `any` is wanted.
constexpr std::string_view kAnyOrMap = "any or map";
// `delete(@m[key])`, the old form of `delete(@m, key)`.
constexpr std::string_view kMapOrElement = "map or element";

std::string describe(std::string_view wanted) {
  if (wanted == "int") return "an integer";
  if (wanted == "pointer") return "a pointer";
  if (wanted == "string") return "a string";
  if (wanted == "buffer") return "a buffer";
  if (wanted == "map") return "a map";
  if (wanted == "aggregation") return "an aggregation";
  if (wanted == "stack") return "a stack";
  if (wanted == "type") return "a type";
  return fmt::format("`{}`", wanted);
}

// `a.b.c` as it is written; nothing if it is something else.
std::string dotted(const Ast& ast, ExprId id) {
  if (const auto* name = ast.get<Name>(id)) return name->name;
  const auto* access = ast.get<Access>(id);
  const std::string outer = access ? dotted(ast, access->base) : std::string();
  return outer.empty() ? outer : outer + "." + access->name;
}

}  // namespace

TypeId Analyzer::visit(ExprId id, const Call& node) {
  for (size_t i = 0; i < ast().functions.size(); ++i)
    if (ast().functions[i].name == node.name) return call_function(id, node, i);
  const spec::Builtin* builtin = request_.registry.find_builtin(node.name);
  if (!builtin) {
    for (const ExprId argument : node.arguments)
      if (!ast().get<Name>(argument)) expr(argument);
    bool is_context = false;
    if (node.arguments.empty()) {
      const TypeId found = context_name(id, node.name, is_context);
      if (is_context) return found;
    }
    unknown_name(node.name, node.name_span, true);
    return {};
  }
  // str($1) is the parameter as it was typed, whether it looks like a number or not.
  const auto* parameter = node.arguments.empty() ? nullptr : ast().get<Positional>(node.arguments[0]);
  if (parameter && node.name == "str") {
    fact(id).builtin = builtin;
    for (const ExprId argument : node.arguments) expr(argument);
    const auto& given = config().positional;
    const bool is_given = parameter->index >= 1 && parameter->index <= given.size();
    return string_constant(id, is_given ? given[parameter->index - 1] : std::string());
  }
  return builtin_use(id, *builtin, node.arguments);
}

TypeId Analyzer::call_function(ExprId id, const Call& node, size_t index) {
  const syntax::Function& function = ast().functions[index];
  fact(id).function = static_cast<int32_t>(index);
  for (const ExprId argument : node.arguments) value(argument), read_aggregation(argument);
  if (node.arguments.size() != function.parameters.size()) {
    error("wrong-arity", span(id),
          fmt::format("`{}` takes {} argument{}, {} given", node.name, function.parameters.size(),
                      function.parameters.size() == 1 ? "" : "s", node.arguments.size()));
  } else {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const ExprId argument = node.arguments[i];
      if (!type(argument) || !function.parameters[i].type) continue;
      Slot slot;
      slot.type = slot.firm = type_name(function.parameters[i].type);
      slot.is_declared = true;
      if (slot.type && !slot.add(types(), type(argument), constant(argument), is_literal(argument)))
        error("type-mismatch", span(argument),
              fmt::format("`{}`'s {} parameter is {}, not {}", node.name, ordinal(i), show(slot.type),
                          show(type(argument))));
    }
  }
  return function.result ? type_name(function.result) : types().void_type();
}

bool Analyzer::allowed_here(const spec::Builtin& builtin, Span at) {
  const std::string name(spec::name_of(builtin));
  bool allowed = true;
  if (builtin.is_unsafe && !config().allow_unsafe) {
    error("unsafe", at, "`" + name + "` can change the system", "run with --unsafe to allow it");
    allowed = false;
  }
  if (builtin.needs && !kernel().has(*builtin.needs)) {
    const auto rows = kernel::feature_rows();
    const auto row = std::ranges::find(rows, *builtin.needs, &kernel::FeatureRow::feature);
    const std::string forbidden =
        *builtin.needs == kernel::Feature::kProbeWriteUser
            ? forbidden_by(kernel().lockdown(), kernel::Lockdown::kIntegrity, "`" + name + "`")
            : "";
    error("kernel-lacks", at,
          !forbidden.empty()  ? forbidden
          : row == rows.end() ? "this kernel lacks what `" + name + "` needs"
                              : fmt::format("this kernel lacks `{}`, which `{}` needs", row->name, name));
    allowed = false;
  }
  const std::string& provider = first_probe().provider;
  if (!builtin.providers.empty() && unit_->action) {
    const auto listed = split(builtin.providers, ',');
    if (std::ranges::none_of(listed, [&](std::string_view p) { return trim(p) == provider; })) {
      std::vector<std::string> names;
      for (const std::string_view p : listed) names.emplace_back(trim(p));
      error("wrong-probe", at, "`" + name + "` does not work in a `" + provider + "` probe",
            "it works in " + join(names, ", "));
      allowed = false;
    }
  }
  if (builtin.ends_action && loop_depth_ > 0)
    error("exit-in-loop", at, "`" + name + "` cannot stand in a loop", "use `break`, and call it behind the loop");
  return allowed;
}

bool Analyzer::matches(std::string_view wanted, TypeId found, ExprId argument) {
  if (wanted == "any" || wanted == kAnyOrMap || wanted.empty()) return true;
  const types::Type& t = type_of(found);
  if (wanted == "int") return is_int_like(t) || t.kind == Kind::kPointer;
  if (wanted == "pointer")
    return t.kind == Kind::kPointer || (t.kind == Kind::kInt && !t.char_like) || t.kind == Kind::kArray ||
           t.kind == Kind::kString || types::sized_text(types(), known(found));
  if (wanted == "string") return t.kind == Kind::kString;
  if (wanted == "buffer") return t.kind == Kind::kBuffer || t.kind == Kind::kString;
  if (wanted == "aggregation") return types::is_aggregation(t);
  if (wanted == "stack") return t.kind == Kind::kKernelStack || t.kind == Kind::kUserStack;
  if (wanted == "type") return ast().get<TypeExpr>(argument) != nullptr;
  const TypeId exact = signature_type(types(), kernel(), wanted);
  if (!exact) return true;
  const types::Type& e = type_of(exact);
  const types::Type& now = type_of(found);
  if (is_int_like(e)) return is_int_like(now) || now.kind == Kind::kPointer;
  if (e.kind == Kind::kPointer) return now.kind == Kind::kPointer || now.kind == Kind::kInt;
  return e.kind == now.kind;
}

// A variable that the builtin assigns: declared here if it is new, of the type of the map's values.
void Analyzer::output_argument(const MapState* map, ExprId argument, const std::string& where) {
  const auto* variable = ast().get<syntax::Variable>(argument);
  if (!variable) {
    if (!ast().get<ErrorExpr>(argument))
      error("wrong-argument", span(argument), where + " must be a variable to assign");
    return;
  }
  VariableId id = find_variable(variable->name);
  if (!id) id = declare_at(argument, variable->name);
  TypeId held = map && map->value.type ? map->value.type : types().int64();
  if (const TypeId reduced = reduced_type(types(), held)) held = reduced;
  add_to_variable(id, held, {}, false, span(argument));
  variables_[unit_index_][id.index].is_assigned = true;
  fact(argument).variable = id;
  fact(argument).type = unit_->variables[id].type;
}

// `probe` and its like are numbers that are shown as names; what reads text is given the name itself.
void Analyzer::name_as_text(ExprId argument) {
  const Kind kind = type_of(type(argument)).kind;
  if (!program::is_probe_name(kind) || !ast().get<Name>(argument)) return;
  size_t longest = 0;
  const auto measure = [&](program::ProbeId id) {
    longest = std::max(longest, program::probe_name_text(kind, checked_.probes[id]).size());
  };
  std::ranges::for_each(unit_->probes, measure);
  if (unit_->probes.empty())  // a function of the script, for whichever action calls it
    for (const program::ProbeId id : checked_.probes.ids()) measure(id);
  fact(argument).type = types().string(static_cast<uint32_t>(longest + 1));
}

void Analyzer::check_argument(const spec::Builtin& builtin, const Parameter& parameter, size_t index, ExprId argument) {
  const std::string name(spec::name_of(builtin));
  const auto where = [&] { return fmt::format("`{}`'s {} argument", name, ordinal(index)); };
  if (parameter.type == "map" || parameter.type == kMapOrElement) {
    if (!map_argument(argument, parameter.type == kMapOrElement) && !ast().get<ErrorExpr>(argument)) {
      expr(argument);
      error("not-a-map", span(argument), where() + " must be a map",
            ast().get<Index>(argument) ? "write the map's name alone" : "");
    }
    return;
  }
  if (parameter.type == kAnyOrMap && ast().get<Map>(argument)) {
    map_argument(argument, false);
    return;
  }
  if (parameter.type == "type" && ast().get<TypeExpr>(argument)) {
    fact(argument).type = type_name(ast().get<TypeExpr>(argument)->type);
    return;
  }
  if (parameter.type == "word") {
    const std::string path = dotted(ast(), argument);
    if (path.empty()) error("wrong-argument", span(argument), where() + " must be a name");
    fact(argument).type = string_constant(argument, path);
    return;
  }
  // A bare word is a mode: nsecs(boot), ustack(perf, 5); also one that is a builtin's name: tseries(n, 1s, 5, max).
  const auto* word = ast().get<Name>(argument);
  const bool takes_words = parameter.is_literal && (parameter.type == "string" || parameter.type == "any");
  const bool is_word =
      word && !defines_.contains(word->name) &&
      ((parameter.type == "string" && parameter.is_optional) || !request_.registry.find_builtin(word->name));
  if (is_word && takes_words) {
    fact(argument).type = string_constant(argument, word->name);
    return;
  }
  value(argument);
  read_aggregation(argument);
  if (!type(argument)) return;
  if (parameter.type == "string" && !parameter.is_literal) name_as_text(argument);
  const TypeId found = type(argument);
  if (parameter.is_literal && !is_constant(argument)) {
    error("not-constant", span(argument),
          where() + " must be " + (parameter.type == "string" ? "a string literal" : "a constant"));
    return;
  }
  if (!matches(parameter.type, found, argument)) {
    const bool is_text = parameter.is_literal && parameter.type == "string";
    error("wrong-argument", span(argument),
          where() + " must be " + (is_text ? "a string literal" : describe(parameter.type)) + ", not " + show(found));
  }
}

TypeId Analyzer::builtin_use(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments) {
  fact(id).builtin = &builtin;
  const Signature signature = parse_signature(builtin.sig);
  const bool allowed = allowed_here(builtin, span(id));
  const size_t problems = problems_;
  MapState* map = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i < signature.parameters.size()) {
      const Parameter& parameter = signature.parameters[i];
      if (parameter.type == "variable")
        output_argument(map, arguments[i], fmt::format("`{}`'s {} argument", spec::name_of(builtin), ordinal(i)));
      else
        check_argument(builtin, parameter, i, arguments[i]);
      const bool takes_map = parameter.type == "map" || parameter.type == kMapOrElement;
      if (takes_map && unit().fact(arguments[i]).map.valid())
        map = &maps_.find(checked_.maps[unit().fact(arguments[i]).map].name)->second;
      else if (map && parameter.name == "key" && type(arguments[i]))
        use_key(*map, {arguments[i]}, span(arguments[i]));
      if (map && parameter.type == kMapOrElement && arguments.size() == 1 && ast().get<Map>(arguments[0]))
        use_as_scalar(*map, span(arguments[0]));
    } else {
      value(arguments[i]);
      read_aggregation(arguments[i]);
    }
  }
  const std::string_view name = spec::name_of(builtin);
  if (const auto problem = arity_problem(name, signature, arguments.size())) {
    error("wrong-arity", span(id), *problem, fmt::format("it is `{}`", builtin.sig));
    return {};
  }
  TypeId result = signature_type(types(), kernel(), signature.result);
  if (signature.result == "int") result = types().int64();
  const bool is_known = std::ranges::all_of(
      arguments, [&](ExprId argument) { return type(argument).valid() || unit().fact(argument).map.valid(); });
  if (!allowed || !is_known || problems_ != problems) return result;
  if (builtin.check) {
    const spec::CallSite site{id, span(id), arguments};
    const TypeId said = builtin.check(*this, site);
    if (signature.result == "any" || !result) result = said;
  }
  return result;
}

}  // namespace espy::check
