#include "check/type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "check/c_types.h"
#include "check/signature.h"
#include "check/suggestions.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

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

TypeId TypeNames::plain_type(const std::string& name) {
  types::Types& types = facts_.types();
  if (const TypeId basic = signature_type(types, kernel_, name)) return basic;
  for (const AggregationName& row : kAggregations)
    if (row.name == name) return types.simple(row.kind, row.is_signed);
  if (name == "string") return types.string(static_cast<uint32_t>(config_.max_strlen));
  if (name == "buffer") return types.buffer(static_cast<uint32_t>(config_.max_strlen));
  if (name == "kstack_t") return types.stack(false, config_.stack_mode, kStackFrames);
  if (name == "ustack_t") return types.stack(true, config_.stack_mode, kStackFrames);
  if (const TypeId alias = types.find_alias(name)) return alias;
  if (const TypeId c = c_integer(types, name)) return c;
  // Old scripts leave out the word `struct`.
  if (const TypeId own = types.find_struct(name)) return own;
  if (const TypeId own = types.find_enum(name)) return own;
  using Scope = ProgramTypes::Scope;
  if (const TypeId found = program_types_.find_type(Scope::kOwn, ProgramTypes::Category::kAny, name)) return found;
  if (const TypeId alias = kernel_.find_typedef(types, name)) return alias;
  if (const TypeId found = kernel_.find_struct(types, name)) return found;
  if (const TypeId found = kernel_.find_enum(types, name)) return found;
  return program_types_.find_type(Scope::kAny, ProgramTypes::Category::kAny, name);
}

TypeId TypeNames::composite_type(const TypeName& name) {
  std::vector<types::Member> members;
  for (size_t i = 0; i < name.elements.size(); ++i) {
    const TypeId element = type(name.elements[i]);
    if (!element) return {};
    const bool is_named = i < name.element_names.size();
    members.push_back({.name = is_named ? name.element_names[i] : std::string(), .type = element});
  }
  if (!name.element_names.empty()) return facts_.types().record(std::move(members));
  std::vector<TypeId> elements;
  for (const types::Member& member : members) elements.push_back(member.type);
  return facts_.types().tuple(elements);
}

TypeId TypeNames::tagged_type(const TypeName& name) {
  types::Types& types = facts_.types();
  const bool is_enum = name.tag == TypeName::Tag::kEnum;
  const auto category = is_enum ? ProgramTypes::Category::kEnum : ProgramTypes::Category::kStruct;
  if (const TypeId own = is_enum ? types.find_enum(name.name) : types.find_struct(name.name)) return own;
  if (const TypeId found = program_types_.find_type(ProgramTypes::Scope::kOwn, category, name.name)) return found;
  const TypeId found = is_enum ? kernel_.find_enum(types, name.name) : kernel_.find_struct(types, name.name);
  return found ? found : program_types_.find_type(ProgramTypes::Scope::kAny, category, name.name);
}

TypeId TypeNames::base_type(const TypeName& name) {
  if (const auto* operand = facts_.ast().get<TypeExpr>(name.typeof_expr)) return type(operand->type);
  if (name.typeof_expr) return expressions_.read_value(name.typeof_expr);
  if (name.typeof_type) return type(name.typeof_type);
  if (!name.elements.empty()) return composite_type(name);
  const TypeId found = name.tag == TypeName::Tag::kNone ? plain_type(name.name) : tagged_type(name);
  if (!found) report_unknown(name);
  return found;
}

void TypeNames::report_unknown(const TypeName& name) {
  if (!round_.is_final) return;
  const std::string tag = tag_word(name.tag);
  const auto explained = program_types_.explain(name.name);
  if (explained && !explained->message.empty()) {
    reporter_.error("ambiguous-type", name.span, explained->message, explained->hint);
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
  for (const CDefinition& definition : facts_.ast().c_definitions) {
    if (const auto* known = std::get_if<CStruct>(&definition)) names.push_back(tag.empty() ? "" : tag + known->name);
    if (const auto* known = std::get_if<CTypedef>(&definition)) names.push_back(known->name);
  }
  std::string hint = explained ? explained->hint : did_you_mean(tag + name.name, names);
  if (hint.empty())
    hint = kernel_.has_btf() ? "define it in the script" : "this kernel has no BTF: define it in the script";
  reporter_.error("unknown-type", name.span, fmt::format("no type named `{}{}`", tag, name.name), hint);
}

std::optional<int64_t> TypeNames::length(ExprId count) {
  if (!count) return 0;  // `[]`: a cast takes the length from its operand
  expressions_.number(count);
  const auto known = facts_.integer(count);
  if (known && *known >= 0 && *known <= kLargestCount) return known;
  reporter_.error("bad-length", facts_.span(count), "a length must be a constant from 0 to 1048576");
  return std::nullopt;
}

TypeId TypeNames::array_type(const TypeName& name, size_t suffix, TypeId element) {
  const ExprId count = name.suffixes[suffix].count;
  const auto known = length(count);
  if (!known) return {};
  if (facts_.type_of(element).kind == Kind::kVoid) {
    reporter_.error("unknown-type", name.span, "there are no arrays of void");
    return {};
  }
  // string[N] and buffer[N] are types of their own.
  const bool is_plain = suffix == 0 && name.tag == TypeName::Tag::kNone && count;
  if (is_plain && name.name == "string")
    return facts_.types().string(static_cast<uint32_t>(std::max<int64_t>(*known, 1)));
  if (is_plain && name.name == "buffer") return facts_.types().buffer(static_cast<uint32_t>(*known));
  return facts_.types().array(element, static_cast<uint32_t>(*known));
}

// Where a pointer to the type leads that is made here: the structs of a program are in its memory.
types::AddressSpace TypeNames::space_of(TypeId element) const {
  const types::Type& type = facts_.type_of(element);
  return type.kind == Kind::kStruct && type.space == types::AddressSpace::kUser ? type.space
                                                                                : facts_.unit().context.pointers;
}

TypeId TypeNames::type(TypeNameId id) {
  if (!id) return {};
  const TypeName& name = facts_.ast()[id];
  TypeId found = base_type(name);
  for (size_t i = 0; found && i < name.suffixes.size(); ++i)
    found = name.suffixes[i].is_pointer ? facts_.types().pointer(found, space_of(found)) : array_type(name, i, found);
  return found;
}

}  // namespace espy::check
