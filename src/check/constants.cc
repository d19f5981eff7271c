#include "check/constants.h"

#include "base/strings.h"
#include "check/suggestions.h"
#include "check/type_rules.h"
#include "program/probe_names.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId Constants::integer(ExprId id, const IntegerLiteral& node) {
  facts_.fact(id).constant = static_cast<int64_t>(node.value);
  return literal_type(facts_.types(), node.value);
}

TypeId Constants::boolean(ExprId id, const BoolLiteral& node) {
  facts_.fact(id).constant = int64_t{node.value};
  return facts_.types().bool_type();
}

TypeId Constants::string(ExprId id, const StringLiteral& node) { return facts_.set_text(id, node.value); }

TypeId Constants::positional(ExprId id, const Positional& node) {
  const auto& given = config_.positional;
  if (node.index == 0 || node.index > given.size()) return facts_.set_number(id, {0});
  const std::string& text = given[node.index - 1];
  if (const auto number = parse_int(text)) return facts_.set_number(id, {*number, *number < 0 && text[0] != '-'});
  return facts_.set_text(id, text);
}

TypeId Constants::positional_count(ExprId id) {
  return facts_.set_number(id, {static_cast<int64_t>(config_.positional.size())});
}

bool Constants::is_value(const std::string& word) const {
  return word == "args" || word == "locals" || word == "retval" || defines_.contains(word) ||
         registry_.find_builtin(word) != nullptr;
}

TypeId Constants::operand_type(ExprId operand) {
  if (const auto* type = facts_.ast().get<TypeExpr>(operand)) return type_names_.type(type->type);
  // The parser cannot tell a type with a name of its own from a value.
  const auto* word = facts_.ast().get<Name>(operand);
  if (word && !is_value(word->name))
    if (const TypeId named = type_names_.plain_type(word->name)) return facts_.fact(operand).type = named;
  return expressions_.value(operand);
}

TypeId Constants::size(ExprId id, const Sizeof& node) {
  const TypeId found = operand_type(node.operand);
  if (!found) return {};
  if (facts_.type_of(found).kind == Kind::kStruct && !facts_.type_of(found).complete)
    kernel_.complete(facts_.types(), found);
  // An enumerator is a number of 64 bits, whatever its enum is stored in.
  const bool is_enumerator = facts_.ast().get<Name>(node.operand) && facts_.type_of(found).kind == Kind::kEnum &&
                             facts_.is_constant(node.operand);
  facts_.set_number(id, {is_enumerator ? 8 : facts_.type_of(found).size_bytes});
  return facts_.types().uint64();
}

TypeId Constants::offset(ExprId id, const Offsetof& node) {
  TypeId at = operand_type(node.operand);
  uint64_t offset = 0;
  for (const std::string& name : node.path) {
    if (!at) return {};
    if (facts_.type_of(at).kind == Kind::kStruct && !facts_.type_of(at).complete) kernel_.complete(facts_.types(), at);
    const auto found = types::find_member(facts_.types(), at, name);
    if (!found) {
      reporter_.error("unknown-member", node.path_span, facts_.show(at) + " has no member `" + name + "`");
      return {};
    }
    offset += found->offset_bits / 8;
    at = found->type;
  }
  facts_.set_number(id, {static_cast<int64_t>(offset)});
  return facts_.types().uint64();
}

TypeId Constants::type_property(ExprId id, const Typeinfo& node, const std::string& name, Span at) {
  const TypeId found = operand_type(node.operand);
  if (!found) return {};
  if (name == "base_type") {
    const Kind kind = facts_.type_of(found).kind;
    return facts_.set_text(id, program::is_probe_name(kind) ? "string" : std::string(types::kind_word(kind)));
  }
  if (name == "full_type") return facts_.set_text(id, types::to_string(facts_.types(), found));
  if (name == "btf_id") {
    const auto location = kernel_.btf_location(facts_.types(), found);
    return facts_.set_number(id, {location ? int64_t{location->btf_id} : 0});
  }
  reporter_.error("unknown-member", at, "`typeinfo` has no member `" + name + "`",
                  did_you_mean(name, {"base_type", "full_type", "btf_id"}));
  return {};
}

TypeId Constants::comptime(ExprId id, const Comptime& node) {
  const TypeId found = expressions_.value(node.operand);
  facts_.fact(id).constant = facts_.constant(node.operand);
  if (found && !facts_.is_constant(node.operand))
    reporter_.error("not-constant", facts_.span(node.operand), "this is not known at compile time");
  return found;
}

TypeId Constants::type_expression(const TypeExpr& node) {
  type_names_.type(node.type);
  return facts_.types().void_type();
}

}  // namespace espy::check
