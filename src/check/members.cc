#include "check/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "check/suggestions.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

void refuse_incomplete(const Facts& facts, Reporter& reporter, const kernel::Kernel& kernel, TypeId type, Span span) {
  if (kernel.recording() != nullptr)
    reporter.error("not-recorded", span, "the members of " + facts.show(type) + " were not recorded",
                   "`espy record --depth N` records structs behind N pointers");
  else
    reporter.error("incomplete-type", span, "the members of " + facts.show(type) + " are not known",
                   "it has no definition here that can be read; its address can be used");
}

TypeId Members::access(ExprId id, const Access& node) {
  if (context_fields_.use_readable_part(node.base, node.name))
    return member(facts_.fact(node.base).type, node.name, node.name_span);
  const auto* name = facts_.ast().get<Name>(node.base);
  if (const auto* fields = name ? context_fields_.named(name->name) : nullptr) {
    facts_.fact(node.base).type = fields->empty() ? TypeId{} : context_fields_.record_type(name->name);
    const spec::ContextField* field = context_fields_.field(name->name, node.name, node.name_span);
    facts_.fact(id).field = field;
    return field ? field->type : TypeId{};
  }
  if (const auto* question = facts_.ast().get<Typeinfo>(node.base))
    return constants_.type_property(id, *question, node.name, node.name_span);
  const TypeId base = expressions_.read_value(node.base);
  return base ? member(base, node.name, node.name_span) : TypeId{};
}

TypeId Members::member(TypeId base, const std::string& name, Span name_span) {
  const bool is_pointer = facts_.type_of(base).kind == Kind::kPointer;
  const TypeId holder = is_pointer ? facts_.type_of(base).element : base;
  const types::AddressSpace space = facts_.type_of(base).space;
  if (!types::is_struct_like(facts_.type_of(holder))) {
    const std::string cast = "cast it first: `((struct NAME *)...)." + name + "`";
    const std::string types_lack = kernel_.has_btf() ? "" : "; without BTF the script has to define that struct";
    reporter_.error("no-members", name_span, facts_.show(base) + " has no members",
                    facts_.type_of(base).kind == Kind::kInt ? cast + types_lack : "");
    return {};
  }
  complete(holder);
  const auto found = types::find_member(facts_.types(), holder, name);
  if (!found && facts_.type_of(holder).kind == Kind::kStruct && !facts_.type_of(holder).complete) {
    refuse_incomplete(facts_, reporter_, kernel_, holder, name_span);
    return {};
  }
  if (!found) {
    std::vector<std::string> names;
    for (const types::Member& known : facts_.type_of(holder).members) names.push_back(known.name);
    const std::string path = path_to(holder, name);
    std::string hint = path.empty() ? did_you_mean(name, names) : fmt::format("it is in a member: `{}`", path);
    if (hint.empty() && kernel_.recording() != nullptr)
      hint = "if the kernel has it, `espy record --for SCRIPT` records it for a script that reads it";
    reporter_.error("unknown-member", name_span, facts_.show(holder) + " has no member `" + name + "`", hint);
    return {};
  }
  return loaded_type(space, found->type);
}

// Members move between structs from one kernel to the next. Of several places, the nearest counts.
std::string Members::path_to(TypeId holder, const std::string& name) {
  constexpr size_t kMostStructs = 256;
  struct Place {
    TypeId type;
    std::string path;  // empty, or with a dot at its end
    bool is_behind_pointer = false;
  };
  std::vector<Place> places = {{holder, "", false}};
  std::set<TypeId> seen = {holder};
  for (size_t i = 0; i < places.size() && i < kMostStructs; ++i) {
    const Place at = places[i];
    complete(at.type);
    if (types::find_member(facts_.types(), at.type, name)) return at.path + name;
    const std::vector<types::Member> members = facts_.type_of(at.type).members;
    for (const types::Member& each : members) {
      const bool is_pointer = facts_.type_of(each.type).kind == Kind::kPointer;
      const TypeId inner = is_pointer ? facts_.type_of(each.type).element : each.type;
      if (facts_.type_of(inner).kind != Kind::kStruct || (is_pointer && at.is_behind_pointer)) continue;
      if (!seen.insert(inner).second) continue;
      const std::string path = each.name.empty() ? at.path : fmt::format("{}{}.", at.path, each.name);
      places.push_back({inner, path, is_pointer || at.is_behind_pointer});
    }
  }
  return "";
}

