#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/analyzer.h"
#include "check/bind.h"
#include "check/c_types.h"
#include "check/config.h"
#include "check/expand.h"
#include "check/walk.h"
#include "syntax/parser.h"

namespace espy::check {

namespace {

// The macros that the script's expressions name, each body parsed as an expression of the same tree. Must be done
// before any fact is noted, as the tree grows.
Defines parse_defines(syntax::Ast& ast, CheckRequest& request) {
  Defines out;
  std::vector<const syntax::CDefine*> candidates;
  for (const auto& definition : ast.c_definitions) {
    const auto* define = std::get_if<syntax::CDefine>(&definition);
    if (define && !define->is_function_like && !define->body.empty()) candidates.push_back(define);
  }
  if (candidates.empty()) return out;
  // Bodies may name other macros: the tree grows while we go.
  for (uint32_t i = 0; i < ast.exprs.size(); ++i) {
    const auto* name = ast.get<syntax::Name>(ExprId{i});
    if (!name || out.contains(name->name)) continue;
    // The last definition counts.
    const auto define = std::find_if(candidates.rbegin(), candidates.rend(),
                                     [&](const syntax::CDefine* d) { return d->name == name->name; });
    if (define == candidates.rend()) continue;
    const std::string key = (*define)->name;
    const source::SourceId body = request.sources.add("#define " + key, (*define)->body);
    out.emplace(key, ExprId{});
    source::Diagnostics ignored;  // a macro that is no expression is an error only where it is one in C as well
    const ExprId parsed = syntax::parse_expression(request.sources, body, ast, ignored);
    if (ignored.has_errors())
      request.diagnostics.error("bad-define", (*define)->span, "`" + key + "` is used, but its body is no expression");
    out[key] = parsed;
  }
  return out;
}

// A macro must not stand for itself, through however many others.
void refuse_cycles(const syntax::Ast& ast, Defines& defines, CheckRequest& request) {
  for (auto& [name, body] : defines) {
    std::vector<std::string> pending = {name};
    std::vector<std::string> seen;
    bool is_cyclic = false;
    while (!pending.empty() && !is_cyclic) {
      const std::string at = pending.back();
      pending.pop_back();
      const auto found = defines.find(at);
      if (found == defines.end() || !found->second) continue;
      walk(ast, found->second, [&](ExprId id) {
        const auto* used = ast.get<syntax::Name>(id);
        if (!used || !defines.contains(used->name)) return;
        is_cyclic |= used->name == name;
        if (std::ranges::find(seen, used->name) != seen.end()) return;
        seen.push_back(used->name);
        pending.push_back(used->name);
      });
    }
    if (!is_cyclic) continue;
    request.diagnostics.error("recursive-define", ast[body].span, "`" + name + "` stands for itself");
    body = {};
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
    map.max_entries = checked.config.max_map_keys;
    if (const auto* entries = checked.ast.get<syntax::IntegerLiteral>(declaration.max_entries)) {
      if (entries->value == 0 || entries->value > UINT32_MAX)
        request.diagnostics.error("out-of-range", checked.ast[declaration.max_entries].span,
                                  "a map has 1 to 4294967295 keys");
      map.max_entries = entries->value;
    }
    checked.maps.add(std::move(map));
  }
}

void refuse_imports(const syntax::Ast& ast, source::Diagnostics& diagnostics) {
  for (const syntax::Import& import : ast.imports)
    diagnostics.error("not-yet-supported", import.span, "`import` is not supported yet");
}

}  // namespace

Checked check(syntax::Ast ast, CheckRequest& request) {
  Checked checked;
  checked.config = request.config;
  checked.ast = std::move(ast);
  read_config(checked.ast, checked.config, request.diagnostics);
  refuse_imports(checked.ast, request.diagnostics);
  expand_macros(checked.ast, request.sources, request.diagnostics);
  Defines defines = parse_defines(checked.ast, request);
  refuse_cycles(checked.ast, defines, request);
  define_c_types(checked.ast, request.types, request.kernel, request.diagnostics);
  declare_maps(checked, request);
  // Facts point into units and the tree: both are complete here, and moving `checked` moves neither's elements.
  bind_probes(checked, request);
  Analyzer(request, checked, defines).run();
  return checked;
}

}  // namespace espy::check
