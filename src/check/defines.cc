#include "check/defines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "check/paste.h"
#include "check/walk.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace espy::check {

namespace {

class DefineParser {
 public:
  DefineParser(syntax::Ast& ast, CheckRequest& request) : ast_(ast), request_(request) {}

  Defines run() {
    for (const auto& definition : ast_.c_definitions) {
      const auto* define = std::get_if<syntax::CDefine>(&definition);
      if (!define || define->body.empty()) continue;
      // A later definition replaces an earlier one.
      (define->is_function_like ? with_parameters_ : plain_).insert_or_assign(define->name, define);
    }
    if (plain_.empty() && with_parameters_.empty()) return {};
    // Bodies may name other macros; the tree grows during the loop.
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
  static constexpr uint32_t kMostTypes = 200;  // bounds macros that name each other

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

  // Replaces the call by the body's text with the arguments' text pasted in.
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
    // A body that could not be parsed has the span of its definition, which is not generated text.
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
  uint32_t types_ = 0;  // replaced so far
  struct Pasted {
    const syntax::CDefine* define;
    source::Span call;
  };
  std::map<source::SourceId, Pasted> pasted_;  // by generated text
  std::set<source::SourceId> unparsed_;        // texts with errors, whose expressions in the tree are not used
  Defines out_;
};

// Reports macros that expand to themselves, directly or through others.
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
    request.diagnostics.error("recursive-define", ast[body].span, "`" + name + "` expands to itself");
    body = {};
  }
}

}  // namespace

Defines parse_defines(syntax::Ast& ast, CheckRequest& request) {
  Defines out = DefineParser(ast, request).run();
  refuse_cycles(ast, out, request);
  return out;
}

}  // namespace espy::check
