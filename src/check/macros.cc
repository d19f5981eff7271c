// Macros: the #defines of C and the macros of the language.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/strings.h"
#include "check/check_passes.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace espy::check {

using namespace syntax;
using source::ExpansionId;
using source::Span;

// ---- Macros whose bodies use `#` or `##`. Such a body can be parsed only with the arguments in it, so it is
// substituted as text (C17, 6.10.3); other macros are copied as trees.

namespace {

using DefinesByName = std::map<std::string, const CDefine*, std::less<>>;

std::string_view text_of(std::string_view text, const Token& token) {
  return text.substr(token.begin, token.end - token.begin);
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> out;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) out.push_back(token);
  return out;
}

// The body of a macro with `arguments`, one for each parameter, substituted: `#x` becomes a string literal, `a##x` one
// word, adjacent string literals one literal.
class Paster {
 public:
  Paster(const CDefine& define, const std::vector<std::string_view>& arguments)
      : define_(define), arguments_(arguments) {}

  std::string run() {
    const std::string_view body = define_.body;
    const std::vector<Token> tokens = tokens_of(body);
    const auto is_hash = [&](size_t i) { return i < tokens.size() && tokens[i].kind == TokenKind::kHash; };
    bool joins = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view word = text_of(body, tokens[i]);
      if (is_hash(i) && is_hash(i + 1)) {
        joins = true;
        ++i;
        continue;
      }
      const std::string_view* named =
          is_hash(i) && i + 1 < tokens.size() ? argument(text_of(body, tokens[i + 1])) : nullptr;
      if (named) {
        put('"' + escape(*named) + '"', joins);
        ++i;
      } else {
        put(with_arguments(word), joins);
      }
      joins = false;
    }
    return out_;
  }

 private:
  const std::string_view* argument(std::string_view name) const {
    const auto found = std::ranges::find(define_.parameters, name);
    return found == define_.parameters.end() ? nullptr : &arguments_[found - define_.parameters.begin()];
  }

  // In `$x` and `@x` where x is a parameter, the sign stays.
  std::string with_arguments(std::string_view word) const {
    if (const auto* whole = argument(word)) return std::string(*whole);
    const bool has_sign = word.starts_with('$') || word.starts_with('@');
    const auto* name = has_sign ? argument(word.substr(1)) : nullptr;
    return name ? word[0] + std::string(*name) : std::string(word);
  }

  void put(std::string_view word, bool joins) {
    const bool is_string = word.starts_with('"');
    if (is_string && last_is_string_) {
      out_.pop_back();
      out_ += word.substr(1);
    } else {
      if (!joins && !out_.empty()) out_ += ' ';
      out_ += word;
    }
    last_is_string_ = is_string;
  }

  const CDefine& define_;
  const std::vector<std::string_view>& arguments_;
  std::string out_;
  bool last_is_string_ = false;
};

constexpr int kMaxPasteDepth = 20;  // of macros that name each other

// `seen`: the macros that were looked at.
bool needs_paste(const CDefine& define, const DefinesByName& others, std::set<const CDefine*>& seen, int depth) {
  if (!seen.insert(&define).second) return false;
  return std::ranges::any_of(tokens_of(define.body), [&](const Token& token) {
    if (token.kind == TokenKind::kHash) return true;
    const auto other = others.find(text_of(define.body, token));
    return depth < kMaxPasteDepth && other != others.end() && needs_paste(*other->second, others, seen, depth + 1);
  });
}

// True if the body of `define` uses `#` or `##`, or names one of `others` that does.
bool needs_paste(const CDefine& define, const DefinesByName& others) {
  std::set<const CDefine*> seen;
  return needs_paste(define, others, seen, 0);
}

