#include "check/copied_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "check/members.h"
#include "check/signature.h"
#include "check/walk.h"
#include "program/ring.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

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

void CopiedValues::complete(TypeId id) {
  if (facts_.type_of(id).kind == Kind::kStruct && !facts_.type_of(id).complete) kernel_.complete(facts_.types(), id);
}

bool CopiedValues::is_incomplete(TypeId id) {
  if (!id) return false;
  complete(id);
  return facts_.type_of(id).kind == Kind::kStruct && !facts_.type_of(id).complete;
}

// Strings of the script that max_strlen allows do not count: the script sets it.
uint64_t CopiedValues::bytes_of(TypeId id) {
  if (!id) return 0;
  complete(id);
  const types::Type& type = facts_.type_of(id);
  if (types::is_aggregation(type)) return 0;
  if (type.kind == Kind::kString || type.kind == Kind::kBuffer)
    return !type.may_lack_nul && type.count <= config_.max_strlen + 1 ? 0 : type.size_bytes;
  if (type.kind != Kind::kTuple && type.kind != Kind::kRecord) return type.size_bytes;
  // Not their own size, which has 32 bits.
  uint64_t sum = 0;
  std::vector<TypeId> elements;
  for (const types::Member& member : type.members) elements.push_back(member.type);
  for (const TypeId element : elements) sum += bytes_of(element);
  return sum;
}

bool CopiedValues::refuse_if_large(TypeId type, Span span) {
  const uint64_t bytes = bytes_of(type);
  if (bytes <= kMostBytes) return false;
  const Kind kind = facts_.type_of(type).kind;
  const std::string what = kind == Kind::kTuple || kind == Kind::kRecord ? "this" : facts_.show(type);
  reporter_.error("type-too-large", span,
                  fmt::format("{} takes {} bytes, too many to be copied: {} at most", what, bytes, kMostBytes),
                  kind == Kind::kString || kind == Kind::kBuffer ? "read less of it: `str(x, 64)`, `buf(x, 64)`"
                                                                 : "use a member or an element of it, or its address");
  return true;
}

bool CopiedValues::refuse_if_incomplete(TypeId type, Span span) {
  if (!is_incomplete(type)) return false;
  refuse_incomplete(facts_, reporter_, kernel_, type, span);
  return true;
}

bool CopiedValues::refuse_if_many(ExprId id) {
  const auto* word = facts_.ast().get<Name>(id);
  const TypeId type = facts_.type(id);
  if (!word || (word->name != "args" && word->name != "locals") || !type) return false;
  const types::Type& record = facts_.type_of(type);
  if (record.kind != Kind::kRecord || record.members.size() <= kMostFields) return false;
  reporter_.error("type-too-large", facts_.span(id),
                  fmt::format("`{}` has {} fields here, too many to be copied: {} at most", word->name,
                              record.members.size(), kMostFields),
                  fmt::format("name the fields: `{}.NAME`", word->name));
  return true;
}

bool CopiedValues::may_be_refused() const {
  const types::Types& types = facts_.types();
  for (uint32_t i = 0; i < types.size(); ++i) {
    const types::Type& type = types[TypeId{i}];
    if (type.size_bytes > kMostBytes || (type.kind == Kind::kRecord && type.members.size() > kMostFields)) return true;
    if (type.kind == Kind::kStruct && !type.complete) return true;
  }
  return false;
}

void CopiedValues::skip_below(ExprId id) {
  walk(facts_.ast(), id, [&](ExprId below) { skipped_.insert(below); });
}

// What a variable or a map holds is reported where it is assigned.
bool CopiedValues::is_read_in_place(ExprId id) const {
  const ExprFact& fact = fact_of(id);
  if (fact.field && is_assembled(*fact.field)) return false;
  return in_place_.contains(id) || fact.map.valid() || facts_.ast().get<syntax::Variable>(id) ||
         facts_.ast().get<TypeExpr>(id);
}

// An array as a pointer, or as one of other elements.
bool CopiedValues::is_cast_in_place(const Cast& cast, TypeId to) const {
  const Kind from = facts_.type_of(facts_.type(cast.operand)).kind;
  const Kind target = facts_.type_of(to).kind;
  return target == Kind::kPointer || (target == from && (from == Kind::kArray || from == Kind::kString));
}

void CopiedValues::note_arguments(const Call& call, const spec::Builtin& builtin) {
  const auto is_refused = [&](ExprId argument) {
    return bytes_of(facts_.type(argument)) > kMostBytes || is_incomplete(facts_.type(argument));
  };
  if (std::ranges::none_of(call.arguments, is_refused)) return;
  const Signature signature = parse_signature(builtin.sig);
  for (size_t i = 0; i < std::min(call.arguments.size(), signature.parameters.size()); ++i)
    if (takes_address(builtin, signature.parameters[i])) in_place_.insert(call.arguments[i]);
}

void CopiedValues::note_operands(ExprId id) {
  const Ast& ast = facts_.ast();
  const ExprFact& fact = fact_of(id);
  if (const auto* node = ast.get<Access>(id)) in_place_.insert(node->base);
  if (const auto* node = ast.get<Index>(id)) in_place_.insert(node->base);
  if (const auto* node = ast.get<Unary>(id); node && node->op == UnaryOp::kAddressOf) in_place_.insert(node->operand);
  if (const auto* node = ast.get<Cast>(id); node && is_cast_in_place(*node, fact.type)) in_place_.insert(node->operand);
  if (const auto* node = ast.get<Call>(id); node && fact.builtin) note_arguments(*node, *fact.builtin);
  if (const auto* node = ast.get<Sizeof>(id)) skip_below(node->operand);
  if (const auto* node = ast.get<Offsetof>(id)) skip_below(node->operand);
  if (const auto* node = ast.get<Typeinfo>(id)) skip_below(node->operand);
}

void CopiedValues::check_expr(ExprId id) {
  if (skipped_.contains(id)) return;
  if (facts_.is_constant(id)) return skip_below(id);
  const TypeId type = facts_.type(id);
  const bool is_refused = !is_read_in_place(id) && (refuse_if_many(id) || refuse_if_large(type, facts_.span(id)) ||
                                                    refuse_if_incomplete(type, facts_.span(id)));
  if (is_refused) return skip_below(id);
  note_operands(id);
  // The name of a #define is reported in its place.
  const ExprId replacement = fact_of(id).replacement;
  if (!replacement || skipped_.contains(replacement)) return;
  in_place_.insert(replacement);
  check_below(replacement);
  skip_below(replacement);
}

void CopiedValues::check_below(ExprId root) {
  if (!root) return;
  const auto skip_type = [&](TypeNameId type) { skip_below(facts_.ast()[type].typeof_expr); };
  walk(
      facts_.ast(), root, [&](ExprId id) { check_expr(id); }, skip_type);
}

void CopiedValues::check_unit() {
  in_place_.clear();
  skipped_.clear();
  const size_t errors = reporter_.error_count();
  const Unit& unit = facts_.unit();
  if (unit.action) {
    check_below(unit.action->predicate);
    check_below(unit.action->body);
  }
  if (unit.function) check_below(unit.function->body);
  if (reporter_.error_count() != errors) return;
  // Those that are declared with a type, and parameters.
  for (const check::Variable& variable : unit.variables) refuse_if_large(variable.type, variable.span);
}

void CopiedValues::check_map(const CheckedMap& map) {
  if (!refuse_if_large(map.key, map.span)) refuse_if_large(map.value, map.span);
}

}  // namespace espy::check
