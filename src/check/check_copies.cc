// Variables, map elements, tuples, records and function arguments are copies in per-CPU memory, which is allocated
// before the script runs. The size of a struct or an array comes from the traced program, which is untrusted. Reading a
// member, an element or the address copies nothing else of it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "check/check_passes.h"
#include "check/checker.h"
#include "program/layout.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

namespace {

// A record with the value fits the smallest ring, and the part of a ring that is mapped first.
constexpr uint32_t kRecordOverheadBytes = 1024;
constexpr uint64_t kMostBytes = program::kRingFirstDataBytes - kRecordOverheadBytes;

// Each field of `args` and `locals` is read by instructions of its own: the kernel takes programs for some thousands.
constexpr size_t kMostFields = 2048;

bool is_assembled(const spec::ContextField& field) {
  const std::vector<types::LocationPiece>& pieces = field.recipe.place.pieces;
  const bool is_in_memory = pieces.size() == 1 && pieces[0].kind == types::LocationPiece::Kind::kMemory;
  return field.recipe.kind == spec::Recipe::Kind::kLocation && !is_in_memory;
}

// Functions without a half in user space that take any value read it where it is; but keys and values of maps are
// copied.
bool takes_address(const spec::Builtin& builtin, const Parameter& parameter) {
  if (parameter.type == "pointer") return true;
  return parameter.type == "any" && !builtin.handle && parameter.name != "key" && parameter.name != "value";
}

}  // namespace

bool Checker::is_incomplete(TypeId id) {
  if (!id) return false;
  complete_by_kernel(id);
  return is_open_struct(id);
}

// Strings of the script that max_strlen allows do not count: the script sets it.
uint64_t Checker::bytes_of(TypeId id) {
  if (!id) return 0;
  complete_by_kernel(id);
  const types::Type& type = type_of(id);
  if (types::is_aggregation(type)) return 0;
  if (type.kind == Kind::kString || type.kind == Kind::kBuffer)
    return !type.may_lack_nul && type.count <= config_.limits.max_strlen + 1 ? 0 : type.size_bytes;
  if (type.kind != Kind::kTuple && type.kind != Kind::kRecord) return type.size_bytes;
  // Not their own size, which has 32 bits.
  uint64_t sum = 0;
  std::vector<TypeId> elements;
  for (const types::Member& member : type.members) elements.push_back(member.type);
  for (const TypeId element : elements) sum += bytes_of(element);
  return sum;
}

bool Checker::refuse_if_large(TypeId type, Span span) {
  const uint64_t bytes = bytes_of(type);
  if (bytes <= kMostBytes) return false;
  const Kind kind = type_of(type).kind;
  const std::string what = kind == Kind::kTuple || kind == Kind::kRecord ? "this" : show(type);
  error("type-too-large", span,
        fmt::format("{} takes {} bytes, too many to be copied: {} at most", what, bytes, kMostBytes),
        kind == Kind::kString || kind == Kind::kBuffer ? "read less of it: `str(x, 64)`, `buf(x, 64)`"
                                                       : "use a member or an element of it, or its address");
  return true;
}

bool Checker::refuse_if_incomplete(TypeId type, Span span) {
  if (!is_incomplete(type)) return false;
  refuse_incomplete(type, span);
  return true;
}

bool Checker::refuse_if_many(ExprId id) {
  const auto* word = ast_.get<Name>(id);
  if (!word || (word->name != "args" && word->name != "locals") || !type(id)) return false;
  const types::Type& record = type_of(type(id));
  if (record.kind != Kind::kRecord || record.members.size() <= kMostFields) return false;
  error("type-too-large", span_of(id),
        fmt::format("`{}` has {} fields here, too many to be copied: {} at most", word->name, record.members.size(),
                    kMostFields),
        fmt::format("name the fields: `{}.NAME`", word->name));
  return true;
}

bool Checker::may_refuse_copies() const {
  for (uint32_t i = 0; i < types_.size(); ++i) {
    const types::Type& type = types_[TypeId{i}];
    if (type.size_bytes > kMostBytes || (type.kind == Kind::kRecord && type.members.size() > kMostFields)) return true;
    if (type.kind == Kind::kStruct && !type.complete) return true;
  }
  return false;
}