// The texts of the arguments of "NAME(a, b(c, d))": "a" and "b(c, d)". Empty for "NAME()".
std::vector<std::string_view> argument_texts(std::string_view call) {
  std::vector<std::string_view> out;
  int depth = 0;
  uint32_t begin = 0;
  for (const Token& token : tokens_of(call)) {
    const bool opens = token.kind == TokenKind::kLeftParen || token.kind == TokenKind::kLeftBracket ||
                       token.kind == TokenKind::kLeftBrace;
    const bool closes = token.kind == TokenKind::kRightParen || token.kind == TokenKind::kRightBracket ||
                        token.kind == TokenKind::kRightBrace;
    depth += opens ? 1 : closes ? -1 : 0;
    const bool is_first = opens && depth == 1;
    const bool is_last = closes && depth == 0;
    const bool is_between = token.kind == TokenKind::kComma && depth == 1;
    if (is_last || is_between) out.push_back(trim(call.substr(begin, token.begin - begin)));
    if (is_first || is_between) begin = token.end;
  }
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

}  // namespace

// ---- #defines that the script names

namespace {

class DefineParser {
 public:
  DefineParser(Ast& ast, CheckRequest& request) : ast_(ast), request_(request) {}

  Defines run() {
    for (const auto& definition : ast_.c_definitions) {
      const auto* define = std::get_if<CDefine>(&definition);
      if (!define || define->body.empty()) continue;
      // A later definition replaces an earlier one.
      (define->is_function_like ? with_parameters_ : plain_).insert_or_assign(define->name, define);
    }
    if (plain_.empty() && with_parameters_.empty()) return {};
    // Bodies may name other macros; the tree grows during the loop.
    for (uint32_t i = 0; i < ast_.exprs.size(); ++i) {
      const ExprId id{i};
      if (unparsed_.contains(ast_.exprs[id].span.source)) continue;
      if (const auto* name = ast_.get<Name>(id)) use_plain(name->name);
      if (const auto* call = ast_.get<Call>(id)) use_call(id, call->name);
      if (std::holds_alternative<Access>(ast_.exprs[id].node)) rename_member(id);
    }
    for (uint32_t i = 0; i < ast_.type_names.size(); ++i) use_type(TypeNameId{i});
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kMostTypes = 200;  // bounds macros that name each other

  // An expression, or statements: `#define STEP @n++; print(@n)`.
  ExprId parse_body(const CDefine& define) { return parse_body(define, define.body); }
  ExprId parse_body(const CDefine& define, const std::string& body_text) {
    for (const std::string& text : {body_text, "{ " + body_text + " }"}) {
      const source::SourceId body = request_.sources.add("#define " + define.name, text);
      source::Diagnostics problems;
      const ExprId parsed = parse_expression(request_.sources, body, ast_, problems);
      if (!problems.has_errors()) return parsed;
      unparsed_.insert(body);
    }
    request_.diagnostics.error("bad-define", define.span,
                               "`" + define.name + "` is used, but its body is neither an expression nor statements");
    return ast_.exprs.add({define.span, ErrorExpr{}});
  }

  void use_plain(const std::string& name) {
    const auto found = plain_.find(name);
    if (found == plain_.end() || out_.contains(name)) return;
    const CDefine* define = found->second;
    out_.emplace(define->name, ExprId{});
    const ExprId body = parse_body(*define);
    out_.find(define->name)->second = body;
  }

  void use_call(ExprId id, const std::string& name) {
    const auto found = with_parameters_.find(name);
    if (found == with_parameters_.end()) return;
    const CDefine& define = *found->second;
    if (needs_paste(define, with_parameters_)) return use_pasted(id, define);
    with_parameters_.erase(found);
    Macro macro{.span = define.span, .name = define.name, .name_span = define.span};
    for (const std::string& parameter : define.parameters)
      macro.parameters.push_back({.kind = Macro::ParameterKind::kExpression, .name = parameter, .span = define.span});
    const ExprId value = parse_body(define);
    macro.body = ast_.exprs.add({define.span, Block{.statements = {}, .value = value}});
    ast_.macros.push_back(std::move(macro));
  }

  // Replaces the call by the body's text with the arguments' text pasted in.
  void use_pasted(ExprId id, const CDefine& define) {
    Span call = ast_.exprs[id].span;
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
      ast_.exprs[id].node = ErrorExpr{};
      return;
    }
    const Span direct = ast_.exprs[id].span;
    const ExprId value = parse_body(define, Paster(define, arguments).run());
    // A body that could not be parsed has the span of its definition, which is not generated text.
    if (!std::holds_alternative<ErrorExpr>(ast_.exprs[value].node))
      pasted_.emplace(ast_.exprs[value].span.source, Pasted{&define, direct});
    ast_.exprs[id].node = Block{.statements = {}, .value = value};
  }

