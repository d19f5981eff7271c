#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"
#include "check/checker.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

// ---- Types as the script writes them: `struct foo *[4]`, `uint8`, `typeof($x)`

namespace {

struct CName {
  std::string_view name;
  uint8_t size_bytes;
  bool is_signed;
};
// Integer types of C headers, which casts can name on a kernel without BTF, too.
constexpr std::array kCNames = {
    CName{"size_t", 8, false},   CName{"ssize_t", 8, true},   CName{"u8", 1, false},        CName{"u16", 2, false},
    CName{"u32", 4, false},      CName{"u64", 8, false},      CName{"s8", 1, true},         CName{"s16", 2, true},
    CName{"s32", 4, true},       CName{"s64", 8, true},       CName{"__u8", 1, false},      CName{"__u16", 2, false},
    CName{"__u32", 4, false},    CName{"__u64", 8, false},    CName{"__s8", 1, true},       CName{"__s16", 2, true},
    CName{"__s32", 4, true},     CName{"__s64", 8, true},     CName{"uint8_t", 1, false},   CName{"uint16_t", 2, false},
    CName{"uint32_t", 4, false}, CName{"uint64_t", 8, false}, CName{"int8_t", 1, true},     CName{"int16_t", 2, true},
    CName{"int32_t", 4, true},   CName{"int64_t", 8, true},   CName{"uintptr_t", 8, false}, CName{"intptr_t", 8, true},
    CName{"pid_t", 4, true},     CName{"uid_t", 4, false},    CName{"dev_t", 4, false},     CName{"off_t", 8, true},
};

struct AggregationName {
  std::string_view name;
  Kind kind;
  bool is_signed;
};
constexpr std::array kAggregations = {
    AggregationName{"count_t", Kind::kCount, false},  AggregationName{"sum_t", Kind::kSum, true},
    AggregationName{"usum_t", Kind::kSum, false},     AggregationName{"avg_t", Kind::kAvg, true},
    AggregationName{"uavg_t", Kind::kAvg, false},     AggregationName{"min_t", Kind::kMin, true},
    AggregationName{"umin_t", Kind::kMin, false},     AggregationName{"max_t", Kind::kMax, true},
    AggregationName{"umax_t", Kind::kMax, false},     AggregationName{"stats_t", Kind::kStats, true},
    AggregationName{"ustats_t", Kind::kStats, false},
};

constexpr uint32_t kStackFrames = 127;      // of a stack whose depth the script does not give
constexpr int64_t kLargestCount = 1 << 20;  // elements of an array or bytes of a string that a script may ask for

// "unsigned long int", the words in any order. LP64: a long has 8 bytes.
TypeId spelled_integer(types::Types& types, std::string_view name) {
  uint32_t size_bytes = 4;
  bool is_signed = true, is_char = false, has_sign = false;
  for (const std::string_view word : split(name, ' ')) {
    if (word == "char")
      size_bytes = 1, is_char = true;
    else if (word == "short")
      size_bytes = 2;
    else if (word == "long")
      size_bytes = 8;
    else if (word == "unsigned")
      is_signed = false, has_sign = true;
    else if (word == "signed")
      has_sign = true;
    else if (word != "int")
      return {};
  }
  return is_char && !has_sign ? types.char_type() : types.int_type(size_bytes, is_signed);
}

// "struct ", "union ", "enum " or "".
std::string tag_word(TypeName::Tag tag) {
  switch (tag) {
    case TypeName::Tag::kStruct: return "struct ";
    case TypeName::Tag::kUnion: return "union ";
    case TypeName::Tag::kEnum: return "enum ";
    case TypeName::Tag::kNone: break;
  }
  return "";
}

}  // namespace

TypeId c_integer(types::Types& types, std::string_view name) {
  for (const CName& row : kCNames)
    if (row.name == name) return types.int_type(row.size_bytes, row.is_signed);
  return spelled_integer(types, name);
}

