#include <fmt/format.h>

#include <optional>

#include "base/strings.h"
#include "check/checker.h"
#include "check/text_pattern.h"
#include "program/program.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

// ---- Binary operators

TypeId Checker::visit(ExprId id, const Binary& node) {
  read_value(node.left);
  read_value(node.right);
  if (is_comparison(node.op)) {
    use_func_beside(node.left, node.right);
    use_func_beside(node.right, node.left);
  }
  const TypeId left = type(node.left);
  const TypeId right = type(node.right);
  if (!left || !right) return {};
  if (node.op == BinaryOp::kMatch) return check_match(id, node, left, right);
  if (const auto folded = fold_operands(id, node)) return *folded;
  if (is_logical(node.op)) return check_logical(id, node);
  if (is_comparison(node.op)) return check_comparison(node, left, right);
  return check_arithmetic(node, left, right);
}

// `func` compares with symbols and addresses of the kernel as its address.
void Checker::use_func_beside(ExprId value, ExprId other) {
  const types::Type& beside = type_of(type(other));
  if (beside.kind == Kind::kKernelSymbol || beside.kind == Kind::kPointer || is_int_like(beside))
    use_func_as_symbol(value, types_.simple(Kind::kKernelSymbol));
}

TypeId Checker::check_logical(ExprId id, const Binary& node) {
  for (const ExprId side : {node.left, node.right})
    if (!is_truthy(type_of(type(side))))
      error("not-a-condition", span_of(side),
            "a condition must be an integer, a pointer or a string, not " + show(type(side)));
  const auto known = integer(node.left);
  if (known && (*known != 0) == (node.op == BinaryOp::kLogicalOr)) fact(id).constant = int64_t{*known != 0};
  return types_.bool_type();
}

std::optional<TypeId> Checker::fold_operands(ExprId id, const Binary& node) {
  const auto a = number(node.left);
  const auto b = number(node.right);
  // Numbers that are not negative compare the same as signed and as unsigned ones.
  const auto is_natural = [](Number n) { return n.is_unsigned || n.bits >= 0; };
  const bool compares = a && b && is_comparison(node.op) && is_natural(*a) && is_natural(*b);
  if (a && b && (is_logical(node.op) || compares || (is_number_literal(node.left) && is_number_literal(node.right)))) {
    const auto folded = fold_binary(node.op, *a, *b);
    if (!folded) {
      const bool is_by_zero = (node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo) && b->bits == 0;
      error("bad-constant", span_of(id),
            is_by_zero ? "this divides by zero" : "unable to fold literals due to overflow or underflow");
      return TypeId{};
    }
    if (is_comparison(node.op) || is_logical(node.op)) {
      fact(id).constant = folded->bits;
      return types_.bool_type();
    }
    return set_number(id, *folded);
  }
  const auto left = text(node.left);
  const auto right = text(node.right);
  if (left && right && is_comparison(node.op)) {
    const int order = left->compare(*right);
    const auto folded = fold_binary(node.op, {order}, {0});
    fact(id).constant = folded->bits;
    return types_.bool_type();
  }
  return std::nullopt;
}

// What is not negative is never below zero, and of fewer than 64 bits never equal to a negative number. Comparisons
// with a `uint64` or a pointer have no sign.
void Checker::warn_if_never(const Binary& node, TypeId left, TypeId right) {
  const bool is_swapped = node.op == BinaryOp::kGreater || (node.op == BinaryOp::kEqual && integer(node.left));
  if (node.op != BinaryOp::kLess && node.op != BinaryOp::kGreater && node.op != BinaryOp::kEqual) return;
  const ExprId value = is_swapped ? node.right : node.left, limit = is_swapped ? node.left : node.right;
  const types::Type type = type_of(is_swapped ? right : left);
  const auto number = integer(limit);
  const bool is_pointer = type.kind == Kind::kPointer;
  const bool is_unsigned = is_pointer || (type.kind == Kind::kInt && !type.is_signed);
  if (!is_unsigned || !number || integer(value)) return;
  const bool is_below = node.op != BinaryOp::kEqual && *number == 0;
  const bool is_negative = *number < 0 && type.size_bytes < 8 && type_of(is_swapped ? left : right).is_signed;
  if (!is_below && !is_negative) return;
  warning("never-true", node.op_span,
          "this is never true: " + show(is_swapped ? right : left) + (is_pointer ? " has no sign" : " is not negative"),
          is_pointer ? "`is_err(POINTER)` is true if it is a kernel error"
                     : "`(int" + std::to_string(type.size_bytes * 8) + ")VALUE` takes it for a signed number");
}