  // `#define FIELD pid`: `->FIELD` is `->pid`.
  void rename_member(ExprId id) {
    auto& access = std::get<Access>(ast_.exprs[id].node);
    const auto define = plain_.find(access.name);
    if (define == plain_.end()) return;
    const std::string& body = define->second->body;
    const bool is_name = is_word_start(body[0]) && std::ranges::all_of(body, is_word);
    if (is_name) access.name = body;
  }

  // `#define TASK struct task_struct`: `(TASK *)` is a cast to it.
  void use_type(TypeNameId id) {
    const TypeName& name = ast_.type_names[id];
    const auto found = name.tag == TypeName::Tag::kNone ? plain_.find(name.name) : plain_.end();
    if (found == plain_.end() || ++types_ > kMostTypes) return;
    const source::SourceId body = request_.sources.add("#define " + found->first, found->second->body);
    source::Diagnostics problems;
    const TypeNameId parsed = parse_type(request_.sources, body, ast_, problems);
    if (!problems.has_errors()) ast_.type_names[id].typeof_type = parsed;
  }

  Ast& ast_;
  CheckRequest& request_;
  DefinesByName plain_, with_parameters_;
  uint32_t types_ = 0;  // replaced so far
  struct Pasted {
    const CDefine* define;
    Span call;
  };
  std::map<source::SourceId, Pasted> pasted_;  // by generated text
  std::set<source::SourceId> unparsed_;        // texts with errors, whose expressions in the tree are not used
  Defines out_;
};

// Reports macros that expand to themselves, directly or through others.
void refuse_cycles(const Ast& ast, Defines& defines, CheckRequest& request) {
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
        const auto* used = ast.get<Name>(id);
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

Defines parse_defines(Ast& ast, CheckRequest& request) {
  Defines out = DefineParser(ast, request).run();
  refuse_cycles(ast, out, request);
  return out;
}

// ---- Macros of the language

// A call is replaced in place: its node becomes a Block with a copy of the macro's body. Copies are new nodes at the
// end of the tree, so the loop over all calls reaches those inside a body later; the chain of expansions in their spans
// shows recursion.

namespace {

// The substitutions in one copy of a body.
struct Substitution {
  std::map<std::string, ExprId> expressions;   // plain parameters
  std::map<std::string, std::string> renamed;  // `$` and `@` parameters
  ExpansionId expansion;
  bool is_argument = false;  // copies an argument: names and spans stay as they are
};

size_t node_count(const Ast& ast) { return ast.exprs.size() + ast.stmts.size() + ast.type_names.size(); }

// Copies no more once the tree has more than `most` nodes.
class Copier {
 public:
  Copier(Ast& ast, const Substitution& with, size_t most) : ast_(ast), with_(with), most_(most) {}

  ExprId expr(ExprId id) {
    if (!id) return id;
    if (node_count(ast_) > most_) return ast_.exprs.add({at(ast_[id].span), ErrorExpr{}});
    if (const auto* name = ast_.get<Name>(id)) {
      if (const auto found = with_.expressions.find(name->name); found != with_.expressions.end()) {
        const Substitution nothing{.is_argument = true};
        return Copier(ast_, nothing, most_).expr(found->second);
      }
    }
    if (ast_.get<Index>(id))
      if (const TypeNameId array = array_type(id)) return ast_.exprs.add({at(ast_[id].span), TypeExpr{array}});
    Expr out = ast_[id];
    out.span = at(out.span);
    std::visit([this](auto& node) { fix(node); }, out.node);
    return ast_.exprs.add(std::move(out));
  }

 private:
  Span at(Span span) const {
    if (!with_.is_argument) span.expansion = with_.expansion;
    return span;
  }
  std::string name(const std::string& old) const {
    if (with_.is_argument) return old;
    if (const auto found = with_.renamed.find(old); found != with_.renamed.end()) return found->second;
    // A script cannot write `#` in a name, so the macro's variables are distinct from all others.
    return old.starts_with('$') ? fmt::format("{}#{}", old, with_.expansion.index) : old;
  }
  StmtId stmt(StmtId id) {
    Stmt out = ast_[id];
    out.span = at(out.span);
    std::visit([this](auto& node) { fix(node); }, out.node);
    return ast_.stmts.add(std::move(out));
  }
  // `t` or `t[3]`, where the parameter t is a type; invalid for other expressions.
  TypeNameId array_type(ExprId id) {
    if (const auto* name = ast_.get<Name>(id)) {
      const auto given = with_.expressions.find(name->name);
      const auto* type = given != with_.expressions.end() ? ast_.get<TypeExpr>(given->second) : nullptr;
      if (type == nullptr) return {};
      const TypeNameId inner = type->type;
      return ast_.type_names.add({.span = at(ast_[id].span), .typeof_type = inner});
    }
    const auto* index = ast_.get<Index>(id);
    if (index == nullptr || index->indices.size() != 1) return {};
    const ExprId count = index->indices[0];
    const TypeNameId out = array_type(index->base);
    if (!out) return {};
    const ExprId copied = expr(count);
    ast_.type_names[out].suffixes.push_back({.count = copied});
    return out;
  }
  TypeNameId type_name(TypeNameId id) {
    if (!id) return id;
    TypeName out = ast_[id];
    out.span = at(out.span);
    // `(t)x`, where the parameter t is a type.
    const auto given = out.tag == TypeName::Tag::kNone ? with_.expressions.find(out.name) : with_.expressions.end();
    if (given != with_.expressions.end()) {
      const Substitution nothing{.is_argument = true};
      if (const auto* type = ast_.get<TypeExpr>(given->second)) {
        out.name.clear();
        out.typeof_type = Copier(ast_, nothing, most_).type_name(type->type);
        for (TypeName::Suffix& suffix : out.suffixes) suffix.count = expr(suffix.count);
        return ast_.type_names.add(std::move(out));
      }
      if (const auto* name = ast_.get<Name>(given->second)) out.name = name->name;
    }
    out.typeof_expr = expr(out.typeof_expr);
    out.typeof_type = type_name(out.typeof_type);
    for (TypeNameId& element : out.elements) element = type_name(element);
    for (TypeName::Suffix& suffix : out.suffixes) suffix.count = expr(suffix.count);
    return ast_.type_names.add(std::move(out));
  }
  void all(std::vector<ExprId>& ids) {
    for (ExprId& id : ids) id = expr(id);
  }

  template <class Leaf>
  void fix(Leaf&) {}
  void fix(syntax::Variable& n) { n.name = name(n.name); }
  void fix(Map& n) { n.name = name(n.name); }
  void fix(Index& n) { n.base = expr(n.base), all(n.indices); }
  void fix(Call& n) { n.name_span = at(n.name_span), all(n.arguments); }
  void fix(TypeExpr& n) { n.type = type_name(n.type); }
  void fix(Sizeof& n) { n.operand = expr(n.operand); }
  void fix(Offsetof& n) { n.operand = expr(n.operand); }
  void fix(Typeinfo& n) { n.operand = expr(n.operand); }
  void fix(Comptime& n) { n.operand = expr(n.operand); }
  void fix(Unary& n) { n.operand = expr(n.operand); }
  void fix(Binary& n) { n.left = expr(n.left), n.right = expr(n.right), n.op_span = at(n.op_span); }
  void fix(Ternary& n) {
    n.condition = expr(n.condition), n.then_value = expr(n.then_value), n.else_value = expr(n.else_value);
  }
  void fix(Access& n) { n.base = expr(n.base), n.name_span = at(n.name_span); }
  void fix(TupleAccess& n) { n.base = expr(n.base); }
  void fix(Cast& n) { n.type = type_name(n.type), n.operand = expr(n.operand); }
  void fix(Tuple& n) { all(n.elements); }
  void fix(Record& n) { all(n.values); }
  void fix(Block& n) {
    for (StmtId& id : n.statements) id = stmt(id);
    n.value = expr(n.value);
  }
  void fix(If& n) {
    n.condition = expr(n.condition), n.then_branch = expr(n.then_branch), n.else_branch = expr(n.else_branch);
  }
  void fix(ExprStmt& n) { n.value = expr(n.value); }
  void fix(Assign& n) { n.target = expr(n.target), n.value = expr(n.value); }
  void fix(Let& n) {
    n.name = name(n.name), n.name_span = at(n.name_span);
    n.type = type_name(n.type), n.value = expr(n.value);
  }
  void fix(Discard& n) { n.value = expr(n.value); }
  void fix(While& n) { n.condition = expr(n.condition), n.body = expr(n.body); }
  void fix(Unroll& n) { n.count = expr(n.count), n.body = expr(n.body); }
  void fix(ForMap& n) {
    n.variable = name(n.variable), n.variable_span = at(n.variable_span);
    n.map = expr(n.map), n.body = expr(n.body);
  }
  void fix(ForRange& n) {
    n.variable = name(n.variable), n.variable_span = at(n.variable_span);
    n.begin = expr(n.begin), n.end = expr(n.end), n.body = expr(n.body);
  }
  void fix(Return& n) { n.value = expr(n.value); }

  Ast& ast_;
  const Substitution& with_;
  size_t most_;
};

size_t least_arguments(const Macro& macro) {
  const auto is_required = [](const Macro::Parameter& parameter) { return !parameter.default_value.valid(); };
  return static_cast<size_t>(std::ranges::count_if(macro.parameters, is_required));
}

bool takes(const Macro& macro, size_t arguments) {
  return arguments >= least_arguments(macro) && arguments <= macro.parameters.size();
}

bool can_take(const Ast& ast, Macro::ParameterKind kind, ExprId argument) {
  switch (kind) {
    case Macro::ParameterKind::kVariable: return ast.get<syntax::Variable>(argument) != nullptr;
    case Macro::ParameterKind::kMap: return ast.get<Map>(argument) != nullptr;
    case Macro::ParameterKind::kExpression: return true;
  }
  return false;
}

class Expander {
 public:
  Expander(Ast& ast, const spec::Registry& registry, source::Sources& sources, source::Diagnostics& diagnostics)
      : ast_(ast),
        registry_(registry),
        sources_(sources),
        diagnostics_(diagnostics),
        most_(node_count(ast) + kMostCopies) {}

  void run() {
    std::set<ExprId> in_macros;
    for (const Macro& macro : ast_.macros) {
      walk(ast_, macro.body, [&](ExprId id) { in_macros.insert(id); });
      for (const Macro::Parameter& parameter : macro.parameters)
        walk(ast_, parameter.default_value, [&](ExprId id) { in_macros.insert(id); });
    }
    for (uint32_t i = 0; i < ast_.exprs.size(); ++i) {
      const ExprId id{i};
      if (in_macros.contains(id)) continue;
      if (const auto* call = ast_.get<Call>(id)) {
        if (const Macro* macro = find(call->name, call->arguments)) expand(id, *macro, call->arguments);
      } else if (const auto* name = ast_.get<Name>(id)) {
        const Macro* macro = find(name->name, {});
        if (macro && takes(*macro, 0)) expand(id, *macro, {});
      }
    }
    give_values_to_typeinfos(in_macros);
  }

 private:
  // Each use of an argument is a copy of it, so that calls in arguments of calls multiply.
  static constexpr size_t kMostCopies = 1 << 17;

  // Two that are compared are so by their full types, which are constants. Any other of which no member is asked for is
  // a record of all.
  void give_values_to_typeinfos(const std::set<ExprId>& in_macros) {
    const size_t count = ast_.exprs.size();
    std::set<ExprId> asked;
    for (uint32_t i = 0; i < count; ++i) {
      const ExprId id{i};
      if (const auto* access = ast_.get<Access>(id)) asked.insert(access->base);
      const auto* compared = ast_.get<Binary>(id);
      if (compared == nullptr || in_macros.contains(id)) continue;
      const bool is_equality = compared->op == BinaryOp::kEqual || compared->op == BinaryOp::kNotEqual;
      const ExprId left = compared->left, right = compared->right;
      if (!is_equality || !ast_.get<Typeinfo>(left) || !ast_.get<Typeinfo>(right)) continue;
      asked.insert({left, right});
      const ExprId of_left = member_of(left, "full_type"), of_right = member_of(right, "full_type");
      auto& node = std::get<Binary>(ast_.exprs[id].node);
      node.left = of_left;
      node.right = of_right;
    }
    const Substitution nothing{.is_argument = true};
    for (uint32_t i = 0; i < count; ++i) {
      const ExprId id{i};
      if (!ast_.get<Typeinfo>(id) || asked.contains(id) || in_macros.contains(id) || is_too_long()) continue;
      Record all;
      for (const char* name : {"btf_id", "base_type", "full_type"}) {
        const ExprId question = Copier(ast_, nothing, most_).expr(id);
        all.names.emplace_back(name);
        all.values.push_back(member_of(question, name));
      }
      ast_.exprs[id].node = std::move(all);
    }
  }

  ExprId member_of(ExprId base, std::string name) {
    const Span span = ast_[base].span;
    return ast_.exprs.add({span, Access{base, std::move(name), span}});
  }

  bool is_too_long() const { return node_count(ast_) > most_; }

  // Macros are overloaded by the number and the kinds of arguments. Of those that take the arguments, the one with the
  // most `$` and `@` parameters is meant. If none fits, and there is no builtin of that name, the error names the first
  // one, of those with that number of parameters if there are any.
  const Macro* find(std::string_view name, const std::vector<ExprId>& arguments) const {
    const Macro* best = nullptr;
    const Macro* of_number = nullptr;
    const Macro* first = nullptr;
    size_t most = 0;
    for (const Macro& macro : ast_.macros) {
      if (macro.name != name) continue;
      if (!first) first = &macro;
      if (!takes(macro, arguments.size())) continue;
      if (!of_number) of_number = &macro;
      bool fit = true;
      size_t special = 0;
      for (size_t i = 0; i < arguments.size(); ++i) {
        fit &= can_take(ast_, macro.parameters[i].kind, arguments[i]);
        special += macro.parameters[i].kind != Macro::ParameterKind::kExpression;
      }
      if (!fit || (best != nullptr && special <= most)) continue;
      best = &macro;
      most = special;
    }
    if (best != nullptr) return best;
    if (of_number != nullptr) return of_number;
    return registry_.find_builtin(name) == nullptr ? first : nullptr;
  }

  bool calls_itself(const Macro& macro, Span call) const {
    while (call.expansion.valid()) {
      const auto made = expanded_.find(call.expansion);
      if (made != expanded_.end() && made->second == &macro) return true;
      call = sources_[call.expansion].call;
    }
    return false;
  }

  void expand(ExprId id, const Macro& macro, std::vector<ExprId> arguments) {
    if (is_too_long()) {
      ast_.exprs[id].node = ErrorExpr{};
      return;
    }
    const Span call = ast_[id].span;
    const auto refuse = [&](std::string_view what, Span at, std::string message) {
      auto& said = diagnostics_.error(what, at, std::move(message));
      said.notes.push_back({macro.name_span, "defined here"});
      ast_.exprs[id].node = ErrorExpr{};
    };
    if (calls_itself(macro, call))
      return refuse("recursive-macro", call, "the macro `" + macro.name + "` calls itself");
    Substitution with;
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const Macro::Parameter& parameter = macro.parameters[i];
      const ExprId given = i < arguments.size() ? arguments[i] : parameter.default_value;
      if (!given || arguments.size() > macro.parameters.size())
        return refuse("wrong-arity", call,
                      fmt::format("the macro `{}` takes {} argument{}, {} given", macro.name, macro.parameters.size(),
                                  macro.parameters.size() == 1 ? "" : "s", arguments.size()));
      if (!add(parameter, given, with))
        return refuse("wrong-argument", ast_[given].span,
                      fmt::format("the macro `{}` takes a {} for `{}`", macro.name,
                                  parameter.kind == Macro::ParameterKind::kMap ? "map" : "variable", parameter.name));
    }
    if (macro.parameters.empty() && !arguments.empty())
      return refuse("wrong-arity", call, fmt::format("the macro `{}` takes no arguments", macro.name));
    with.expansion = sources_.add_expansion(macro.name, call);
    expanded_.emplace(with.expansion, &macro);
    const ExprId body = Copier(ast_, with, most_).expr(macro.body);
    ast_.exprs[id].node = body ? ast_.exprs[body].node : ExprNode(ErrorExpr{});
    if (is_too_long()) refuse("too-long", call, "the script is too long after macro expansion");
  }

  bool add(const Macro::Parameter& parameter, ExprId given, Substitution& with) const {
    switch (parameter.kind) {
      case Macro::ParameterKind::kExpression: with.expressions[parameter.name] = given; return true;
      case Macro::ParameterKind::kVariable: {
        const auto* variable = ast_.get<syntax::Variable>(given);
        if (variable) with.renamed[parameter.name] = variable->name;
        return variable != nullptr;
      }
      case Macro::ParameterKind::kMap: {
        const auto* map = ast_.get<Map>(given);
        if (map) with.renamed[parameter.name] = map->name;
        return map != nullptr;
      }
    }
    return false;
  }

  Ast& ast_;
  const spec::Registry& registry_;
  source::Sources& sources_;
  source::Diagnostics& diagnostics_;
  size_t most_;  // nodes
  std::map<ExpansionId, const Macro*> expanded_;
};

}  // namespace

void expand_macros(Ast& ast, const spec::Registry& registry, source::Sources& sources,
                   source::Diagnostics& diagnostics) {
  const auto is_typeinfo = [](const syntax::Expr& each) { return std::holds_alternative<Typeinfo>(each.node); };
  if (!ast.macros.empty() || std::ranges::any_of(ast.exprs, is_typeinfo))
    Expander(ast, registry, sources, diagnostics).run();
}

bool take_as_many(const Macro& a, const Macro& b) {
  return least_arguments(a) <= b.parameters.size() && least_arguments(b) <= a.parameters.size();
}

bool take_the_same(const Macro& a, const Macro& b) {
  if (!take_as_many(a, b)) return false;
  const size_t least = std::max(least_arguments(a), least_arguments(b));
  return std::equal(a.parameters.begin(), a.parameters.begin() + static_cast<ptrdiff_t>(least), b.parameters.begin(),
                    [](const Macro::Parameter& x, const Macro::Parameter& y) { return x.kind == y.kind; });
}

}  // namespace espy::check
