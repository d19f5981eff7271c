#include "kernel/described_kernel.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/fatal.h"
#include "kernel/directory_kernel.h"
#include "types/parts.h"

namespace espy::kernel {

using recording::kNoType;
using recording::TypeKind;
using types::AddressSpace;
using types::Kind;
using types::TypeId;

namespace {

TypeKind described_kind(Kind kind) {
  switch (kind) {
    case Kind::kBool: return TypeKind::kBool;
    case Kind::kInt: return TypeKind::kInt;
    case Kind::kFloat: return TypeKind::kFloat;
    case Kind::kEnum: return TypeKind::kEnum;
    case Kind::kPointer: return TypeKind::kPointer;
    case Kind::kArray: return TypeKind::kArray;
    case Kind::kString: return TypeKind::kString;
    case Kind::kStruct: return TypeKind::kStruct;
    default: return TypeKind::kVoid;
  }
}

}  // namespace

uint32_t TypeDescriber::add(TypeId id, int32_t depth) {
  if (!id.valid()) return kNoType;
  const auto [known, is_new] = known_.try_emplace(id, Known{static_cast<uint32_t>(out_.size()), depth});
  const uint32_t index = known->second.index;
  if (!is_new && known->second.depth >= depth) return index;
  if (is_new) out_.emplace_back();
  known->second.depth = depth;
  recording::Type described = describe(id, depth);
  out_[index] = std::move(described);
  return index;
}

void TypeDescriber::add_members(TypeId struct_type, std::span<const std::string_view> names) {
  const uint32_t index = add(struct_type, -1);
  if (out_[index].is_complete) return;
  kernel_.complete(types_, struct_type);
  recording::Type whole = out_[index];
  whole.size_bytes = types_[struct_type].size_bytes;
  whole.align_bytes = types_[struct_type].align_bytes;
  whole.is_complete = true;
  for (const std::string_view name : names)
    if (const auto member = types::find_member(types_, struct_type, name))
      whole.members.push_back({std::string(name), add(member->type, -1), member->offset_bits, member->bit_size});
  out_[index] = std::move(whole);
}

recording::Type TypeDescriber::describe(TypeId id, int32_t depth) {
  if (types_[id].kind == Kind::kStruct && depth >= 0) kernel_.complete(types_, id);
  const types::Type type = types_[id];  // the table may grow
  recording::Type out{.kind = described_kind(type.kind),
                      .is_signed = type.is_signed,
                      .is_union = type.is_union,
                      .is_text = type.char_like || type.may_lack_nul,
                      .is_user_space = type.space == AddressSpace::kUser,
                      .size_bytes = type.size_bytes,
                      .align_bytes = type.align_bytes,
                      .count = type.count,
                      .name = type.name};
  if (type.kind == Kind::kPointer) out.element = add(type.element, depth - 1);
  if (type.kind == Kind::kArray) out.element = add(type.element, depth);
  if (type.kind == Kind::kEnum)
    for (const types::Enumerator& each : type.enumerators) out.enumerators.push_back({each.name, each.value});
  if (type.kind != Kind::kStruct || depth < 0 || !type.complete) return out;
  out.is_complete = true;
  for (const types::Member& each : type.members)
    out.members.push_back({each.name, add(each.type, depth), each.offset_bits, each.bit_size});
  return out;
}

namespace {

constexpr uint32_t kMaxTypeBytes = 1 << 24;
constexpr uint32_t kMaxAlignBytes = 1 << 12;
constexpr int kMaxNesting = 32;

bool is_size(uint32_t bytes, uint32_t most) { return std::has_single_bit(bytes) && bytes <= most; }

class Definer {
 public:
  Definer(std::span<const recording::Type> described, types::Types& types)
      : described_(described), types_(types), ids_(described.size()), is_defined_(described.size()) {}

  std::vector<TypeId> define() {
    // Structs are complete before they are used by value: none is completed later.
    origin_ = types_.add_origin([](types::Types&, TypeId) {}, "the recording");
    for (uint32_t i = 0; i < described_.size(); ++i)
      if (described_[i].kind == TypeKind::kStruct) declare(i);
    for (uint32_t i = 0; i < described_.size(); ++i) {
      convert(i, 0);
      define_struct(i, 0);
    }
    return std::move(ids_);
  }

 private:
  void declare(uint32_t index) {
    const recording::Type& type = described_[index];
    ids_[index] =
        types_.declare_struct(type.name, type.is_union, {origin_, index + 1}, std::min(type.size_bytes, kMaxTypeBytes),
                              type.is_user_space ? AddressSpace::kUser : AddressSpace::kKernel);
  }

  // A type that makes no sense becomes void.
  TypeId convert(uint32_t index, int nesting) {
    if (index >= ids_.size() || nesting > kMaxNesting) return types_.void_type();
    if (!ids_[index].valid()) {
      ids_[index] = types_.void_type();  // if it refers to itself
      ids_[index] = make(described_[index], index, nesting);
    }
    return ids_[index];
  }

  TypeId make(const recording::Type& type, uint32_t index, int nesting) {
    switch (type.kind) {
      case TypeKind::kBool: return types_.bool_type();
      case TypeKind::kInt:
        if (type.is_text) return types_.char_type(type.is_signed);
        return is_size(type.size_bytes, 16) ? types_.int_type(type.size_bytes, type.is_signed) : types_.void_type();
      case TypeKind::kFloat:
        return is_size(type.size_bytes, 16) ? types_.float_type(type.size_bytes) : types_.void_type();
      case TypeKind::kEnum: return make_enum(type, index);
      case TypeKind::kPointer:
        return types_.pointer(convert(type.element, nesting + 1),
                              type.is_user_space ? AddressSpace::kUser : AddressSpace::kKernel);
      case TypeKind::kArray: return make_array(type, nesting);
      case TypeKind::kString:
        if (type.count == 0 || type.count > kMaxTypeBytes) return types_.void_type();
        return type.is_text ? types_.char_array(type.count) : types_.string(type.count);
      case TypeKind::kStruct:
      case TypeKind::kVoid: return types_.void_type();
    }
    return types_.void_type();
  }

