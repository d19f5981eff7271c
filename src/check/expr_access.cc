// Members, elements, and the address space they are read from.
#include <fmt/format.h>

#include <algorithm>

#include "check/analyzer.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

namespace {

// Whether these bytes of a value are among those that its place knows.
bool knows_bytes(const types::ValueLocation& place, uint32_t offset_bytes, uint32_t size_bytes) {
  uint32_t at = 0;
  for (const types::LocationPiece& piece : place.pieces) {
    const bool is_touched = at < offset_bytes + size_bytes && offset_bytes < at + piece.size_bytes;
    if (is_touched && piece.kind == types::LocationPiece::Kind::kNothing) return false;
    at += piece.size_bytes;
  }
  return at >= offset_bytes + size_bytes;
}

}  // namespace

// `locals.s.x` where parts of `s` are nowhere any more, but `x` is not one of them.
bool Analyzer::is_kept_part(ExprId base, const std::string& member_name) {
  const auto* outer = ast().get<Access>(base);
  const auto* word = outer ? ast().get<Name>(outer->base) : nullptr;
  const auto* fields = word ? fields_named(word->name) : nullptr;
  if (!fields) return false;
  const auto field = std::ranges::find(*fields, outer->name, &spec::ContextField::name);
  if (field == fields->end() || field->unreadable.empty() || field->recipe.place.pieces.empty()) return false;
  const auto found = types::is_struct_like(type_of(field->type)) ? types::find_member(types(), field->type, member_name)
                                                                 : std::nullopt;
  if (!found) return false;
  const uint32_t last_bit =
      found->offset_bits + (found->bit_size ? found->bit_size : type_of(found->type).size_bytes * 8);
  const uint32_t first_byte = found->offset_bits / 8;
  if (!knows_bytes(field->recipe.place, first_byte, (last_bit + 7) / 8 - first_byte)) return false;
  fact(base).field = &*field;
  fact(base).type = field->type;
  return true;
}

TypeId Analyzer::visit(ExprId id, const Access& node) {
  if (is_kept_part(node.base, node.name)) return member(id, fact(node.base).type, node.name, node.name_span);
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
    const std::string cast = "cast it first: `((struct NAME *)...)." + name + "`";
    const std::string types_lack = kernel().has_btf() ? "" : "; without BTF the script has to define that struct";
    error("no-members", name_span, show(base) + " has no members",
          type_of(base).kind == Kind::kInt ? cast + types_lack : "");
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
