// The tree holds no parentheses; they are put back here where the grouping needs them, and where C programmers are
// known to misread it (`a & b == c`, `a || b && c`).
#include "syntax/print.h"

#include <fmt/format.h>

#include <iterator>

#include "base/strings.h"
#include "syntax/format_script.h"

namespace espy::syntax {

namespace {

constexpr int kUnaryLevel = 11;
constexpr int kPostfixLevel = 12;

int precedence(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLogicalOr: return 1;
    case BinaryOp::kLogicalAnd: return 2;
    case BinaryOp::kBitOr: return 3;
    case BinaryOp::kBitXor: return 4;
    case BinaryOp::kBitAnd: return 5;
    case BinaryOp::kEqual:
    case BinaryOp::kNotEqual:
    case BinaryOp::kMatch: return 6;
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual:
    case BinaryOp::kGreater:
    case BinaryOp::kGreaterEqual: return 7;
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight: return 8;
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract: return 9;
    case BinaryOp::kMultiply:
    case BinaryOp::kDivide:
    case BinaryOp::kModulo: return 10;
  }
  UNREACHABLE("binary operator");
}

bool is_postfix(UnaryOp op) { return op == UnaryOp::kPostIncrement || op == UnaryOp::kPostDecrement; }

// Returns true if the grouping of `child` within `parent` is easily misread without parentheses.
bool is_puzzling(BinaryOp parent, BinaryOp child) {
  if (precedence(parent) == precedence(child)) return false;
  switch (parent) {
    case BinaryOp::kLogicalOr: return child == BinaryOp::kLogicalAnd;
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kBitAnd:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight: return true;
    default: return false;
  }
}

std::string duration(uint64_t ns) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {{86'400'000'000'000, "d"}, {3'600'000'000'000, "h"},
                                                         {60'000'000'000, "m"},     {1'000'000'000, "s"},
                                                         {1'000'000, "ms"},         {1'000, "us"}};
  for (const auto& [unit, suffix] : kUnits) {
    if (ns != 0 && ns % unit == 0) return std::to_string(ns / unit) + suffix;
  }
  return std::to_string(ns) + "ns";
}

}  // namespace

// Returns the precedence of the node; 0 requires parentheses as an operand.
int Printer::level(ExprId id) const {
  const ExprNode& node = ast_[id].node;
  if (const auto* binary = std::get_if<Binary>(&node)) return precedence(binary->op);
  if (const auto* unary = std::get_if<Unary>(&node)) return is_postfix(unary->op) ? kPostfixLevel : kUnaryLevel;
  if (std::holds_alternative<Cast>(node) || std::holds_alternative<Comptime>(node)) return kUnaryLevel;
  if (std::holds_alternative<Ternary>(node) || std::holds_alternative<Block>(node) || std::holds_alternative<If>(node))
    return 0;
  return kPostfixLevel;
}

std::string Printer::print(ExprId id, int lowest) {
  if (!id.valid()) return "";
  const Expr& e = ast_[id];
  std::string out = std::visit([&](const auto& n) { return show(n, e.span); }, e.node);
  return level(id) < lowest ? "(" + out + ")" : out;
}

std::string Printer::stmt(StmtId id) {
  return std::visit([this](const auto& n) { return show(n); }, ast_[id].node);
}

std::string Printer::list(const std::vector<ExprId>& ids) {
  std::string out;
  for (const ExprId id : ids) out.append(out.empty() ? "" : ", ").append(expr(id));
  return out;
}

std::string Printer::type(TypeNameId id) {
  const TypeName& t = ast_[id];
  constexpr const char* kTags[] = {"", "struct ", "union ", "enum "};
  std::string out = kTags[static_cast<size_t>(t.tag)] + t.name;
  if (t.typeof_expr) out = "typeof(" + expr(t.typeof_expr) + ")";
  if (t.typeof_type) out = "typeof(" + type(t.typeof_type) + ")";
  if (out.empty()) {
    for (size_t i = 0; i < t.elements.size(); ++i) {
      out += i == 0 ? "(" : ", ";
      if (i < t.element_names.size()) out += t.element_names[i] + " = ";
      out += type(t.elements[i]);
    }
    out += out.empty() ? "()" : t.elements.size() == 1 ? ",)" : ")";
  }
  bool after_word = true;
  for (const auto& suffix : t.suffixes) {
    if (suffix.is_pointer) {
      out += after_word ? " *" : "*";
    } else {
      out += "[" + expr(suffix.count) + "]";
    }
    after_word = false;
  }
  return out;
}

std::string Printer::literal(Span span, std::string otherwise) const {
  if (sources_ == nullptr || !span.valid()) return otherwise;
  return std::string(sources_->text(span));
}

std::string Printer::show(const IntegerLiteral& n, Span span) {
  return literal(span, n.is_duration ? duration(n.value) : std::to_string(n.value));
}
std::string Printer::show(const StringLiteral& n, Span span) { return literal(span, '"' + escape(n.value) + '"'); }
std::string Printer::show(const Index& n, Span) { return print(n.base, kPostfixLevel) + "[" + list(n.indices) + "]"; }
std::string Printer::show(const Call& n, Span) { return n.name + "(" + list(n.arguments) + ")"; }
std::string Printer::show(const Offsetof& n, Span) {
  return "offsetof(" + expr(n.operand) + ", " + join(n.path, ".") + ")";
}
std::string Printer::show(const Comptime& n, Span) { return "comptime " + print(n.operand, kUnaryLevel); }

std::string Printer::show(const Unary& n, Span) {
  const std::string op = spelling(n.op);
  if (is_postfix(n.op)) return print(n.operand, kPostfixLevel) + op;
  const std::string operand = print(n.operand, kUnaryLevel);
  // `- -x` is not `--x`.
  return op + (operand[0] == op[0] && op[0] != '!' && op[0] != '~' ? " " : "") + operand;
}

std::string Printer::operand(const Binary& parent, ExprId child, int lowest) {
  const auto* inner = ast_.get<Binary>(child);
  if (inner != nullptr && is_puzzling(parent.op, inner->op)) lowest = kUnaryLevel;
  return print(child, lowest);
}

std::string Printer::show(const Binary& n, Span) {
  const int own = precedence(n.op);
  return operand(n, n.left, own) + " " + spelling(n.op) + " " + operand(n, n.right, own + 1);
}

std::string Printer::show(const Ternary& n, Span) {
  const std::string condition = print(n.condition, 1);
  if (!n.then_value) return condition + " ?: " + expr(n.else_value);
  return condition + " ? " + expr(n.then_value) + " : " + expr(n.else_value);
}

std::string Printer::show(const Access& n, Span) {
  return print(n.base, kPostfixLevel) + (n.arrow ? "->" : ".") + n.name;
}

std::string Printer::show(const TupleAccess& n, Span) {
  return print(n.base, kPostfixLevel) + "." + std::to_string(n.index);
}

std::string Printer::show(const Cast& n, Span) {
  // `(foo)(-x)` without its second parentheses would be a subtraction.
  const auto* unary = ast_.get<Unary>(n.operand);
  const bool prefixed = unary != nullptr && !is_postfix(unary->op);
  // A cast to a tuple is known by the variable, the map or the parenthesis behind it.
  const bool is_known = ast_.type_names[n.type].elements.empty() || ast_.get<Variable>(n.operand) ||
                        ast_.get<Map>(n.operand) || ast_.get<Tuple>(n.operand) || ast_.get<Record>(n.operand);
  if (!is_known) return "(" + type(n.type) + ")(" + print(n.operand, 0) + ")";
  return "(" + type(n.type) + ")" + print(n.operand, prefixed ? kPostfixLevel : kUnaryLevel);
}

std::string Printer::show(const Tuple& n, Span) {
  return "(" + list(n.elements) + (n.elements.size() == 1 ? ",)" : ")");
}

std::string Printer::show(const Record& n, Span) {
  std::string out;
  for (size_t i = 0; i < n.names.size(); ++i) {
    out.append(i == 0 ? "(" : ", ").append(n.names[i]).append(" = ").append(expr(n.values[i]));
  }
  return out + ")";
}

std::string Printer::show(const Block& n, Span) {
  std::string out = "{";
  for (const StmtId id : n.statements) out += " " + stmt(id) + ";";
  if (n.value) out += " " + expr(n.value);
  return out.size() == 1 ? "{}" : out + " }";
}

std::string Printer::show(const If& n, Span) {
  std::string out = header(n) + " " + expr(n.then_branch);
  if (n.else_branch) out += " else " + expr(n.else_branch);
  return out;
}

std::string Printer::show(const Assign& n) {
  return expr(n.target) + " " + (n.op ? spelling(*n.op) : "") + "= " + expr(n.value);
}

std::string Printer::show(const Let& n) {
  std::string out = "let " + n.name;
  if (n.type) out += " : " + type(n.type);
  if (n.value) out += " = " + expr(n.value);
  return out;
}

// ---- The tree as text: one node a line, children indented below it, each node in parentheses.

namespace {

class Dumper {
 public:
  Dumper(const Ast& ast, const source::Sources& sources, bool with_places)
      : ast_(ast), sources_(sources), with_places_(with_places) {}

