// Types as written, and casts to them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "check/analyzer.h"
#include "check/c_types.h"
#include "check/signature.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

namespace {

struct CName {
  std::string_view name;
  uint8_t size_bytes;
  bool is_signed;
};
// What C headers call integers, for casts in scripts and where there is no BTF.
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

constexpr uint32_t kStackFrames = 127;      // of a stack that nobody says more of
constexpr int64_t kLargestCount = 1 << 20;  // elements of an array or bytes of a string that a script may ask for

// "unsigned long int", its words in any order. A long is as long as a pointer.
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

}  // namespace

TypeId c_integer(types::Types& types, std::string_view name) {
  for (const CName& row : kCNames)
    if (row.name == name) return types.int_type(row.size_bytes, row.is_signed);
  return spelled_integer(types, name);
}

TypeId Analyzer::named_type(const TypeName& name) {
  if (const TypeId basic = signature_type(types(), kernel(), name.name)) return basic;
  for (const AggregationName& row : kAggregations)
    if (row.name == name.name) return types().simple(row.kind, row.is_signed);
  if (name.name == "string") return types().string(static_cast<uint32_t>(config().max_strlen));
  if (name.name == "buffer") return types().buffer(static_cast<uint32_t>(config().max_strlen));
  if (name.name == "kstack_t") return types().stack(false, config().stack_mode, kStackFrames);
  if (name.name == "ustack_t") return types().stack(true, config().stack_mode, kStackFrames);
  if (const TypeId alias = types().find_alias(name.name)) return alias;
  if (const TypeId c = c_integer(types(), name.name)) return c;
  if (const TypeId alias = kernel().find_typedef(types(), name.name)) return alias;
  // Book-time scripts leave out the word `struct`.
  if (const TypeId found = kernel().find_struct(types(), name.name)) return found;
  return kernel().find_enum(types(), name.name);
}

TypeId Analyzer::base_type_name(const TypeName& name) {
  if (const auto* type_expr = ast().get<TypeExpr>(name.typeof_expr)) return type_name(type_expr->type);
  if (name.typeof_expr) {
    value(name.typeof_expr);
    read_aggregation(name.typeof_expr);
    return type(name.typeof_expr);
  }
  if (name.typeof_type) return type_name(name.typeof_type);
  if (!name.elements.empty()) {
    std::vector<types::Member> members;
    for (size_t i = 0; i < name.elements.size(); ++i) {
      const TypeId element = type_name(name.elements[i]);
      if (!element) return {};
      const bool is_named = i < name.element_names.size();
      members.push_back({.name = is_named ? name.element_names[i] : std::string(), .type = element});
    }
    if (!name.element_names.empty()) return types().record(std::move(members));
    std::vector<TypeId> elements;
    for (const types::Member& member : members) elements.push_back(member.type);
    return types().tuple(elements);
  }
  TypeId found;
  std::string_view word = "";
  switch (name.tag) {
    case TypeName::Tag::kStruct:
    case TypeName::Tag::kUnion:
      word = name.tag == TypeName::Tag::kStruct ? "struct " : "union ";
      found = types().find_struct(name.name);
      if (!found) found = kernel().find_struct(types(), name.name);
      break;
    case TypeName::Tag::kEnum:
      word = "enum ";
      found = types().find_enum(name.name);
      if (!found) found = kernel().find_enum(types(), name.name);
      break;
    case TypeName::Tag::kNone: found = named_type(name); break;
  }
  if (!found) unknown_type(name, word);
  return found;
}

// `word` is "struct ", "union ", "enum " or "".
void Analyzer::unknown_type(const TypeName& name, std::string_view word) {
  if (!is_final_round_) return;
  std::vector<std::string> names;
  if (word.empty()) {
    names = signature_type_names();
    for (const AggregationName& row : kAggregations) names.emplace_back(row.name);
    for (const CName& row : kCNames) names.emplace_back(row.name);
  } else {
    names = kernel().struct_names(std::string(word) + "*");
  }
  for (const CDefinition& definition : ast().c_definitions) {
    if (const auto* known = std::get_if<CStruct>(&definition))
      names.push_back(word.empty() ? "" : std::string(word) + known->name);
    if (const auto* known = std::get_if<CTypedef>(&definition)) names.push_back(known->name);
  }
  std::string hint = did_you_mean(std::string(word) + name.name, names);
  if (hint.empty())
    hint = kernel().has_btf() ? "define it in the script" : "this kernel has no BTF: define it in the script";
  error("unknown-type", name.span, fmt::format("no type named `{}{}`", word, name.name), hint);
}

