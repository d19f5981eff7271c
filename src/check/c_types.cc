#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "check/check_passes.h"

namespace espy::check {

using namespace syntax;
using types::Member;
using types::TypeId;

namespace {

constexpr uint64_t kMaxElements = 1 << 24;
constexpr uint64_t kMaxBytes = 1 << 28;  // offsets in bits are numbers of 32 bits

class Definer {
 public:
  Definer(types::Types& types, kernel::Kernel& kernel, source::Diagnostics& diagnostics)
      : types_(types), kernel_(kernel), diagnostics_(diagnostics) {}

  TypeId define(const CStruct& node) {
    const TypeId known = node.name.empty() ? TypeId{} : types_.find_struct(node.name);
    const TypeId id = known && !types_[known].complete ? known : types_.declare_struct(node.name, node.is_union, {});
    if (!node.has_body) return id;
    if (!node.name.empty() && kernel_.find_struct(scratch_, node.name))
      note_hidden(node.span, (node.is_union ? "union " : "struct ") + node.name);
    std::vector<Member> members;
    Layout at;
    for (const CMember& member : node.members) {
      const TypeId type = resolve(member.type, member.span);
      if (!type) return id;
      const Member placed = place(node, member, type, at);
      // `int : 5` is padding.
      if (!placed.name.empty() || !member.bit_size) members.push_back(placed);
    }
    const uint64_t align = std::max<uint64_t>(at.align_bytes, node.attributes.align_bytes);
    const uint64_t bytes = ((at.end_bits + 7) / 8 + align - 1) / align * align;
    if (bytes > kMaxBytes) {
      diagnostics_.error("type-too-large", node.span,
                         fmt::format("a {} of {} bytes is too large", node.is_union ? "union" : "struct", bytes));
      types_.define_struct(id, {}, 0, 1);
      return id;
    }
    types_.define_struct(id, std::move(members), static_cast<uint32_t>(bytes), static_cast<uint32_t>(align));
    return id;
  }