TypeId Checker::check_comparison(const Binary& node, TypeId left, TypeId right) {
  const Kind a = type_of(left).kind;
  const Kind b = type_of(right).kind;
  const bool is_equality = node.op == BinaryOp::kEqual || node.op == BinaryOp::kNotEqual;
  const bool a_scalar = is_int_like(type_of(left)) || a == Kind::kPointer;
  const bool b_scalar = is_int_like(type_of(right)) || b == Kind::kPointer;
  if (a_scalar && b_scalar) {
    warn_if_never(node, left, right);
    adapt_literal(node.left, right);
    adapt_literal(node.right, left);
    return types_.bool_type();
  }
  // Kinds whose values are numbers that are printed in another form.
  const auto is_number_like = [](Kind kind) {
    return kind == Kind::kKernelSymbol || kind == Kind::kCgroupPath || kind == Kind::kUsername;
  };
  if ((is_number_like(a) && (b_scalar || a == b)) || (is_number_like(b) && a_scalar)) return types_.bool_type();
  if (a == Kind::kString && b == Kind::kString) return types_.bool_type();
  if (is_equality &&
      ((program::is_probe_name(a) && text(node.right)) || (program::is_probe_name(b) && text(node.left))))
    return types_.bool_type();
  if (is_equality && a == b) {
    if (a == Kind::kBuffer || program::is_probe_name(a)) return types_.bool_type();
    const bool is_composite = a == Kind::kTuple || a == Kind::kRecord || a == Kind::kArray || a == Kind::kInet ||
                              a == Kind::kMac || a == Kind::kKernelStack || a == Kind::kUserStack;
    if (is_composite && (left == right || unify(types_, left, right))) return types_.bool_type();
  }
  return bad_operands(node, left, right);
}

TypeId Checker::check_match(ExprId id, const Binary& node, TypeId left, TypeId right) {
  const auto pattern = text(node.right);
  if (type_of(left).kind != Kind::kString || type_of(right).kind != Kind::kString)
    return bad_operands(node, left, right);
  if (!pattern) {
    error("not-constant", span_of(node.right), "the pattern after `~` must be a constant");
    return types_.bool_type();
  }
  if (!TextPattern::parse(*pattern))
    error("out-of-range", span_of(node.right),
          fmt::format("the pattern matches more than {} characters beside its `*`", TextPattern::kMostSymbols));
  if (const auto known = text(node.left)) fact(id).constant = int64_t{glob_match(*pattern, *known)};
  return types_.bool_type();
}

TypeId Checker::check_arithmetic(const Binary& node, TypeId left, TypeId right) {
  const TypeId found = arithmetic_type(node.op, left, right, node.left, node.right);
  if (!found) return bad_operands(node, left, right);
  const bool divides = node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo;
  if (divides && integer(node.right) == 0) error("bad-constant", span_of(node.right), "this divides by zero");
  adapt_literal(node.left, right);
  adapt_literal(node.right, left);
  return found;
}

TypeId Checker::arithmetic_type(BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr) {
  const bool left_pointer = type_of(left).kind == Kind::kPointer;
  const bool right_pointer = type_of(right).kind == Kind::kPointer;
  if (left_pointer && right_pointer) return op == BinaryOp::kSubtract ? types_.int64() : TypeId{};
  if (left_pointer || right_pointer) {
    if (!is_int_like(type_of(left_pointer ? right : left))) return {};
    if (op == BinaryOp::kAdd) return left_pointer ? left : right;
    if (op == BinaryOp::kSubtract) return left_pointer ? left : TypeId{};
    return types_.uint64();  // the address, masked or shifted
  }
  if (!is_int_like(type_of(left)) || !is_int_like(type_of(right))) return {};
  if (op == BinaryOp::kSubtract) return types_.int64();
  const bool is_shift = op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight;
  const auto is_signed = [&](TypeId t) { return type_of(t).kind != Kind::kBool && type_of(t).is_signed; };
  if (is_shift) return types_.int_type(8, is_signed(left));
  if (adapts_to_other(right_expr)) return types_.int_type(8, is_signed(left));
  if (adapts_to_other(left_expr)) return types_.int_type(8, is_signed(right));
  return types_.int_type(8, is_signed(left) || is_signed(right));
}

