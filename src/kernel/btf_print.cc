// In C a type surrounds the declared name: `int (*name[4])(long)`. So a declaration is built from the name outwards,
// one record at a time: a pointer adds a star before it, an array adds brackets after it, and a record with a name of
// its own (or braces) ends it on the left. Parentheses are needed only if an array or function follows a pointer.
#include <fmt/format.h>

#include <utility>

#include "kernel/btf.h"

namespace espy::kernel {
namespace {

constexpr int kMaxPrintedDepth = 64;
constexpr int kMaxFunctionNesting = 4;  // of functions in parameters of functions
constexpr size_t kMaxLines = 20'000;    // and parameters: malformed BTF may nest endlessly
constexpr size_t kLineBytes = 64;       // a longer name counts as several lines
constexpr BtfKinds kAggregates = kinds(BtfKind::kStruct, BtfKind::kUnion);

class Printer {
 public:
  explicit Printer(const Btf& btf, bool has_offsets = false) : btf_(btf), has_offsets_(has_offsets) {}

  // "struct foo {...}" with its lines indented by `indent` tabs, without a semicolon.
  std::string definition(const BtfRecord& record, int indent) {
    const std::string_view tag = btf_.name(record);
    const bool has_negative = record.is(kEnums) && record.has_negative();
    std::string text = fmt::format("{}{}{} {{\n", keyword(record), tag.empty() ? "" : " ", tag);
    for (uint32_t i = 0; i < record.count() && indent < kMaxPrintedDepth && ++lines_ < kMaxLines; ++i) {
      if (has_offsets_ && record.is(kAggregates)) text += place(Btf::member(record, i));
      text += std::string(static_cast<size_t>(indent) + 1, '\t');
      text += record.is(kEnums) ? enumerator(record, i, has_negative) : member(record, i, indent + 1) + ";\n";
    }
    if (has_offsets_ && record.is(kAggregates) && indent > 0) text += std::string(kPlaceColumns, ' ');
    return text + std::string(static_cast<size_t>(indent), '\t') + "}";
  }

  std::string declaration(uint32_t type, std::string name) { return declare(type, std::move(name), 0); }

  uint64_t size_of(uint32_t id, int depth = 0) {
    const auto record = btf_.record(id);
    if (!record || depth > kMaxPrintedDepth) return 0;
    switch (record->kind()) {
      case BtfKind::kPtr: return 8;
      case BtfKind::kArray: return Btf::array(*record).count * size_of(Btf::array(*record).element, depth + 1);
      case BtfKind::kTypedef:
      case BtfKind::kConst:
      case BtfKind::kVolatile:
      case BtfKind::kRestrict:
      case BtfKind::kTypeTag: return size_of(record->size_or_type, depth + 1);
      case BtfKind::kFuncProto:
      case BtfKind::kFwd: return 0;
      default: return record->size_or_type;
    }
  }

 private:
  static std::string_view keyword(const BtfRecord& record) {
    if (record.kind() == BtfKind::kFwd) return record.kind_flag() ? "union" : "struct";
    if (record.is(kEnums)) return "enum";
    return record.kind() == BtfKind::kUnion ? "union" : "struct";
  }

  std::string enumerator(const BtfRecord& record, uint32_t index, bool has_negative) {
    const BtfEnumerator value = Btf::enumerator(record, index, has_negative);
    const std::string_view name = btf_.string(value.name_offset);
    if (has_negative) return fmt::format("{} = {},\n", name, value.value);
    return fmt::format("{} = {},\n", name, static_cast<uint64_t>(value.value));
  }

  std::string member(const BtfRecord& owner, uint32_t index, int indent) {
    const BtfMember member = Btf::member(owner, index);
    const uint32_t outer_bits = std::exchange(base_bits_, base_bits_ + member.offset_bits);
    std::string text = declare(member.type, std::string(btf_.string(member.name_offset)), indent);
    base_bits_ = outer_bits;
    if (member.bit_size != 0) text += fmt::format(": {}", member.bit_size);
    return text;
  }