  TypeId make_enum(const recording::Type& type, uint32_t index) {
    if (!is_size(type.size_bytes, 8)) return types_.void_type();
    std::vector<types::Enumerator> enumerators;
    for (const recording::Enumerator& each : type.enumerators) enumerators.push_back({each.name, each.value});
    return types_.define_enum(type.name, std::move(enumerators), type.size_bytes, type.is_signed, {origin_, index + 1});
  }

  TypeId make_array(const recording::Type& type, int nesting) {
    const TypeId element = convert(type.element, nesting + 1);
    const uint64_t size = types_[element].size_bytes;
    return size * type.count > kMaxTypeBytes ? types_.void_type() : types_.array(element, type.count);
  }

  // The structs that it contains come first. Returns whether it may be a member: not of itself.
  bool define_struct(uint32_t index, int nesting) {
    if (index >= ids_.size() || nesting > kMaxNesting) return false;
    const recording::Type& type = described_[index];
    if (type.kind == TypeKind::kArray) return define_struct(type.element, nesting + 1);
    if (type.kind != TypeKind::kStruct) return true;
    if (is_defined_[index]) return types_[ids_[index]].complete;
    is_defined_[index] = true;
    if (!type.is_complete || type.size_bytes > kMaxTypeBytes) return false;
    std::vector<types::Member> members;
    for (const recording::Member& each : type.members) {
      if (!define_struct(each.type, nesting + 1)) continue;
      const TypeId member = convert(each.type, 0);
      if (types_[member].kind == Kind::kVoid || !fits(type, each, types_[member].size_bytes)) continue;
      members.push_back({each.name, member, each.offset_bits, each.bit_size});
    }
    const uint32_t align = is_size(type.align_bytes, kMaxAlignBytes) ? type.align_bytes : 1;
    if (!parts_.may_define(types_, ids_[index], members)) return false;
    types_.define_struct(ids_[index], std::move(members), type.size_bytes, align);
    return true;
  }

  static bool fits(const recording::Type& holder, const recording::Member& member, uint32_t size_bytes) {
    if (member.bit_size > 64 || (member.bit_size > 0 && member.bit_size > size_bytes * 8)) return false;
    if (member.bit_size == 0 && member.offset_bits % 8 != 0) return false;
    const uint64_t bits = member.bit_size > 0 ? member.bit_size : uint64_t{size_bytes} * 8;
    return member.offset_bits + bits <= uint64_t{holder.size_bytes} * 8;
  }

  std::span<const recording::Type> described_;
  types::Types& types_;
  types::Parts parts_;
  uint32_t origin_ = 0;
  std::vector<TypeId> ids_;
  std::vector<bool> is_defined_;
};

}  // namespace

std::vector<TypeId> define_types(std::span<const recording::Type> described, types::Types& types) {
  return Definer(described, types).define();
}

namespace {

using types::Kind;
using types::TypeId;

constexpr const char* kNoDirectory = "/dev/null";  // no path below it leads to a file

class DescribedKernel final : public DirectoryKernel {
 public:
  DescribedKernel(const recording::Description& description, std::function<bool(Feature)> has)
      : DirectoryKernel(kNoDirectory,
                        Machine{*find_arch(description.arch), description.page_size_bytes, description.cpu_count},
                        Tries{std::move(has)}),
        description_(description) {}

  const recording::Description* recording() const override { return &description_; }

  TypeId recorded_type(types::Types& types, uint32_t index) override {
    const std::vector<TypeId>& all = ids(types);
    return index < all.size() ? all[index] : TypeId{};
  }

  TypeId find_struct(types::Types& types, std::string_view tag) override {
    return find(types, tag, Kind::kStruct, [&] { return DirectoryKernel::find_struct(types, tag); });
  }
  TypeId find_enum(types::Types& types, std::string_view tag) override {
    return find(types, tag, Kind::kEnum, [&] { return DirectoryKernel::find_enum(types, tag); });
  }
  std::optional<Enumerated> find_enumerator(types::Types& types, std::string_view name) override {
    for (const TypeId id : ids(types))
      for (const types::Enumerator& each : types[id].enumerators)
        if (each.name == name) return Enumerated{id, each.value};
    return DirectoryKernel::find_enumerator(types, name);
  }

 private:
  // Types of the script come first. Of several with one name, one that has members.
  TypeId find(types::Types& types, std::string_view tag, Kind kind, const std::function<TypeId()>& in_script) {
    if (const TypeId found = in_script(); found.valid()) return found;
    TypeId out;
    for (const TypeId id : ids(types)) {
      const types::Type& type = types[id];
      if (type.kind == kind && type.name == tag && (!out.valid() || type.complete)) out = id;
    }
    return out;
  }

  const std::vector<TypeId>& ids(types::Types& types) {
    if (types_ != &types) ids_ = define_types(description_.types, types);
    types_ = &types;
    return ids_;
  }

  const recording::Description& description_;
  types::Types* types_ = nullptr;  // that `ids_` are of
  std::vector<TypeId> ids_;
};

}  // namespace

std::unique_ptr<Kernel> make_described_kernel(const recording::Description& description,
                                              std::function<bool(Feature)> has) {
  CHECK(find_arch(description.arch) != nullptr);
  return std::make_unique<DescribedKernel>(description, std::move(has));
}

}  // namespace espy::kernel