TypeId Checker::plain_type(const std::string& name) {
  if (const TypeId basic = signature_type(types_, kernel_, name)) return basic;
  for (const AggregationName& row : kAggregations)
    if (row.name == name) return types_.simple(row.kind, row.is_signed);
  if (name == "string") return types_.string(static_cast<uint32_t>(config_.limits.max_strlen));
  if (name == "buffer") return types_.buffer(static_cast<uint32_t>(config_.limits.max_strlen));
  if (name == "kstack_t") return types_.stack(false, config_.symbols.stack_mode, kStackFrames);
  if (name == "ustack_t") return types_.stack(true, config_.symbols.stack_mode, kStackFrames);
  if (const TypeId alias = types_.find_alias(name)) return alias;
  if (const TypeId c = c_integer(types_, name)) return c;
  // Old scripts leave out the word `struct`.
  if (const TypeId own = types_.find_struct(name)) return own;
  if (const TypeId own = types_.find_enum(name)) return own;
  if (const TypeId found = find_program_type(ProgramScope::kOwn, Category::kAny, name)) return found;
  if (const TypeId alias = kernel_.find_typedef(types_, name)) return alias;
  if (const TypeId found = kernel_.find_struct(types_, name)) return found;
  if (const TypeId found = kernel_.find_enum(types_, name)) return found;
  return find_program_type(ProgramScope::kAny, Category::kAny, name);
}

TypeId Checker::composite_type(const TypeName& name) {
  std::vector<types::Member> members;
  for (size_t i = 0; i < name.elements.size(); ++i) {
    const TypeId element = named_type(name.elements[i]);
    if (!element) return {};
    const bool is_named = i < name.element_names.size();
    members.push_back({.name = is_named ? name.element_names[i] : std::string(), .type = element});
  }
  if (!name.element_names.empty()) return types_.record(std::move(members));
  std::vector<TypeId> elements;
  for (const types::Member& member : members) elements.push_back(member.type);
  return types_.tuple(elements);
}

TypeId Checker::tagged_type(const TypeName& name) {
  const bool is_enum = name.tag == TypeName::Tag::kEnum;
  const auto category = is_enum ? Category::kEnum : Category::kStruct;
  if (const TypeId own = is_enum ? types_.find_enum(name.name) : types_.find_struct(name.name)) return own;
  if (const TypeId found = find_program_type(ProgramScope::kOwn, category, name.name)) return found;
  const TypeId found = is_enum ? kernel_.find_enum(types_, name.name) : kernel_.find_struct(types_, name.name);
  return found ? found : find_program_type(ProgramScope::kAny, category, name.name);
}

TypeId Checker::base_type(const TypeName& name) {
  if (const auto* operand = ast_.get<TypeExpr>(name.typeof_expr)) return named_type(operand->type);
  if (name.typeof_expr) return read_value(name.typeof_expr);
  if (name.typeof_type) return named_type(name.typeof_type);
  if (!name.elements.empty()) return composite_type(name);
  const TypeId found = name.tag == TypeName::Tag::kNone ? plain_type(name.name) : tagged_type(name);
  if (!found) report_unknown_type(name);
  return found;
}

void Checker::report_unknown_type(const TypeName& name) {
  if (!is_final_) return;
  const std::string tag = tag_word(name.tag);
  const auto explained = explain_missing_type(name.name);
  if (explained && !explained->message.empty()) {
    error("ambiguous-type", name.span, explained->message, explained->hint);
    return;
  }
  std::vector<std::string> names;
  if (tag.empty()) {
    names = signature_type_names();
    for (const AggregationName& row : kAggregations) names.emplace_back(row.name);
    for (const CName& row : kCNames) names.emplace_back(row.name);
  } else {
    names = kernel_.struct_names(tag + "*");
  }
  for (const CDefinition& definition : ast_.c_definitions) {
    if (const auto* known = std::get_if<CStruct>(&definition)) names.push_back(tag.empty() ? "" : tag + known->name);
    if (const auto* known = std::get_if<CTypedef>(&definition)) names.push_back(known->name);
  }
  std::string hint = explained ? explained->hint : did_you_mean(tag + name.name, names);
  if (hint.empty())
    hint = kernel_.has_btf() ? "define it in the script" : "this kernel has no BTF: define it in the script";
  error("unknown-type", name.span, fmt::format("no type named `{}{}`", tag, name.name), hint);
}

std::optional<int64_t> Checker::constant_length(ExprId count) {
  if (!count) return 0;  // `[]`: a cast takes the length from its operand
  check_integer(count);
  const auto known = integer(count);
  if (known && *known >= 0 && *known <= kLargestCount) return known;
  error("bad-length", span_of(count), "a length must be a constant from 0 to 1048576");
  return std::nullopt;
}