  std::string run() {
    if (!ast_.shebang.empty()) leaf("shebang", quoted(ast_.shebang), {});
    for (const CDefinition& definition : ast_.c_definitions) {
      std::visit([this](const auto& d) { c_definition(d); }, definition);
    }
    for (const ConfigEntry& entry : ast_.config) node("config", entry.name, entry.span, [&] { expr(entry.value); });
    for (const Import& import : ast_.imports) leaf("import", quoted(import.path), import.span);
    for (const MapDeclaration& map : ast_.map_declarations) {
      node("map-declaration", map.name + " " + map.kind, map.span, [&] { expr(map.max_entries); });
    }
    for (const Macro& macro : ast_.macros) top(macro);
    for (const Function& function : ast_.functions) top(function);
    for (const Action& action : ast_.actions) top(action);
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  // ---- Layout

  void open(std::string_view name, std::string_view detail, Span span) {
    if (!out_.empty()) out_ += '\n';
    out_.append(2 * depth_, ' ');
    out_.append("(").append(name);
    if (!detail.empty()) out_.append(" ").append(detail);
    if (with_places_ && span.valid()) {
      const source::LineColumn place = sources_.line_column(span.source, span.begin);
      fmt::format_to(std::back_inserter(out_), " @{}:{}", place.line, place.column);
    }
    ++depth_;
  }
  void close() {
    out_ += ')';
    --depth_;
  }
  template <class Children>
  void node(std::string_view name, std::string_view detail, Span span, Children children) {
    open(name, detail, span);
    children();
    close();
  }
  void leaf(std::string_view name, std::string_view detail, Span span) {
    open(name, detail, span);
    close();
  }
  static std::string quoted(std::string_view text) { return '"' + escape(text) + '"'; }

  // ---- The top level

  void top(const Macro& macro) {
    node("macro", macro.name, macro.span, [&] {
      for (const auto& parameter : macro.parameters) {
        node("parameter", parameter.name, parameter.span, [&] { expr(parameter.default_value); });
      }
      expr(macro.body);
    });
  }

  void top(const Function& function) {
    node("fn", function.name, function.name_span, [&] {
      for (const auto& parameter : function.parameters) {
        node("parameter", parameter.name, parameter.span, [&] { type(parameter.type); });
      }
      type(function.result);
      expr(function.body);
    });
  }

  void top(const Action& action) {
    node("action", action.name, action.span, [&] {
      for (const AttachPoint& point : action.attach_points) {
        std::string parts = part(point.provider);
        for (const AttachPart& p : point.parts) parts += " " + part(p);
        leaf("probe", parts, point.span);
      }
      if (action.predicate) node("predicate", "", {}, [&] { expr(action.predicate); });
      expr(action.body);
    });
  }

  static std::string part(const AttachPart& p) { return p.quoted || p.text.empty() ? quoted(p.text) : p.text; }

  // ---- C

  void c_definition(const CInclude& include) {
    leaf("include", include.is_system ? "<" + include.path + ">" : quoted(include.path), include.span);
  }
  void c_definition(const CDefine& define) {
    std::string name = define.name;
    if (define.is_function_like) name += "(" + join(define.parameters, ",") + ")";
    leaf("define", name + " " + quoted(define.body), define.span);
  }
  void c_definition(const CTypedef& type) {
    node("typedef", type.name, type.span, [&] { c_type(type.type); });
  }
  void c_definition(const CEnum& e) {
    node("enum", e.name, e.span, [&] {
      for (const auto& [name, value] : e.enumerators) leaf(name, std::to_string(value), {});
    });
  }
  void c_definition(const CStruct& s) {
    std::string detail = s.name;
    if (s.attributes.is_packed) detail += " packed";
    if (s.attributes.align_bytes != 0) detail += fmt::format(" aligned={}", s.attributes.align_bytes);
    if (!s.has_body) detail += " declared";
    node(s.is_union ? "union" : "struct", detail, s.span, [&] {
      for (const CMember& member : s.members) {
        std::string name = member.name;
        if (member.bit_size) name += fmt::format(":{}", *member.bit_size);
        node("member", name, member.span, [&] { c_type(member.type); });
      }
    });
  }

  void c_type(const CType& t) {
    constexpr std::string_view kTags[] = {"", "struct ", "union ", "enum "};
    std::string text(kTags[static_cast<size_t>(t.tag)]);
    text = trim(text += t.name);
    for (const CType::Step& step : t.steps) {
      switch (step.kind) {
        case CType::Step::Kind::kPointer: text += '*'; break;
        case CType::Step::Kind::kArray: text += step.count ? fmt::format("[{}]", *step.count) : "[]"; break;
        case CType::Step::Kind::kFunction: text += fmt::format("(fn/{})", step.parameters.size()); break;
      }
    }
    node("type", text, {}, [&] {
      if (t.inline_struct) c_definition(*t.inline_struct);
      if (t.inline_enum) c_definition(*t.inline_enum);
    });
  }

  // ---- Types, statements, expressions

  void type(TypeNameId id) {
    if (!id.valid()) return;
    const TypeName& t = ast_[id];
    constexpr std::string_view kTags[] = {"", "struct ", "union ", "enum "};
    std::string text = std::string(kTags[static_cast<size_t>(t.tag)]) + t.name;
    if (t.typeof_expr || t.typeof_type) text = "typeof";
    if (text.empty()) text = "(" + join(t.element_names, ",") + ")";
    for (const auto& suffix : t.suffixes) text += suffix.is_pointer ? "*" : suffix.count ? "[n]" : "[]";
    node("type", text, t.span, [&] {
      expr(t.typeof_expr);
      type(t.typeof_type);
      for (const TypeNameId element : t.elements) type(element);
      for (const auto& suffix : t.suffixes) expr(suffix.count);
    });
  }

  void expr(ExprId id) {
    if (!id.valid()) return;
    span_ = ast_[id].span;
    std::visit([this](const auto& n) { show(n); }, ast_[id].node);
  }
  void exprs(const std::vector<ExprId>& ids) {
    for (const ExprId id : ids) expr(id);
  }
  template <class... Ids>
  void parent(std::string_view name, std::string_view detail, Ids... ids) {
    node(name, detail, span_, [&] { (expr(ids), ...); });
  }
  void leaf(std::string_view name, std::string_view detail) { leaf(name, detail, span_); }

  void show(const ErrorExpr&) { leaf("error", ""); }
  void show(const IntegerLiteral& n) { leaf(n.is_duration ? "duration" : "int", std::to_string(n.value)); }
  void show(const BoolLiteral& n) { leaf("bool", n.value ? "true" : "false"); }
  void show(const StringLiteral& n) { leaf("string", quoted(n.value)); }
  void show(const Name& n) { leaf("name", n.name); }
  void show(const Variable& n) { leaf("var", n.name); }
  void show(const Map& n) { leaf("map", n.name); }
  void show(const Positional& n) { leaf("positional", std::to_string(n.index)); }
  void show(const PositionalCount&) { leaf("positional-count", ""); }
  void show(const Index& n) {
    node("index", "", span_, [&] {
      expr(n.base);
      exprs(n.indices);
    });
  }
  void show(const Call& n) {
    node("call", n.name, span_, [&] { exprs(n.arguments); });
  }
  void show(const TypeExpr& n) { type(n.type); }
  void show(const Sizeof& n) { parent("sizeof", "", n.operand); }
  void show(const Offsetof& n) { parent("offsetof", join(n.path, "."), n.operand); }
  void show(const Typeinfo& n) { parent("typeinfo", "", n.operand); }
  void show(const Comptime& n) { parent("comptime", "", n.operand); }
  void show(const Unary& n) {
    const bool post = n.op == UnaryOp::kPostIncrement || n.op == UnaryOp::kPostDecrement;
    parent(post ? std::string("post") + spelling(n.op) : spelling(n.op), "", n.operand);
  }
  void show(const Binary& n) { parent(spelling(n.op), "", n.left, n.right); }
  void show(const Ternary& n) { parent(n.then_value ? "?" : "?:", "", n.condition, n.then_value, n.else_value); }
  void show(const Access& n) { parent(n.arrow ? "->" : ".", n.name, n.base); }
  void show(const TupleAccess& n) { parent(".", std::to_string(n.index), n.base); }
  void show(const Cast& n) {
    node("cast", "", span_, [&] {
      type(n.type);
      expr(n.operand);
    });
  }
  void show(const Tuple& n) {
    node("tuple", "", span_, [&] { exprs(n.elements); });
  }
  void show(const Record& n) {
    node("record", join(n.names, " "), span_, [&] { exprs(n.values); });
  }
  void show(const Block& n) {
    node("block", "", span_, [&] {
      for (const StmtId id : n.statements) {
        span_ = ast_[id].span;
        std::visit([this](const auto& s) { show(s); }, ast_[id].node);
      }
      if (n.value) node("value", "", {}, [&] { expr(n.value); });
    });
  }
  void show(const If& n) {
    parent(n.is_comptime ? "if-comptime" : "if", "", n.condition, n.then_branch, n.else_branch);
  }

  void show(const ExprStmt& n) { parent("do", "", n.value); }
  void show(const Assign& n) { parent(n.op ? std::string(spelling(*n.op)) + "=" : "=", "", n.target, n.value); }
  void show(const Let& n) {
    node("let", n.name, span_, [&] {
      type(n.type);
      expr(n.value);
    });
  }
  void show(const Discard& n) { parent("discard", "", n.value); }
  void show(const While& n) { parent("while", "", n.condition, n.body); }
  void show(const Unroll& n) { parent("unroll", "", n.count, n.body); }
  void show(const ForMap& n) { parent("for", n.variable, n.map, n.body); }
  void show(const ForRange& n) { parent("for-range", n.variable, n.begin, n.end, n.body); }
  void show(const Break&) { leaf("break", ""); }
  void show(const Continue&) { leaf("continue", ""); }
  void show(const Return& n) { parent("return", "", n.value); }

  const Ast& ast_;
  const source::Sources& sources_;
  const bool with_places_;
  std::string out_;
  size_t depth_ = 0;
  Span span_;  // of the node being shown
};

}  // namespace

std::string dump(const Ast& ast, const source::Sources& sources, bool with_places) {
  return Dumper(ast, sources, with_places).run();
}

}  // namespace espy::syntax