TypeId Analyzer::type_name(TypeNameId id) {
  if (!id) return {};
  const TypeName& name = ast()[id];
  TypeId found = base_type_name(name);
  for (size_t i = 0; found && i < name.suffixes.size(); ++i) {
    const TypeName::Suffix& suffix = name.suffixes[i];
    if (suffix.is_pointer) {
      found = types().pointer(found, unit_->context.pointers);
      continue;
    }
    int64_t count = 0;  // `[]`: as many as the operand of the cast has
    if (suffix.count) {
      number(suffix.count);
      const auto known = integer(suffix.count);
      if (!known || *known < 0 || *known > kLargestCount) {
        error("bad-length", span(suffix.count), "a length must be a constant from 0 to 1048576");
        return {};
      }
      count = *known;
    }
    const bool is_plain = i == 0 && name.tag == TypeName::Tag::kNone && suffix.count;
    if (type_of(found).kind == Kind::kVoid) {
      error("unknown-type", name.span, "there are no arrays of void");
      return {};
    }
    if (is_plain && name.name == "string")
      found = types().string(static_cast<uint32_t>(std::max<int64_t>(count, 1)));
    else if (is_plain && name.name == "buffer")
      found = types().buffer(static_cast<uint32_t>(count));
    else
      found = types().array(found, static_cast<uint32_t>(count));
  }
  return found;
}

namespace {

bool is_number_like(Kind kind) {
  return kind == Kind::kKernelSymbol || kind == Kind::kUserSymbol || kind == Kind::kUsername ||
         kind == Kind::kTimestamp || kind == Kind::kCgroupPath;
}

// Y7 of the language: what may be cast to what.
bool can_cast(const types::Type& from, const types::Type& to) {
  const bool from_scalar = is_int_like(from) || from.kind == Kind::kPointer;
  const bool to_scalar = is_int_like(to) || to.kind == Kind::kPointer;
  if (from_scalar && (to_scalar || is_number_like(to.kind))) return true;
  if (is_number_like(from.kind) && to.kind == Kind::kInt) return true;
  if (from.kind == Kind::kPointer && (to.kind == Kind::kString || to.kind == Kind::kBuffer)) return true;
  if (is_int_like(from) && to.kind == Kind::kArray) return true;
  if (from.kind == Kind::kArray && (to_scalar || to.kind == Kind::kArray)) return true;
  if (from.kind == Kind::kString && (to.kind == Kind::kArray || to.kind == Kind::kString || to.kind == Kind::kBuffer))
    return true;
  if (from.kind == Kind::kBuffer && (to.kind == Kind::kBuffer || to.kind == Kind::kString || to.kind == Kind::kArray))
    return true;
  return from.kind == to.kind && types::is_struct_like(from) && from.members.size() == to.members.size();
}

}  // namespace

TypeId Analyzer::visit(ExprId id, const Cast& node) {
  value(node.operand);
  TypeId to = type_name(node.type);
  read_aggregation(node.operand);
  const TypeId from = type(node.operand);
  if (!to || !from) return to;
  const types::Type source_type = type_of(from);
  const types::Type target = type_of(to);
  // `(int8[])e` takes as many elements as `e` has bytes.
  if (target.kind == Kind::kArray && target.count == 0 && type_of(target.element).size_bytes > 0)
    to = types().array(target.element, source_type.size_bytes / type_of(target.element).size_bytes);
  if (!can_cast(source_type, target)) {
    error("bad-cast", span(id), show(from) + " cannot be cast to " + show(to));
    return {};
  }
  const bool is_read = source_type.kind == Kind::kPointer || source_type.count > target.count;
  if (target.kind == Kind::kString && (is_read || source_type.may_be_cut)) to = types().string(target.count, true);
  if (from == to && !fact(node.operand).is_reduced && !is_constant(node.operand))
    warning("useless-cast", span(id), "this is " + show(to) + " already");
  if (target.kind == Kind::kPointer && source_type.kind == Kind::kPointer && source_type.space != target.space)
    to = types().pointer(target.element, source_type.space);
  if (is_int_like(target) && integer(node.operand)) fact(id).constant = truncate(target, *integer(node.operand));
  return to;
}

}  // namespace espy::check