void Members::complete(TypeId id) {
  const auto is_open = [&] { return facts_.type_of(id).kind == Kind::kStruct && !facts_.type_of(id).complete; };
  if (is_open() && facts_.type_of(id).origin.btf_id == 0) program_types_.define(id);
  if (is_open()) kernel_.complete(facts_.types(), id);
}

TypeId Members::loaded_type(types::AddressSpace space, TypeId found) {
  complete(found);
  return space == types::AddressSpace::kUser ? facts_.types().in_user_memory(found) : found;
}

TypeId Members::tuple_access(ExprId id, const TupleAccess& node) {
  const TypeId base = expressions_.value(node.base);
  if (!base) return {};
  const types::Type& t = facts_.type_of(base);
  if (t.kind != Kind::kTuple && t.kind != Kind::kRecord) {
    reporter_.error("not-a-tuple", facts_.span(id), facts_.show(base) + " is not a tuple");
    return {};
  }
  if (node.index >= t.members.size()) {
    reporter_.error("bad-index", facts_.span(id),
                    fmt::format("{} has {} elements, counted from 0", facts_.show(base), t.members.size()));
    return {};
  }
  // The value of an aggregation: a cast to its number's type tells how it is read, and is not useless.
  const VariableId variable = facts_.fact(node.base).variable;
  facts_.fact(id).is_reduced = node.index == 1 && variable && variables_.state(variable).iterates_aggregation;
  return t.members[node.index].type;
}

TypeId Members::index(ExprId id, const Index& node) {
  const TypeId base = expressions_.value(node.base);
  for (const ExprId index : node.indices) expressions_.number(index);
  const bool is_unknown_yet =
      facts_.ast().get<Map>(node.base) && !round_.is_final && facts_.type_of(base).kind == Kind::kInt;
  if (!base || is_unknown_yet) return {};
  if (node.indices.size() != 1) {
    reporter_.error("bad-index", facts_.span(id), "exactly one index is allowed here");
    return {};
  }
  return element(id, base, node.indices[0]);
}

TypeId Members::element(ExprId id, TypeId base, ExprId index) {
  const types::Type t = facts_.type_of(base);
  const auto known = facts_.integer(index);
  switch (t.kind) {
    case Kind::kArray:
    case Kind::kString:
      if (known && t.count > 0 && (*known < 0 || *known >= t.count))
        reporter_.error("bad-index", facts_.span(index),
                        fmt::format("the index {} is outside {}", *known, facts_.show(base)));
      return t.kind == Kind::kArray ? t.element : facts_.types().int_type(1, true);
    case Kind::kBuffer: return facts_.types().int_type(1, false);
    case Kind::kTuple:
      if (!known || *known < 0 || static_cast<size_t>(*known) >= t.members.size()) {
        reporter_.error("bad-index", facts_.span(index),
                        "a tuple's index must be a constant below " + std::to_string(t.members.size()));
        return {};
      }
      return t.members[static_cast<size_t>(*known)].type;
    case Kind::kPointer: {
      if (facts_.type_of(t.element).kind == Kind::kVoid) {
        reporter_.error("not-a-pointer", facts_.span(id), "a `void *` must be cast before it is indexed");
        return {};
      }
      return loaded_type(t.space, t.element);
    }
    default: reporter_.error("bad-index", facts_.span(id), facts_.show(base) + " cannot be indexed"); return {};
  }
}

TypeId Members::tuple(const Tuple& node) {
  std::vector<TypeId> elements;
  for (const ExprId element : node.elements) {
    elements.push_back(expressions_.read_value(element));
  }
  if (std::ranges::any_of(elements, [](TypeId t) { return !t; })) return {};
  return facts_.types().tuple(elements);
}

TypeId Members::record(ExprId id, const syntax::Record& node) {
  std::vector<types::Member> members;
  bool complete = true;
  for (size_t i = 0; i < node.values.size(); ++i) {
    const TypeId found = expressions_.read_value(node.values[i]);
    complete &= found.valid();
    const std::string& name = node.names[i];
    if (std::ranges::any_of(members, [&](const auto& m) { return m.name == name; }))
      reporter_.error("repeated-name", facts_.span(id), "the record has two elements named `" + name + "`");
    members.push_back({.name = name, .type = found});
  }
  return complete ? facts_.types().record(std::move(members)) : TypeId{};
}

}  // namespace espy::check
