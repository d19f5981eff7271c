// The tree holds no parentheses; they are put back here where the grouping needs them, and where C programmers are
// known to misread it (`a & b == c`, `a || b && c`).
#include "syntax/print.h"

#include "base/strings.h"

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
    case BinaryOp::kNotEqual: return 6;
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

}  // namespace espy::syntax