// A literal that is not negative takes the sign of the other operand.
bool Checker::adapts_to_other(ExprId literal) const {
  if (!literal || !is_number_literal(literal)) return false;
  const auto known = number(literal);
  return known && (known->is_unsigned || known->bits >= 0);
}

void Checker::adapt_literal(ExprId literal, TypeId other) {
  if (!other || type_of(other).kind != Kind::kInt || !adapts_to_other(literal)) return;
  if (!type_of(other).is_signed && fits(type_of(other), number(literal)->bits, true)) fact(literal).type = other;
}

TypeId Checker::bad_operands(const Binary& node, TypeId left, TypeId right) {
  // What to write for an operand beside the other: `str(p)` for a pointer to text, a number without its quotes.
  const auto operand_hint = [&](ExprId operand, TypeId own, TypeId other) -> std::string {
    if (!own || !other) return "";
    if (type_of(own).kind == Kind::kPointer && type_of(other).kind == Kind::kString)
      return fmt::format("a pointer to text is read by `str({})`", request_.sources.text(span_of(operand)));
    const auto literal = text(operand);
    if (literal && is_int_like(type_of(other)) && parse_int(*literal))
      return fmt::format("a number stands without quotes: {}", *literal);
    return "";
  };
  std::string hint = operand_hint(node.left, left, right);
  if (hint.empty()) hint = operand_hint(node.right, right, left);
  const auto is_text = [&](TypeId type) { return type && type_of(type).kind == Kind::kString; };
  if (hint.empty() && node.op == BinaryOp::kAdd && is_text(left) && is_text(right))
    hint = fmt::format("`str_concat({}, {})` joins texts", request_.sources.text(span_of(node.left)),
                       request_.sources.text(span_of(node.right)));
  error("bad-operands", node.op_span,
        std::string("`") + spelling(node.op) + "` does not work on " + show(left) + " and " + show(right), hint);
  return {};
}

// ---- Unary operators

TypeId Checker::visit(ExprId id, const Unary& node) {
  switch (node.op) {
    case UnaryOp::kPreIncrement:
    case UnaryOp::kPreDecrement:
    case UnaryOp::kPostIncrement:
    case UnaryOp::kPostDecrement: return increment(id, node);
    case UnaryOp::kDereference: return dereference(id, node);
    case UnaryOp::kAddressOf: return address_of(id, node);
    default: break;
  }
  const TypeId operand = read_value(node.operand);
  if (!operand) return {};
  const bool is_not = node.op == UnaryOp::kNot;
  const bool is_number = is_int_like(type_of(operand)) || type_of(operand).kind == Kind::kPointer;
  if (is_not ? !is_truthy(type_of(operand)) : !is_number) return bad_operand(id, node, operand);
  if (const auto known = number(node.operand); known && (is_not || is_number_literal(node.operand))) {
    const auto folded = fold_unary(node.op, *known);
    if (!folded) {
      error("bad-constant", span_of(id), "unable to fold literals due to overflow or underflow");
      return {};
    }
    if (is_not) {
      fact(id).constant = folded->bits;
      return types_.bool_type();
    }
    return set_number(id, *folded);
  }
  if (is_not) return types_.bool_type();
  if (node.op == UnaryOp::kNegate) return types_.int64();
  return types_.int_type(8, type_of(operand).kind != Kind::kBool && type_of(operand).is_signed);
}

TypeId Checker::bad_operand(ExprId id, const Unary& node, TypeId operand) {
  error("bad-operands", span_of(id), std::string("`") + spelling(node.op) + "` does not work on " + show(operand));
  return {};
}

// The type that holds the result of ++ or --; invalid if `old` cannot be counted.
TypeId Checker::incremented_type(const Unary& node, TypeId old) {
  const bool is_decrement = node.op == UnaryOp::kPreDecrement || node.op == UnaryOp::kPostDecrement;
  if (!old) return types_.int64();
  const types::Type& type = type_of(old);
  if (type.kind == Kind::kPointer) return old;
  return type.kind == Kind::kInt ? types_.int_type(8, is_decrement || type.is_signed) : TypeId{};
}

