#include "lsp/hover.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "lsp/names.h"

namespace espy::lsp {

std::string code_block(std::string_view code) { return fmt::format("```bpftrace\n{}\n```\n", code); }

std::string describe(const spec::Builtin& builtin) {
  std::string out = code_block(builtin.sig) + std::string(builtin.doc);
  if (!builtin.providers.empty()) out += fmt::format("\n\nOnly in probes of: {}.", builtin.providers);
  if (builtin.is_unsafe && builtin.doc.find("--unsafe") == builtin.doc.npos) out += "\n\nNeeds `--unsafe`.";
  if (!builtin.example.empty()) out += "\n\n" + code_block(builtin.example);
  return out;
}

std::string describe(const spec::Provider& provider) {
  std::string out = code_block(provider.form) + std::string(provider.doc);
  if (!provider.example.empty()) out += "\n\n" + code_block(provider.example);
  return out;
}

std::string declaration_of(const check::CheckedMap& map, const types::Types& types) {
  std::string key;
  if (map.key.valid() && types[map.key].kind != types::Kind::kVoid) {
    key = types::to_string(types, map.key);
    if (key.starts_with('(')) key = key.substr(1, key.size() - 2);
    key = "[" + key + "]";
  }
  const std::string value = map.value.valid() ? types::to_string(types, map.value) : "void";
  return fmt::format("{}{}: {}", map.name, key, value);
}

std::string head_of(const Analysis& analysis, source::Span whole) {
  const std::string_view text = analysis.sources.text(whole);
  return std::string(trim(text.substr(0, text.find('{'))));
}

namespace {

constexpr size_t kMostLines = 40;  // of a definition; all of it is where "go to definition" leads

std::string first_lines(std::string_view text) {
  size_t end = 0;
  for (size_t lines = 0; lines < kMostLines; ++lines) {
    end = text.find('\n', end);
    if (end == text.npos) return std::string(text);
    ++end;
  }
  return std::string(text.substr(0, end)) + "\t...";
}

}  // namespace

std::string definition_of(const Analysis& analysis, const std::string& name) {
  if (name.empty()) return "";
  const auto text = analysis.kernel.c_definition(name);
  return text ? fmt::format("```c\n{}\n```\n", first_lines(*text)) : "";
}

namespace {

constexpr size_t kMostShownProbes = 8;

Json hover_of(const Document& document, source::Span span, const std::string& text) {
  return {{"contents", {{"kind", "markdown"}, {"value", text}}},
          {"range", range_of(document.text, span.begin, span.end)}};
}

std::string describe_fields(const Analysis& analysis, const std::vector<spec::ContextField>& fields) {
  std::string out;
  for (const spec::ContextField& field : fields)
    out += fmt::format("{} {}\n", types::to_string(analysis.types, field.type), field.name);
  return out;
}

// The probes that an attach point stands for, and what they can read.
std::string describe_attach_point(const Services& services, const Analysis& analysis, const syntax::Action& action,
                                  const syntax::AttachPoint& point) {
  const spec::Provider* provider = services.registry.find_provider(point.provider.text);
  if (!provider) return "";
  std::vector<std::string> names;
  std::string args;
  for (const check::Unit& unit : analysis.checked.units) {
    if (!unit.action || unit.action->span != action.span) continue;
    for (const program::ProbeId id : unit.probes) names.push_back(analysis.checked.probes[id].name);
    if (args.empty() && !unit.context.args.empty()) args = describe_fields(analysis, unit.context.args);
  }
  std::string out = describe(*provider);
  if (names.size() > 1) out += fmt::format("\n\n{} probes:\n\n", names.size());
  for (size_t i = 0; names.size() > 1 && i < std::min(names.size(), kMostShownProbes); ++i)
    out += fmt::format("- `{}`\n", names[i]);
  if (names.size() > kMostShownProbes) out += "- ...\n";
  if (!args.empty()) out += "\n\n`args`:\n" + fmt::format("```c\n{}```\n", args);
  return out;
}

Json hover_attach_point(const Services& services, const Document& document, uint32_t offset) {
  for (const syntax::Action& action : document.analysis->ast().actions) {
    for (const syntax::AttachPoint& point : action.attach_points) {
      const source::Span span = point.span;
      if (span.source != document.analysis->script || offset < span.begin || offset > span.end) continue;
      const std::string text = describe_attach_point(services, *document.analysis, action, point);
      if (!text.empty()) return hover_of(document, span, text);
    }
  }
  return nullptr;
}

std::string typed(const Analysis& analysis, std::string_view name, types::TypeId type) {
  std::string out = code_block(fmt::format("{}: {}", name, types::to_string(analysis.types, type)));
  while (analysis.types[type].kind == types::Kind::kPointer) type = analysis.types[type].element;
  const types::Kind kind = analysis.types[type].kind;
  const bool is_named = kind == types::Kind::kStruct || kind == types::Kind::kEnum;
  return is_named ? out + definition_of(analysis, analysis.types[type].name) : out;
}

// A name that calls a macro, which calls no longer have once they are expanded.
std::string describe_definition(const Analysis& analysis, const std::string& word) {
  for (const syntax::Macro& macro : analysis.ast().macros)
    if (macro.name == word) return code_block(head_of(analysis, macro.span));
  for (const syntax::Function& function : analysis.ast().functions)
    if (function.name == word) return code_block(head_of(analysis, function.span));
  return "";
}

std::string describe_expression(const Analysis& analysis, const Found& found, const std::string& word) {
  const check::ExprFact* fact = found.fact();
  if (!fact) return "";
  if (fact->builtin) {
    std::string out = describe(*fact->builtin);
    if (fact->type.valid() && spec::name_of(*fact->builtin) == word && fact->builtin->sig.starts_with("any "))
      out = typed(analysis, word, fact->type) + out;
    return out;
  }
  if (fact->map.valid() && word.starts_with('@')) {
    const check::CheckedMap& map = analysis.checked.maps[fact->map];
    return code_block(declaration_of(map, analysis.types)) + map.storage_note;
  }
  if (const auto* access = analysis.ast().get<syntax::Access>(found.expr); access && access->name != word) return "";
  return fact->type.valid() && !word.empty() ? typed(analysis, word, fact->type) : "";
}

}  // namespace

Json hover(const Services& services, const Document& document, uint32_t offset) {
  if (!document.analysis) return nullptr;
  const auto word = word_at(document.text.bytes(), offset);
  const source::Span span = {document.analysis->script, word ? word->begin : offset, word ? word->end : offset};
  if (word)
    if (const std::string text = describe_definition(*document.analysis, word->text); !text.empty())
      return hover_of(document, span, text);
  if (const syntax::TypeName* type = find_type_name(*document.analysis, offset))
    if (const std::string text = definition_of(*document.analysis, type->name); !text.empty())
      return hover_of(document, type->span, text);
  if (const auto found = find_expression(*document.analysis, offset); found && word)
    if (const std::string text = describe_expression(*document.analysis, *found, word->text); !text.empty())
      return hover_of(document, span, text);
  return hover_attach_point(services, document, offset);
}

namespace {

Json signature(const std::string& label, const std::vector<std::string>& parameters, uint32_t active,
               const std::string& doc) {
  Json names = Json::array();
  for (const std::string& each : parameters) names.push_back({{"label", each}});
  Json out = {{"label", label}, {"parameters", std::move(names)}};
  if (!doc.empty()) out["documentation"] = {{"kind", "markdown"}, {"value", doc}};
  return {{"signatures", Json::array({std::move(out)})}, {"activeSignature", 0}, {"activeParameter", active}};
}

// The texts between the parentheses of "name(a, b)".
std::vector<std::string> parameters_of(std::string_view head) {
  const size_t begin = head.find('(');
  const size_t end = head.rfind(')');
  std::vector<std::string> out;
  if (begin == head.npos || end == head.npos || end <= begin + 1) return out;
  for (const std::string_view each : split(head.substr(begin + 1, end - begin - 1), ',')) out.emplace_back(trim(each));
  return out;
}

}  // namespace

Json signature_help(const Services& services, const Document& document, uint32_t offset) {
  const auto call = open_call(document.text.bytes(), offset);
  if (!call) return nullptr;
  const auto shown = [&](const std::string& head, std::string_view doc) {
    const std::vector<std::string> parameters = parameters_of(head);
    const auto last = static_cast<uint32_t>(std::max<size_t>(parameters.size(), 1) - 1);  // `...` takes any number
    return signature(head, parameters, std::min(call->argument, last), std::string(doc));
  };
  if (const spec::Builtin* builtin = services.registry.find_builtin(call->name))
    return shown(std::string(builtin->sig), builtin->doc);
  if (!document.analysis) return nullptr;
  for (const syntax::Function& function : document.analysis->ast().functions)
    if (function.name == call->name) return shown(head_of(*document.analysis, function.span), "");
  for (const syntax::Macro& macro : document.analysis->ast().macros)
    if (macro.name == call->name) return shown(head_of(*document.analysis, macro.span), "");
  return nullptr;
}

}  // namespace espy::lsp