TypeId Checker::array_type(const TypeName& name, size_t suffix, TypeId element) {
  const ExprId count = name.suffixes[suffix].count;
  const auto known = constant_length(count);
  if (!known) return {};
  if (type_of(element).kind == Kind::kVoid) {
    error("unknown-type", name.span, "there are no arrays of void");
    return {};
  }
  // string[N] and buffer[N] are types of their own.
  const bool is_plain = suffix == 0 && name.tag == TypeName::Tag::kNone && count;
  if (is_plain && name.name == "string") return types_.string(static_cast<uint32_t>(std::max<int64_t>(*known, 1)));
  if (is_plain && name.name == "buffer") return types_.buffer(static_cast<uint32_t>(*known));
  return types_.array(element, static_cast<uint32_t>(*known));
}

// Where a pointer to the type leads that is made here: the structs of a program are in its memory.
types::AddressSpace Checker::pointer_space(TypeId element) const {
  const types::Type& type = type_of(element);
  return type.kind == Kind::kStruct && type.space == types::AddressSpace::kUser ? type.space : unit().context.pointers;
}

TypeId Checker::named_type(TypeNameId id) {
  if (!id) return {};
  const TypeName& name = ast_[id];
  TypeId found = base_type(name);
  for (size_t i = 0; found && i < name.suffixes.size(); ++i)
    found = name.suffixes[i].is_pointer ? types_.pointer(found, pointer_space(found)) : array_type(name, i, found);
  return found;
}

// ---- Composite values and their parts

void Checker::refuse_incomplete(TypeId type, Span span) {
  if (kernel_.recording() != nullptr)
    error("not-recorded", span, "the members of " + show(type) + " were not recorded",
          "`espy record --depth N` records structs behind N pointers");
  else
    error("incomplete-type", span, "the members of " + show(type) + " are not known",
          "it has no definition here that can be read; its address can be used");
}

TypeId Checker::visit(ExprId id, const Access& node) {
  if (use_readable_part(node.base, node.name)) return member_type(fact(node.base).type, node.name, node.name_span);
  const auto* name = ast_.get<Name>(node.base);
  if (const auto* fields = name ? context_fields(name->name) : nullptr) {
    fact(node.base).type = fields->empty() ? TypeId{} : context_record(name->name);
    const spec::ContextField* field = context_field(name->name, node.name, node.name_span);
    fact(id).field = field;
    return field ? field->type : TypeId{};
  }
  if (const auto* question = ast_.get<Typeinfo>(node.base))
    return type_property(id, *question, node.name, node.name_span);
  const TypeId base = read_value(node.base);
  return base ? member_type(base, node.name, node.name_span) : TypeId{};
}

TypeId Checker::member_type(TypeId base, const std::string& name, Span name_span) {
  const bool is_pointer = type_of(base).kind == Kind::kPointer;
  const TypeId holder = is_pointer ? type_of(base).element : base;
  const types::AddressSpace space = type_of(base).space;
  if (!types::is_struct_like(type_of(holder))) {
    const std::string cast = "cast it first: `((struct NAME *)...)." + name + "`";
    const std::string types_lack = kernel_.has_btf() ? "" : "; without BTF the script has to define that struct";
    error("no-members", name_span, show(base) + " has no members",
          type_of(base).kind == Kind::kInt ? cast + types_lack : "");
    return {};
  }
  complete_struct(holder);
  const auto found = types::find_member(types_, holder, name);
  if (!found && is_open_struct(holder)) {
    refuse_incomplete(holder, name_span);
    return {};
  }
  if (!found) {
    std::vector<std::string> names;
    for (const types::Member& known : type_of(holder).members) names.push_back(known.name);
    const std::string path = path_to_member(holder, name);
    std::string hint = path.empty() ? did_you_mean(name, names) : fmt::format("it is in a member: `{}`", path);
    if (hint.empty() && kernel_.recording() != nullptr)
      hint = "if the kernel has it, `espy record --for SCRIPT` records it for a script that reads it";
    error("unknown-member", name_span, show(holder) + " has no member `" + name + "`", hint);
    return {};
  }
  return loaded_type(space, found->type);
}