TypeId Checker::increment(ExprId id, const Unary& node) {
  if (ast_.get<syntax::Variable>(node.operand)) return increment_variable(id, node);
  MapState* state = assigned_map(node.operand);
  if (!state) {
    if (!ast_.get<ErrorExpr>(node.operand))
      error("not-assignable", span_of(node.operand), "only variables and maps can be incremented or decremented");
    return {};
  }
  refuse_unknown_names(*state, node.operand);
  const TypeId next = incremented_type(node, state->value.type);
  if (!next) return bad_operand(id, node, state->value.type);
  add_type_to_map(*state, {next}, span_of(id));
  return fact(node.operand).type = state->value.type;
}

TypeId Checker::increment_variable(ExprId id, const Unary& node) {
  const TypeId old = check_expr(node.operand);
  if (!old) return {};
  const VariableId variable = fact(node.operand).variable;
  const TypeId next = incremented_type(node, old);
  if (!next) return bad_operand(id, node, old);
  if (!variable_state(variable).slot.is_declared) add_to_variable(variable, {next}, span_of(id));
  return fact(node.operand).type = variable_type(variable);
}

TypeId Checker::dereference(ExprId id, const Unary& node) {
  const TypeId pointer = check_value(node.operand);
  if (!pointer) return {};
  const types::Type& t = type_of(pointer);
  if (t.kind == Kind::kInt && t.size_bytes == 8) return types_.uint64();
  if (t.kind != Kind::kPointer) {
    error("not-a-pointer", span_of(id), "only pointers can be dereferenced, and this is " + show(pointer));
    return {};
  }
  const TypeId element = t.element;
  // `*kptr(address)`: a word.
  if (type_of(element).kind == Kind::kVoid && fact(node.operand).builtin) return types_.uint64();
  if (type_of(element).kind == Kind::kVoid) {
    error("not-a-pointer", span_of(id), "a `void *` must be cast before it is dereferenced", "write `*(uint64 *)...`");
    return {};
  }
  return loaded_type(t.space, element);
}

TypeId Checker::address_of(ExprId id, const Unary& node) {
  const TypeId operand = check_value(node.operand);
  if (!operand) return {};
  if (fact(node.operand).map.valid() || fact(node.operand).variable.valid())
    return types_.pointer(operand, types::AddressSpace::kBpf);
  // A member, at any depth, of what a pointer points to.
  for (const auto* access = ast_.get<Access>(node.operand); access; access = ast_.get<Access>(access->base)) {
    const TypeId base = type(access->base);
    if (base && type_of(base).kind == Kind::kPointer) return types_.pointer(operand, type_of(base).space);
  }
  error("no-address", span_of(id), "this has no address", "`&` works on variables, maps and members behind a pointer");
  return {};
}

// ---- Casts

namespace {

// Kinds whose values are numbers that are printed in another form.
bool is_number_like(Kind kind) {
  return kind == Kind::kKernelSymbol || kind == Kind::kUserSymbol || kind == Kind::kUsername ||
         kind == Kind::kTimestamp || kind == Kind::kCgroupPath;
}

bool can_cast(const types::Type& from, const types::Type& to) {
  const bool from_scalar = is_int_like(from) || from.kind == Kind::kPointer;
  const bool to_scalar = is_int_like(to) || to.kind == Kind::kPointer;
  if (from_scalar && (to_scalar || is_number_like(to.kind))) return true;
  if (is_number_like(from.kind) && to.kind == Kind::kInt) return true;
  if (from.kind == Kind::kPointer && (to.kind == Kind::kString || to.kind == Kind::kBuffer)) return true;
  if (is_int_like(from) && to.kind == Kind::kArray) return true;
  if (from.kind == Kind::kArray && (to_scalar || to.kind == Kind::kArray)) return true;
  if (from.kind == Kind::kString &&
      (to.kind == Kind::kArray || to.kind == Kind::kString || to.kind == Kind::kBuffer || to.kind == Kind::kBool))
    return true;
  if (from.kind == Kind::kBuffer && (to.kind == Kind::kBuffer || to.kind == Kind::kString || to.kind == Kind::kArray))
    return true;
  return from.kind == to.kind && types::is_struct_like(from) && from.members.size() == to.members.size();
}

}  // namespace

