// Members, elements, and the address space they are read from.
#include <fmt/format.h>

#include "check/analyzer.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId Analyzer::visit(ExprId id, const Access& node) {
  const auto* name = ast().get<Name>(node.base);
  if (name && fields_named(name->name)) {
    fact(id).field = nullptr;
    fact(node.base).type = fields_named(name->name)->empty() ? TypeId{} : fields_type(name->name);
    const spec::ContextField* field = field_named(name->name, node.name, node.name_span);
    fact(id).field = field;
    return field ? field->type : TypeId{};
  }
  if (const auto* question = ast().get<Typeinfo>(node.base))
    return type_question(id, *question, node.name, node.name_span);
  const TypeId base = value(node.base);
  read_aggregation(node.base);
  return base ? member(id, base, node.name, node.name_span) : TypeId{};
}

TypeId Analyzer::member(ExprId, TypeId base, const std::string& name, Span name_span) {
  TypeId holder = base;
  const bool is_behind = type_of(base).kind == Kind::kPointer;
  const types::AddressSpace space = type_of(base).space;
  if (is_behind) holder = type_of(base).element;
  if (!types::is_struct_like(type_of(holder))) {
    error("no-members", name_span, show(base) + " has no members",
          type_of(base).kind == Kind::kInt ? "cast it first: `((struct NAME *)...)." + name + "`" : "");
    return {};
  }
  if (type_of(holder).kind == Kind::kStruct && !type_of(holder).complete) kernel().complete(types(), holder);
  const auto found = types::find_member(types(), holder, name);
  if (!found) {
    std::vector<std::string> names;
    for (const types::Member& known : type_of(holder).members) names.push_back(known.name);
    error("unknown-member", name_span, show(holder) + " has no member `" + name + "`", did_you_mean(name, names));
    return {};
  }
  return seen_from(space, found->type);
}

// What lies at an address of `space`: pointers found in user memory point to user memory.
TypeId Analyzer::seen_from(types::AddressSpace space, TypeId found) {
  if (type_of(found).kind == Kind::kStruct && !type_of(found).complete) kernel().complete(types(), found);
  return space == types::AddressSpace::kUser ? types().in_user_memory(found) : found;
}

TypeId Analyzer::visit(ExprId id, const TupleAccess& node) {
  const TypeId base = value(node.base);
  if (!base) return {};
  const types::Type& t = type_of(base);
  if (t.kind != Kind::kTuple && t.kind != Kind::kRecord) {
    error("not-a-tuple", span(id), show(base) + " is not a tuple");
    return {};
  }
  if (node.index >= t.members.size()) {
    error("bad-index", span(id), fmt::format("{} has {} elements, counted from 0", show(base), t.members.size()));
    return {};
  }
  // Read as a number already: a cast to that number's type is not idle, but says what it reads.
  const VariableId variable = fact(node.base).variable;
  fact(id).is_reduced = node.index == 1 && variable && over_aggregations_.contains({unit_index_, variable});
  return t.members[node.index].type;
}

TypeId Analyzer::element(ExprId id, TypeId base, ExprId index) {
  const types::Type t = type_of(base);
  const auto known = integer(index);
  switch (t.kind) {
    case Kind::kArray:
    case Kind::kString:
      if (known && t.count > 0 && (*known < 0 || *known >= t.count))
        error("bad-index", span(index), fmt::format("the index {} is outside {}", *known, show(base)));
      return t.kind == Kind::kArray ? t.element : types().int_type(1, true);
    case Kind::kBuffer: return types().int_type(1, false);
    case Kind::kTuple:
      if (!known || *known < 0 || static_cast<size_t>(*known) >= t.members.size()) {
        error("bad-index", span(index), "a tuple's index must be a constant below " + std::to_string(t.members.size()));
        return {};
      }
      return t.members[static_cast<size_t>(*known)].type;
    case Kind::kPointer: {
      if (type_of(t.element).kind == Kind::kVoid) {
        error("not-a-pointer", span(id), "a `void *` must be cast before it is indexed");
        return {};
      }
      return seen_from(t.space, t.element);
    }
    default: error("bad-index", span(id), show(base) + " cannot be indexed"); return {};
  }
}

}  // namespace espy::check