// Members move between structs from one kernel to the next. Of several places, the nearest counts.
std::string Checker::path_to_member(TypeId holder, const std::string& name) {
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
    complete_struct(at.type);
    if (types::find_member(types_, at.type, name)) return at.path + name;
    const std::vector<types::Member> members = type_of(at.type).members;
    for (const types::Member& each : members) {
      const bool is_pointer = type_of(each.type).kind == Kind::kPointer;
      const TypeId inner = is_pointer ? type_of(each.type).element : each.type;
      if (type_of(inner).kind != Kind::kStruct || (is_pointer && at.is_behind_pointer)) continue;
      if (!seen.insert(inner).second) continue;
      const std::string path = each.name.empty() ? at.path : fmt::format("{}{}.", at.path, each.name);
      places.push_back({inner, path, is_pointer || at.is_behind_pointer});
    }
  }
  return "";
}

bool Checker::is_open_struct(TypeId id) const { return type_of(id).kind == Kind::kStruct && !type_of(id).complete; }

void Checker::complete_struct(TypeId id) {
  if (is_open_struct(id) && type_of(id).origin.btf_id == 0) define_by_program(id);
  complete_by_kernel(id);
}

void Checker::complete_by_kernel(TypeId id) {
  if (is_open_struct(id)) kernel_.complete(types_, id);
}

TypeId Checker::loaded_type(types::AddressSpace space, TypeId found) {
  complete_struct(found);
  return space == types::AddressSpace::kUser ? types_.in_user_memory(found) : found;
}

TypeId Checker::visit(ExprId id, const TupleAccess& node) {
  const TypeId base = check_value(node.base);
  if (!base) return {};
  const types::Type& t = type_of(base);
  if (t.kind != Kind::kTuple && t.kind != Kind::kRecord) {
    error("not-a-tuple", span_of(id), show(base) + " is not a tuple");
    return {};
  }
  if (node.index >= t.members.size()) {
    error("bad-index", span_of(id), fmt::format("{} has {} elements, counted from 0", show(base), t.members.size()));
    return {};
  }
  // The value of an aggregation: a cast to its number's type tells how it is read, and is not useless.
  const VariableId variable = fact(node.base).variable;
  fact(id).is_reduced = node.index == 1 && variable && variable_state(variable).iterates_aggregation;
  return t.members[node.index].type;
}

TypeId Checker::check_element(ExprId id, const Index& node) {
  const TypeId base = check_value(node.base);
  for (const ExprId index : node.indices) check_integer(index);
  const bool is_unknown_yet = ast_.get<Map>(node.base) && !is_final_ && type_of(base).kind == Kind::kInt;
  if (!base || is_unknown_yet) return {};
  if (node.indices.size() != 1) {
    error("bad-index", span_of(id), "exactly one index is allowed here");
    return {};
  }
  return element_type(id, base, node.indices[0]);
}

TypeId Checker::element_type(ExprId id, TypeId base, ExprId index) {
  const types::Type t = type_of(base);
  const auto known = integer(index);
  switch (t.kind) {
    case Kind::kArray:
    case Kind::kString:
      if (known && t.count > 0 && (*known < 0 || *known >= t.count))
        error("bad-index", span_of(index), fmt::format("the index {} is outside {}", *known, show(base)));
      return t.kind == Kind::kArray ? t.element : types_.int_type(1, true);
    case Kind::kBuffer: return types_.int_type(1, false);
    case Kind::kTuple:
      if (!known || *known < 0 || static_cast<size_t>(*known) >= t.members.size()) {
        error("bad-index", span_of(index),
              "a tuple's index must be a constant below " + std::to_string(t.members.size()));
        return {};
      }
      return t.members[static_cast<size_t>(*known)].type;
    case Kind::kPointer: {
      if (type_of(t.element).kind == Kind::kVoid) {
        error("not-a-pointer", span_of(id), "a `void *` must be cast before it is indexed");
        return {};
      }
      return loaded_type(t.space, t.element);
    }
    default: error("bad-index", span_of(id), show(base) + " cannot be indexed"); return {};
  }
}

