#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "check/checker.h"

namespace espy::check {

Unit::Unit() = default;
Unit::Unit(const Unit&) = default;
Unit& Unit::operator=(const Unit&) = default;
Unit::Unit(Unit&&) noexcept = default;
Unit& Unit::operator=(Unit&&) noexcept = default;
Unit::~Unit() = default;

Checked::Checked() = default;
Checked::Checked(Checked&&) noexcept = default;
Checked& Checked::operator=(Checked&&) noexcept = default;
Checked::~Checked() = default;

namespace {

void refuse_repeated(CheckRequest& request, std::string_view what, const std::string& name, source::Span again,
                     source::Span first) {
  auto& said = request.diagnostics.error("repeated-name", again, fmt::format("{} `{}` is defined already", what, name));
  said.notes.push_back({first, "defined here"});
}

void refuse_repeated_names(const syntax::Ast& ast, CheckRequest& request) {
  for (size_t i = 0; i < ast.functions.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (ast.functions[i].name == ast.functions[j].name)
        refuse_repeated(request, "the function", ast.functions[i].name, ast.functions[i].name_span,
                        ast.functions[j].name_span);
  for (size_t i = 0; i < ast.macros.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (ast.macros[i].name == ast.macros[j].name && take_the_same(ast.macros[i], ast.macros[j]))
        refuse_repeated(request, "the macro", ast.macros[i].name, ast.macros[i].name_span, ast.macros[j].name_span);
  std::map<std::string, source::Span, std::less<>> structs;
  for (const syntax::CDefinition& definition : ast.c_definitions) {
    const auto* node = std::get_if<syntax::CStruct>(&definition);
    if (!node || node->name.empty() || !node->has_body) continue;
    const auto [first, is_new] = structs.emplace(node->name, node->span);
    if (!is_new)
      refuse_repeated(request, node->is_union ? "the union" : "the struct", node->name, node->span, first->second);
  }
}

struct KindRow {
  std::string_view name;
  program::MapKind kind;
};
constexpr KindRow kMapKinds[] = {{"hash", program::MapKind::kHash},
                                 {"lruhash", program::MapKind::kLruHash},
                                 {"percpuhash", program::MapKind::kPercpuHash},
                                 {"percpulruhash", program::MapKind::kLruPercpuHash}};

void declare_maps(Checked& checked, CheckRequest& request) {
  for (const syntax::MapDeclaration& declaration : checked.ast.map_declarations) {
    const auto* row = std::ranges::find(kMapKinds, declaration.kind, &KindRow::name);
    if (row == std::end(kMapKinds)) {
      std::vector<std::string> names;
      for (const KindRow& known : kMapKinds) names.emplace_back(known.name);
      request.diagnostics.error("unknown-map-kind", declaration.kind_span,
                                "no kind of map named `" + declaration.kind + "`",
                                did_you_mean(declaration.kind, names));
      continue;
    }
    const auto same = std::ranges::find(checked.maps, declaration.name, &CheckedMap::name);
    if (same != checked.maps.end()) {
      auto& said = request.diagnostics.error("repeated-name", declaration.span,
                                             "`" + declaration.name + "` is declared already");
      said.notes.push_back({same->span, "declared here"});
      continue;
    }
    CheckedMap map;
    map.name = declaration.name;
    map.key = map.value = request.types.void_type();
    map.kind = row->kind;
    map.is_declared = true;
    map.span = declaration.span;
    map.max_entries = checked.config.limits.max_map_keys;
    if (const auto* entries = checked.ast.get<syntax::IntegerLiteral>(declaration.max_entries)) {
      if (entries->value == 0 || entries->value > UINT32_MAX)
        request.diagnostics.error("out-of-range", checked.ast[declaration.max_entries].span,
                                  "a map has 1 to 4294967295 keys");
      map.max_entries = entries->value;
    }
    checked.maps.add(std::move(map));
  }
}

// One attempt to bind and analyze, with diagnostics of its own.
struct Attempt {
  Attempt(Checked& checked, const Defines& defines, CheckRequest& request, ResultTypes results) {
    CheckRequest own{.sources = request.sources,
                     .registry = request.registry,
                     .kernel = request.kernel,
                     .types = request.types,
                     .symbols = request.symbols,
                     .config = request.config,
                     .diagnostics = diagnostics,
                     .binding = request.binding,
                     .files = request.files,
                     .recorded = request.recorded,
                     .bound = request.bound};
    // Facts point into units and the tree. Neither grows from here on, and moving `checked` leaves their elements in
    // place.
    const BindResult bound = bind_probes(checked, own, results);
    has_mixed_results = bound.has_mixed_results;
    if (bound.is_within_limits) Checker::run(own, checked, defines);
  }

  source::Diagnostics diagnostics;
  bool has_mixed_results = false;
};

// Functions that a wildcard matches return their own types. If the action does not work on all of these, `retval` is a
// number.
void bind_and_analyze(Checked& checked, const Defines& defines, CheckRequest& request) {
  const Table<ScriptMapId, CheckedMap> declared = checked.maps;
  Attempt attempt(checked, defines, request, ResultTypes::kOwn);
  if (attempt.has_mixed_results && attempt.diagnostics.has_errors()) {
    checked.units.clear();
    checked.probes = {};
    checked.options.clear();
    checked.maps = declared;
    Attempt raw(checked, defines, request, ResultTypes::kNumbersInWildcards);
    if (!raw.diagnostics.has_errors()) {
      const source::Diagnostic* first = nullptr;
      for (const source::Diagnostic& each : attempt.diagnostics.all())
        if (first == nullptr && each.severity == source::Severity::kError) first = &each;
      raw.diagnostics.warning("mixed-results", first->span,
                              "the functions return different types: `retval` is a number", first->message);
      attempt.diagnostics = std::move(raw.diagnostics);
    }
  }
  for (const source::Diagnostic& said : attempt.diagnostics.all()) request.diagnostics.add(said);
}

}  // namespace

Checked check(syntax::Ast ast, CheckRequest& request) {
  Checked checked;
  checked.config = request.config;
  checked.symbols = request.symbols;
  checked.ast = std::move(ast);
  read_config(checked.ast, checked.config, request.diagnostics);
  if (!checked.ast.imports.empty()) read_imports(checked.ast, checked.ast.imports.front().span.source, request);
  refuse_repeated_names(checked.ast, request);
  const Defines defines = parse_defines(checked.ast, request);
  add_library(checked.ast, request.sources, request.diagnostics);
  expand_macros(checked.ast, request.registry, request.sources, request.diagnostics);
  assign_inside_blocks(checked.ast, request.registry);
  define_c_types(checked.ast, request.types, request.kernel, request.diagnostics);
  declare_maps(checked, request);
  bind_and_analyze(checked, defines, request);
  if (!request.diagnostics.has_errors()) check_print_units(checked, request.diagnostics);
  return checked;
}

}  // namespace espy::check