  TypeId define(const CEnum& node) {
    if (!node.name.empty() && kernel_.find_enum(scratch_, node.name)) note_hidden(node.span, "enum " + node.name);
    std::vector<types::Enumerator> enumerators;
    int64_t least = 0, most = 0;
    for (const auto& [name, value] : node.enumerators) {
      enumerators.push_back({name, value});
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const bool is_signed = least < 0;
    const bool is_wide = least < INT32_MIN || most > (is_signed ? int64_t{INT32_MAX} : int64_t{UINT32_MAX});
    return types_.define_enum(node.name, std::move(enumerators), is_wide ? 8 : 4, is_signed, {});
  }

  void define(const CTypedef& node) {
    if (const TypeId target = resolve(node.type, node.span)) types_.define_alias(node.name, target);
    if (node.attributes.align_bytes != 0) aligned_names_[node.name] = node.attributes.align_bytes;
  }

  void define(const CInclude&) {}
  void define(const CDefine&) {}

 private:
  void note_hidden(source::Span at, const std::string& type) {
    diagnostics_.add({source::Severity::kNote, "hides-kernel-type", at, "this hides the kernel's `" + type + "`"});
  }

  struct Layout {
    uint64_t end_bits = 0;
    uint32_t align_bytes = 1;
  };

  // A member's alignment in bytes. `aligned` overrides `packed`.
  uint32_t align_of(const CStruct& holder, const CMember& member, TypeId type) const {
    const bool is_packed = holder.attributes.is_packed || member.attributes.is_packed;
    uint32_t align = is_packed ? 1 : std::max(types_[type].align_bytes, 1u);
    const auto aligned = aligned_names_.find(member.type.name);
    if (aligned != aligned_names_.end() && member.type.steps.empty() && !is_packed)
      align = std::max(align, aligned->second);
    return std::max(align, member.attributes.align_bytes);
  }

  // A bit field shares a unit with the preceding ones if it fits; other members start at their alignment.
  Member place(const CStruct& holder, const CMember& member, TypeId type, Layout& at) {
    const types::Type& t = types_[type];
    const uint32_t align = align_of(holder, member, type);
    const uint64_t size_bits = uint64_t{t.size_bytes} * 8;
    const uint64_t start = holder.is_union ? 0 : at.end_bits;
    Member out{.name = member.name, .type = type};
    uint64_t offset = (start + align * 8 - 1) / (align * 8) * (align * 8);
    uint64_t taken = size_bits;
    if (member.bit_size) {
      taken = *member.bit_size;
      out.bit_size = static_cast<uint32_t>(taken);
      const bool crosses = size_bits > 0 && start / size_bits != (start + taken - (taken > 0)) / size_bits;
      const bool is_packed = holder.attributes.is_packed || member.attributes.is_packed;
      if (member.attributes.align_bytes == 0 && (is_packed || (taken > 0 && !crosses))) offset = start;
    }
    out.offset_bits = static_cast<uint32_t>(std::min<uint64_t>(offset, UINT32_MAX));
    at.end_bits = std::max(at.end_bits, offset + taken);
    // An unnamed bit field does not affect the alignment of the struct.
    if (!member.bit_size || !member.name.empty()) at.align_bytes = std::max(at.align_bytes, align);
    return out;
  }

  TypeId base(const CType& type) {
    if (type.inline_struct) return define(*type.inline_struct);
    if (type.inline_enum) return define(*type.inline_enum);
    switch (type.tag) {
      case CType::Tag::kStruct:
      case CType::Tag::kUnion: {
        if (const TypeId own = types_.find_struct(type.name)) return own;
        if (const TypeId known = kernel_.find_struct(types_, type.name)) return known;
        return types_.declare_struct(type.name, type.tag == CType::Tag::kUnion, {});
      }
      case CType::Tag::kEnum: {
        if (const TypeId own = types_.find_enum(type.name)) return own;
        return kernel_.find_enum(types_, type.name);
      }
      case CType::Tag::kNone: break;
    }
    if (type.name == "void") return types_.void_type();
    if (type.name == "bool" || type.name == "_Bool") return types_.bool_type();
    if (type.name == "float") return types_.float_type(4);
    if (type.name == "double") return types_.float_type(8);
    if (type.name == "long double") return types_.float_type(16);
    if (const TypeId alias = types_.find_alias(type.name)) return alias;
    if (const TypeId integer = c_integer(types_, type.name)) return integer;
    return kernel_.find_typedef(types_, type.name);
  }

  TypeId resolve(const CType& type, source::Span span) {
    TypeId out = base(type);
    if (!out) {
      diagnostics_.error("unknown-type", span, "no type named `" + type.name + "`", "define it above");
      return out;
    }
    // In `a[2][3]` the last dimension is the innermost array.
    for (size_t i = 0; i < type.steps.size(); ++i) {
      const CType::Step& step = type.steps[i];
      switch (step.kind) {
        case CType::Step::Kind::kPointer: out = types_.pointer(out, types::AddressSpace::kKernel); break;
        case CType::Step::Kind::kFunction: out = types_.function(out, {}); break;
        case CType::Step::Kind::kArray:
          if (const TypeId found = complete(out, span)) out = array(found, step.count.value_or(0), span);
          break;
      }
    }
    return type.steps.empty() || type.steps.back().kind != CType::Step::Kind::kPointer ? complete(out, span) : out;
  }

  TypeId array(TypeId element, uint64_t count, source::Span span) {
    if (count > kMaxElements || count * types_[element].size_bytes > kMaxBytes) {
      diagnostics_.error("type-too-large", span, fmt::format("an array of {} elements is too large", count));
      count = 0;
    }
    return types_.array(element, static_cast<uint32_t>(count));
  }

  // Members must have complete types.
  TypeId complete(TypeId type, source::Span span) {
    if (types_[type].kind != types::Kind::kStruct || types_[type].complete) return type;
    if (types_[type].origin.btf_id != 0) {
      kernel_.complete(types_, type);
      return type;
    }
    diagnostics_.error("unknown-type", span, "`struct " + types_[type].name + "` is not defined here",
                       "define it above, or use a pointer to it");
    return {};
  }

  types::Types& types_;
  types::Types scratch_;  // for the kernel's types of the same names, which are only compared with
  std::map<std::string, uint32_t, std::less<>> aligned_names_;  // typedefs with an alignment of their own
  kernel::Kernel& kernel_;
  source::Diagnostics& diagnostics_;
};

}  // namespace

void define_c_types(const Ast& ast, types::Types& types, kernel::Kernel& kernel, source::Diagnostics& diagnostics) {
  Definer definer(types, kernel, diagnostics);
  for (const CDefinition& definition : ast.c_definitions)
    std::visit([&](const auto& node) { definer.define(node); }, definition);
}

}  // namespace espy::check