TypeId Checker::visit(ExprId, const Tuple& node) {
  std::vector<TypeId> elements;
  for (const ExprId element : node.elements) {
    elements.push_back(read_value(element));
  }
  if (std::ranges::any_of(elements, [](TypeId t) { return !t; })) return {};
  return types_.tuple(elements);
}

TypeId Checker::visit(ExprId id, const syntax::Record& node) {
  std::vector<types::Member> members;
  bool complete = true;
  for (size_t i = 0; i < node.values.size(); ++i) {
    const TypeId found = read_value(node.values[i]);
    complete &= found.valid();
    const std::string& name = node.names[i];
    if (std::ranges::any_of(members, [&](const auto& m) { return m.name == name; }))
      error("repeated-name", span_of(id), "the record has two elements named `" + name + "`");
    members.push_back({.name = name, .type = found});
  }
  return complete ? types_.record(std::move(members)) : TypeId{};
}

// ---- Types and enumerators of the programs that a script traces

// The provider to ask for the types of the program that a probe is in; null for other probes.
const spec::Provider* Checker::asked_provider(const program::Probe& probe) const {
  const spec::Provider* provider = registry_.find_provider(probe.provider);
  return provider != nullptr && provider->find_type != nullptr ? provider : nullptr;
}

// One probe for each program.
const std::vector<const program::Probe*>& Checker::probes_in_programs(ProgramScope scope) {
  const auto [entry, is_new] = program_probes_.try_emplace({unit_index_, scope});
  std::vector<const program::Probe*>& out = entry->second;
  if (!is_new) return out;
  std::set<std::string_view> seen;
  const auto add = [&](ProbeId id) {
    const program::Probe& probe = probes_[id];
    if (asked_provider(probe) != nullptr && seen.insert(probe.target).second) out.push_back(&probe);
  };
  for (const ProbeId id : unit().probes) add(id);
  if (scope == ProgramScope::kOwn || !out.empty()) return out;
  for (const ProbeId id : probes_.ids()) add(id);
  return out;
}

std::optional<kernel::Enumerated> Checker::search_programs(ProgramScope scope, Category category,
                                                           const std::string& name) {
  std::optional<kernel::Enumerated> out;
  std::string first;
  Explanation& explanation = explanations_[{unit_index_, name}];
  for (const program::Probe* probe : probes_in_programs(scope)) {
    spec::ProgramTypeRequest request{category, name, *probe, types_, checked_.symbols};
    const spec::ProgramType found = asked_provider(*probe)->find_type(request);
    if (!found.problem.empty()) explanation.hint = found.problem + ": define it in the script";
    if (!found.candidates.empty()) {
      explanation = {fmt::format("`{}` could be `{}`", name, join(found.candidates, "` or `")), "write the full name"};
      return std::nullopt;
    }
    if (!found.type) continue;
    if (!out) {
      out = {found.type, found.value};
      first = probe->target;
    } else if (found.value != out->value || !is_alike(types_, out->type, found.type)) {
      explanation = {fmt::format("`{}` is different in {} and {}", name, first, probe->target),
                     "use it in a probe of one of them, or define it in the script"};
      return std::nullopt;
    }
  }
  return out;
}

std::optional<kernel::Enumerated> Checker::find_in_programs(ProgramScope scope, Category category,
                                                            const std::string& name) {
  if (probes_in_programs(scope).empty()) return std::nullopt;
  const auto [entry, is_new] = program_types_.try_emplace({unit_index_, scope, category, name});
  if (is_new) entry->second = search_programs(scope, category, name);
  return entry->second;
}

TypeId Checker::find_program_type(ProgramScope scope, Category category, const std::string& name) {
  const auto found = find_in_programs(scope, category, name);
  return found ? found->type : TypeId{};
}

void Checker::define_by_program(TypeId declared) {
  const types::Type type = type_of(declared);
  const TypeId found =
      type.name.empty() ? TypeId{} : find_program_type(ProgramScope::kOwn, Category::kStruct, type.name);
  if (!found || found == declared) return;
  kernel_.complete(types_, found);
  const types::Type known = type_of(found);
  if (known.complete) types_.define_struct(declared, known.members, known.size_bytes, known.align_bytes);
}

std::optional<Checker::Explanation> Checker::explain_missing_type(const std::string& name) const {
  const auto found = explanations_.find({unit_index_, name});
  return found == explanations_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace espy::check