  // Offset and size of a member.
  std::string place(const BtfMember& member) {
    const uint32_t bits = base_bits_ + member.offset_bits;
    const std::string offset =
        member.bit_size == 0 ? fmt::format("{}", bits / 8) : fmt::format("{}:{}", bits / 8, bits % 8);
    const std::string size = member.bit_size == 0 ? fmt::format("{}", size_of(member.type)) : "";
    return fmt::format("/* {:>7} {:>6} */", offset, size);
  }

  // The declaration of `declarator` ("name", "*name", "(*name)(int)") with the type `id`.
  std::string declare(uint32_t id, std::string declarator, int indent) {
    std::string qualifiers;  // of the next type: `const` in `const char *`
    bool behind_pointer = false;
    for (int depth = 0; depth < kMaxPrintedDepth; ++depth) {
      const auto record = btf_.record(id);
      if (!record) return finish(qualifiers + "void", declarator);
      switch (record->kind()) {
        case BtfKind::kPtr:
          declarator = qualifiers.empty() ? "*" + declarator : fmt::format("* {}{}", qualifiers, declarator);
          qualifiers.clear();
          behind_pointer = true;
          break;
        case BtfKind::kArray:
          if (behind_pointer) declarator = "(" + declarator + ")";
          declarator += fmt::format("[{}]", Btf::array(*record).count);
          behind_pointer = false;
          id = Btf::array(*record).element;
          continue;
        case BtfKind::kFuncProto:
          if (behind_pointer) declarator = "(" + declarator + ")";
          declarator += parameters(*record, indent);
          behind_pointer = false;
          break;
        case BtfKind::kConst: qualifiers += "const "; break;
        case BtfKind::kVolatile: qualifiers += "volatile "; break;
        case BtfKind::kRestrict:
        case BtfKind::kTypeTag: break;
        default: return finish(qualifiers + base(*record, indent), declarator);
      }
      id = record->size_or_type;
    }
    return finish("void", declarator);
  }

  static std::string finish(const std::string& left, const std::string& declarator) {
    return declarator.empty() ? left : left + " " + declarator;
  }

  std::string base(const BtfRecord& record, int indent) {
    const std::string_view name = btf_.name(record);
    const bool tagged = record.is(kAggregates | kEnums) || record.kind() == BtfKind::kFwd;
    if (!tagged) return std::string(name);
    return name.empty() ? definition(record, indent) : fmt::format("{} {}", keyword(record), name);
  }

  std::string parameters(const BtfRecord& proto, int indent) {
    if (proto.count() == 0) return "(void)";
    if (nesting_ >= kMaxFunctionNesting) return "(...)";
    ++nesting_;
    std::string text;
    for (uint32_t i = 0; i < proto.count(); ++i) {
      const BtfParameter parameter = Btf::parameter(proto, i);
      if (i > 0) text += ", ";
      const std::string_view name = btf_.string(parameter.name_offset);
      lines_ += 1 + name.size() / kLineBytes;
      if (parameter.type == 0 || lines_ >= kMaxLines) {
        text += "...";
        break;
      }
      text += declare(parameter.type, std::string(name), indent);
    }
    --nesting_;
    return "(" + text + ")";
  }

  static constexpr size_t kPlaceColumns = 20;  // width of what place() returns

  const Btf& btf_;
  bool has_offsets_;
  uint32_t base_bits_ = 0;  // start of the struct being printed
  int nesting_ = 0;
  size_t lines_ = 0;
};

}  // namespace

std::string print_definition(const Btf& btf, const BtfRecord& record) {
  return Printer(btf).definition(record, 0) + ";";
}

std::string print_layout(const Btf& btf, const BtfRecord& record) {
  Printer printer(btf, true);
  if (record.kind() == BtfKind::kTypedef)
    return fmt::format("typedef {};", printer.declaration(record.size_or_type, std::string(btf.name(record))));
  const std::string text = printer.definition(record, 0) + ";";
  return record.is(kAggregates) ? fmt::format("{}  /* {} bytes */", text, record.size_or_type) : text;
}

std::string print_prototype(const Btf& btf, const BtfRecord& function) {
  return Printer(btf).declaration(function.size_or_type, std::string(btf.name(function))) + ";";
}

std::string print_type(const Btf& btf, uint32_t id) { return Printer(btf).declaration(id, ""); }

}  // namespace espy::kernel
