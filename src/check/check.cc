#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "check/analyzer.h"
#include "check/bind.h"
#include "check/c_types.h"
#include "check/config.h"
#include "check/expand.h"
#include "check/import.h"
#include "check/library.h"
#include "check/paste.h"
#include "check/walk.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace espy::check {

namespace {

// The #defines that the script names, each body parsed as an expression of the same tree. One with parameters becomes a
// macro of the language; its calls are replaced with the others'. Must be done before any fact is noted, as the tree
// grows.
class DefineParser {
 public:
  DefineParser(syntax::Ast& ast, CheckRequest& request) : ast_(ast), request_(request) {}

  Defines run() {
    for (const auto& definition : ast_.c_definitions) {
      const auto* define = std::get_if<syntax::CDefine>(&definition);
      if (!define || define->body.empty()) continue;
      // The last definition counts.
      (define->is_function_like ? with_parameters_ : plain_).insert_or_assign(define->name, define);
    }
    if (plain_.empty() && with_parameters_.empty()) return {};
    // Bodies may name other macros: the tree grows while we go.
    for (uint32_t i = 0; i < ast_.exprs.size(); ++i) {
      const ExprId id{i};
      if (unparsed_.contains(ast_.exprs[id].span.source)) continue;
      if (const auto* name = ast_.get<syntax::Name>(id)) use_plain(name->name);
      if (const auto* call = ast_.get<syntax::Call>(id)) use_call(id, call->name);
      if (std::holds_alternative<syntax::Access>(ast_.exprs[id].node)) rename_member(id);
    }
    for (uint32_t i = 0; i < ast_.type_names.size(); ++i) use_type(syntax::TypeNameId{i});
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kMostTypes = 200;  // macros that name each other would never end

  // An expression, or statements: `#define STEP @n++; print(@n)`.
  ExprId parse_body(const syntax::CDefine& define) { return parse_body(define, define.body); }
  ExprId parse_body(const syntax::CDefine& define, const std::string& body_text) {
    for (const std::string& text : {body_text, "{ " + body_text + " }"}) {
      const source::SourceId body = request_.sources.add("#define " + define.name, text);
      source::Diagnostics problems;
      const ExprId parsed = syntax::parse_expression(request_.sources, body, ast_, problems);
      if (!problems.has_errors()) return parsed;
      unparsed_.insert(body);
    }
    request_.diagnostics.error("bad-define", define.span,
                               "`" + define.name + "` is used, but its body is neither an expression nor statements");
    return ast_.exprs.add({define.span, syntax::ErrorExpr{}});
  }

  void use_plain(const std::string& name) {
    const auto found = plain_.find(name);
    if (found == plain_.end() || out_.contains(name)) return;
    const syntax::CDefine* define = found->second;
    out_.emplace(define->name, ExprId{});
    const ExprId body = parse_body(*define);
    out_.find(define->name)->second = body;
  }

  void use_call(ExprId id, const std::string& name) {
    const auto found = with_parameters_.find(name);
    if (found == with_parameters_.end()) return;
    const syntax::CDefine& define = *found->second;
    if (needs_paste(define, with_parameters_)) return use_pasted(id, define);
    with_parameters_.erase(found);
    syntax::Macro macro{.span = define.span, .name = define.name, .name_span = define.span};
    for (const std::string& parameter : define.parameters)
      macro.parameters.push_back(
          {.kind = syntax::Macro::ParameterKind::kExpression, .name = parameter, .span = define.span});
    const ExprId value = parse_body(define);
    macro.body = ast_.exprs.add({define.span, syntax::Block{.statements = {}, .value = value}});
    ast_.macros.push_back(std::move(macro));
  }

  // The call becomes what its text and the body's make together.
  void use_pasted(ExprId id, const syntax::CDefine& define) {
    source::Span call = ast_.exprs[id].span;
    const std::vector<std::string_view> arguments = argument_texts(request_.sources.text(call));
    bool calls_itself = false;
    while (pasted_.contains(call.source)) {
      const Pasted& outer = pasted_.at(call.source);
      calls_itself |= outer.define == &define;
      call = outer.call;
    }
    const bool fits = arguments.size() == define.parameters.size();
    if (!fits || calls_itself) {
      request_.diagnostics.error(
          calls_itself ? "recursive-macro" : "wrong-arity", call,
          calls_itself
              ? fmt::format("the macro `{}` calls itself", define.name)
              : fmt::format("the macro `{}` takes {} argument{}, {} given", define.name, define.parameters.size(),
                            define.parameters.size() == 1 ? "" : "s", arguments.size()));
      ast_.exprs[id].node = syntax::ErrorExpr{};
      return;
    }
    const source::Span direct = ast_.exprs[id].span;
    const ExprId value = parse_body(define, paste(define, arguments));
    // What could not be parsed has the definition's place, and is no text that was made.
    if (!std::holds_alternative<syntax::ErrorExpr>(ast_.exprs[value].node))
      pasted_.emplace(ast_.exprs[value].span.source, Pasted{&define, direct});
    ast_.exprs[id].node = syntax::Block{.statements = {}, .value = value};
  }

  // `#define FIELD pid`: `->FIELD` is `->pid`.
  void rename_member(ExprId id) {
    auto& access = std::get<syntax::Access>(ast_.exprs[id].node);
    const auto define = plain_.find(access.name);
    if (define == plain_.end()) return;
    const std::string& body = define->second->body;
    const bool is_name = syntax::is_word_start(body[0]) && std::ranges::all_of(body, syntax::is_word);
    if (is_name) access.name = body;
  }

  // `#define TASK struct task_struct`: `(TASK *)` is a cast to it.
  void use_type(syntax::TypeNameId id) {
    const syntax::TypeName& name = ast_.type_names[id];
    const auto found = name.tag == syntax::TypeName::Tag::kNone ? plain_.find(name.name) : plain_.end();
    if (found == plain_.end() || ++types_ > kMostTypes) return;
    const source::SourceId body = request_.sources.add("#define " + found->first, found->second->body);
    source::Diagnostics problems;
    const syntax::TypeNameId parsed = syntax::parse_type(request_.sources, body, ast_, problems);
    if (!problems.has_errors()) ast_.type_names[id].typeof_type = parsed;
  }

  syntax::Ast& ast_;
  CheckRequest& request_;
  DefinesByName plain_, with_parameters_;
  uint32_t types_ = 0;  // that were macros
  struct Pasted {
    const syntax::CDefine* define;
    source::Span call;
  };
  std::map<source::SourceId, Pasted> pasted_;  // by the text that was made
  std::set<source::SourceId> unparsed_;        // texts of which the tree has pieces that belong to nothing
  Defines out_;
};

Defines parse_defines(syntax::Ast& ast, CheckRequest& request) { return DefineParser(ast, request).run(); }

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
      walk(ast, found->second, [&, &name = name](ExprId id) {
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

void refuse_repeated(CheckRequest& request, std::string_view what, const std::string& name, source::Span again,
                     source::Span first) {
  auto& said = request.diagnostics.error("repeated-name", again, fmt::format("{} `{}` is defined already", what, name));
  said.notes.push_back({first, "defined here"});
}

// Macros of one name may differ in how many arguments they take.
bool take_the_same(const syntax::Macro& a, const syntax::Macro& b) {
  const auto least = [](const syntax::Macro& macro) {
    return std::ranges::count_if(macro.parameters, [](const auto& each) { return !each.default_value.valid(); });
  };
  return std::cmp_less_equal(least(a), b.parameters.size()) && std::cmp_less_equal(least(b), a.parameters.size());
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

}  // namespace

Checked check(syntax::Ast ast, CheckRequest& request) {
  Checked checked;
  checked.config = request.config;
  checked.symbols = request.symbols;
  checked.ast = std::move(ast);
  read_config(checked.ast, checked.config, request.diagnostics);
  if (!checked.ast.imports.empty()) read_imports(checked.ast, checked.ast.imports.front().span.source, request);
  refuse_repeated_names(checked.ast, request);
  Defines defines = parse_defines(checked.ast, request);
  refuse_cycles(checked.ast, defines, request);
  add_library(checked.ast, request.sources, request.diagnostics);
  expand_macros(checked.ast, request.sources, request.diagnostics);
  define_c_types(checked.ast, request.types, request.kernel, request.diagnostics);
  declare_maps(checked, request);
  // Facts point into units and the tree: both are complete here, and moving `checked` moves neither's elements.
  bind_probes(checked, request);
  Analyzer(request, checked, defines).run();
  return checked;
}

}  // namespace espy::check