void Checker::skip_below(ExprId id) {
  walk(ast_, id, [&](ExprId below) { skipped_.insert(below); });
}

// What a variable or a map holds is reported where it is assigned.
bool Checker::is_read_in_place(ExprId id) const {
  const ExprFact& fact = unit().fact(id);
  if (fact.field && is_assembled(*fact.field)) return false;
  return in_place_.contains(id) || fact.map.valid() || ast_.get<syntax::Variable>(id) || ast_.get<TypeExpr>(id);
}

// An array as a pointer, or as one of other elements.
bool Checker::is_cast_in_place(const Cast& cast, TypeId to) const {
  const Kind from = type_of(type(cast.operand)).kind;
  const Kind target = type_of(to).kind;
  return target == Kind::kPointer || (target == from && (from == Kind::kArray || from == Kind::kString));
}

void Checker::note_arguments(const Call& call, const spec::Builtin& builtin) {
  const auto is_refused = [&](ExprId argument) {
    return bytes_of(type(argument)) > kMostBytes || is_incomplete(type(argument));
  };
  if (std::ranges::none_of(call.arguments, is_refused)) return;
  const Signature signature = parse_signature(builtin.sig);
  for (size_t i = 0; i < std::min(call.arguments.size(), signature.parameters.size()); ++i)
    if (takes_address(builtin, signature.parameters[i])) in_place_.insert(call.arguments[i]);
}

void Checker::note_operands(ExprId id) {
  const Ast& ast = ast_;
  const ExprFact& fact = unit().fact(id);
  if (const auto* node = ast.get<Access>(id)) in_place_.insert(node->base);
  if (const auto* node = ast.get<Index>(id)) in_place_.insert(node->base);
  if (const auto* node = ast.get<Unary>(id); node && node->op == UnaryOp::kAddressOf) in_place_.insert(node->operand);
  if (const auto* node = ast.get<Cast>(id); node && is_cast_in_place(*node, fact.type)) in_place_.insert(node->operand);
  if (const auto* node = ast.get<Call>(id); node && fact.builtin) note_arguments(*node, *fact.builtin);
  if (const auto* node = ast.get<Sizeof>(id)) skip_below(node->operand);
  if (const auto* node = ast.get<Offsetof>(id)) skip_below(node->operand);
  if (const auto* node = ast.get<Typeinfo>(id)) skip_below(node->operand);
}

void Checker::refuse_copy(ExprId id) {
  if (skipped_.contains(id)) return;
  if (is_constant(id)) return skip_below(id);
  const bool is_refused = !is_read_in_place(id) && (refuse_if_many(id) || refuse_if_large(type(id), span_of(id)) ||
                                                    refuse_if_incomplete(type(id), span_of(id)));
  if (is_refused) return skip_below(id);
  note_operands(id);
  // The name of a #define is reported in its place.
  const ExprId replacement = unit().fact(id).replacement;
  if (!replacement || skipped_.contains(replacement)) return;
  in_place_.insert(replacement);
  refuse_copies_below(replacement);
  skip_below(replacement);
}

void Checker::refuse_copies_below(ExprId root) {
  if (!root) return;
  const auto skip_type = [&](TypeNameId type) { skip_below(ast_[type].typeof_expr); };
  walk(
      ast_, root, [&](ExprId id) { refuse_copy(id); }, skip_type);
}

void Checker::refuse_copies_in_unit() {
  in_place_.clear();
  skipped_.clear();
  const size_t errors = error_count_;
  if (unit().action) {
    refuse_copies_below(unit().action->predicate);
    refuse_copies_below(unit().action->body);
  }
  if (unit().function) refuse_copies_below(unit().function->body);
  if (error_count_ != errors) return;
  // Those that are declared with a type, and parameters.
  for (const check::Variable& variable : unit().variables) refuse_if_large(variable.type, variable.span);
}

void Checker::refuse_copies() {
  if (!may_refuse_copies()) return;
  const size_t errors = error_count_;
  for (size_t i = 0; i < checked_.units.size(); ++i) {
    enter_unit(i);
    refuse_copies_in_unit();
  }
  if (error_count_ != errors) return;
  for (const CheckedMap& map : checked_.maps)
    if (!refuse_if_large(map.key, map.span)) refuse_if_large(map.value, map.span);
}

}  // namespace espy::check