// The address space of what lies behind a pointer: `p->member[i].other`, `*p`; nullopt for what does not.
std::optional<types::AddressSpace> Checker::space_behind_pointer(ExprId id) const {
  for (;;) {
    ExprId base;
    const auto* unary = ast_.get<Unary>(id);
    if (const auto* access = ast_.get<Access>(id)) base = access->base;
    if (const auto* index = ast_.get<Index>(id)) base = index->base;
    if (unary && unary->op == UnaryOp::kDereference) base = unary->operand;
    if (!base || !type(base)) return std::nullopt;
    const types::Type& outer = type_of(type(base));
    if (outer.kind == Kind::kPointer) return outer.space;
    id = base;
  }
}

TypeId Checker::visit(ExprId id, const Cast& node) {
  check_value(node.operand);
  TypeId to = named_type(node.type);
  read_aggregation(node.operand);
  const TypeId from = type(node.operand);
  if (!to || !from) return to;
  const types::Type source_type = type_of(from);
  const types::Type target = type_of(to);
  // `(int8[])e` takes as many elements as `e` has bytes.
  if (target.kind == Kind::kArray && target.count == 0 && type_of(target.element).size_bytes > 0)
    to = types_.array(target.element, source_type.size_bytes / type_of(target.element).size_bytes);
  // As in C, an array stands for its address.
  const bool is_array = source_type.kind == Kind::kArray || source_type.kind == Kind::kString;
  const auto space = is_array && target.kind == Kind::kPointer ? space_behind_pointer(node.operand) : std::nullopt;
  if (space) return types_.pointer(target.element, *space);
  if (!can_cast(source_type, target)) {
    error("bad-cast", span_of(id), show(from) + " cannot be cast to " + show(to));
    return {};
  }
  // A length that the script gives is no loss.
  const bool is_read = source_type.kind == Kind::kPointer && target.count == config_.limits.max_strlen;
  const bool was_cut = source_type.may_be_cut && source_type.count == target.count;
  if (target.kind == Kind::kString && (is_read || was_cut)) to = types_.string(target.count, true);
  // A value that the script does not make may have another type on other kernels, and without debug information.
  const bool is_from_outside = fact(node.operand).field != nullptr || space_behind_pointer(node.operand);
  if (from == to && !is_from_outside && !fact(node.operand).is_reduced && !is_constant(node.operand))
    warning("useless-cast", span_of(id), "this is " + show(to) + " already");
  if (target.kind == Kind::kPointer && source_type.kind == Kind::kPointer && source_type.space != target.space)
    to = types_.pointer(target.element, source_type.space);
  if (is_int_like(target) && integer(node.operand)) fact(id).constant = truncate(target, *integer(node.operand));
  if (target.kind == Kind::kBool && text(node.operand)) fact(id).constant = int64_t{!text(node.operand)->empty()};
  return to;
}

// ---- `func` as a symbol

namespace {

// The kinds of programs in which the kernel tells the address of the function (bpf_get_func_ip of bpf-helpers(7)).
bool knows_function(program::ProgramKind kind) {
  using program::ProgramKind;
  return kind == ProgramKind::kKprobe || kind == ProgramKind::kFentry || kind == ProgramKind::kFexit;
}

}  // namespace

bool Checker::use_func_as_symbol(ExprId value, TypeId wanted) {
  if (!value || !ast_.get<Name>(value)) return false;
  if (type_of(type(value)).kind != Kind::kFunctionName) return false;
  const spec::ProbeContext& context = unit().context;
  const bool is_user = context.pointers == types::AddressSpace::kUser;
  const Kind kind = type_of(wanted).kind;
  if (kind != (is_user ? Kind::kUserSymbol : Kind::kKernelSymbol)) return false;
  if (!is_user && !knows_function(context.kind)) return false;
  fact(value).type = wanted;
  return true;
}

bool Checker::becomes_symbol(TypeId held, TypeId given) const {
  const Kind kind = type_of(given).kind;
  return type_of(held).kind == Kind::kFunctionName && (kind == Kind::kKernelSymbol || kind == Kind::kUserSymbol);
}

}  // namespace espy::check
